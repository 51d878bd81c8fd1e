-- Provisioning: the pages of a realm.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.set_hosted(
    realm text, enabled boolean DEFAULT NULL, methods text[] DEFAULT NULL, default_locale text DEFAULT NULL,
    sso_idle interval DEFAULT NULL, sso_absolute interval DEFAULT NULL, sign_in_lifetime interval DEFAULT NULL,
    code_lifetime interval DEFAULT NULL, offer_passkey boolean DEFAULT NULL, app text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_idle interval;
    v_absolute interval := postern.checked_interval('sso_absolute', sso_absolute, '1 hour', '3650 days');
    v_sign_in interval := postern.checked_interval('sign_in_lifetime', sign_in_lifetime, '5 minutes', '60 minutes');
    v_code interval := postern.checked_interval('code_lifetime', code_lifetime, '30 seconds', '600 seconds');
    v_method text;
BEGIN
    v_idle := CASE WHEN sso_idle = interval '0' THEN sso_idle
                   ELSE postern.checked_interval('sso_idle', sso_idle, '1 hour', '365 days') END;
    IF cardinality(methods) = 0 THEN
        PERFORM postern.refuse('methods is empty',
                               'Allowed are some of: passkey, email-code, magic-link, phone-code.');
    END IF;
    FOREACH v_method IN ARRAY coalesce(methods, '{}') LOOP
        PERFORM postern.check_choice('methods', coalesce(v_method, ''), 'passkey', 'email-code', 'magic-link',
                                     'phone-code');
    END LOOP;
    PERFORM postern.check_locale('default_locale', default_locale);
    IF app IS NULL THEN
        UPDATE postern.realm AS r
           SET hosted_enabled = coalesce(enabled, r.hosted_enabled),
               hosted_methods = coalesce(methods, r.hosted_methods),
               default_locale = coalesce(default_locale, r.default_locale), sso_idle = coalesce(v_idle, r.sso_idle),
               sso_absolute = coalesce(v_absolute, r.sso_absolute),
               sign_in_lifetime = coalesce(v_sign_in, r.sign_in_lifetime),
               code_lifetime = coalesce(v_code, r.code_lifetime),
               offer_passkey = coalesce(offer_passkey, r.offer_passkey)
         WHERE r.id = v_realm;
        IF enabled THEN
            PERFORM postern.prepare_hosted(v_realm);
        END IF;
    ELSE
        IF num_nonnulls(sso_idle, sso_absolute, sign_in_lifetime, code_lifetime) > 0 THEN
            PERFORM postern.refuse('sso_idle, sso_absolute, sign_in_lifetime and code_lifetime are the realm''s',
                                   'Leave app out to set them.');
        END IF;
        UPDATE postern.app AS a
           SET hosted_enabled = coalesce(enabled, a.hosted_enabled),
               hosted_methods = coalesce(methods, a.hosted_methods),
               default_locale = coalesce(default_locale, a.default_locale),
               offer_passkey = coalesce(offer_passkey, a.offer_passkey)
         WHERE a.realm_id = v_realm AND a.slug = app;
        IF NOT FOUND THEN
            PERFORM postern.refuse(format('app %s does not exist in this realm', postern.shown(app)),
                                   'Make it with admin.put_app(realm, slug).');
        END IF;
    END IF;
    PERFORM postern.admin_audit(v_realm, 'hosted_set',
        detail => jsonb_build_object('enabled', enabled, 'methods', methods, 'default_locale', default_locale,
            'sso_idle', v_idle, 'sso_absolute', v_absolute, 'sign_in_lifetime', v_sign_in, 'code_lifetime', v_code,
            'offer_passkey', offer_passkey, 'app', app));
END
$$;
COMMENT ON FUNCTION admin.set_hosted IS
'Switches the sign-in pages and the authorization code flow of a realm on or off and sets them up. NULL leaves a setting
as it is. With app: enabled, methods, default_locale and offer_passkey of that App, whose pages need the realm''s switch
too.
methods: some of passkey, email-code, magic-link (the default) and phone-code. default_locale: en (default), de, fr,
es, it, nl, pl, pt-BR, tr, ja or ar.
sso_idle: 1 hour to 365 days (30 days) without use end single sign-on; 0 switches it off. sso_absolute: 1 hour to 3650
days (180 days). sign_in_lifetime: 5 to 60 minutes (30) for the steps of one sign-in. code_lifetime: 30 to 600 seconds
(60) from the authorization response to its redemption. offer_passkey: whether a sign-in without a passkey offers to
create one (true).
The first time it adds the scopes phone, verify:email and verify:phone, and asks for an RS256 signing key beside the
realm''s own.
Example: SELECT admin.set_hosted(''acme'', true);';

-- What every OpenID Connect client expects of a realm with pages: scopes, and an RS256 key (OpenID Connect Core
-- section 15.1).
CREATE OR REPLACE FUNCTION postern.prepare_hosted(p_realm uuid) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO postern.scope (realm_id, name, description)
    VALUES (p_realm, 'phone', 'Phone number'), (p_realm, 'verify:email', 'Proof of an e-mail address'),
           (p_realm, 'verify:phone', 'Proof of a phone number')
        ON CONFLICT ON CONSTRAINT scope_pkey DO NOTHING;
    IF NOT EXISTS (SELECT FROM postern.signing_key AS k
                    WHERE k.realm_id = p_realm AND k.alg = 'RS256' AND k.retires_at IS NULL) THEN
        PERFORM postern.request_signing_key(p_realm, 'RS256', false);
    END IF;
END
$$;
COMMENT ON FUNCTION postern.prepare_hosted IS 'Adds what a realm with pages has: scopes and an RS256 key';

-- For realm_config.
CREATE OR REPLACE FUNCTION postern.hosted_config(p_realm uuid) RETURNS jsonb
LANGUAGE sql STABLE
RETURN (SELECT jsonb_build_object(
                   'enabled', r.hosted_enabled, 'methods', r.hosted_methods, 'default_locale', r.default_locale,
                   'sso_idle', postern.seconds(r.sso_idle), 'sign_in_lifetime', postern.seconds(r.sign_in_lifetime),
                   'code_lifetime', postern.seconds(r.code_lifetime), 'offer_passkey', r.offer_passkey)
          FROM postern.realm AS r WHERE r.id = p_realm);
COMMENT ON FUNCTION postern.hosted_config IS 'The pages of a realm, for realm_config';
GRANT EXECUTE ON FUNCTION postern.hosted_config TO postern_app;

RESET ROLE;
