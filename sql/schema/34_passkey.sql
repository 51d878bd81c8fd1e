-- Passkeys, and the ceremonies that are spent.
SET LOCAL ROLE postern_owner;

CREATE DOMAIN postern.rp_id AS text CHECK (postern.is_rp_id(VALUE));
COMMENT ON DOMAIN postern.rp_id IS 'WebAuthn RP-ID';
CREATE DOMAIN postern.credential_id AS bytea CHECK (octet_length(VALUE) BETWEEN 1 AND 1023);
COMMENT ON DOMAIN postern.credential_id IS 'WebAuthn credential id';
CREATE DOMAIN postern.sign_count AS bigint CHECK (VALUE BETWEEN 0 AND 4294967295);
COMMENT ON DOMAIN postern.sign_count IS 'WebAuthn signature counter';
CREATE DOMAIN postern.passkey_name AS text CHECK (char_length(VALUE) BETWEEN 1 AND 64);
COMMENT ON DOMAIN postern.passkey_name IS 'What a person calls a passkey';
CREATE TABLE postern.passkey (
    realm_id           uuid NOT NULL,
    id                 uuid NOT NULL DEFAULT gen_random_uuid(),
    user_id            uuid NOT NULL,
    rp_id              postern.rp_id NOT NULL,
    credential_id      postern.credential_id NOT NULL,
    public_key         bytea NOT NULL,
    sign_count         postern.sign_count NOT NULL DEFAULT 0,
    aaguid             uuid,
    backup_eligible    boolean NOT NULL,
    backup_state       boolean NOT NULL,
    uv_initialized     boolean NOT NULL DEFAULT true,
    transports         text[] NOT NULL DEFAULT '{}',
    display_name       postern.passkey_name,
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
    realm_id   uuid NOT NULL,
    id         postern.bytes_16 NOT NULL,
    expires_at timestamptz NOT NULL,
    spent_at   timestamptz NOT NULL DEFAULT now(),
    session    uuid,
    PRIMARY KEY (realm_id, id)
);
COMMENT ON TABLE postern.spent_ceremony IS 'WebAuthn ceremonies that were presented, until they would have expired';
COMMENT ON COLUMN postern.spent_ceremony.session IS
    'The session that its request would open, where that request may come again; see postern.repeat_sign_in';
CALL postern.tenant_table('spent_ceremony', 'SELECT, INSERT, DELETE', 'delete');

RESET ROLE;
