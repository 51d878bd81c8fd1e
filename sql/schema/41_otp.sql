-- One-time codes, and the wrong tries at them.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.login_code (
    realm_id     uuid NOT NULL,
    address_key  text NOT NULL,
    id           uuid NOT NULL,
    user_id      uuid,
    client       uuid,
    device       uuid,
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz NOT NULL,
    salt         postern.bytes_16 NOT NULL,
    mac          postern.bytes_32 NOT NULL,
    app          text,
    email        text,
    first_name   text,
    last_name    text,
    locale       text,
    region       text,
    source       text,
    jkt          bytea,
    page_browser postern.bytes_32,
    is_test      boolean NOT NULL DEFAULT false,
    PRIMARY KEY (realm_id, address_key, id),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE
);
CREATE INDEX login_code_of_user ON postern.login_code (user_id, realm_id) WHERE user_id IS NOT NULL;
COMMENT ON TABLE postern.login_code IS 'Live one-time codes: salted hash of an HMAC under a key outside the database';
COMMENT ON COLUMN postern.login_code.page_browser IS
    'SHA-256 of the cookie of the browser whose page asked; without a client: for a purpose of the host itself';
COMMENT ON COLUMN postern.login_code.device IS 'The known device whose request made the code';
COMMENT ON COLUMN postern.login_code.app IS 'Of a registration: the App that lets it happen, asked again at redemption';
COMMENT ON COLUMN postern.login_code.email IS
    'Of a registration: the mailbox the code went to; the person who redeems it has an account there from then on';
COMMENT ON COLUMN postern.login_code.region IS
    'Of a code to a phone: with source and number it names the permits that a redemption gives back';
COMMENT ON COLUMN postern.login_code.jkt IS 'Of the handle that it was sent for';
COMMENT ON COLUMN postern.login_code.is_test IS 'The fixed code of a test identity: comes back whenever it is spent';
CALL postern.tenant_table('login_code', 'SELECT, INSERT, DELETE', 'delete');
GRANT UPDATE (user_id) ON postern.login_code TO postern_app;

CREATE TABLE postern.code_guard (
    realm_id     uuid NOT NULL,
    updated_at   timestamptz NOT NULL DEFAULT now(),
    failures_tat timestamptz NOT NULL DEFAULT '-infinity',
    locked_until timestamptz,
    consecutive  integer NOT NULL DEFAULT 0,
    over_budget  boolean NOT NULL DEFAULT false,
    address_key  text NOT NULL,
    PRIMARY KEY (realm_id, address_key)
) WITH (fillfactor = 50);
COMMENT ON TABLE postern.code_guard IS
    'Wrong tries per address, alike for known and unknown ones: failure budget (GCRA) and refusals in a row';
COMMENT ON COLUMN postern.code_guard.over_budget IS 'Whether the last try by address alone found the budget used up';
CALL postern.tenant_table('code_guard', 'SELECT, INSERT, UPDATE', 'delete');

-- By device, as code_guard is by address: wrong codes in a row at handles of that device.
CREATE TABLE postern.device_guard (
    realm_id     uuid NOT NULL,
    user_id      uuid NOT NULL,
    device       uuid NOT NULL,
    updated_at   timestamptz NOT NULL DEFAULT now(),
    locked_until timestamptz,
    consecutive  integer NOT NULL DEFAULT 0,
    PRIMARY KEY (realm_id, user_id, device),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE
) WITH (fillfactor = 50);
COMMENT ON TABLE postern.device_guard IS
    'Wrong codes in a row at handles of a known device, which is named by the sid of the ID token that vouched for it';
CALL postern.tenant_table('device_guard', 'SELECT, INSERT, UPDATE', 'cascade');

RESET ROLE;
