-- A worker looks whom a request for approval means, and whether that person's devices show it.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION postern.lock_of_approvals(p_realm uuid, p_user uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtextextended(p_user::text, uuid_hash_extended(p_realm, 37));
COMMENT ON FUNCTION postern.lock_of_approvals IS
    'Requests for approval of one user are resolved one after another, so that they can be counted';

-- A hint is an address, a number or a sub (docs/wire.md). An account that has not proven the address is not
-- found by it.
CREATE OR REPLACE FUNCTION postern.hinted_user(p_realm uuid, p_hint text) RETURNS uuid
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    -- A variable, whose collation is that of the column: under another one no index would serve.
    v_key text := lower(p_hint COLLATE "C");
BEGIN
    IF p_hint LIKE '%@%' OR p_hint LIKE '+%' THEN
        RETURN (SELECT u.id FROM postern.user_account AS u
                 WHERE u.realm_id = p_realm AND u.enabled
                   AND u.id = (SELECT i.user_id FROM postern.user_identifier AS i
                                WHERE i.realm_id = p_realm AND i.proven_key = v_key));
    END IF;
    RETURN (SELECT u.id FROM postern.user_account AS u
             WHERE u.realm_id = p_realm AND u.id = postern.user_by_id(p_realm, p_hint) AND u.enabled);
END
$$;
COMMENT ON FUNCTION postern.hinted_user IS 'The enabled user that a hint means; NULL when there is none';

-- An ID token of before the account was secured (admin.secure_user) may be a thief's.
CREATE OR REPLACE FUNCTION postern.is_asked_by_token(p_approval postern.device_request, p_user uuid) RETURNS boolean
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN p_approval.detail ? 'sid'
        AND coalesce(postern.knows_device(p_approval.realm_id, p_user, (p_approval.detail ->> 'sid')::uuid), false);
END
$$;
COMMENT ON FUNCTION postern.is_asked_by_token IS
    'Whether an ID token of a known device of the user came with a request for approval';

-- How well an asker is known: 2, with an ID token of a known device of the person; 1, a confidential client that the
-- person is signed in to; 0, a stranger. A stranger asks at a confidential client too: its form takes any address.
-- Anybody can ask in the name of a public client. So no request does anything to those of a higher rank.
CREATE OR REPLACE FUNCTION postern.rank_of_asker(p_approval postern.device_request, p_user uuid) RETURNS integer
LANGUAGE sql STABLE
AS $$
    SELECT CASE WHEN postern.is_asked_by_token(p_approval, p_user) THEN 2
                WHEN EXISTS (SELECT FROM postern.client AS c
                               JOIN postern.session AS s ON s.realm_id = c.realm_id AND s.client = c.id
                              WHERE c.realm_id = p_approval.realm_id AND c.id = p_approval.client
                                AND c.client_type = 'confidential' AND s.user_id = p_user AND s.revoked_at IS NULL
                                AND s.expires_at > now() AND coalesce(s.refresh_expires_at > now(), true)) THEN 1
                ELSE 0 END
$$;
COMMENT ON FUNCTION postern.rank_of_asker IS
    'Whether an ID token of the user came with a request (2), or its confidential client has a session of the user (1)';

CREATE OR REPLACE FUNCTION postern.rank_of(p_approval postern.device_request) RETURNS integer
LANGUAGE sql IMMUTABLE
RETURN coalesce((p_approval.detail ->> 'rank')::integer, 0);
COMMENT ON FUNCTION postern.rank_of IS 'The rank of the asker of a request that is resolved';

-- What one account may be asked, over all its addresses and numbers and all clients; only a worker knows them together,
-- so an asker is not told. Strangers have one budget; a client that the user is signed in to has its own, and requests
-- with an ID token of a known device were counted by its session when they came.
CREATE OR REPLACE FUNCTION postern.is_asked_too_often(p_approval postern.device_request, p_user uuid, p_rank integer)
RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN p_rank < 2
        AND postern.is_over(p_approval.realm_id, 'approval', 'target-total', concat_ws(
                '|', 'account', p_user, CASE WHEN p_rank = 1 THEN p_approval.client END));
END
$$;
COMMENT ON FUNCTION postern.is_asked_too_often IS
    'Takes a permit of the account that a request for approval means; true when there was none';

-- Why no device shows a request; NULL: devices do. The asker learns nothing of it. Requests of a lower rank never fill
-- the places of a request, and what the person refused of theirs does not hide it. The caller holds lock_of_approvals.
CREATE OR REPLACE FUNCTION postern.why_hidden(p_approval postern.device_request, p_user uuid, p_rank integer)
RETURNS text
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (SELECT CASE
        WHEN p_user IS NULL THEN 'unknown'
        WHEN p_approval.expires_at <= now() OR p_approval.state <> 'open'
             OR NOT (SELECT r.enabled AND r.approvals_enabled FROM postern.realm AS r WHERE r.id = p_approval.realm_id)
             THEN 'late'
        WHEN NOT EXISTS (SELECT FROM postern.device_key AS d
                          WHERE d.realm_id = p_approval.realm_id AND d.user_id = p_user
                            AND postern.device_may_approve(d)) THEN 'no_device'
        WHEN g.quiet_until > now() THEN 'quiet'
        WHEN EXISTS (SELECT FROM postern.device_request AS t
                      WHERE t.realm_id = p_approval.realm_id AND t.user_id = p_user AND t.client = p_approval.client
                        AND t.created_at > postern.approvals_since()
                        AND t.source = p_approval.source AND t.decision <> 'approve' AND postern.rank_of(t) >= p_rank
                        AND t.decided_at > greatest(now() - interval '60 seconds', g.resumed_at)) THEN 'refused'
        WHEN (SELECT count(*) FROM postern.device_request AS t
               WHERE t.realm_id = p_approval.realm_id AND t.user_id = p_user AND t.is_shown AND t.state = 'open'
                 AND t.created_at > postern.approvals_since()
                 AND t.expires_at > now()
                 AND postern.rank_of(t) >= p_rank
                 AND ((t.client, t.source) <> (p_approval.client, p_approval.source)
                      OR postern.rank_of(t) > p_rank)) >= 3 THEN 'full' END
      FROM (VALUES (1)) AS one
      LEFT JOIN postern.approval_guard AS g
        ON g.realm_id = p_approval.realm_id AND g.user_id = p_user AND g.rank = p_rank);
END
$$;
COMMENT ON FUNCTION postern.why_hidden IS
    'Why no device of the user may show a request for approval: unknown, late, no_device, quiet, refused, full';

-- The hint names another user, or none, from now on. The asker finds the request expired.
CREATE OR REPLACE FUNCTION postern.end_hinted_approvals(p_realm uuid, p_user uuid, p_key text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE postern.device_request AS t
       SET state = 'failed', reason = 'hands', ended_at = clock_timestamp(), expires_at = now()
     WHERE t.realm_id = p_realm AND t.user_id = p_user AND t.kind = 'approval' AND t.state IN ('open', 'passed')
       AND t.created_at > postern.approvals_since() AND t.expires_at > now() AND lower(t.hint COLLATE "C") = p_key;
    IF FOUND THEN
        PERFORM postern.wake(p_realm, 'user', p_user);
    END IF;
END
$$;
COMMENT ON FUNCTION postern.end_hinted_approvals IS
    'Ends a user''s requests for approval that name an identifier which the user has no more';

-- False: another transaction resolves for this user, or the user is being deleted; nothing changed.
CREATE OR REPLACE FUNCTION postern.resolve_approval(p_approval postern.device_request) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_realm uuid := p_approval.realm_id;
    v_user uuid := postern.hinted_user(v_realm, p_approval.hint);
    v_rank integer := postern.rank_of_asker(p_approval, v_user);
    v_hidden text;
    v_detail jsonb := jsonb_build_object('approval_id', p_approval.id, 'event', p_approval.event);
BEGIN
    IF v_user IS NOT NULL AND (NOT pg_try_advisory_xact_lock(postern.lock_of_approvals(v_realm, v_user))
                               OR NOT postern.try_hold_user(v_realm, v_user)) THEN
        RETURN false;
    END IF;
    v_hidden := postern.why_hidden(p_approval, v_user, v_rank);
    IF v_hidden IS NULL AND postern.is_asked_too_often(p_approval, v_user, v_rank) THEN
        v_hidden := 'limited';
    END IF;
    IF v_hidden IS NULL THEN
        -- By another hint for the same user. To its asker it stays as it is: who is meant shows nowhere.
        UPDATE postern.device_request AS t SET is_shown = false
         WHERE t.realm_id = v_realm AND t.user_id = v_user AND t.is_shown AND t.state = 'open'
           AND t.created_at > postern.approvals_since()
           AND t.client = p_approval.client AND t.source = p_approval.source
           AND postern.rank_of(t) <= v_rank;
        -- It takes the place of one of a lower rank.
        UPDATE postern.device_request AS t SET is_shown = false
         WHERE v_rank > 0 AND t.realm_id = v_realm
           AND t.id IN (SELECT o.id FROM postern.device_request AS o
                         WHERE o.realm_id = v_realm AND o.user_id = v_user AND o.is_shown AND o.state = 'open'
                           AND o.created_at > postern.approvals_since() AND o.expires_at > now()
                         ORDER BY postern.rank_of(o) DESC, o.created_at DESC, o.id OFFSET 2);
    END IF;
    UPDATE postern.device_request AS t
       SET resolved_at = now(), user_id = v_user, is_shown = v_hidden IS NULL,
           detail = t.detail || jsonb_build_object('rank', v_rank)
     WHERE t.realm_id = v_realm AND t.id = p_approval.id;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, source, detail)
    VALUES (v_realm, 'approval_requested', p_approval.client, v_user, p_approval.source, v_detail);
    IF v_hidden IS NULL THEN
        PERFORM postern.wake(v_realm, 'user', v_user);
        PERFORM postern.push_approval(p_approval, v_user);
    ELSIF v_user IS NOT NULL THEN
        INSERT INTO postern.audit_event (realm_id, event, client, user_id, source, detail)
        VALUES (v_realm, 'approval_hidden', p_approval.client, v_user, p_approval.source,
                v_detail || jsonb_build_object('reason', v_hidden));
    END IF;
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.resolve_approval IS 'Finds the user of a request for approval, and whether devices show it';

-- Requests for approval that mean a user: all, or those with this hint (folded). To their askers the open ones look
-- unanswered. Returns the requests that an answer could still have come to, or that are not redeemed yet.
CREATE OR REPLACE FUNCTION postern.end_approvals(p_realm uuid, p_user uuid, p_hint text DEFAULT NULL) RETURNS SETOF uuid
LANGUAGE sql
AS $$
    WITH live AS (
        SELECT t.id FROM postern.device_request AS t
         WHERE t.realm_id = p_realm AND t.user_id = p_user AND t.kind = 'approval' AND t.expires_at > now()
           AND (t.state = 'passed' OR t.state = 'open' AND t.is_shown)
           AND (p_hint IS NULL OR lower(t.hint COLLATE "C") = p_hint)
         UNION ALL
        SELECT t.id FROM postern.device_request AS t
         WHERE t.realm_id = p_realm AND t.kind = 'approval' AND t.resolved_at IS NULL AND t.expires_at > now()
           AND CASE WHEN p_hint IS NULL THEN postern.hinted_user(p_realm, t.hint) = p_user
                    ELSE lower(t.hint COLLATE "C") = p_hint END)
    UPDATE postern.device_request AS t
       SET is_shown = false, resolved_at = coalesce(t.resolved_at, now()),
           state = CASE t.state WHEN 'passed' THEN 'failed' ELSE t.state END
      FROM live AS l WHERE t.realm_id = p_realm AND t.id = l.id
    RETURNING t.id
$$;
COMMENT ON FUNCTION postern.end_approvals IS
    'No device shows a user''s requests for approval any more, and none opens a session';

-- One message per device. Its client is the one that added the device, not the one that asks: a provider needs to know
-- whose app to wake. Its handle stays sealed until the message is sent.
CREATE OR REPLACE FUNCTION postern.push_approval(p_approval postern.device_request, p_user uuid) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM postern.queue_message(
               d.realm_id, gen_random_uuid(), 'push',
               'sealed:' || translate(encode(d.push_handle, 'base64'), E'\n', ''),
               'approval', 'approval', NULL,
               p_detail => jsonb_build_object('sub', p_user, 'device_id', d.id, 'approval_id', p_approval.id),
               p_expires_at => p_approval.expires_at, p_client => d.client)
      FROM postern.device_key AS d
     WHERE d.realm_id = p_approval.realm_id AND d.user_id = p_user AND d.push_handle IS NOT NULL
       AND postern.device_may_approve(d) AND postern.channels_config(d.realm_id) ? 'push';
END
$$;
COMMENT ON FUNCTION postern.push_approval IS 'Queues a push to each device that may answer a request for approval';

-- Resolves up to p_limit requests: realms in turn, beginning after p_after; within a realm the oldest first. The next
-- call begins after last_realm. p_age: as in postern.take_undecided.
CREATE OR REPLACE FUNCTION postern.resolve_approvals(
    p_limit integer, p_after uuid, p_age interval DEFAULT '0', OUT resolved integer, OUT last_realm uuid)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, postern, pg_temp SET enable_seqscan = off SET enable_sort = off
    SET enable_incremental_sort = off
AS $$
#variable_conflict use_column
DECLARE
    v_turns uuid[] := postern.approval_turns(p_limit, coalesce(p_after, '00000000-0000-0000-0000-000000000000'));
    v_realm uuid;
    v_approval postern.device_request;
BEGIN
    resolved := 0;
    last_realm := p_after;
    FOREACH v_realm IN ARRAY v_turns LOOP
        PERFORM set_config('postern.realm', v_realm::text, true);
        FOR v_approval IN
            SELECT t.* FROM postern.device_request AS t
             WHERE t.kind = 'approval' AND t.resolved_at IS NULL AND t.realm_id = v_realm
               AND t.created_at <= now() - p_age
             ORDER BY t.realm_id, t.created_at
             LIMIT ceil(p_limit / cardinality(v_turns)::numeric) FOR NO KEY UPDATE SKIP LOCKED
        LOOP
            IF postern.resolve_approval(v_approval) THEN
                resolved := resolved + 1;
            END IF;
        END LOOP;
        last_realm := v_realm;
    END LOOP;
END
$$;
COMMENT ON FUNCTION postern.resolve_approvals IS 'Resolves requests for approval of all realms, which take turns';
GRANT EXECUTE ON FUNCTION postern.resolve_approvals TO postern_app;

-- As request_turns: a loose index scan.
CREATE OR REPLACE FUNCTION postern.approval_turns(p_limit integer, p_after uuid) RETURNS uuid[]
LANGUAGE sql STABLE
AS $$
    WITH RECURSIVE realm (id, wrapped) AS (
        SELECT NULL::uuid, false
         UNION ALL
        SELECT n.id, n.id <= p_after
          FROM realm AS r, LATERAL (
              SELECT coalesce(
                  (SELECT t.realm_id FROM postern.device_request AS t
                    WHERE t.kind = 'approval' AND t.resolved_at IS NULL AND t.realm_id > coalesce(r.id, p_after)
                    ORDER BY t.realm_id, t.created_at LIMIT 1),
                  CASE WHEN NOT r.wrapped THEN
                      (SELECT t.realm_id FROM postern.device_request AS t
                        WHERE t.kind = 'approval' AND t.resolved_at IS NULL AND t.realm_id <= p_after
                        ORDER BY t.realm_id, t.created_at LIMIT 1) END) AS id) AS n
         WHERE n.id IS NOT NULL AND NOT (r.wrapped AND n.id > p_after))
    SELECT coalesce((SELECT array_agg(x.id) FROM (SELECT r.id FROM realm AS r
                                                WHERE r.id IS NOT NULL
                                                  AND r.id <> ALL ((SELECT postern.unserved_realms())::uuid[])
                                                LIMIT p_limit) AS x), '{}')
$$;
COMMENT ON FUNCTION postern.approval_turns IS
    'The realms with requests for approval that are not resolved, in the order of their turns';

RESET ROLE;
