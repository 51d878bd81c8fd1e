-- Passkeys, and the ceremonies that are spent.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.passkey (
    realm_id           uuid NOT NULL,
    id                 uuid NOT NULL DEFAULT gen_random_uuid(),
    user_id            uuid NOT NULL,
    rp_id              text NOT NULL CHECK (postern.is_rp_id(rp_id)),
    credential_id      bytea NOT NULL CHECK (octet_length(credential_id) BETWEEN 1 AND 1023),
    public_key         bytea NOT NULL,
    sign_count         bigint NOT NULL DEFAULT 0 CHECK (sign_count BETWEEN 0 AND 4294967295),
    aaguid             uuid,
    backup_eligible    boolean NOT NULL,
    backup_state       boolean NOT NULL,
    uv_initialized     boolean NOT NULL DEFAULT true,
    transports         text[] NOT NULL DEFAULT '{}',
    display_name       text CHECK (char_length(display_name) BETWEEN 1 AND 64),
    attestation_format text NOT NULL DEFAULT 'none',
    created_at         timestamptz NOT NULL DEFAULT now(),
    last_used_at       timestamptz,
    PRIMARY KEY (realm_id, id),
    UNIQUE (credential_id, realm_id),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE,
    CHECK (backup_eligible OR NOT backup_state)
);
CREATE INDEX passkey_of_user ON postern.passkey (user_id, realm_id);
COMMENT ON TABLE postern.passkey IS 'WebAuthn credential records';
COMMENT ON COLUMN postern.passkey.uv_initialized IS
    'Whether the registration verified the user (WebAuthn L3 section 7.1 step 27)';
CALL postern.tenant_table('passkey', 'SELECT, INSERT, UPDATE, DELETE', 'cascade');

-- A ceremony is stateless until it is presented; then its id is spent, whatever comes of it (docs/decisions/0000, F10).
CREATE TABLE postern.spent_ceremony (
    realm_id   uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    id         bytea NOT NULL CHECK (octet_length(id) = 16),
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (realm_id, id)
);
CREATE INDEX spent_ceremony_expiry ON postern.spent_ceremony (expires_at);
COMMENT ON TABLE postern.spent_ceremony IS 'WebAuthn ceremonies that were presented, until they would have expired';
CALL postern.tenant_table('spent_ceremony', 'SELECT, INSERT, DELETE', 'cascade');

RESET ROLE;
