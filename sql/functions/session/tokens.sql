-- Introspection and revocation of a session's tokens, and whose session it is.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.known_permission (permission, purpose) VALUES
    ('ept:introspection', 'Introspection (RFC 7662)'),
    ('ept:revocation', 'Revocation (RFC 7009)')
    ON CONFLICT (permission) DO UPDATE SET purpose = excluded.purpose;

INSERT INTO postern.sweep_rule (table_name, condition) VALUES
    -- An hour after the last possible refresh the last access token has expired too.
    ('session', 't.expires_at < now() - interval ''1 hour'' OR t.refresh_expires_at < now() - interval ''1 hour'''
                ' OR t.revoked_at < now() - interval ''1 day''')
    ON CONFLICT (table_name) DO UPDATE SET condition = excluded.condition;

-- Always one row; everything else is NULL when active is false. Inlined into the caller's query (LANGUAGE sql, STABLE,
-- a set), so that it costs one plan and no function call. LATERAL and OFFSET 0 fix the order: the realm is set before
-- any row is looked at.
-- Whether the client is enabled the server knows from its configuration, which is never older than a second.
CREATE OR REPLACE FUNCTION postern.live_session(p_realm uuid, p_session uuid, p_jti bytea)
RETURNS TABLE (active boolean, user_id uuid, client_id text, client uuid, scope text[], resource text[], amr text[],
    auth_time double precision, token_salt bytea, created_at double precision, email text, email_verified boolean,
    first_name text, last_name text, db_now double precision,
    expires_at double precision, refresh_expires_at double precision, current_hash bytea, acr text, jkt bytea,
    cotter boolean)
LANGUAGE sql STABLE ROWS 1
AS $$
    SELECT f.user_id IS NOT NULL, f.user_id, f.client_id, f.client, f.scope, f.resource, f.amr, f.auth_time,
           f.token_salt, f.created_at, f.email, f.email_verified, f.first_name, f.last_name, date_part('epoch', now()),
           f.expires_at, f.refresh_expires_at, f.current_hash, f.acr, f.jkt, f.cotter
      FROM (SELECT set_config('postern.realm', p_realm::text, true)::uuid AS realm OFFSET 0) AS tenant
      LEFT JOIN LATERAL (
          SELECT s.user_id, s.client_id, s.client, s.scope, s.resource, s.amr,
                 date_part('epoch', s.auth_time) AS auth_time, s.token_salt,
                 date_part('epoch', s.created_at) AS created_at, date_part('epoch', s.expires_at) AS expires_at,
                 date_part('epoch', s.refresh_expires_at) AS refresh_expires_at, s.current_hash, s.acr,
                 s.jkt, s.cotter, u.email, u.email_verified, u.first_name, u.last_name
            FROM postern.session AS s, postern.user_account AS u
           WHERE s.realm_id = tenant.realm AND s.id = p_session AND s.revoked_at IS NULL AND s.expires_at > now()
             AND (s.revoked_jtis IS NULL OR p_jti <> ALL (s.revoked_jtis))
             AND u.realm_id = tenant.realm AND u.id = s.user_id AND u.enabled AND u.security_stamp = s.security_stamp
          OFFSET 0) AS f ON true
$$;
COMMENT ON FUNCTION postern.live_session IS 'Whether an access token''s session is alive, and its user';
GRANT EXECUTE ON FUNCTION postern.live_session TO postern_app;

-- The same for a request that comes with a packed proof (sql/functions/dpop), which is used up. proof: fresh, used or
-- old; with the latter two active is false. Not run again by itself: a proof is fresh once. STABLE, so that it
-- is inlined as well, which saves a third of a batch; mark_proof, which writes, is VOLATILE and called once a row.
CREATE OR REPLACE FUNCTION postern.live_session_by_proof(p_realm uuid, p_session uuid, p_jti bytea, p_proof bytea)
RETURNS TABLE (proof text, active boolean, user_id uuid, client_id text, client uuid, scope text[], resource text[],
    amr text[], auth_time double precision, token_salt bytea, created_at double precision, email text,
    email_verified boolean, first_name text, last_name text, db_now double precision,
    expires_at double precision, refresh_expires_at double precision, current_hash bytea, acr text, jkt bytea,
    cotter boolean)
LANGUAGE sql STABLE ROWS 1
AS $$
    SELECT used.proof, coalesce(s.active, false), s.user_id, s.client_id, s.client, s.scope, s.resource, s.amr,
           s.auth_time, s.token_salt, s.created_at, s.email, s.email_verified, s.first_name, s.last_name, s.db_now,
           s.expires_at, s.refresh_expires_at, s.current_hash, s.acr, s.jkt, s.cotter
      FROM (SELECT set_config('postern.realm', p_realm::text, true)::uuid AS realm OFFSET 0) AS tenant,
           LATERAL (SELECT postern.mark_proof(tenant.realm, p_proof) AS proof OFFSET 0) AS used
      LEFT JOIN LATERAL postern.live_session(p_realm, p_session, p_jti) AS s ON used.proof = 'fresh'
$$;
COMMENT ON FUNCTION postern.live_session_by_proof IS
    'Uses up a proof of possession, then live_session';
GRANT EXECUTE ON FUNCTION postern.live_session_by_proof TO postern_app;

CREATE OR REPLACE FUNCTION postern.session_owner(
    p_realm uuid, p_session uuid,
    OUT id uuid, OUT email text, OUT email_verified boolean, OUT client uuid, OUT proved boolean)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    SELECT u.id, u.email, u.email_verified, s.client, 'mfa' = ANY (s.amr)
      INTO id, email, email_verified, client, proved
      FROM postern.session AS s, postern.user_account AS u
     WHERE s.realm_id = p_realm AND s.id = p_session AND s.revoked_at IS NULL AND s.expires_at > now()
       AND u.realm_id = p_realm AND u.id = s.user_id AND u.enabled AND u.security_stamp = s.security_stamp;
END
$$;
COMMENT ON FUNCTION postern.session_owner IS
    'The user of a live session; proved: signed in with a second factor. NULL when the session has ended';
GRANT EXECUTE ON FUNCTION postern.session_owner TO postern_app;

-- First in every statement by which a session, of a client or of a browser, changes what lets its user in. What ends
-- access (an administrator, an undo link, a sign-out everywhere) holds the same row, so it comes before and the session
-- has ended, or after and finds the change. The session is read when the row is held, in a later query: a call that
-- waited sees what happened meanwhile. All is NULL when the session has ended.
CREATE OR REPLACE FUNCTION postern.hold_session_owner(
    p_realm uuid, p_session uuid,
    OUT id uuid, OUT email text, OUT email_verified boolean, OUT client uuid, OUT proved boolean)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_user uuid;
BEGIN
    SELECT coalesce((SELECT s.user_id FROM postern.session AS s WHERE s.realm_id = p_realm AND s.id = p_session),
                    (SELECT b.user_id FROM postern.browser_session AS b
                      WHERE b.realm_id = p_realm AND b.id = p_session)) INTO v_user;
    IF v_user IS NULL OR NOT postern.hold_user(p_realm, v_user) THEN
        RETURN;
    END IF;
    SELECT o.* INTO id, email, email_verified, client, proved FROM postern.session_owner(p_realm, p_session) AS o;
    IF id IS NULL THEN
        SELECT o.* INTO id, email, email_verified, client, proved
          FROM postern.browser_session_owner(p_realm, p_session) AS o;
    END IF;
END
$$;
COMMENT ON FUNCTION postern.hold_session_owner IS
    'Locks the user of a session to the end of the transaction, and says who that is; NULL: the session has ended';
GRANT EXECUTE ON FUNCTION postern.hold_session_owner TO postern_app;

CREATE OR REPLACE FUNCTION postern.revoke_session(p_realm uuid, p_client uuid, p_session uuid, p_reason text)
RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_user uuid;
BEGIN
    -- The client knows, so that it gets no logout token.
    PERFORM set_config('postern.realm', p_realm::text, true), set_config('postern.ended_by_client', 'on', true);
    UPDATE postern.session AS s SET revoked_at = now()
     WHERE s.realm_id = p_realm AND s.id = p_session AND s.client = p_client AND s.revoked_at IS NULL
    RETURNING s.user_id INTO v_user;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, detail)
    VALUES (p_realm, 'session_revoked', p_client, v_user, p_session, jsonb_build_object('reason', p_reason));
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.revoke_session IS 'Ends a session of this client; false when there was none to end';
GRANT EXECUTE ON FUNCTION postern.revoke_session TO postern_app;

-- Kept in the session's row until the token would have expired. Revoking dozens of live tokens of one session ends the
-- session (RFC 7009 section 2.1 allows that), so that the row stays small. The end of the session is audited.
CREATE OR REPLACE FUNCTION postern.revoke_access_token(
    p_realm uuid, p_client uuid, p_session uuid, p_jti bytea, p_expires double precision)
RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_session record;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true), set_config('postern.ended_by_client', 'on', true);
    UPDATE postern.session AS s
       SET (revoked_jtis, revoked_untils) = (
               SELECT array_agg(x.jti), array_agg(x.until)
                 FROM (SELECT o.jti, o.until FROM unnest(s.revoked_jtis, s.revoked_untils) AS o (jti, until)
                       WHERE o.until > now()
                       UNION ALL
                       SELECT p_jti, to_timestamp(p_expires)) AS x),
           revoked_at = CASE WHEN cardinality(s.revoked_jtis) >= 64
               AND s.revoked_untils[cardinality(s.revoked_untils) - 63] > now() THEN now() END
     WHERE s.realm_id = p_realm AND s.id = p_session AND s.client = p_client AND s.revoked_at IS NULL
       AND to_timestamp(p_expires) > now() AND (s.revoked_jtis IS NULL OR p_jti <> ALL (s.revoked_jtis))
    RETURNING s.user_id, s.revoked_at IS NOT NULL AS has_ended INTO v_session;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF v_session.has_ended THEN
        INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, detail)
        VALUES (p_realm, 'session_revoked', p_client, v_session.user_id, p_session,
                jsonb_build_object('reason', 'access_tokens_revoked'));
    END IF;
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.revoke_access_token IS
    'Revokes one access token of a session of this client; false when it is foreign, expired or already revoked';
GRANT EXECUTE ON FUNCTION postern.revoke_access_token TO postern_app;

RESET ROLE;
