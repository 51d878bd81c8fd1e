-- What servers do with phone numbers.
SET LOCAL ROLE postern_owner;

-- For the configuration snapshot; NULL: the realm has no phone policy.
CREATE OR REPLACE FUNCTION postern.configured_phones(p_realm uuid) RETURNS jsonb
LANGUAGE sql STABLE
AS $$
    SELECT jsonb_build_object(
               'regions', p.regions, 'default_region', p.default_region, 'sends', p.sends,
               'prefixes', (SELECT coalesce(jsonb_agg(jsonb_build_object(
                                       'prefix', x.prefix, 'denied', x.action = 'deny', 'cost', x.cost)), '[]')
                              FROM postern.phone_prefix AS x WHERE x.realm_id = p_realm))
      FROM postern.phone_policy AS p WHERE p.realm_id = p_realm
$$;
COMMENT ON FUNCTION postern.configured_phones IS 'The phone policy of a realm with its prefixes, as one document';
GRANT EXECUTE ON FUNCTION postern.configured_phones TO postern_app;

-- The earliest proof of a phone number that still signs in by itself.
CREATE OR REPLACE FUNCTION postern.stale_before(p_realm uuid) RETURNS timestamptz
LANGUAGE sql STABLE
AS $$
    SELECT now() - coalesce((SELECT p.stale_after FROM postern.phone_policy AS p WHERE p.realm_id = p_realm),
                            interval '90 days')
$$;
COMMENT ON FUNCTION postern.stale_before IS 'Phone numbers proven before this time may have passed to other people';
GRANT EXECUTE ON FUNCTION postern.stale_before TO postern_app;

-- A redeemed code gives back the permits that its message took of source, prefix and country: traffic that converts is
-- not limited. What it cost stays spent. Waits for other transactions at the buckets, which hold them for a moment, in
-- the order in which requests take permits, so that two never wait for each other. After a lock timeout the permit
-- stays taken: a sign-in does not fail for it.
CREATE OR REPLACE FUNCTION postern.give_back(p_realm uuid, p_phone text, p_region text, p_source text) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_bucket record;
BEGIN
    FOR v_bucket IN
        SELECT 'phone-otp|' || l.dimension || '|' || k.subject AS key,
               make_interval(secs => extract(epoch FROM l.per)::float8 / l.permits) AS step
          FROM (VALUES (1, 'source', p_source), (2, 'prefix', left(p_phone, -4)),
                       (3, 'country', p_region)) AS k (place, dimension, subject)
          JOIN postern.effective_rate_limits(p_realm) AS l
            ON l.policy = 'phone-otp' AND l.dimension = k.dimension
         WHERE k.subject IS NOT NULL
         ORDER BY k.place
    LOOP
        BEGIN
            UPDATE postern.rate_bucket AS b SET tat = b.tat - v_bucket.step
             WHERE b.realm_id = p_realm AND b.key = v_bucket.key;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            RETURN;
        END;
    END LOOP;
END
$$;
COMMENT ON FUNCTION postern.give_back IS 'Gives back the permits of a message to a phone whose code was redeemed';
GRANT EXECUTE ON FUNCTION postern.give_back TO postern_app;

-- A request for a code or a link, with a bound on the messages of its handle (p_sends). p_channel NULL: by mail.
-- Outcomes: accepted, rate_limited, send_limit (nothing was counted), busy (the handle to be sent again is in use: call
-- again without permits). A resend within the cooldown is accepted, sends nothing and takes no permit. A handle that was
-- answered, or has no tries left, would open nothing: its request gets a new handle at any time (record_request).
CREATE OR REPLACE FUNCTION postern.record_sent_request(
    p_realm uuid, p_id bytea, p_resend_of bytea, p_kind text, p_email text, p_email_key text, p_channel text,
    p_region text, p_client uuid, p_app text, p_first text, p_last text, p_source text, p_hint_user uuid,
    p_hint_session uuid, p_lifetime integer, p_sends integer, p_keys text[], p_wanted integer[], p_permits integer[],
    p_per double precision[], p_burst integer[], p_brake_permits integer, p_brake_per double precision,
    p_brake_burst integer,
    OUT outcome text, OUT handle bytea, OUT sends_left integer, OUT limit_ord integer,
    OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
DECLARE
    v_before record;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    SELECT a.sends, a.last_send_at > now() - r.resend_cooldown AS cools,
           p_channel IS NOT NULL
               OR a.confirmed_user IS NULL AND NOT a.denied AND a.client IS NOT DISTINCT FROM p_client
                  AND a.app IS NOT DISTINCT FROM p_app
                  AND a.attempts < CASE WHEN a.device IS NULL
                                         AND postern.is_braked(b.tat, p_brake_permits, p_brake_per, p_brake_burst)
                                        THEN 1 ELSE r.otp_attempts END AS is_open
      INTO v_before
      FROM postern.auth_session AS a JOIN postern.realm AS r ON r.id = p_realm
      LEFT JOIN postern.rate_bucket AS b ON b.realm_id = p_realm AND b.key = 'token|wrong-codes'
     WHERE a.realm_id = p_realm AND a.id = p_resend_of AND a.email_key = p_email_key AND a.kind = p_kind
       AND a.jkt IS NOT DISTINCT FROM postern.proof_key() AND a.expires_at > now();
    IF v_before.cools AND v_before.is_open THEN
        PERFORM postern.use_proof(p_realm);
        outcome := 'accepted';
        handle := p_resend_of;
        sends_left := greatest(p_sends - v_before.sends, 0);
        RETURN;
    END IF;
    IF v_before.sends >= p_sends AND NOT coalesce(v_before.cools, false) THEN
        outcome := 'send_limit';
        RETURN;
    END IF;
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_keys, p_wanted, p_permits, p_per, p_burst) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    PERFORM postern.use_proof(p_realm);
    IF p_resend_of IS NOT NULL AND NOT postern.try_hold_handle(p_realm, p_resend_of) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    outcome := 'accepted';
    handle := postern.record_request(
        p_realm, p_id, p_resend_of, p_kind, p_email, p_email_key, p_client, p_app, p_first, p_last, p_source,
        p_hint_user, p_hint_session, p_lifetime, p_brake_permits, p_brake_per, p_brake_burst);
    UPDATE postern.auth_session AS a
       SET channel = p_channel, region = p_region,
           sends = CASE WHEN a.last_send_at > now() - r.resend_cooldown THEN a.sends ELSE a.sends + 1 END,
           last_send_at = CASE WHEN a.last_send_at > now() - r.resend_cooldown THEN a.last_send_at ELSE now() END
      FROM postern.realm AS r
     WHERE a.realm_id = p_realm AND a.id = handle AND r.id = p_realm
    RETURNING greatest(p_sends - a.sends, 0) INTO sends_left;
END
$$;
COMMENT ON FUNCTION postern.record_sent_request IS
    'Records a request for a code or link by mail or phone, under rate limits; the same work for every address';
GRANT EXECUTE ON FUNCTION postern.record_sent_request TO postern_app;

RESET ROLE;
