-- Refresh tokens rotate (RFC 6749 section 6).
SET LOCAL ROLE postern_owner;

INSERT INTO postern.known_permission (permission, purpose) VALUES
    ('gt:refresh_token', 'Refresh tokens')
    ON CONFLICT (permission) DO UPDATE SET purpose = excluded.purpose;

-- One conditional UPDATE rotates, and its row is the verdict. The losers of a race wait for the row, do not match, and
-- get their reason below. The immediate predecessor gets the same successor again within the retry window. The request
-- that rotated (p_mark) gets it also outside the window, because only the server repeats a request with the same mark.
-- Any older generation ends the family. The server has checked the token's tag, so an old generation here is proof of
-- reuse and not a guess. With a proof of the family's key, and unless the realm's window is 0, the predecessor gets its
-- successor at any time, and within the window of the last rotation an older generation is refused and ends nothing: of
-- two processes with one store one may have been stopped between reading and sending. A row that another transaction
-- holds is waited for 100 ms (error 55P03); callers then use rotate_session_unless_busy.
-- p_proof: packed (sql/functions/dpop), or thumbprint and flags of one that rotate_sessions has used up, 33 bytes;
-- NULL: none came. A bound token is refused without a proof of its key, and nothing else happens. A token from before
-- the family was bound is a bearer token: it is refused so only while it may be the lost answer's that is repeated, and
-- its reuse is judged like any other, so that a thief cannot bind the family to a key of his own and be safe.
-- p_level: the least that the sign-in must have proven; p_max_age: its greatest age in seconds. Outcomes: rotated,
-- retried, refused (reason is for logs), reuse, invalid_scope, invalid_target, unmet, proof_used, proof_old,
-- client_fault (reason: as postern.client_fault), rate_limited; nothing is done but in the first two and for reuse.
CREATE OR REPLACE FUNCTION postern.rotate_session(
    p_realm uuid, p_client uuid, p_session uuid, p_generation integer, p_hash bytea, p_successor_hashes bytea[],
    p_lifetime integer, p_source text, p_server_key bytea, p_mark bigint, p_proof bytea,
    p_permits postern.permits,
    p_scope text[] DEFAULT NULL, p_resource text[] DEFAULT NULL, p_level integer DEFAULT NULL,
    p_max_age integer DEFAULT NULL,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT scope text[], OUT resource text[], OUT amr text[],
    OUT acr text, OUT auth_time double precision, OUT token_salt bytea, OUT current_hash bytea,
    OUT db_now double precision, OUT expires_at double precision, OUT refresh_expires_at double precision,
    OUT email text,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_set text;
    v_session record;
    v_window interval;
    v_precedes boolean;
    v_is_recent boolean;
    v_is_keyed boolean;
    v_foreign boolean;
    v_repeats boolean;
    v_fault text;
    v_proof text := 'none';
    v_key bytea := substr(p_proof, 1, 32);
    v_binding bytea := CASE WHEN get_byte(p_proof, octet_length(p_proof) - 1) & 2 > 0 THEN v_key END;
BEGIN
    v_set := set_config('postern.realm', p_realm::text, true);
    db_now := date_part('epoch', now());
    IF cardinality(p_permits.keys) > 0 THEN
        SELECT t.* INTO outcome, limit_ord, retry_after, granted
          FROM postern.enter_realm(p_realm, p_permits) AS t;
        IF outcome = 'rate_limited' THEN
            RETURN;
        END IF;
    END IF;

    IF octet_length(p_proof) > 33 THEN
        v_proof := postern.mark_proof(p_realm, p_proof);
        IF v_proof = 'old' THEN
            outcome := 'proof_old';
            RETURN;
        END IF;
    END IF;

    v_set := set_config('lock_timeout', '100ms', true);
    UPDATE postern.session AS s
       SET generation = s.generation + 1,
           current_hash = p_successor_hashes[1],
           server_key = p_server_key,
           rotation_mark = p_mark,
           rotated_at = now(),
           last_used_at = now(),
           refresh_expires_at = least(s.expires_at, now() + make_interval(secs => p_lifetime)),
           jkt = coalesce(s.jkt, v_binding),
           bound_from = CASE WHEN s.jkt IS NULL AND v_binding IS NOT NULL THEN s.generation + 1 ELSE s.bound_from END
      FROM postern.user_account AS u, postern.client AS k, postern.realm AS r
     WHERE s.realm_id = p_realm AND s.id = p_session AND s.generation = p_generation AND s.current_hash = p_hash
       AND s.client = p_client AND (s.jkt IS NULL OR s.jkt = v_key) AND v_proof <> 'used'
       AND s.revoked_at IS NULL AND s.refresh_expires_at > now() AND s.expires_at > now()
       AND u.realm_id = p_realm AND u.id = s.user_id AND u.enabled AND u.security_stamp = s.security_stamp
       AND k.realm_id = p_realm AND k.id = p_client AND k.enabled AND 'gt:refresh_token' = ANY (k.permissions)
       AND r.id = p_realm AND r.enabled
       AND (p_scope IS NULL OR p_scope <@ s.scope) AND (p_resource IS NULL OR p_resource <@ s.resource)
       AND (p_level IS NULL OR p_level <= postern.acr_level(s.amr))
       AND (p_max_age IS NULL OR s.auth_time >= now() - make_interval(secs => p_max_age))
    RETURNING s.user_id, s.scope, s.resource, s.amr, s.acr, date_part('epoch', s.auth_time), s.token_salt,
              s.current_hash, date_part('epoch', s.expires_at), date_part('epoch', s.refresh_expires_at), u.email
         INTO user_id, scope, resource, amr, acr, auth_time, token_salt, current_hash, expires_at,
              refresh_expires_at, email;
    IF FOUND THEN
        outcome := 'rotated';
        RETURN;
    END IF;

    outcome := 'refused';
    SELECT s.client, s.generation, s.current_hash, s.user_id, s.scope, s.resource, s.amr, s.auth_time, s.token_salt,
           s.expires_at, s.refresh_expires_at, s.rotated_at, s.revoked_at, s.security_stamp, s.rotation_mark, s.jkt,
           s.bound_from, s.acr
      INTO v_session
      FROM postern.session AS s WHERE s.realm_id = p_realm AND s.id = p_session
       FOR NO KEY UPDATE OF s;
    v_foreign := v_session.jkt IS DISTINCT FROM v_key AND v_session.jkt IS NOT NULL;
    v_precedes := v_session.generation = p_generation + 1;
    -- NULL, by which nothing is repeated, when the window is 0.
    v_window := (SELECT NULLIF(r.refresh_retry_window, interval '0') FROM postern.realm AS r WHERE r.id = p_realm);
    v_is_recent := coalesce(now() <= v_session.rotated_at + v_window, false);
    v_is_keyed := coalesce(v_session.jkt = v_key AND v_window IS NOT NULL, false);
    IF NOT FOUND THEN
        reason := 'unknown';
    ELSIF v_session.client <> p_client THEN
        reason := 'client';
    ELSIF v_session.revoked_at IS NOT NULL THEN
        reason := 'revoked';
    ELSIF v_session.current_hash IS NULL OR v_session.refresh_expires_at <= now() OR v_session.expires_at <= now() THEN
        reason := 'expired';
    ELSIF v_session.generation < p_generation
          OR (v_session.generation = p_generation AND v_session.current_hash <> p_hash) THEN
        reason := 'mismatch';
    ELSIF v_foreign AND (v_precedes AND v_is_recent OR p_generation >= coalesce(v_session.bound_from, 0)) THEN
        -- Who lacks the key of a bound token gets neither tokens nor a way to sign the owner out.
        reason := 'key';
        IF v_proof <> 'used' THEN
            INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
            VALUES (p_realm, 'refresh_key_mismatch', p_client, v_session.user_id, p_session, p_source,
                    jsonb_build_object('presented', p_generation, 'current', v_session.generation));
        END IF;
    ELSE
        SELECT u.email INTO email
          FROM postern.user_account AS u, postern.client AS k, postern.realm AS r
         WHERE u.realm_id = p_realm AND u.id = v_session.user_id AND u.enabled
           AND u.security_stamp = v_session.security_stamp
           AND k.realm_id = p_realm AND k.id = p_client AND k.enabled AND 'gt:refresh_token' = ANY (k.permissions)
           AND r.id = p_realm AND r.enabled;
        IF NOT FOUND THEN
            reason := 'disabled';
        END IF;
        v_repeats := v_precedes AND v_session.current_hash = ANY (p_successor_hashes) AND NOT v_foreign
            AND (v_is_recent OR v_is_keyed OR coalesce(v_session.rotation_mark = p_mark, false));
        IF reason IS NOT NULL THEN
            NULL;
        -- A used proof moves nothing and ends nothing: an observer of a request could repeat it otherwise.
        ELSIF v_proof = 'used' AND NOT v_repeats THEN
            reason := 'proof';
        -- Reuse is checked before the scope, so that a wide scope in a stolen token's request does not hide the reuse.
        ELSIF v_session.generation > p_generation AND NOT v_repeats THEN
            -- A predecessor comes here with its key when the line of the key file is gone that its successor is of.
            IF v_is_keyed AND (v_is_recent OR v_precedes) THEN
                reason := 'superseded';
            ELSE
                UPDATE postern.session AS s SET revoked_at = now() WHERE s.realm_id = p_realm AND s.id = p_session;
                outcome := 'reuse';
                reason := 'reuse';
            END IF;
            INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
            VALUES (p_realm, CASE reason WHEN 'reuse' THEN 'refresh_token_reuse' ELSE 'refresh_superseded' END,
                    p_client, v_session.user_id, p_session, p_source,
                    jsonb_build_object('presented', p_generation, 'current', v_session.generation));
        ELSIF NOT coalesce(p_scope <@ v_session.scope, true) THEN
            outcome := 'invalid_scope';
        ELSIF NOT coalesce(p_resource <@ v_session.resource, true) THEN
            outcome := 'invalid_target';
        ELSIF p_level > postern.acr_level(v_session.amr)
              OR v_session.auth_time < now() - make_interval(secs => p_max_age) THEN
            outcome := 'unmet';
        ELSIF v_session.generation = p_generation THEN
            reason := 'mismatch';
        ELSE
            outcome := 'retried';
            user_id := v_session.user_id;
            scope := v_session.scope;
            resource := v_session.resource;
            amr := v_session.amr;
            acr := v_session.acr;
            auth_time := date_part('epoch', v_session.auth_time);
            token_salt := v_session.token_salt;
            current_hash := v_session.current_hash;
            expires_at := date_part('epoch', v_session.expires_at);
            refresh_expires_at := date_part('epoch', v_session.refresh_expires_at);
            RETURN;
        END IF;
        email := NULL;
    END IF;
    IF v_proof = 'used' THEN
        outcome := 'proof_used';
        reason := NULL;
    END IF;
    -- No exception: the others of a batch are served.
    v_fault := postern.client_fault(p_realm, p_client, 'gt:refresh_token');
    IF v_fault IS NOT NULL AND outcome <> 'reuse' THEN
        outcome := 'client_fault';
        reason := v_fault;
    END IF;
END
$$;
COMMENT ON FUNCTION postern.rotate_session IS
    'Rotates a refresh token, or hands out the same successor again, or ends the family';
GRANT EXECUTE ON FUNCTION postern.rotate_session TO postern_app;

-- The same without waiting: outcome "busy", and nothing done, while another transaction holds the row. It costs an
-- extra lock, so it is used for realms in which a row was found locked within the last seconds.
CREATE OR REPLACE FUNCTION postern.rotate_session_unless_busy(
    p_realm uuid, p_client uuid, p_session uuid, p_generation integer, p_hash bytea, p_successor_hashes bytea[],
    p_lifetime integer, p_source text, p_server_key bytea, p_mark bigint, p_proof bytea,
    p_permits postern.permits,
    p_scope text[] DEFAULT NULL, p_resource text[] DEFAULT NULL, p_level integer DEFAULT NULL,
    p_max_age integer DEFAULT NULL,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT scope text[], OUT resource text[], OUT amr text[],
    OUT acr text, OUT auth_time double precision, OUT token_salt bytea, OUT current_hash bytea,
    OUT db_now double precision, OUT expires_at double precision, OUT refresh_expires_at double precision,
    OUT email text,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    PERFORM FROM postern.session AS s WHERE s.realm_id = p_realm AND s.id = p_session FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT FROM postern.session AS s WHERE s.realm_id = p_realm AND s.id = p_session) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    SELECT t.outcome, t.reason, t.user_id, t.scope, t.resource, t.amr, t.acr, t.auth_time, t.token_salt,
           t.current_hash, t.db_now, t.expires_at, t.refresh_expires_at, t.email, t.limit_ord, t.retry_after, t.granted
      INTO outcome, reason, user_id, scope, resource, amr, acr, auth_time, token_salt, current_hash,
           db_now, expires_at, refresh_expires_at, email, limit_ord, retry_after, granted
      FROM postern.rotate_session(
               p_realm, p_client, p_session, p_generation, p_hash, p_successor_hashes, p_lifetime, p_source,
               p_server_key, p_mark, p_proof, p_permits, p_scope, p_resource, p_level,
               p_max_age) AS t;
END
$$;
COMMENT ON FUNCTION postern.rotate_session_unless_busy IS
    'rotate_session that says "busy" instead of waiting for the row';
GRANT EXECUTE ON FUNCTION postern.rotate_session_unless_busy TO postern_app;

-- Rotates several families whose requests take no permit and keep the family's scope, in their order. The proofs are
-- used up by one statement before any rotation. No row, and nothing rotated, when one of them was not fresh: the caller
-- goes on with rotate_session, which says what became of each. p_proof: thumbprint and flags of a proof, 33 bytes, or
-- empty; p_slot and what follows are the same proofs as mark_proofs takes them. Inlined into the caller's statement,
-- whose plan asks for the condition once and first, because it depends on no row.
CREATE OR REPLACE FUNCTION postern.rotate_sessions(
    p_realm uuid, p_client uuid[], p_session uuid[], p_generation integer[], p_hash bytea[], p_successor_hash bytea[],
    p_lifetime integer[], p_source text[], p_server_key bytea[], p_mark bigint[], p_proof bytea[],
    p_slot integer, p_before bigint, p_keys bigint[], p_used_by bigint[])
RETURNS TABLE (number bigint, outcome text, reason text, user_id uuid, scope text[], resource text[], amr text[],
    acr text, auth_time double precision, token_salt bytea, current_hash bytea, db_now double precision,
    expires_at double precision)
LANGUAGE sql STABLE ROWS 20
AS $$
    SELECT item.number, r.outcome, r.reason, r.user_id, r.scope, r.resource, r.amr, r.acr, r.auth_time, r.token_salt,
           r.current_hash, r.db_now, r.expires_at
      FROM unnest(p_client, p_session, p_generation, p_hash, p_successor_hash, p_lifetime, p_source, p_server_key,
                  p_mark, p_proof) WITH ORDINALITY
               AS item (client, session, generation, hash, successor_hash, lifetime, source, server_key, mark, proof,
                        number),
           LATERAL postern.rotate_session(
               p_realm, item.client, item.session, item.generation, item.hash, ARRAY[item.successor_hash],
               item.lifetime, item.source, item.server_key, item.mark, NULLIF(item.proof, ''),
               NULL) AS r
     WHERE (SELECT postern.mark_proofs(p_realm, p_slot, p_before, p_keys, p_used_by))
$$;
COMMENT ON FUNCTION postern.rotate_sessions IS
    'rotate_session for a batch, whose proofs of possession are used up by one statement';
GRANT EXECUTE ON FUNCTION postern.rotate_sessions TO postern_app;

RESET ROLE;
