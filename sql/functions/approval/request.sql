-- CIBA: a client asks for an approval. Which user is meant, a worker finds out (resolve.sql).
--
-- Throughout this folder: SECURITY DEFINER, because the app role reads and changes transactions by functions alone.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.known_permission (permission, purpose) VALUES
    ('gt:urn:openid:params:grant-type:ciba', 'Sign in by an approval on a trusted device (CIBA); add trusted devices')
    ON CONFLICT (permission) DO UPDATE SET purpose = excluded.purpose;

INSERT INTO postern.rate_limit_policy (policy, dimension, permits, per, burst, mode) VALUES
    ('approval', 'target', 5, interval '60 minutes', 5, 'enforce'),
    ('approval', 'target-total', 10, interval '60 minutes', 10, 'enforce'),
    ('approval', 'source', 3000, interval '60 minutes', 500, 'enforce'),
    ('approval', 'client', 6000, interval '60 minutes', 6000, 'enforce')
    ON CONFLICT (policy, dimension) DO UPDATE
   SET permits = excluded.permits, per = excluded.per, burst = excluded.burst, mode = excluded.mode;

INSERT INTO postern.event_type (event, type)
SELECT e, 'urn:postern:event:' || e
  FROM unnest('{approval_requested,approval_hidden,approval_approved,approval_denied,approval_reported,'
              'approval_number_mismatch}'::text[]) AS e
    ON CONFLICT (event) DO UPDATE SET type = excluded.type;

-- A request lives for five minutes at most (admin.set_approvals, requested_expiry): with this a look-up by user or hint
-- leaves out what is over. A user may have hundreds of ended requests of the day.
CREATE OR REPLACE FUNCTION postern.approvals_since() RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE
RETURN now() - interval '10 minutes';
COMMENT ON FUNCTION postern.approvals_since IS
    'No request for approval of before is open, or was answered in the last minute';

-- Outcomes: asked, rate_limited. A request of the same client and source for the same hint ends, for known and
-- unknown users alike, so that a replaced request tells nothing; one that came with an ID token is replaced by its like
-- only. event_id: of a request that Cotter's wire can name (p_is_event). p_shows_source: whether devices are told
-- p_source, because it is the asker's own. p_hint_session: sid of an ID token that names the person.
CREATE OR REPLACE FUNCTION postern.ask_approval(
    p_realm uuid, p_proof postern.proof_use, p_permits postern.permits, p_id uuid, p_client uuid, p_hint text,
    p_event text, p_binding_message text, p_match_number text,
    p_challenge bytea, p_is_event boolean, p_shows_source boolean, p_ip text, p_source text, p_lifetime integer,
    p_hint_session uuid,
    OUT outcome text, OUT event_id integer, OUT asked_at double precision, OUT expires_at double precision,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_permits) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    PERFORM postern.use_proof(p_realm, p_proof);
    UPDATE postern.device_request AS t SET state = 'failed', reason = 'replaced', ended_at = now(), expires_at = now()
     WHERE t.realm_id = p_realm AND t.kind = 'approval' AND t.client = p_client
       AND lower(t.hint COLLATE "C") = lower(p_hint COLLATE "C") AND t.source = p_source
       AND t.created_at > postern.approvals_since() AND t.state = 'open' AND t.expires_at > now()
       AND (p_hint_session IS NOT NULL OR NOT t.detail ? 'sid');
    LOOP
        -- The first eight digits of such a UUID are random.
        event_id := CASE WHEN p_is_event
            THEN greatest(1, ('x' || left(gen_random_uuid()::text, 8))::bit(32)::integer & 2147483647) END;
        INSERT INTO postern.device_request AS t (
            realm_id, id, kind, expires_at, client, source, jkt, match_number, detail, event, event_id, hint,
            binding_message, challenge)
        VALUES (p_realm, p_id, 'approval', now() + make_interval(secs => p_lifetime), p_client, p_source,
                p_proof.key, p_match_number,
                jsonb_strip_nulls(jsonb_build_object('ip', p_ip, 'shows_source', NULLIF(p_shows_source, false),
                                                     'sid', p_hint_session)),
                p_event, event_id, p_hint, p_binding_message, p_challenge)
            ON CONFLICT (realm_id, event_id) WHERE event_id IS NOT NULL DO NOTHING
        RETURNING date_part('epoch', t.created_at), date_part('epoch', t.expires_at) INTO asked_at, expires_at;
        EXIT WHEN FOUND;
    END LOOP;
    outcome := 'asked';
END
$$;
COMMENT ON FUNCTION postern.ask_approval IS
    'Records a request for approval under the limits given; the same work for every hint';
GRANT EXECUTE ON FUNCTION postern.ask_approval TO postern_app;

RESET ROLE;
