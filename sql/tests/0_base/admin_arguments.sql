\ir ../helpers/setup.psql
BEGIN;
SELECT no_plan();
-- The arguments, their order and their defaults are public: administrators call these functions by hand.
SELECT ok(EXISTS (SELECT FROM pg_proc AS p WHERE p.pronamespace = 'admin'::regnamespace AND p.proname = v.name
                     AND pg_get_function_arguments(p.oid) = v.args),
          v.name || ' has the published arguments') FROM (VALUES
    ('put_realm', 'slug text, primary_domain text DEFAULT NULL::text, display_name text DEFAULT NULL::text, '
                  'public_origin text DEFAULT NULL::text, domains text[] DEFAULT NULL::text[], enabled boolean DEFAULT '
                  'NULL::boolean, signing_alg text DEFAULT NULL::text'),
    ('set_native_grants', 'realm text, enabled boolean DEFAULT NULL::boolean, access_token_lifetime interval DEFAULT '
                          'NULL::interval, refresh_token_lifetime interval DEFAULT NULL::interval, '
                          'refresh_retry_window interval DEFAULT NULL::interval, session_lifetime interval DEFAULT '
                          'NULL::interval'),
    ('set_code_policy', 'realm text, otp_lifetime interval DEFAULT NULL::interval, otp_attempts integer DEFAULT '
                        'NULL::integer, otp_digits integer DEFAULT NULL::integer, magic_link_lifetime interval DEFAULT '
                        'NULL::interval, resend_cooldown interval DEFAULT NULL::interval, ceremony_lifetime interval '
                        'DEFAULT NULL::interval'),
    ('set_dpop', 'realm text, nonce text DEFAULT NULL::text, nonce_lifetime interval DEFAULT NULL::interval'),
    ('put_client', 'realm text, client_id text, client_type text DEFAULT NULL::text, display_name text DEFAULT '
                   'NULL::text, access_token_type text DEFAULT NULL::text, rp_id text DEFAULT NULL::text, '
                   'access_token_lifetime interval DEFAULT NULL::interval, refresh_token_lifetime interval DEFAULT '
                   'NULL::interval, require_dpop boolean DEFAULT NULL::boolean, enabled boolean DEFAULT NULL::boolean, '
                   'signing_alg text DEFAULT NULL::text, consent text DEFAULT NULL::text, require_pkce boolean DEFAULT '
                   'NULL::boolean, require_par boolean DEFAULT NULL::boolean, home_uri text DEFAULT NULL::text, '
                   'end_sessions boolean DEFAULT NULL::boolean, settings jsonb DEFAULT NULL::jsonb'),
    ('delete_client', 'realm text, client_id text, end_sessions boolean DEFAULT NULL::boolean'),
    ('delete_realm', 'realm text, confirm text DEFAULT NULL::text, grace interval DEFAULT NULL::interval, '
                     'OUT users bigint, OUT clients bigint, OUT sessions bigint'),
    ('undelete_realm', 'realm text'),
    ('secure_user', 'realm text, email text, since timestamp with time zone, restore_addresses boolean DEFAULT '
                    'NULL::boolean, dry_run boolean DEFAULT NULL::boolean'),
    ('rotate_client_secret', 'realm text, client_id text, overlap interval DEFAULT NULL::interval'),
    ('grant_permission', 'realm text, client_id text, VARIADIC permissions text[]'),
    ('revoke_permission', 'realm text, client_id text, VARIADIC permissions text[]'),
    ('put_scope', 'realm text, scope text, description text DEFAULT NULL::text, resources text[] DEFAULT NULL::text[], '
                  'in_discovery boolean DEFAULT NULL::boolean, enabled boolean DEFAULT NULL::boolean'),
    ('put_ios_app', 'realm text, client_id text, team_id text, bundle_id text'),
    ('put_android_app', 'realm text, client_id text, package_name text, sha256_cert_fingerprints text[] DEFAULT '
                        'NULL::text[], sms_hash text DEFAULT NULL::text'),
    ('put_resource_server', 'realm text, client_id text, resources text[] DEFAULT NULL::text[]'),
    ('put_web_origin', 'realm text, client_id text, origin text'),
    ('put_app', 'realm text, slug text, display_name text DEFAULT NULL::text, subdomain text DEFAULT NULL::text, '
                'registration text DEFAULT NULL::text, client_ids text[] DEFAULT NULL::text[], native_grants_enabled '
                'boolean DEFAULT NULL::boolean'),
    ('set_registration_fields',
     'realm text, firstname text DEFAULT NULL::text, lastname text DEFAULT NULL::text, app text DEFAULT NULL::text'),
    ('put_user', 'realm text, email text DEFAULT NULL::text, first_name text DEFAULT NULL::text, '
                 'last_name text DEFAULT NULL::text, '
                 'email_verified boolean DEFAULT NULL::boolean, enabled boolean DEFAULT NULL::boolean, id uuid DEFAULT '
                 'NULL::uuid, new_email text DEFAULT NULL::text, phone text DEFAULT NULL::text'),
    ('delete_user', 'realm text, email text'), ('set_user_enabled', 'realm text, email text, enabled boolean'),
        ('sign_out_everywhere', 'realm text, email text'),
    ('unlock_codes', 'realm text, email text'), ('end_session', 'realm text, id uuid'),
        ('delete_passkey', 'realm text, id uuid'), ('delete_service_account', 'realm text, name text'),
    ('put_service_account', 'realm text, name text, client_id text'),
    ('set_rate_limit', 'realm text, policy text, dimension text, permits integer DEFAULT NULL::integer, per interval '
                       'DEFAULT NULL::interval, burst integer DEFAULT NULL::integer, mode text DEFAULT NULL::text'),
    ('rotate_signing_key', 'realm text, alg text DEFAULT NULL::text')) AS v (name, args);

SELECT * FROM finish();
ROLLBACK;
