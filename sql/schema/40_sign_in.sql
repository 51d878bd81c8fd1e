-- Requests for codes and links: rows that come and go by the thousand, without a foreign key to realm.
SET LOCAL ROLE postern_owner;

-- The statement that records a request says in settings which language, page and key it came with. A request to add an
-- identifier has its code here: it is not a code that signs in.
CREATE TABLE postern.sign_in_request (
    realm_id        uuid NOT NULL,
    id              bytea NOT NULL CHECK (octet_length(id) = 16),
    client          uuid,
    confirmed_user  uuid,
    hint_user       uuid,
    hint_session    uuid,
    device          uuid,
    confirmed_stamp uuid,
    user_id         uuid,
    message         uuid,
    created_at      timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz NOT NULL,
    polled_at       timestamptz,
    proved_at       timestamptz,
    last_send_at    timestamptz,
    attempts        integer NOT NULL DEFAULT 0,
    poll_interval   integer NOT NULL DEFAULT 5,
    sends           integer NOT NULL DEFAULT 0,
    pending         boolean NOT NULL DEFAULT true,
    denied          boolean NOT NULL DEFAULT false,
    kind            text NOT NULL CHECK (kind IN ('otp', 'register', 'magic', 'identifier')),
    email           text NOT NULL,
    address_key     text NOT NULL,
    first_name      text,
    last_name       text,
    source          text,
    app             text,
    locale          text DEFAULT NULLIF(current_setting('postern.locale', true), '')
        CONSTRAINT sign_in_request_locale CHECK (octet_length(locale) <= 35),
    page_browser    bytea CHECK (octet_length(page_browser) = 32),
    page_state      bytea CHECK (octet_length(page_state) <= 4096),
    page_origin     text DEFAULT NULLIF(current_setting('postern.page_origin', true), '')
        CHECK (octet_length(page_origin) <= 300),
    channel         text CONSTRAINT sign_in_request_channel CHECK (channel IN ('sms', 'voice', 'whatsapp')),
    region          text CONSTRAINT sign_in_request_region CHECK (octet_length(region) <= 3),
    code_salt       bytea CONSTRAINT sign_in_request_code_salt CHECK (octet_length(code_salt) = 16),
    code_mac        bytea CONSTRAINT sign_in_request_code_mac CHECK (octet_length(code_mac) = 32),
    jkt             bytea DEFAULT decode(NULLIF(current_setting('postern.proof_key', true), ''), 'hex'),
    code_ids        uuid[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (realm_id, id),
    CONSTRAINT sign_in_request_jkt CHECK (octet_length(jkt) = 32)
) WITH (fillfactor = 70);
CREATE INDEX sign_in_request_undecided ON postern.sign_in_request (realm_id, (hint_user IS NULL), created_at)
    WHERE pending;
CREATE INDEX sign_in_request_of_address ON postern.sign_in_request (address_key, realm_id);
CREATE INDEX sign_in_request_of_user ON postern.sign_in_request (user_id, realm_id) WHERE user_id IS NOT NULL;
CREATE INDEX sign_in_request_confirmed ON postern.sign_in_request (confirmed_user, realm_id)
    WHERE confirmed_user IS NOT NULL;
CREATE INDEX sign_in_request_hinted ON postern.sign_in_request (hint_user, realm_id) WHERE hint_user IS NOT NULL;
COMMENT ON TABLE postern.sign_in_request IS
    'A request for a code: the handle that its app got, its tries, and (while pending) the worker''s queue entry';
COMMENT ON COLUMN postern.sign_in_request.confirmed_user IS 'Whom the next poll signs in';
COMMENT ON COLUMN postern.sign_in_request.hint_user IS
    'sub of the ID-token hint that came with the request; whether it is the account asked for, the worker decides';
COMMENT ON COLUMN postern.sign_in_request.hint_session IS 'sid of the ID-token hint: names the known device';
COMMENT ON COLUMN postern.sign_in_request.device IS
    'sid of the known device that asked: set by the worker when the hint''s sub is the account asked for';
COMMENT ON COLUMN postern.sign_in_request.confirmed_stamp IS
    'Security stamp of confirmed_user at the confirmation; with another stamp the handle is dead';
COMMENT ON COLUMN postern.sign_in_request.user_id IS 'Whose identifier is to be added (kind identifier)';
COMMENT ON COLUMN postern.sign_in_request.message IS 'The last message that was queued for it (message_outbox.id)';
COMMENT ON COLUMN postern.sign_in_request.polled_at IS 'The last poll that was not too early';
COMMENT ON COLUMN postern.sign_in_request.proved_at IS
    'When the code of an address without an account was right on a page; the account is made when the names are given';
COMMENT ON COLUMN postern.sign_in_request.poll_interval IS 'Seconds; five more after each poll that was too early';
COMMENT ON COLUMN postern.sign_in_request.sends IS
    'Messages asked for with this handle, but for those within the cooldown';
COMMENT ON COLUMN postern.sign_in_request.source IS
    'Where a link was asked for from: shown on its page, shortened; never compared';
COMMENT ON COLUMN postern.sign_in_request.app IS 'The App whose host was asked; its posture decides';
COMMENT ON COLUMN postern.sign_in_request.locale IS 'The language that the request asked for';
COMMENT ON COLUMN postern.sign_in_request.page_browser IS 'SHA-256 of the cookie of the browser whose page asked';
COMMENT ON COLUMN postern.sign_in_request.page_state IS
    'The sealed state of that page: a link that is opened in its browser goes on there';
COMMENT ON COLUMN postern.sign_in_request.page_origin IS
    'Origin of the page that asked: where its link leads, and where its code is typed; NULL: an app asked';
COMMENT ON COLUMN postern.sign_in_request.channel IS 'What carries the message to a phone; NULL: mail';
COMMENT ON COLUMN postern.sign_in_request.region IS
    'The country of the number asked for, for the permits that a redeemed code gives back';
COMMENT ON COLUMN postern.sign_in_request.jkt IS
    'Thumbprint of the key that must be proven when the handle is redeemed; NULL: none';
CALL postern.tenant_table('sign_in_request', 'SELECT, INSERT, UPDATE', 'delete');

RESET ROLE;
