-- A code belongs to the request that caused it, known devices are counted apart from strangers, and codes may be longer.
SET LOCAL ROLE postern_owner;

ALTER TABLE postern.realm
    ADD COLUMN otp_digits integer NOT NULL DEFAULT 6 CONSTRAINT realm_otp_digits CHECK (otp_digits BETWEEN 6 AND 8);

ALTER TABLE postern.signing_key ADD COLUMN withdrawn boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN postern.signing_key.withdrawn IS
    'Taken back by an administrator, since others may know it: ID tokens it signed vouch for no device';

ALTER TABLE postern.auth_session ADD COLUMN device uuid;
COMMENT ON COLUMN postern.auth_session.device IS
    'sid of the known device that asked: set by the worker when the hint''s sub is the account asked for';

ALTER TABLE postern.login_code ADD COLUMN device uuid;
COMMENT ON COLUMN postern.login_code.device IS 'The known device whose request made the code';

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

ALTER TABLE postern.device_guard ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY realm ON postern.device_guard
    USING (realm_id = postern.current_realm()) WITH CHECK (realm_id = postern.current_realm());
CREATE POLICY owner ON postern.device_guard TO postern_owner USING (true) WITH CHECK (true);
REVOKE ALL ON postern.device_guard FROM PUBLIC;
GRANT SELECT, INSERT, UPDATE ON postern.device_guard TO postern_app;

RESET ROLE;
