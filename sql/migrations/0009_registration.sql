-- Registration by a code: a pending registration is a live code of nobody yet, and the user is made when it is redeemed.
SET LOCAL ROLE postern_owner;

ALTER TABLE postern.auth_session ADD COLUMN app text;
COMMENT ON COLUMN postern.auth_session.app IS 'The App whose host was asked; its posture decides';

ALTER TABLE postern.login_code
    ADD COLUMN app text,
    ADD COLUMN email text,
    ADD COLUMN first_name text,
    ADD COLUMN last_name text,
    ADD COLUMN locale text;
COMMENT ON COLUMN postern.login_code.email IS 'Of a registration: the mailbox the code went to; whoever redeems it has an account there from then on';
COMMENT ON COLUMN postern.login_code.app IS 'Of a registration: the App that lets it happen, asked again at redemption';

-- No user row exists before the mailbox is proven; then the server makes or confirms one, and nothing else of it.
GRANT INSERT (realm_id, email, first_name, last_name, locale), UPDATE (email_verified, first_name, last_name, locale) ON postern.user_account TO postern_app;
GRANT UPDATE (user_id) ON postern.login_code TO postern_app;

-- A backend for frontends that authenticates may say whose request it forwards.
CREATE OR REPLACE FUNCTION postern.is_permission(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN candidate = ANY (ARRAY[
        'gt:urn:cocoar:otp', 'gt:urn:cocoar:magic', 'gt:urn:cocoar:passkey', 'gt:refresh_token', 'gt:client_credentials',
        'gt:authorization_code', 'gt:urn:ietf:params:oauth:grant-type:device_code',
        'ept:token', 'ept:introspection', 'ept:revocation', 'cap:trusted-forwarder'])
    OR (candidate LIKE 'scp:%' AND postern.is_scope(substr(candidate, 5)));
ALTER TABLE postern.client ADD CONSTRAINT client_trusted_forwarder_is_confidential
    CHECK (client_type = 'confidential' OR 'cap:trusted-forwarder' <> ALL (permissions));

RESET ROLE;
