-- What becomes of each thing that lets somebody in, or will do so. docs/security.md shows this table, and
-- sql/tests/0_base/credential_life.sql makes one of each thing, applies each event, and compares.
SET LOCAL ROLE postern_owner;

-- Per event: ends; stays; refused (as long as it lasts: what is taken back brings the thing back).
-- address: the address or number that it was sent to, or is about, leaves the account, moves, or is proven by another.
-- secured: admin.secure_user, of a thing that is younger than since. permission: withdrawn from its client.
-- restored: admin.after_restore. told: who hears of its end; –: no one is told.
CREATE OR REPLACE FUNCTION postern.credential_life()
RETURNS TABLE (thing text, tables text[], address text, disabled text, signed_out text, secured text, deleted text,
               client_disabled text, client_deleted text, permission text, realm_disabled text, restored text,
               told text)
LANGUAGE sql IMMUTABLE
AS $$
VALUES
    ('session', '{session}'::text[],
     'stays', 'ends', 'ends', 'ends', 'ends', 'refused', 'ends', 'refused', 'refused', 'ends', 'webhooks, clients'),
    ('browser session', '{browser_session}',
     'stays', 'ends', 'ends', 'ends', 'ends', 'stays', 'stays', 'stays', 'refused', 'ends', 'webhooks, clients'),
    ('code', '{login_code}',
     'ends', 'ends', 'ends', 'ends', 'ends', 'refused', 'ends', 'refused', 'refused', 'ends', '–'),
    ('link', '{login_link}',
     'ends', 'ends', 'ends', 'ends', 'ends', 'refused', 'ends', 'refused', 'refused', 'ends', '–'),
    ('confirmed link', '{login_link,sign_in_request}',
     'ends', 'ends', 'ends', 'ends', 'ends', 'refused', 'ends', 'refused', 'refused', 'ends', '–'),
    ('handle', '{sign_in_request}',
     'ends', 'stays', 'stays', 'ends', 'ends', 'stays', 'stays', 'stays', 'stays', 'ends', '–'),
    ('proven handle', '{sign_in_request}',
     'ends', 'ends', 'ends', 'ends', 'ends', 'refused', 'ends', 'refused', 'refused', 'ends', '–'),
    ('authorization code', '{authorization_code}',
     'stays', 'ends', 'ends', 'ends', 'ends', 'refused', 'ends', 'refused', 'refused', 'ends', '–'),
    ('answered form', '{sent_form}',
     'stays', 'ends', 'ends', 'ends', 'ends', 'stays', 'stays', 'stays', 'refused', 'ends', '–'),
    ('pushed request', '{pushed_request}',
     'stays', 'stays', 'stays', 'stays', 'stays', 'stays', 'ends', 'stays', 'stays', 'ends', '–'),
    ('address', '{user_identifier}',
     'ends', 'refused', 'stays', 'ends', 'ends', 'stays', 'stays', 'stays', 'refused', 'stays', 'owner, webhooks'),
    ('removed address', '{removed_identifier}',
     'stays', 'stays', 'stays', 'stays', 'ends', 'stays', 'stays', 'stays', 'stays', 'stays', '–'),
    ('passkey', '{passkey}',
     'stays', 'refused', 'stays', 'ends', 'ends', 'stays', 'stays', 'stays', 'refused', 'stays', 'owner, webhooks'),
    ('passkey ceremony', '{spent_ceremony}',
     'stays', 'stays', 'stays', 'stays', 'stays', 'refused', 'ends', 'refused', 'refused', 'ends', '–'),
    ('passkey enrolment', '{spent_ceremony}',
     'stays', 'ends', 'ends', 'ends', 'ends', 'refused', 'ends', 'stays', 'refused', 'ends', '–'),
    ('second factor', '{totp_factor,recovery_code}',
     'stays', 'refused', 'stays', 'ends', 'ends', 'stays', 'stays', 'stays', 'refused', 'stays', 'owner, webhooks'),
    ('second factor enrolment', '{spent_ceremony}',
     'stays', 'ends', 'ends', 'ends', 'ends', 'refused', 'ends', 'stays', 'refused', 'ends', '–'),
    ('trusted device', '{device_key}',
     'stays', 'refused', 'stays', 'ends', 'ends', 'stays', 'stays', 'stays', 'refused', 'stays', 'owner, webhooks'),
    ('phone key', '{device_key}',
     'ends', 'stays', 'stays', 'ends', 'ends', 'stays', 'stays', 'stays', 'stays', 'stays', '–'),
    ('undo link', '{undo_link}',
     'ends', 'stays', 'stays', 'ends', 'ends', 'stays', 'stays', 'stays', 'refused', 'stays', '–'),
    ('approval', '{device_request}',
     'ends', 'refused', 'stays', 'ends', 'ends', 'stays', 'stays', 'stays', 'refused', 'ends', '–'),
    ('approved request', '{device_request}',
     'ends', 'ends', 'ends', 'ends', 'ends', 'refused', 'ends', 'refused', 'refused', 'ends', '–'),
    ('number proof', '{device_request}',
     'ends', 'stays', 'stays', 'ends', 'ends', 'refused', 'ends', 'refused', 'refused', 'ends', '–'),
    ('return code', '{device_request}',
     'ends', 'stays', 'stays', 'ends', 'ends', 'refused', 'ends', 'refused', 'refused', 'ends', '–'),
    ('proven number', '{device_request}',
     'ends', 'ends', 'ends', 'ends', 'ends', 'refused', 'ends', 'refused', 'refused', 'ends', '–'),
    ('proven address', '{address_verification}',
     'stays', 'stays', 'stays', 'ends', 'stays', 'refused', 'ends', 'stays', 'refused', 'ends', '–'),
    ('consent', '{consent}',
     'stays', 'refused', 'stays', 'ends', 'ends', 'stays', 'ends', 'stays', 'refused', 'stays', 'webhooks'),
    ('client secret', '{client}',
     'stays', 'stays', 'stays', 'stays', 'stays', 'refused', 'ends', 'stays', 'refused', 'stays', '–'),
    ('client key', '{client,spent_assertion}',
     'stays', 'stays', 'stays', 'stays', 'stays', 'refused', 'ends', 'stays', 'refused', 'stays', '–'),
    ('service account token', '{service_account,revoked_service_token}',
     'stays', 'stays', 'stays', 'stays', 'stays', 'ends', 'ends', 'ends', 'refused', 'ends', '–'),
    ('signing key', '{signing_key}',
     'stays', 'stays', 'stays', 'stays', 'stays', 'stays', 'stays', 'stays', 'refused', 'stays', '–'),
    ('webhook', '{webhook}',
     'stays', 'stays', 'stays', 'stays', 'stays', 'stays', 'stays', 'stays', 'stays', 'stays', '–'),
    ('test identity', '{test_identity}',
     'stays', 'stays', 'stays', 'stays', 'stays', 'refused', 'ends', 'refused', 'refused', 'stays', '–'),
    ('test number', '{test_number}',
     'stays', 'stays', 'stays', 'stays', 'stays', 'stays', 'ends', 'stays', 'stays', 'stays', '–')
$$;
COMMENT ON FUNCTION postern.credential_life IS
    'What becomes of each kind of credential at each event, and who is told';

-- Tables with a column that is named like a credential, and why no row of theirs lets anybody in by itself.
CREATE OR REPLACE FUNCTION postern.tables_without_credentials() RETURNS TABLE (table_name text, reason text)
LANGUAGE sql IMMUTABLE
AS $$
VALUES
    ('app', 'settings'), ('realm', 'settings'), ('rate_bucket', 'counts'), ('text_key', 'texts'),
    ('text_override', 'texts'), ('brand_image', 'pictures'), ('channel', 'the name of a file'),
    ('client_android_app', 'a hash that is public'),
    ('data_key', 'seals what other tables hold; see "The key file"'),
    ('used_proof', 'what is used up'), ('user_account', 'the stamp that sessions are compared with')
$$;
COMMENT ON FUNCTION postern.tables_without_credentials IS
    'Tables with a column named like a credential that let nobody in by themselves, and why';

RESET ROLE;
