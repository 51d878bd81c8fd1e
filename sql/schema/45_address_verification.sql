-- Proofs of addresses without accounts: requests of clients for the scopes verify:email and verify:phone.
SET LOCAL ROLE postern_owner;

-- One row from the message to the end of the tokens; what was proven is nowhere in clear.
CREATE TABLE postern.address_verification (
    realm_id        uuid NOT NULL,
    id              uuid NOT NULL,
    client          uuid NOT NULL,
    browser_session uuid,
    session         uuid,
    subject         uuid,
    message         uuid,
    created_at      timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz NOT NULL,
    last_send_at    timestamptz,
    proved_at       timestamptz,
    used_at         timestamptz,
    revoked_at      timestamptz,
    sends           integer NOT NULL DEFAULT 0,
    attempts        integer NOT NULL DEFAULT 0,
    kind            text NOT NULL CHECK (kind IN ('email', 'phone')),
    channel         postern.channel_name,
    region          postern.text_to_3,
    source          text,
    sealed_address  postern.bytes_to_1024 NOT NULL,
    code_salt       postern.bytes_16,
    code_mac        postern.bytes_32,
    code_hash       postern.bytes_32,
    redirect_uri    postern.text_to_2000,
    code_challenge  postern.text_43,
    nonce           postern.text_to_512,
    acr             text,
    scope           text[],
    resource        text[],
    amr             text[],
    token_salt      postern.bytes_16,
    jkt             bytea,
    PRIMARY KEY (realm_id, id),
    CONSTRAINT address_verification_code UNIQUE (code_hash, realm_id),
    CONSTRAINT address_verification_session UNIQUE (session, realm_id)
) WITH (fillfactor = 80);
COMMENT ON TABLE postern.address_verification IS
    'Addresses that a client wants proven without an account, from the message to the end of the tokens';
COMMENT ON COLUMN postern.address_verification.browser_session IS
    'The session whose user had proven the address already; NULL: a code was sent';
COMMENT ON COLUMN postern.address_verification.session IS
    'What the access token refers to; NULL: the code was not used yet';
COMMENT ON COLUMN postern.address_verification.subject IS
    'sub: an HMAC of client and address under a data key of the realm';
COMMENT ON COLUMN postern.address_verification.message IS 'The last message that was queued for it (message_outbox.id)';
COMMENT ON COLUMN postern.address_verification.sealed_address IS 'The address, sealed under the key file';
COMMENT ON COLUMN postern.address_verification.code_mac IS 'Of the code that was sent to the address';
COMMENT ON COLUMN postern.address_verification.code_hash IS 'SHA-256 of the authorization code';
COMMENT ON COLUMN postern.address_verification.jkt IS 'As in authorization_code';
CREATE INDEX address_verification_of_browser ON postern.address_verification (browser_session, realm_id)
    WHERE browser_session IS NOT NULL;
CALL postern.tenant_table('address_verification', 'SELECT, INSERT, UPDATE', 'delete', 't.expires_at < now()');

RESET ROLE;
