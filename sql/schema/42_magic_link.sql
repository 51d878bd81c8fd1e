-- Magic links. The request that a link belongs to is a row of sign_in_request.
SET LOCAL ROLE postern_owner;

CREATE DOMAIN postern.login_link_end AS text
    CHECK (VALUE IN ('redeemed', 'confirmed', 'denied', 'disowned', 'superseded'));
COMMENT ON DOMAIN postern.login_link_end IS 'What became of a magic link';

-- Ended links stay until they would have expired, so that the page can say what became of them.
CREATE TABLE postern.login_link (
    realm_id       uuid NOT NULL,
    user_id        uuid NOT NULL,
    token_hash     postern.bytes_32 NOT NULL,
    handle         postern.bytes_16 NOT NULL,
    client         uuid,
    security_stamp uuid,
    device         uuid,
    created_at     timestamptz NOT NULL DEFAULT now(),
    expires_at     timestamptz NOT NULL,
    asked_at       timestamptz,
    ended          postern.login_link_end,
    page_browser   postern.bytes_32,
    address_key    text NOT NULL,
    source         text NOT NULL,
    app            text,
    PRIMARY KEY (realm_id, user_id, token_hash),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE
) WITH (fillfactor = 70);
COMMENT ON TABLE postern.login_link IS
    'Magic links: SHA-256 of 256 random bits, and the handle (sign_in_request.id) that a confirmation signs in';
COMMENT ON COLUMN postern.login_link.security_stamp IS
    'Of the account when the link was made; with another stamp the link is dead';
COMMENT ON COLUMN postern.login_link.page_browser IS
    'SHA-256 of the cookie of the browser whose page asked; without a client: for a purpose of the host itself';
COMMENT ON COLUMN postern.login_link.device IS 'sid of the known device that asked; NULL: any other asker';
COMMENT ON COLUMN postern.login_link.asked_at IS 'When the link was asked for, for the page';
COMMENT ON COLUMN postern.login_link.ended IS 'disowned: the owner said that the request was not theirs';
COMMENT ON COLUMN postern.login_link.source IS
    'Where it was asked for from: shown on the page, shortened; never compared';
COMMENT ON COLUMN postern.login_link.app IS 'The App whose host was asked, for the page';
CALL postern.tenant_table('login_link', 'SELECT, INSERT, UPDATE', 'cascade');

RESET ROLE;
