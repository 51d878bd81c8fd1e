-- Columns that several capabilities write: which key a session stands on, and which device a request says it comes from.
SET LOCAL ROLE postern_owner;

ALTER TABLE postern.session
    ADD COLUMN server_key bytea CONSTRAINT session_server_key CHECK (octet_length(server_key) = 4);
COMMENT ON COLUMN postern.session.server_key IS
    'Id of the key-file line under which the live refresh token was made; NULL: made before keys were counted';

ALTER TABLE postern.auth_session
    ADD COLUMN hint_user uuid,
    ADD COLUMN hint_session uuid;
COMMENT ON COLUMN postern.auth_session.hint_user IS
    'sub of the ID-token hint that came with the request; whether it is the account asked for, the worker decides';
COMMENT ON COLUMN postern.auth_session.hint_session IS 'sid of the ID-token hint: names the known device';
ALTER TABLE postern.user_account ADD COLUMN known_since timestamptz;
COMMENT ON COLUMN postern.user_account.known_since IS
    'Devices of earlier sign-ins are no known devices any more (admin.secure_user); NULL: all are';

-- Limits added since: registrations (unknown addresses), wrong-codes (compared and wrong, per realm), policy refused.
ALTER TABLE postern.rate_limit
    DROP CONSTRAINT rate_limit_policy_check,
    DROP CONSTRAINT rate_limit_dimension_check,
    ADD CONSTRAINT rate_limit_policy_check
        CHECK (policy IN ('native-otp', 'magic-link', 'passkey-begin', 'token', 'refused')),
    ADD CONSTRAINT rate_limit_dimension_check
        CHECK (dimension IN ('target', 'target-total', 'source', 'client', 'app', 'failures', 'registrations', 'wrong-codes')),
    ADD CONSTRAINT rate_limit_registrations CHECK (dimension <> 'registrations' OR policy = 'native-otp'),
    ADD CONSTRAINT rate_limit_wrong_codes CHECK (dimension <> 'wrong-codes' OR policy = 'token'),
    ADD CONSTRAINT rate_limit_refused CHECK (policy <> 'refused' OR dimension = 'source');

RESET ROLE;
