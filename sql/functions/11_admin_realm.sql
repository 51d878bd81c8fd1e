-- Provisioning: realms, scopes, rate limits, signing keys.
SET LOCAL ROLE postern_owner;

DROP FUNCTION IF EXISTS admin.put_realm(text, text, text, text, text[], boolean);
CREATE OR REPLACE FUNCTION admin.put_realm(slug text, primary_domain text DEFAULT NULL, display_name text DEFAULT NULL, public_origin text DEFAULT NULL,
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
        PERFORM postern.refuse(format('slug %s is not a realm name', postern.shown(slug)), 'Allowed are 1 to 63 lower-case letters, digits and inner hyphens.');
    END IF;
    PERFORM postern.check_host('primary_domain', primary_domain);
    PERFORM postern.check_text('display_name', display_name, 100);
    PERFORM postern.check_choice('signing_alg', signing_alg, 'ES256', 'RS256', 'EdDSA');
    IF NOT postern.is_origin(public_origin) THEN
        PERFORM postern.refuse(format('public_origin %s is not an origin', postern.shown(public_origin)),
            'Allowed is https://host or https://host:port, lower case, without path or trailing slash; http only for localhost.');
    END IF;
    FOREACH v_domain IN ARRAY coalesce(domains, '{}') LOOP
        IF v_domain IS NULL THEN
            PERFORM postern.refuse('domains holds NULL', 'Allowed is a list of hosts, for example ARRAY[''id.example.com''].');
        END IF;
        PERFORM postern.check_host('domains', v_domain);
    END LOOP;

    PERFORM pg_advisory_xact_lock(hashtextextended('postern.put_realm', 0));
    SELECT r.primary_domain, postern.issuer(r.public_origin, r.primary_domain) AS issuer INTO v_old
      FROM postern.realm AS r WHERE r.slug = slug;
    UPDATE postern.realm AS r
       SET primary_domain = coalesce(primary_domain, r.primary_domain), display_name = coalesce(display_name, r.display_name),
           public_origin = coalesce(public_origin, r.public_origin), enabled = coalesce(enabled, r.enabled)
     WHERE r.slug = slug
    RETURNING r.id, r.primary_domain INTO v_id, v_primary;
    IF NOT FOUND THEN
        IF primary_domain IS NULL AND public_origin IS NULL THEN
            PERFORM postern.refuse(format('realm "%s" is new and has neither primary_domain nor public_origin', slug),
                'Give primary_domain (a host such as id.example.com), or public_origin when there is no primary domain.');
        END IF;
        INSERT INTO postern.realm (slug, primary_domain, display_name, public_origin, enabled)
        VALUES (slug, primary_domain, coalesce(display_name, slug), public_origin, coalesce(enabled, true))
        RETURNING id, primary_domain INTO v_id, v_primary;
        v_created := true;
        v_primary := primary_domain;
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
            CASE WHEN v_taken.owner = slug THEN format('domain "%s" is the subdomain of App "%s"', v_taken.domain, v_taken.app)
                 ELSE format('domain "%s" belongs to realm "%s"', v_taken.domain, v_taken.owner) END,
            'A domain belongs to one realm: choose another, or take it from there first.');
    END IF;
    -- The issuer is one realm's only, and so is the host it names.
    SELECT o.slug INTO v_taken
      FROM postern.realm AS o JOIN postern.realm AS r ON r.id = v_id AND o.id <> r.id
     WHERE postern.issuer(o.public_origin, o.primary_domain) = postern.issuer(r.public_origin, r.primary_domain)
        OR EXISTS (SELECT FROM postern.realm_domain AS d
                    WHERE d.realm_id = o.id AND d.domain = postern.origin_host(postern.issuer(r.public_origin, r.primary_domain)))
     LIMIT 1;
    IF FOUND THEN
        PERFORM postern.refuse(format('public_origin %s names a host of realm "%s"', postern.shown(coalesce(public_origin, 'https://' || v_primary)), v_taken.slug),
            'Each realm has its own issuer: choose an origin whose host is one of this realm''s domains.');
    END IF;
    IF domains IS NOT NULL THEN
        DELETE FROM postern.realm_domain AS d
         WHERE d.realm_id = v_id AND d.app IS NULL AND d.domain <> ALL (domains) AND d.domain IS DISTINCT FROM v_primary;
    END IF;
    INSERT INTO postern.realm_domain (realm_id, domain)
    SELECT DISTINCT v_id, x.domain FROM unnest(coalesce(domains, '{}') || v_primary) AS x (domain)
     WHERE x.domain IS NOT NULL AND NOT EXISTS (SELECT FROM postern.realm_domain AS d WHERE d.domain = x.domain);
    IF signing_alg <> coalesce(postern.signing_alg(v_id), '') THEN
        PERFORM postern.request_signing_key(v_id, signing_alg, true);
    END IF;
    v_effects := CASE WHEN v_created THEN '{}' ELSE postern.warn_of_moved_realm(v_id, v_old.primary_domain, v_old.issuer) END;
    PERFORM postern.admin_audit(v_id, CASE WHEN v_created THEN 'realm_created' ELSE 'realm_updated' END,
        detail => jsonb_build_object('primary_domain', primary_domain, 'public_origin', public_origin, 'domains', domains, 'enabled', enabled,
            'signing_alg', signing_alg) || v_effects);
    RETURN v_id;
END
$$;
-- Says what a realm loses that got another primary domain or issuer, and returns the same for the audit log.
CREATE OR REPLACE FUNCTION postern.warn_of_moved_realm(p_realm uuid, p_former_domain text, p_former_issuer text) RETURNS jsonb
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
        AND EXISTS (SELECT FROM postern.client AS c WHERE c.realm_id = p_realm AND c.rp_id IS NULL) THEN
        SELECT count(*), count(DISTINCT p.user_id) INTO v_passkeys, v_users
          FROM postern.passkey AS p WHERE p.realm_id = p_realm AND p.rp_id = p_former_domain;
        v_effects := v_effects || jsonb_build_object('former_primary_domain', p_former_domain, 'passkeys_of_it', v_passkeys);
        IF v_passkeys > 0 THEN
            RAISE WARNING 'the RP-ID of clients without rp_id is now "%": % passkeys of % users belong to "%" and do not work with them',
                v_now.primary_domain, v_passkeys, v_users, p_former_domain
                USING HINT = format('To keep them: admin.put_client(realm, client_id, rp_id => %L) for each client without rp_id.', p_former_domain);
        END IF;
    END IF;
    IF p_former_issuer <> v_now.issuer THEN
        SELECT count(*) INTO v_sessions
          FROM postern.session AS s WHERE s.realm_id = p_realm AND s.revoked_at IS NULL AND s.expires_at > now();
        v_effects := v_effects || jsonb_build_object('former_issuer', p_former_issuer, 'sessions', v_sessions);
        RAISE WARNING 'the issuer is now "%" and was "%": JWTs of % sessions name the former one and are refused', v_now.issuer,
            p_former_issuer, v_sessions
            USING HINT = format('APIs must expect the new issuer. To keep the former one: admin.put_realm(slug, public_origin => %L).',
                                p_former_issuer);
    END IF;
    RETURN v_effects;
END
$$;
COMMENT ON FUNCTION postern.warn_of_moved_realm(uuid, text, text) IS
    'Warns of passkeys and tokens that another primary domain or issuer leaves behind';
REVOKE ALL ON FUNCTION postern.warn_of_moved_realm(uuid, text, text) FROM PUBLIC;

COMMENT ON FUNCTION admin.put_realm(text, text, text, text, text[], boolean, text) IS
'Creates or updates a realm (tenant) and returns its id. NULL leaves a setting as it is.
slug: name in all other functions. primary_domain: bare host; added to domains; default RP-ID of passkeys.
public_origin: the issuer, https://host[:port]; default https:// and primary_domain. domains: all hosts of the realm (replaces the list).
signing_alg: ES256 (default of a new realm), RS256 or EdDSA; another than the present one is published at once and signs 10 minutes later.
Another primary_domain or issuer than before leaves passkeys and tokens behind: a WARNING says how many. Look before COMMIT.
A new realm has the scopes openid, offline_access, profile, email; native grants are off until admin.set_native_grants.
Example: SELECT admin.put_realm(''acme'', ''id.acme.example'', ''Acme'');';

CREATE OR REPLACE FUNCTION admin.set_native_grants(realm text, enabled boolean DEFAULT NULL, access_token_lifetime interval DEFAULT NULL,
    refresh_token_lifetime interval DEFAULT NULL, refresh_retry_window interval DEFAULT NULL, session_lifetime interval DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_access interval := postern.checked_interval('access_token_lifetime', access_token_lifetime, '1 minute', '60 minutes');
    v_refresh interval := postern.checked_interval('refresh_token_lifetime', refresh_token_lifetime, '1 day', '365 days');
    v_retry interval := postern.checked_interval('refresh_retry_window', refresh_retry_window, '0 seconds', '600 seconds');
    v_session interval := postern.checked_interval('session_lifetime', session_lifetime, '1 day', '3650 days');
BEGIN
    UPDATE postern.realm AS r
       SET native_grants_enabled = coalesce(enabled, r.native_grants_enabled), access_token_lifetime = coalesce(v_access, r.access_token_lifetime),
           refresh_token_lifetime = coalesce(v_refresh, r.refresh_token_lifetime), refresh_retry_window = coalesce(v_retry, r.refresh_retry_window),
           session_lifetime = coalesce(v_session, r.session_lifetime)
     WHERE r.id = v_realm;
    PERFORM postern.admin_audit(v_realm, 'native_grants_set', detail => jsonb_build_object('enabled', enabled, 'access_token_lifetime', v_access,
        'refresh_token_lifetime', v_refresh, 'refresh_retry_window', v_retry, 'session_lifetime', v_session));
END
$$;
COMMENT ON FUNCTION admin.set_native_grants(text, boolean, interval, interval, interval, interval) IS
'Switches the native grants (one-time code, magic link, passkey) of a realm on or off and sets its lifetimes. NULL leaves a setting as it is.
access_token_lifetime: 1 to 60 minutes (default 15). refresh_token_lifetime: idle time, 1 to 365 days (14).
refresh_retry_window: 0 to 600 seconds (120) in which a lost answer to a refresh is given again. session_lifetime: absolute, 1 to 3650 days (365).
Off stops new sign-ins, not the refresh of sessions that exist.
Example: SELECT admin.set_native_grants(''acme'', true, access_token_lifetime => ''10 minutes'');';

DROP FUNCTION IF EXISTS admin.set_code_policy(text, interval, integer, interval, interval, interval);
CREATE OR REPLACE FUNCTION admin.set_code_policy(realm text, otp_lifetime interval DEFAULT NULL, otp_attempts integer DEFAULT NULL,
    otp_digits integer DEFAULT NULL, magic_link_lifetime interval DEFAULT NULL, resend_cooldown interval DEFAULT NULL, ceremony_lifetime interval DEFAULT NULL)
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
           magic_link_lifetime = coalesce(v_link, r.magic_link_lifetime), resend_cooldown = coalesce(v_cooldown, r.resend_cooldown),
           ceremony_lifetime = coalesce(v_ceremony, r.ceremony_lifetime)
     WHERE r.id = v_realm;
    PERFORM postern.admin_audit(v_realm, 'code_policy_set', detail => jsonb_build_object('otp_lifetime', v_otp, 'otp_attempts', otp_attempts,
        'otp_digits', otp_digits, 'magic_link_lifetime', v_link, 'resend_cooldown', v_cooldown, 'ceremony_lifetime', v_ceremony));
END
$$;
COMMENT ON FUNCTION admin.set_code_policy(text, interval, integer, integer, interval, interval, interval) IS
'Sets how long codes, links and passkey ceremonies live. NULL leaves a setting as it is.
otp_lifetime: 1 to 10 minutes (default 10). otp_attempts: 1 to 10 tries per request (5). otp_digits: 6 to 8 digits of a code (6).
magic_link_lifetime: 1 to 60 minutes (15). resend_cooldown: 0 to 600 seconds (60) in which a resend sends no further mail. ceremony_lifetime: 30 seconds to 10 minutes (5 minutes).
Example: SELECT admin.set_code_policy(''acme'', otp_attempts => 3);';

CREATE OR REPLACE FUNCTION admin.delete_realm(realm text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    DELETE FROM postern.realm AS r WHERE r.id = v_realm;
END
$$;
COMMENT ON FUNCTION admin.delete_realm(text) IS
'Deletes a realm with everything in it: clients, users, sessions, codes, mail, audit log. admin.deleted_realms keeps that it happened. There is no way back; admin.put_realm(slug, enabled => false) only closes it.
Example: SELECT admin.delete_realm(''acme'');';

CREATE OR REPLACE FUNCTION admin.put_scope(realm text, scope text, description text DEFAULT NULL, resources text[] DEFAULT NULL,
    in_discovery boolean DEFAULT NULL, enabled boolean DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_resource text;
BEGIN
    IF scope IS NULL OR NOT postern.is_scope(scope) THEN
        PERFORM postern.refuse(format('scope %s is not a scope name', postern.shown(scope)),
            'Allowed are 1 to 128 printable ASCII characters without blank, " or \ (RFC 6749 section 3.3), for example orders:read.');
    END IF;
    IF description <> '' THEN
        PERFORM postern.check_text('description', description, 500);
    END IF;
    FOREACH v_resource IN ARRAY coalesce(resources, '{}') LOOP
        IF v_resource IS NULL OR octet_length(v_resource) > 500 OR v_resource COLLATE "C" !~ '\A[A-Za-z][A-Za-z0-9+.-]*:[!-~]+\Z' OR v_resource ~ '[#"\\]' THEN
            PERFORM postern.refuse(format('resources %s is not a resource', postern.shown(v_resource)),
                'Allowed are absolute URIs without fragment (RFC 8707), for example https://api.example.com.');
        END IF;
    END LOOP;
    UPDATE postern.scope AS s
       SET description = CASE WHEN description = '' THEN NULL ELSE coalesce(description, s.description) END, resources = coalesce(resources, s.resources),
           in_discovery = coalesce(in_discovery, s.in_discovery), enabled = coalesce(enabled, s.enabled)
     WHERE s.realm_id = v_realm AND s.name = scope;
    IF NOT FOUND THEN
        INSERT INTO postern.scope (realm_id, name, description, resources, in_discovery, enabled)
        VALUES (v_realm, scope, NULLIF(description, ''), coalesce(resources, '{}'), coalesce(in_discovery, true), coalesce(enabled, true));
    END IF;
    PERFORM postern.admin_audit(v_realm, 'scope_put', detail => jsonb_build_object('scope', scope, 'resources', resources, 'in_discovery', in_discovery, 'enabled', enabled));
END
$$;
COMMENT ON FUNCTION admin.put_scope(text, text, text, text[], boolean, boolean) IS
'Creates or updates a scope. NULL leaves a setting as it is; description '''' removes it.
resources: absolute URIs that become the audience of tokens with this scope (replaces the list). in_discovery: listed in the discovery document (default true).
Clients need the permission scp:<scope> to be granted it.
Example: SELECT admin.put_scope(''acme'', ''orders:read'', ''Read orders'', ARRAY[''https://api.acme.example'']);';

CREATE OR REPLACE FUNCTION admin.delete_scope(realm text, scope text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    DELETE FROM postern.scope AS s WHERE s.realm_id = v_realm AND s.name = scope;
    IF NOT FOUND THEN
        PERFORM postern.refuse(format('scope %s does not exist in this realm', postern.shown(scope)), 'admin.put_scope makes one.');
    END IF;
    PERFORM postern.admin_audit(v_realm, 'scope_deleted', detail => jsonb_build_object('scope', scope));
END
$$;
COMMENT ON FUNCTION admin.delete_scope(text, text) IS 'Deletes a scope; requests for it are then refused.
Example: SELECT admin.delete_scope(''acme'', ''orders:read'');';

CREATE OR REPLACE FUNCTION admin.set_rate_limit(realm text, policy text, dimension text, permits integer DEFAULT NULL, per interval DEFAULT NULL,
    burst integer DEFAULT NULL, mode text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_now record;
    v_permits integer;
    v_per interval := postern.checked_interval('per', per, '1 second', '1 day');
    v_burst integer;
BEGIN
    IF policy IS NULL OR dimension IS NULL THEN
        PERFORM postern.refuse('policy and dimension must be given', 'SELECT * FROM admin.rate_limits shows what there is.');
    END IF;
    PERFORM postern.check_choice('policy', policy, 'native-otp', 'magic-link', 'passkey-begin', 'token', 'refused');
    PERFORM postern.check_choice('dimension', dimension, 'target', 'target-total', 'source', 'client', 'app', 'failures',
        'registrations', 'wrong-codes');
    PERFORM postern.check_choice('mode', mode, 'enforce', 'log-only');
    IF dimension IN ('failures', 'wrong-codes') AND policy <> 'token' THEN
        PERFORM postern.refuse(format('dimension "%s" does not exist for policy "%s"', dimension, policy),
            'Wrong codes are counted by policy token only.');
    ELSIF dimension = 'registrations' AND policy <> 'native-otp' THEN
        PERFORM postern.refuse(format('dimension "registrations" does not exist for policy "%s"', policy),
            'Unknown addresses are counted by policy native-otp only.');
    ELSIF policy = 'refused' AND dimension <> 'source' THEN
        PERFORM postern.refuse(format('dimension "%s" does not exist for policy "refused"', dimension),
            'Refused calls are counted by source only.');
    ELSIF dimension IN ('target', 'target-total') AND policy NOT IN ('native-otp', 'magic-link') THEN
        PERFORM postern.refuse(format('dimension "%s" does not exist for policy "%s"', dimension, policy), 'Addresses are limited by the policies native-otp and magic-link.');
    END IF;
    SELECT l.permits, l.per, l.burst, l.mode, l.is_default INTO v_now
      FROM postern.effective_rate_limits(v_realm) AS l WHERE l.policy = policy AND l.dimension = dimension;
    v_permits := coalesce(permits, v_now.permits);
    v_per := coalesce(v_per, v_now.per);
    IF v_permits IS NULL OR v_per IS NULL THEN
        PERFORM postern.refuse(format('permits and per must be given: policy "%s" has no limit by "%s" yet', policy, dimension), 'For example permits => 100, per => ''1 minute''.');
    END IF;
    IF v_permits < 1 OR v_permits > 1000000 * extract(epoch FROM v_per) / 60 THEN
        PERFORM postern.refuse(format('permits "%s" per "%s" is out of range', v_permits, v_per), 'Allowed is 1 or more, up to 1,000,000 per minute.');
    END IF;
    -- By default as many at once as per span; a burst set earlier stays unless permits change.
    v_burst := coalesce(burst, CASE WHEN permits IS NULL THEN v_now.burst END, least(v_permits, 1000000));
    IF v_burst NOT BETWEEN 1 AND 1000000 THEN
        PERFORM postern.refuse(format('burst "%s" is out of range', v_burst), 'Allowed is 1 to 1,000,000.');
    END IF;
    INSERT INTO postern.rate_limit (realm_id, policy, dimension, permits, per, burst, mode)
    VALUES (v_realm, policy, dimension, v_permits, v_per, v_burst, coalesce(mode, v_now.mode, 'enforce'))
        ON CONFLICT ON CONSTRAINT rate_limit_pkey DO UPDATE
       SET permits = excluded.permits, per = excluded.per, burst = excluded.burst, mode = excluded.mode;
    PERFORM postern.admin_audit(v_realm, 'rate_limit_set', detail => jsonb_build_object('policy', policy, 'dimension', dimension,
        'permits', v_permits, 'per', v_per, 'burst', v_burst, 'mode', coalesce(mode, v_now.mode, 'enforce')));
END
$$;
COMMENT ON FUNCTION admin.set_rate_limit(text, text, text, integer, interval, integer, text) IS
'Overrides a rate limit of a realm (GCRA: permits per span sustained, burst at once; burst defaults to permits). NULL leaves a setting as it is.
policy: native-otp, magic-link, passkey-begin, token, refused (calls of other endpoints that were refused; by source only).
dimension: target (address and source), target-total (address), source, client, app, failures (account; policy token only),
registrations (unknown addresses of a source; policy native-otp only), wrong-codes (compared and wrong codes of the realm; policy token only).
mode: enforce (default) or log-only. At most 1,000,000 per minute. SELECT * FROM admin.rate_limits shows what is in force.
Example: SELECT admin.set_rate_limit(''acme'', ''native-otp'', ''source'', 600, ''10 minutes'', burst => 100);';

CREATE OR REPLACE FUNCTION admin.reset_rate_limit(realm text, policy text, dimension text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    DELETE FROM postern.rate_limit AS l WHERE l.realm_id = v_realm AND l.policy = policy AND l.dimension = dimension;
    PERFORM postern.admin_audit(v_realm, 'rate_limit_reset', detail => jsonb_build_object('policy', policy, 'dimension', dimension));
END
$$;
COMMENT ON FUNCTION admin.reset_rate_limit(text, text, text) IS 'Takes an override back: the default rate limit is in force again.
Example: SELECT admin.reset_rate_limit(''acme'', ''native-otp'', ''source'');';

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA admin FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA admin TO postern_admin;

RESET ROLE;
