-- Provisioning: switches and lifetimes of a realm.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.set_native_grants(
    realm text, enabled boolean DEFAULT NULL, access_token_lifetime interval DEFAULT NULL,
    refresh_token_lifetime interval DEFAULT NULL, refresh_retry_window interval DEFAULT NULL,
    session_lifetime interval DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_access interval := postern.checked_interval('access_token_lifetime', access_token_lifetime, '1 minute',
                                                  '60 minutes');
    v_refresh interval := postern.checked_interval('refresh_token_lifetime', refresh_token_lifetime, '1 day',
                                                   '365 days');
    v_retry interval := postern.checked_interval('refresh_retry_window', refresh_retry_window, '0 seconds',
                                                 '600 seconds');
    v_session interval := postern.checked_interval('session_lifetime', session_lifetime, '1 day', '3650 days');
BEGIN
    UPDATE postern.realm AS r
       SET native_grants_enabled = coalesce(enabled, r.native_grants_enabled),
           access_token_lifetime = coalesce(v_access, r.access_token_lifetime),
           refresh_token_lifetime = coalesce(v_refresh, r.refresh_token_lifetime),
               refresh_retry_window = coalesce(v_retry, r.refresh_retry_window),
           session_lifetime = coalesce(v_session, r.session_lifetime)
     WHERE r.id = v_realm;
    PERFORM postern.admin_audit(v_realm, 'native_grants_set',
                                detail => jsonb_build_object('enabled', enabled, 'access_token_lifetime', v_access,
        'refresh_token_lifetime', v_refresh, 'refresh_retry_window', v_retry, 'session_lifetime', v_session));
END
$$;
COMMENT ON FUNCTION admin.set_native_grants IS
'Switches the native grants (one-time code, magic link, passkey) of a realm on or off and sets its lifetimes. NULL
leaves a setting as it is.
access_token_lifetime: 1 to 60 minutes (default 15). refresh_token_lifetime: idle time, 1 to 365 days (14).
refresh_retry_window: 0 to 600 seconds (120) in which a lost answer to a refresh is given again. session_lifetime:
absolute, 1 to 3650 days (365).
Off stops new sign-ins, not the refresh of sessions that exist.
Example: SELECT admin.set_native_grants(''acme'', true, access_token_lifetime => ''10 minutes'');';

CREATE OR REPLACE FUNCTION admin.set_code_policy(
    realm text, otp_lifetime interval DEFAULT NULL, otp_attempts integer DEFAULT NULL, otp_digits integer DEFAULT NULL,
    magic_link_lifetime interval DEFAULT NULL, resend_cooldown interval DEFAULT NULL,
    ceremony_lifetime interval DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_otp interval := postern.checked_interval('otp_lifetime', otp_lifetime, '1 minute', '10 minutes');
    v_link interval := postern.checked_interval('magic_link_lifetime', magic_link_lifetime, '1 minute', '60 minutes');
    v_cooldown interval := postern.checked_interval('resend_cooldown', resend_cooldown, '0 seconds', '600 seconds');
    v_ceremony interval := postern.checked_interval('ceremony_lifetime', ceremony_lifetime, '30 seconds', '10 minutes');
BEGIN
    IF otp_attempts NOT BETWEEN 1 AND 10 THEN
        PERFORM postern.refuse(format('otp_attempts "%s" is out of range', otp_attempts), 'Allowed is 1 to 10 tries.');
    END IF;
    IF otp_digits NOT BETWEEN 6 AND 8 THEN
        PERFORM postern.refuse(format('otp_digits "%s" is out of range', otp_digits), 'Allowed is 6 to 8 digits.');
    END IF;
    UPDATE postern.realm AS r
       SET otp_lifetime = coalesce(v_otp, r.otp_lifetime), otp_attempts = coalesce(otp_attempts, r.otp_attempts),
           otp_digits = coalesce(otp_digits, r.otp_digits),
           magic_link_lifetime = coalesce(v_link, r.magic_link_lifetime),
               resend_cooldown = coalesce(v_cooldown, r.resend_cooldown),
           ceremony_lifetime = coalesce(v_ceremony, r.ceremony_lifetime)
     WHERE r.id = v_realm;
    PERFORM postern.admin_audit(v_realm, 'code_policy_set',
                                detail => jsonb_build_object('otp_lifetime', v_otp, 'otp_attempts', otp_attempts,
        'otp_digits', otp_digits, 'magic_link_lifetime', v_link, 'resend_cooldown', v_cooldown,
            'ceremony_lifetime', v_ceremony));
END
$$;
COMMENT ON FUNCTION admin.set_code_policy IS
'Sets how long codes, links and passkey ceremonies live. NULL leaves a setting as it is.
otp_lifetime: 1 to 10 minutes (default 10). otp_attempts: 1 to 10 tries per request (5). otp_digits: 6 to 8 digits of a
code (6).
magic_link_lifetime: 1 to 60 minutes (15). resend_cooldown: 0 to 600 seconds (60) in which a resend sends no further
mail. ceremony_lifetime: 30 seconds to 10 minutes (5 minutes).
Example: SELECT admin.set_code_policy(''acme'', otp_attempts => 3);';

-- For realm_config.
CREATE OR REPLACE FUNCTION postern.realm_settings_config(p_realm uuid) RETURNS jsonb
LANGUAGE sql STABLE
RETURN (SELECT jsonb_build_object(
                   'native_grants_enabled', r.native_grants_enabled,
                   'access_token_lifetime', postern.seconds(r.access_token_lifetime),
                   'refresh_token_lifetime', postern.seconds(r.refresh_token_lifetime),
                   'refresh_retry_window', postern.seconds(r.refresh_retry_window),
                   'session_lifetime', postern.seconds(r.session_lifetime),
                   'otp_lifetime', postern.seconds(r.otp_lifetime), 'otp_attempts', r.otp_attempts,
                   'otp_digits', r.otp_digits, 'magic_link_lifetime', postern.seconds(r.magic_link_lifetime),
                   'resend_cooldown', postern.seconds(r.resend_cooldown),
                   'ceremony_lifetime', postern.seconds(r.ceremony_lifetime),
                   'registration_firstname', r.registration_firstname,
                   'registration_lastname', r.registration_lastname)
          FROM postern.realm AS r WHERE r.id = p_realm);
COMMENT ON FUNCTION postern.realm_settings_config IS 'The switches and lifetimes of a realm, for realm_config';
GRANT EXECUTE ON FUNCTION postern.realm_settings_config TO postern_app;

RESET ROLE;
