-- What users allowed clients.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION postern.has_consent(
    p_realm uuid, p_user uuid, p_client uuid, p_scope text[], p_resource text[]) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT EXISTS (SELECT FROM postern.consent AS c
                    WHERE c.realm_id = p_realm AND c.user_id = p_user AND c.client = p_client
                      AND c.scope @> p_scope AND c.resource @> p_resource)
$$;
COMMENT ON FUNCTION postern.has_consent IS 'Whether a user has allowed a client these scopes with these resources';
GRANT EXECUTE ON FUNCTION postern.has_consent TO postern_app;

-- Adds to what was allowed before.
CREATE OR REPLACE FUNCTION postern.give_consent(
    p_realm uuid, p_user uuid, p_client uuid, p_scope text[], p_resource text[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO postern.consent AS c (realm_id, user_id, client, scope, resource)
    VALUES (p_realm, p_user, p_client, p_scope, p_resource)
        ON CONFLICT (realm_id, user_id, client) DO UPDATE
       SET given_at = now(), scope = ARRAY(SELECT DISTINCT x FROM unnest(c.scope || excluded.scope) AS x),
           resource = ARRAY(SELECT DISTINCT x FROM unnest(c.resource || excluded.resource) AS x);
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, detail)
    VALUES (p_realm, 'consent_given', p_client, p_user, jsonb_build_object('scope', p_scope));
END
$$;
COMMENT ON FUNCTION postern.give_consent IS 'Remembers what a user allows a client';
GRANT EXECUTE ON FUNCTION postern.give_consent TO postern_app;

CREATE OR REPLACE FUNCTION postern.list_consents(p_realm uuid, p_user uuid)
RETURNS TABLE (client_id text, display_name text, scope text[], given_at double precision)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    RETURN QUERY
    SELECT k.client_id, k.display_name, c.scope, date_part('epoch', c.given_at)
      FROM postern.consent AS c JOIN postern.client AS k ON k.realm_id = p_realm AND k.id = c.client
     WHERE c.realm_id = p_realm AND c.user_id = p_user
     ORDER BY c.given_at DESC, k.client_id;
END
$$;
COMMENT ON FUNCTION postern.list_consents IS 'What a user has allowed, newest first';
GRANT EXECUTE ON FUNCTION postern.list_consents TO postern_app;

-- The sessions of that client and user end too. False when nothing had been allowed.
CREATE OR REPLACE FUNCTION postern.revoke_consent(p_realm uuid, p_user uuid, p_client uuid, p_source text)
RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    DELETE FROM postern.consent AS c WHERE c.realm_id = p_realm AND c.user_id = p_user AND c.client = p_client;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE postern.session AS s SET revoked_at = now()
     WHERE s.realm_id = p_realm AND s.user_id = p_user AND s.client = p_client AND s.revoked_at IS NULL;
    -- Codes that are under way may not open another one.
    UPDATE postern.authorization_code AS a SET expires_at = '-infinity'
     WHERE a.realm_id = p_realm AND a.user_id = p_user AND a.client = p_client AND a.used_at IS NULL;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, source)
    VALUES (p_realm, 'consent_revoked', p_client, p_user, p_source);
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.revoke_consent IS 'Forgets what a user allowed a client, and ends the client''s sessions';
GRANT EXECUTE ON FUNCTION postern.revoke_consent TO postern_app;

CREATE OR REPLACE FUNCTION postern.revoke_own_consent(p_realm uuid, p_session uuid, p_client uuid, p_source text)
RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_user record;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    v_user := postern.hold_session_owner(p_realm, p_session);
    RETURN v_user.id IS NOT NULL AND postern.revoke_consent(p_realm, v_user.id, p_client, p_source);
END
$$;
COMMENT ON FUNCTION postern.revoke_own_consent IS 'The session''s user takes back what was allowed a client';
GRANT EXECUTE ON FUNCTION postern.revoke_own_consent TO postern_app;

CREATE OR REPLACE FUNCTION admin.revoke_consent(realm text, user_id uuid, client_id text)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
BEGIN
    IF NOT EXISTS (SELECT FROM postern.user_account AS u WHERE u.realm_id = v_realm AND u.id = user_id) THEN
        PERFORM postern.refuse(format('user_id %s is not a user of this realm', postern.shown(user_id::text)),
                               'SELECT id FROM admin.users WHERE realm = … lists them.');
    END IF;
    RETURN postern.revoke_consent(v_realm, user_id, v_client, 'sql:' || session_user);
END
$$;
COMMENT ON FUNCTION admin.revoke_consent IS
'Takes back what a user allowed a client on its consent page, and ends the sessions that the client has of that user.
False when the user had allowed nothing.
Example: SELECT admin.revoke_consent(''acme'', user_id, client_id) FROM admin.consents
    WHERE realm = ''acme'' AND client_id = ''acme-partner'';';

CREATE OR REPLACE VIEW admin.consents AS
SELECT r.slug AS realm, c.user_id, u.email, k.client_id, c.scope, c.resource, c.given_at
  FROM postern.consent AS c JOIN postern.realm AS r ON r.id = c.realm_id
  JOIN postern.client AS k ON k.realm_id = c.realm_id AND k.id = c.client
  JOIN postern.user_account AS u ON u.realm_id = c.realm_id AND u.id = c.user_id;
COMMENT ON VIEW admin.consents IS 'What users allowed clients';

RESET ROLE;
