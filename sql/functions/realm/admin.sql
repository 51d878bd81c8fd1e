-- Provisioning: realms.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.put_realm(
    slug text, primary_domain text DEFAULT NULL, display_name text DEFAULT NULL, public_origin text DEFAULT NULL,
    domains text[] DEFAULT NULL, enabled boolean DEFAULT NULL, signing_alg text DEFAULT NULL)
RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_id uuid;
    v_created boolean := false;
    v_primary text;
    v_taken record;
    v_domain text;
    v_old record;
    v_effects jsonb;
BEGIN
    IF slug IS NULL OR slug COLLATE "C" !~ '\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z' THEN
        PERFORM postern.refuse(format('slug %s is not a realm name', postern.shown(slug)),
                               'Allowed are 1 to 63 lower-case letters, digits and inner hyphens.');
    END IF;
    PERFORM postern.check_host('primary_domain', primary_domain);
    PERFORM postern.check_text('display_name', display_name, 100);
    PERFORM postern.check_choice('signing_alg', signing_alg, 'ES256', 'RS256', 'EdDSA');
    IF NOT postern.is_origin(public_origin) THEN
        PERFORM postern.refuse(format('public_origin %s is not an origin', postern.shown(public_origin)),
            'Allowed is https://host or https://host:port, lower case, without path or trailing slash; http only for '
            'localhost and hosts below it, such as acme.localhost.');
    END IF;
    FOREACH v_domain IN ARRAY coalesce(domains, '{}') LOOP
        IF v_domain IS NULL THEN
            PERFORM postern.refuse('domains holds NULL',
                                   'Allowed is a list of hosts, for example ARRAY[''id.example.com''].');
        END IF;
        PERFORM postern.check_host('domains', v_domain);
    END LOOP;

    PERFORM pg_advisory_xact_lock(postern.lock_of_realms());
    IF enabled AND EXISTS (SELECT FROM postern.realm AS r WHERE r.slug = slug AND r.deleted_at IS NOT NULL) THEN
        PERFORM postern.refuse(format('realm "%s" is deleted', slug),
                               'Call admin.undelete_realm(realm) first, before it is erased.');
    END IF;
    SELECT r.primary_domain, postern.issuer(r.public_origin, r.primary_domain) AS issuer INTO v_old
      FROM postern.realm AS r WHERE r.slug = slug;
    UPDATE postern.realm AS r
       SET primary_domain = coalesce(primary_domain, r.primary_domain),
           display_name = coalesce(display_name, r.display_name),
           public_origin = coalesce(public_origin, r.public_origin), enabled = coalesce(enabled, r.enabled)
     WHERE r.slug = slug
    RETURNING r.id, r.primary_domain INTO v_id, v_primary;
    IF NOT FOUND THEN
        IF primary_domain IS NULL AND public_origin IS NULL THEN
            PERFORM postern.refuse(format('realm "%s" is new and has neither primary_domain nor public_origin', slug),
                'Give primary_domain (a host such as id.example.com), or public_origin when there is no primary '
                'domain.');
        END IF;
        INSERT INTO postern.realm (slug, primary_domain, display_name, public_origin, enabled)
        VALUES (slug, primary_domain, coalesce(display_name, slug), public_origin, coalesce(enabled, true))
        RETURNING id, primary_domain INTO v_id, v_primary;
        v_created := true;
    END IF;

    -- Without a primary domain the realm answers at least at its own issuer.
    IF v_primary IS NULL THEN
        SELECT postern.origin_host(r.public_origin) INTO v_primary FROM postern.realm AS r WHERE r.id = v_id;
    END IF;

    -- domains is the whole list when given; the primary domain is always part of it.
    SELECT d.domain, r.slug AS owner, d.app INTO v_taken
      FROM postern.realm_domain AS d JOIN postern.realm AS r ON r.id = d.realm_id
     WHERE d.domain = ANY (coalesce(domains, '{}') || v_primary) AND (d.realm_id <> v_id OR d.app IS NOT NULL)
     ORDER BY d.domain LIMIT 1;
    IF FOUND THEN
        PERFORM postern.refuse(
            format(CASE WHEN v_taken.owner = slug THEN '%s "%s" is the subdomain of App "%s"'
                        ELSE '%s "%s" belongs to realm "%s"' END,
                   CASE WHEN v_taken.domain = ANY (domains) THEN 'domains'
                        WHEN v_taken.domain = primary_domain THEN 'primary_domain' ELSE 'public_origin' END,
                   v_taken.domain, CASE WHEN v_taken.owner = slug THEN v_taken.app ELSE v_taken.owner END),
            'A domain belongs to one realm: choose another, or take it from there first.');
    END IF;
    -- The issuer is one realm's only, and so is the host it names.
    SELECT o.slug INTO v_taken
      FROM postern.realm AS o JOIN postern.realm AS r ON r.id = v_id AND o.id <> r.id
     WHERE postern.issuer(o.public_origin, o.primary_domain) = postern.issuer(r.public_origin, r.primary_domain)
        OR EXISTS (SELECT FROM postern.realm_domain AS d
                    WHERE d.realm_id = o.id AND d.domain = postern.origin_host(postern.issuer(r.public_origin,
                        r.primary_domain)))
     LIMIT 1;
    IF FOUND THEN
        PERFORM postern.refuse(format('public_origin %s names a host of realm "%s"',
                                      postern.shown(coalesce(public_origin, 'https://' || v_primary)), v_taken.slug),
            'Each realm has its own issuer: choose an origin whose host is one of this realm''s domains.');
    END IF;
    IF domains IS NOT NULL THEN
        DELETE FROM postern.realm_domain AS d
         WHERE d.realm_id = v_id AND d.app IS NULL AND d.domain <> ALL (domains)
           AND d.domain IS DISTINCT FROM v_primary;
    END IF;
    INSERT INTO postern.realm_domain (realm_id, domain)
    SELECT DISTINCT v_id, x.domain FROM unnest(coalesce(domains, '{}') || v_primary) AS x (domain)
     WHERE x.domain IS NOT NULL AND NOT EXISTS (SELECT FROM postern.realm_domain AS d WHERE d.domain = x.domain);
    IF signing_alg <> coalesce(postern.signing_alg(v_id), '') THEN
        PERFORM postern.request_signing_key(v_id, signing_alg, true);
        -- The first key of a realm signs at once.
        IF postern.signing_alg(v_id) IS NOT NULL THEN
            PERFORM postern.tell_when_signing(v_id, signing_alg, 'the realm');
        END IF;
    END IF;
    v_effects := CASE WHEN v_created THEN '{}' ELSE postern.warn_of_moved_realm(v_id, v_old.primary_domain,
        v_old.issuer) END;
    PERFORM postern.admin_audit(v_id, CASE WHEN v_created THEN 'realm_created' ELSE 'realm_updated' END,
        detail => jsonb_build_object('primary_domain', primary_domain, 'public_origin', public_origin,
                                     'domains', domains, 'enabled', enabled,
            'signing_alg', signing_alg) || v_effects);
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION admin.put_realm IS
'Creates or updates a realm (tenant) and returns its id. NULL leaves a setting as it is.
slug: name in all other functions. primary_domain: bare host; added to domains; default RP-ID of passkeys.
public_origin: the issuer, https://host[:port]; default https:// and primary_domain. domains: all hosts of the realm
(replaces the list).
signing_alg: ES256 (default of a new realm), RS256 or EdDSA; another than the present one is published at once and signs
10 minutes later.
Another primary_domain or issuer than before leaves passkeys and tokens behind: a WARNING says how many. Look before
COMMIT.
A new realm has the scopes openid, offline_access, profile, email; native grants are off until admin.set_native_grants.
Example: SELECT admin.put_realm(''acme'', ''id.acme.example'', ''Acme'');';

-- Says what a realm loses that got another primary domain or issuer, and returns the same for the audit log.
CREATE OR REPLACE FUNCTION postern.warn_of_moved_realm(p_realm uuid, p_former_domain text, p_former_issuer text)
RETURNS jsonb
LANGUAGE plpgsql
AS $$
DECLARE
    v_now record;
    v_passkeys bigint;
    v_users bigint;
    v_sessions bigint;
    v_effects jsonb := '{}';
BEGIN
    SELECT r.primary_domain, postern.issuer(r.public_origin, r.primary_domain) AS issuer INTO v_now
      FROM postern.realm AS r WHERE r.id = p_realm;
    IF p_former_domain <> v_now.primary_domain
        AND EXISTS (SELECT FROM postern.client AS c WHERE c.realm_id = p_realm AND NOT c.settings ? 'rp_id') THEN
        SELECT count(*), count(DISTINCT p.user_id) INTO v_passkeys, v_users
          FROM postern.passkey AS p WHERE p.realm_id = p_realm AND p.rp_id = p_former_domain;
        v_effects := v_effects || jsonb_build_object('former_primary_domain', p_former_domain,
                                                     'passkeys_of_it', v_passkeys);
        IF v_passkeys > 0 THEN
            RAISE WARNING 'the RP-ID of clients without rp_id is now "%": % passkeys of % users belong to "%" and do '
                          'not work with them',
                v_now.primary_domain, v_passkeys, v_users, p_former_domain
                USING HINT = format('To keep them: admin.put_client(realm, client_id, rp_id => %L) for each client '
                                    'without rp_id.', p_former_domain);
        END IF;
    END IF;
    IF p_former_issuer <> v_now.issuer THEN
        SELECT count(*) INTO v_sessions
          FROM postern.session AS s WHERE s.realm_id = p_realm AND s.revoked_at IS NULL AND s.expires_at > now();
        v_effects := v_effects || jsonb_build_object('former_issuer', p_former_issuer, 'sessions', v_sessions);
        RAISE WARNING 'the issuer is now "%" and was "%": JWTs of % sessions name the former one and are refused',
            v_now.issuer, p_former_issuer, v_sessions
            USING HINT = format('APIs must expect the new issuer. To keep the former one: admin.put_realm(slug, '
                                'public_origin => %L).',
                                p_former_issuer);
    END IF;
    RETURN v_effects;
END
$$;
COMMENT ON FUNCTION postern.warn_of_moved_realm IS
    'Warns of passkeys and tokens that another primary domain or issuer leaves behind';

CREATE OR REPLACE VIEW admin.realms AS
SELECT r.slug, r.id, r.display_name, r.primary_domain,
       coalesce(r.public_origin, 'https://' || r.primary_domain) AS public_origin,
       ARRAY(SELECT d.domain FROM postern.realm_domain AS d WHERE d.realm_id = r.id AND d.app IS NULL
             ORDER BY d.domain) AS domains,
       r.enabled, r.native_grants_enabled, r.access_token_lifetime, r.refresh_token_lifetime, r.refresh_retry_window,
           r.session_lifetime,
       r.otp_lifetime, r.otp_attempts, r.magic_link_lifetime, r.resend_cooldown, r.ceremony_lifetime,
       r.registration_firstname, r.registration_lastname, r.created_at, r.otp_digits,
       r.hosted_enabled, r.hosted_methods, r.default_locale, r.sso_idle, r.sso_absolute, r.sign_in_lifetime,
       r.code_lifetime, r.offer_passkey, r.dpop_nonce, r.dpop_nonce_lifetime,
       r.approvals_enabled, r.approvals_public, r.approval_lifetime, r.approval_probation, r.deleted_at, r.erased_at
  FROM postern.realm AS r;
COMMENT ON VIEW admin.realms IS
    'Realms and their settings. deleted_at: it was deleted, and can be undeleted until erased_at';

RESET ROLE;
