-- Provisioning: possession of phone numbers.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.set_possession(
    realm text, enabled boolean DEFAULT NULL, otp_lifetime interval DEFAULT NULL, link_lifetime interval DEFAULT NULL,
    resend_cooldown interval DEFAULT NULL, otp_digits integer DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_otp interval := postern.checked_interval('otp_lifetime', otp_lifetime, '60 seconds', '600 seconds');
    v_link interval := postern.checked_interval('link_lifetime', link_lifetime, '1 minute', '15 minutes');
    v_cooldown interval := postern.checked_interval('resend_cooldown', resend_cooldown, '0 seconds', '120 seconds');
BEGIN
    IF otp_digits NOT BETWEEN 4 AND 8 THEN
        PERFORM postern.refuse(format('otp_digits "%s" is out of range', otp_digits), 'Allowed is 4 to 8 digits.');
    ELSIF otp_digits < 6 THEN
        RAISE WARNING 'codes of % digits are guessed by one of % tries', otp_digits, 10 ^ otp_digits
            USING HINT = 'Six digits are the default.';
    END IF;
    UPDATE postern.realm AS r
       SET possession_enabled = coalesce(enabled, r.possession_enabled),
           possession_otp_lifetime = coalesce(v_otp, r.possession_otp_lifetime),
           possession_link_lifetime = coalesce(v_link, r.possession_link_lifetime),
           possession_resend_cooldown = coalesce(v_cooldown, r.possession_resend_cooldown),
           possession_otp_digits = coalesce(otp_digits, r.possession_otp_digits)
     WHERE r.id = v_realm;
    PERFORM postern.admin_audit(v_realm, 'possession_set',
                                detail => jsonb_build_object('enabled', enabled, 'otp_lifetime', v_otp,
        'link_lifetime', v_link, 'resend_cooldown', v_cooldown, 'otp_digits', otp_digits));
END
$$;
COMMENT ON FUNCTION admin.set_possession IS
'Switches proofs of phone numbers for backends on or off (/v3, /connect/possession, urn:postern:possession). NULL leaves
a setting as it is. Which numbers are served: admin.set_phone_policy; who sends the messages: admin.put_channel.
enabled: default off. otp_lifetime: 60 to 600 seconds (120). link_lifetime: 1 to 15 minutes (5).
resend_cooldown: 0 to 120 seconds (10) between two messages of a transaction. otp_digits: 4 to 8 (6).
Example: SELECT admin.set_possession(''acme'', true);';

-- Called after a change of a client's permissions.
CREATE OR REPLACE FUNCTION postern.check_possession_permissions(p_realm uuid, p_client uuid) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_client postern.client;
BEGIN
    SELECT k.* INTO v_client FROM postern.client AS k WHERE k.realm_id = p_realm AND k.id = p_client;
    IF 'ept:possession' = ANY (v_client.permissions) AND 'gt:client_credentials' <> ALL (v_client.permissions) THEN
        PERFORM postern.refuse(format('permission "ept:possession" of client_id "%s" needs "gt:client_credentials"',
                                      v_client.client_id),
            'A backend proves numbers as its service account. Grant both, or revoke "ept:possession" first.');
    ELSIF 'cap:assert-possession' = ANY (v_client.permissions) AND 'ept:possession' <> ALL (v_client.permissions) THEN
        PERFORM postern.refuse(format('permission "cap:assert-possession" of client_id "%s" needs "ept:possession"',
                                      v_client.client_id),
            'Grant both, or revoke "cap:assert-possession" first.');
    END IF;
END
$$;
COMMENT ON FUNCTION postern.check_possession_permissions IS
    'Refuses a client that holds a permission of possession without the one that it needs';

CREATE OR REPLACE FUNCTION admin.put_possession_client(
    realm text, client_id text, phone_change boolean DEFAULT NULL, link_match boolean DEFAULT NULL,
    login_client text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
    v_login uuid := CASE WHEN login_client IS NOT NULL THEN postern.admin_client(v_realm, login_client) END;
BEGIN
    IF NOT EXISTS (SELECT FROM postern.client AS c
                    WHERE c.realm_id = v_realm AND c.id = v_client AND 'ept:possession' = ANY (c.permissions)) THEN
        PERFORM postern.refuse(format('client_id %s does not hold "ept:possession"', postern.shown(client_id)),
            'Call admin.grant_permission(realm, client_id, ''gt:client_credentials'', ''ept:possession'') first.');
    ELSIF v_login IS NOT NULL
          AND NOT EXISTS (SELECT FROM postern.client AS c
                           WHERE c.realm_id = v_realm AND c.id = v_login
                             AND 'gt:urn:postern:possession' = ANY (c.permissions)) THEN
        PERFORM postern.refuse(format('login_client %s does not hold "gt:urn:postern:possession"',
                                      postern.shown(login_client)),
            'Call admin.grant_permission(realm, login_client, ''gt:urn:postern:possession'') first.');
    END IF;
    UPDATE postern.client AS c
       SET possession_phone_change = coalesce(phone_change, c.possession_phone_change),
           possession_link_match = coalesce(link_match, c.possession_link_match),
           possession_login_client = coalesce(v_login, c.possession_login_client)
     WHERE c.realm_id = v_realm AND c.id = v_client;
    PERFORM postern.admin_audit(v_realm, 'possession_client_put', client => v_client,
                                detail => jsonb_build_object('phone_change', phone_change, 'link_match', link_match,
                                                             'login_client', login_client));
END
$$;
COMMENT ON FUNCTION admin.put_possession_client IS
'Says how a client with ept:possession proves numbers. NULL leaves a setting as it is.
phone_change: whether the person may name another number than the backend did (default false).
link_match: whether a link for a desktop asks for the two digits that the desktop shows (default true).
login_client: the client, with gt:urn:postern:possession, whose app signs users in by this client''s transactions.
Example: SELECT admin.put_possession_client(''acme'', ''acme-server'', login_client => ''acme-ios'');';

CREATE OR REPLACE FUNCTION admin.put_provider(
    realm text, kind text, url text DEFAULT NULL, mode text DEFAULT NULL, enabled boolean DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    IF kind IS NULL THEN
        PERFORM postern.refuse('kind is NULL', 'Allowed: risk, sim-swap, number-verification.');
    END IF;
    PERFORM postern.check_choice('kind', kind, 'risk', 'sim-swap', 'number-verification');
    PERFORM postern.check_choice('mode', mode, 'observe', 'require');
    PERFORM postern.check_call_url('url', url);
    IF url IS NULL AND NOT EXISTS (SELECT FROM postern.signal_provider AS p
                                    WHERE p.realm_id = v_realm AND p.kind = kind) THEN
        PERFORM postern.refuse('url is NULL', 'A new provider needs the https URL of your endpoint.');
    END IF;
    INSERT INTO postern.signal_provider AS p (realm_id, kind, url, mode, enabled)
    VALUES (v_realm, kind, coalesce(url, (SELECT o.url FROM postern.signal_provider AS o
                                           WHERE o.realm_id = v_realm AND o.kind = kind)),
            coalesce(mode, 'require'), coalesce(enabled, true))
        ON CONFLICT ON CONSTRAINT signal_provider_pkey DO UPDATE
       SET url = excluded.url, mode = coalesce(put_provider.mode, p.mode),
           enabled = coalesce(put_provider.enabled, p.enabled);
    PERFORM postern.admin_audit(v_realm, 'provider_put',
                                detail => jsonb_build_object('kind', kind, 'url', url, 'mode', mode,
                                                             'enabled', enabled));
END
$$;
COMMENT ON FUNCTION admin.put_provider IS
'Asks an endpoint of yours about a phone number while it is proven. NULL leaves a setting as it is.
kind: risk (before the app''s first step, if the backend asked for it), sim-swap (before each SMS, CAMARA),
number-verification (with the operator''s token of a phone, CAMARA). url: https, or http to this machine.
mode: require (default) fails where no usable answer comes; observe goes on. It has 2 seconds and is asked once.
Example: SELECT admin.put_provider(''acme'', ''sim-swap'', ''https://signals.acme.example/sim'', ''observe'');';

CREATE OR REPLACE FUNCTION admin.delete_provider(realm text, kind text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    DELETE FROM postern.signal_provider AS p WHERE p.realm_id = v_realm AND p.kind = kind;
    PERFORM postern.admin_removed(v_realm, FOUND, 'provider_deleted', detail => jsonb_build_object('kind', kind),
        p_missing => format('kind %s has no provider in this realm', postern.shown(kind)),
        p_hint => 'SELECT kind FROM admin.providers WHERE realm = … lists them.');
END
$$;
COMMENT ON FUNCTION admin.delete_provider IS
'Removes a realm''s provider of one kind: numbers are proven without it from then on.
Example: SELECT admin.delete_provider(''acme'', ''sim-swap'');';

RESET ROLE;
