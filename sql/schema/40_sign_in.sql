-- Requests for codes and links: rows that come and go by the thousand, without a foreign key to realm.
SET LOCAL ROLE postern_owner;

-- A request to add an identifier has its code here: it is not a code that signs in.
CREATE DOMAIN postern.sign_in_request_kind AS text CHECK (VALUE IN ('otp', 'register', 'magic', 'identifier'));
COMMENT ON DOMAIN postern.sign_in_request_kind IS 'What a request asks for';
CREATE TABLE postern.sign_in_request (
    realm_id        uuid NOT NULL,
    id              postern.bytes_16 NOT NULL,
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
    kind            postern.sign_in_request_kind NOT NULL,
    email           text NOT NULL,
    address_key     text NOT NULL,
    first_name      text,
    last_name       text,
    source          text,
    app             text,
    locale          postern.text_to_35,
    page_browser    postern.bytes_32,
    page_state      postern.bytes_to_4096,
    page_origin     postern.text_to_300,
    channel         postern.channel_name,
    region          postern.text_to_3,
    code_salt       postern.bytes_16,
    code_mac        postern.bytes_32,
    jkt             postern.bytes_32,
    code_ids        uuid[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (realm_id, id)
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

-- A code or link that somebody asks for.
CREATE TYPE postern.new_request AS (
    id           bytea,
    resend_of    bytea,
    kind         text,
    address      text,
    address_key  text,
    channel      text,
    region       text,
    first_name   text,
    last_name    text,
    locale       text,
    page_origin  text,
    page_browser bytea,
    hint_user    uuid,
    hint_session uuid,
    lifetime     integer,
    sends        integer
);
COMMENT ON TYPE postern.new_request IS
    'A request for a message: id: of the new handle; resend_of: the handle to send again for; address: as typed, or a'
    ' number; channel NULL: mail; region: the country of a number; page_origin NULL: an app asks; page_browser: SHA-256'
    ' of the cookie of the browser whose page asks; hint_user and hint_session: sub and sid of an ID token that came'
    ' with it; lifetime in seconds; sends: messages that a handle may cause';

RESET ROLE;
