-- The authorization code flow: codes and pushed requests.
SET LOCAL ROLE postern_owner;

-- Kept after its use as long as the first access token may live, so that a second use ends the session.
CREATE TABLE postern.authorization_code (
    realm_id        uuid NOT NULL,
    code_hash       postern.bytes_32 NOT NULL,
    user_id         uuid NOT NULL,
    client          uuid NOT NULL,
    browser_session uuid NOT NULL,
    security_stamp  uuid NOT NULL,
    session         uuid,
    created_at      timestamptz NOT NULL DEFAULT now(),
    auth_time       timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    used_at         timestamptz,
    redirect_uri    postern.text_to_2000 NOT NULL,
    code_challenge  postern.text_43,
    nonce           postern.text_to_512,
    acr             text NOT NULL,
    proof           jsonb,
    jkt             bytea,
    scope           text[] NOT NULL,
    resource        text[] NOT NULL,
    amr             text[] NOT NULL,
    PRIMARY KEY (realm_id, code_hash),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE
);
CREATE INDEX authorization_code_of_user ON postern.authorization_code (user_id, realm_id);
COMMENT ON TABLE postern.authorization_code IS
    'Authorization codes, only as SHA-256, and what each may be redeemed for';
COMMENT ON COLUMN postern.authorization_code.session IS 'The session that the code opened; NULL: not used yet';
COMMENT ON COLUMN postern.authorization_code.proof IS
    'Of a request that asked for a proven address: {"kind", "value", "method"}';
COMMENT ON COLUMN postern.authorization_code.jkt IS
    'Thumbprint of the key that must be proven when the code is redeemed (RFC 9449 section 10); NULL: none';
CALL postern.tenant_table('authorization_code', 'SELECT, INSERT, UPDATE', 'cascade',
    $$t.expires_at < now() - interval '1 hour' AND coalesce(t.used_at < now() - interval '2 hours', true)$$);

-- Opened: read by the authorization endpoint in time. Such a request may be finished later, once.
CREATE TABLE postern.pushed_request (
    realm_id   uuid NOT NULL,
    id_hash    postern.bytes_32 NOT NULL,
    client     uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    ends_at    timestamptz NOT NULL,
    opened_at  timestamptz,
    used_at    timestamptz,
    source     postern.chars_to_100 NOT NULL,
    sealed     postern.bytes_to_4300 NOT NULL,
    PRIMARY KEY (realm_id, id_hash)
);
CREATE INDEX pushed_request_unopened ON postern.pushed_request (client, source, realm_id) WHERE opened_at IS NULL;
COMMENT ON TABLE postern.pushed_request IS
    'Authorization requests that a client pushed (RFC 9126), sealed under the key file; request_uri only as SHA-256';
COMMENT ON COLUMN postern.pushed_request.expires_at IS 'Until when it can be opened';
COMMENT ON COLUMN postern.pushed_request.ends_at IS
    'When the row goes: with expires_at while it was not opened, then sign_in_lifetime after it was opened';
COMMENT ON COLUMN postern.pushed_request.source IS 'Where it came from: what one source keeps unopened is bounded';
CALL postern.tenant_table('pushed_request', 'SELECT, INSERT, UPDATE, DELETE', 'delete',
    't.ends_at < now() OR t.used_at < now() - interval ''2 minutes''');

RESET ROLE;
