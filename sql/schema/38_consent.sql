-- What users allowed clients.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.consent (
    realm_id uuid NOT NULL,
    user_id  uuid NOT NULL,
    client   uuid NOT NULL,
    given_at timestamptz NOT NULL DEFAULT now(),
    scope    text[] NOT NULL,
    resource text[] NOT NULL,
    PRIMARY KEY (realm_id, user_id, client),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE,
    FOREIGN KEY (realm_id, client) REFERENCES postern.client ON DELETE CASCADE
);
CREATE INDEX consent_of_client ON postern.consent (client, realm_id, user_id);
COMMENT ON TABLE postern.consent IS 'What users allowed clients: scopes and the resources that these opened then';
CALL postern.tenant_table('consent', 'SELECT, INSERT, UPDATE, DELETE', 'cascade');

RESET ROLE;
