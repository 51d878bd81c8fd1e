-- Passkeys over the native wire: who a credential says it is, and which ceremonies are spent.
SET LOCAL ROLE postern_owner;

-- user.id of WebAuthn: random, tells nothing, stable for the account (WebAuthn L3 §14.6.1).
ALTER TABLE postern.user_account
    ADD COLUMN user_handle bytea NOT NULL DEFAULT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
        CHECK (octet_length(user_handle) = 32);

-- What a registration said beyond the key (§7.1 step 27), for the owner's list and for support.
ALTER TABLE postern.passkey
    ADD COLUMN uv_initialized boolean NOT NULL DEFAULT true,
    ADD COLUMN attestation_format text NOT NULL DEFAULT 'none';

-- A ceremony is stateless until it is presented; then its id is spent, whatever comes of it (docs/decisions/0000, F10).
CREATE TABLE postern.spent_ceremony (
    realm_id   uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    id         bytea NOT NULL CHECK (octet_length(id) = 16),
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (realm_id, id)
);
CREATE INDEX spent_ceremony_expiry ON postern.spent_ceremony (expires_at);
COMMENT ON TABLE postern.spent_ceremony IS 'WebAuthn ceremonies that were presented, until they would have expired';

ALTER TABLE postern.spent_ceremony ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY realm ON postern.spent_ceremony USING (realm_id = postern.current_realm()) WITH CHECK (realm_id = postern.current_realm());
CREATE POLICY owner ON postern.spent_ceremony TO postern_owner USING (true) WITH CHECK (true);
REVOKE ALL ON postern.spent_ceremony FROM PUBLIC;
GRANT SELECT, INSERT, DELETE ON postern.spent_ceremony TO postern_app;

RESET ROLE;
