-- Sign-out (OpenID Connect RP-Initiated Logout 1.0, Back-Channel Logout 1.0).
SET LOCAL ROLE postern_owner;

-- Signs a browser out of the pages of a host: its browser session ends, the session that the ID token names (with
-- offline_access too), and the other sessions opened through the browser session that lack offline_access.
-- p_hint_session, p_hint_user: sid and sub of an ID token of ours, or NULL. p_confirmed: the user said yes on the page.
-- Outcomes: signed_out; ask: the user has to say yes first, and nothing was done. A hint needs no question when its
-- session was opened through this browser's session. An ID token is no secret: without that session it proves nothing,
-- and a session that was opened natively is never ended by it. Whether one was whose row is swept, cannot be known: the
-- user is asked. user_id: whose browser it is.
CREATE OR REPLACE FUNCTION postern.sign_out_browser(
    p_realm uuid, p_cookie_hash bytea, p_host text, p_hint_session uuid, p_hint_user uuid, p_confirmed boolean,
    p_source text, OUT outcome text, OUT user_id uuid)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_browser postern.browser_session;
    v_shown postern.browser_session;
    v_hinted record;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    SELECT b.* INTO v_browser FROM postern.live_browser_session(p_realm, p_cookie_hash, p_host) AS b;
    user_id := v_browser.user_id;
    -- A request that is repeated finds its session ended: it is led on like the first.
    SELECT b.* INTO v_shown FROM postern.browser_session AS b
     WHERE b.realm_id = p_realm AND b.cookie_hash = p_cookie_hash AND b.host = p_host;
    SELECT s.id, s.user_id, s.client, s.browser_session INTO v_hinted
      FROM postern.session AS s WHERE s.realm_id = p_realm AND s.id = p_hint_session AND s.user_id = p_hint_user;
    outcome := CASE WHEN p_confirmed THEN 'signed_out'
                    WHEN v_hinted.browser_session = v_shown.id THEN 'signed_out'
                    ELSE 'ask' END;
    IF outcome = 'ask' THEN
        RETURN;
    END IF;
    IF v_browser.id IS NOT NULL THEN
        PERFORM postern.end_browser_session(p_realm, v_browser.id, 'signed_out', p_source);
    END IF;
    IF v_hinted.browser_session = v_shown.id THEN
        UPDATE postern.session AS s SET revoked_at = now()
         WHERE s.realm_id = p_realm AND s.id = v_hinted.id AND s.revoked_at IS NULL;
        IF FOUND THEN
            INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
            VALUES (p_realm, 'session_revoked', v_hinted.client, v_hinted.user_id, v_hinted.id, p_source,
                    jsonb_build_object('reason', 'signed_out'));
        END IF;
    END IF;
END
$$;
COMMENT ON FUNCTION postern.sign_out_browser IS 'Signs a browser out, or says that the user has to be asked first';
GRANT EXECUTE ON FUNCTION postern.sign_out_browser TO postern_app;

-- Logout tokens that are due, on a lease of a minute. Clients take turns, and each gets p_share calls of one server at
-- a time: a client with many tokens, or one that does not answer, delays no other's. p_busy: the client of each call
-- that this server makes just now.
CREATE OR REPLACE FUNCTION postern.take_due_logout_tokens(p_limit integer, p_share integer, p_busy uuid[])
RETURNS TABLE (realm_id uuid, id uuid, client uuid, client_id text, user_id uuid, session uuid, uri text,
               attempts integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH due AS (
        SELECT t.realm_id, t.id
          FROM (SELECT w.realm_id, w.id, coalesce(b.calls, 0)
                       + row_number() OVER (PARTITION BY w.realm_id, w.client ORDER BY w.not_before) AS turn
                  FROM postern.logout_token AS w
                  LEFT JOIN (SELECT x.client, count(*) AS calls FROM unnest(p_busy) AS x (client) GROUP BY 1) AS b
                    ON b.client = w.client
                 WHERE w.sent_at IS NULL AND w.not_before <= now() AND w.expires_at > now()
                   AND w.realm_id <> ALL ((SELECT postern.unserved_realms())::uuid[])) AS r
          JOIN postern.logout_token AS t ON t.realm_id = r.realm_id AND t.id = r.id
         WHERE t.not_before <= now() AND r.turn <= p_share
         ORDER BY r.turn LIMIT p_limit FOR NO KEY UPDATE OF t SKIP LOCKED)
    UPDATE postern.logout_token AS t
       SET not_before = now() + interval '1 minute', attempts = t.attempts + 1
      FROM due AS d, postern.client AS k
     WHERE t.realm_id = d.realm_id AND t.id = d.id AND k.realm_id = t.realm_id AND k.id = t.client
    RETURNING t.realm_id, t.id, t.client, k.client_id, t.user_id, t.session, t.uri, t.attempts;
END
$$;
COMMENT ON FUNCTION postern.take_due_logout_tokens IS 'Logout tokens that are due, for one sender';
GRANT EXECUTE ON FUNCTION postern.take_due_logout_tokens TO postern_app;

-- p_error NULL: it was accepted. Else it is sent again after p_wait seconds, until it expires.
CREATE OR REPLACE FUNCTION postern.settle_logout_token(p_realm uuid, p_id uuid, p_error text, p_wait integer)
RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    UPDATE postern.logout_token AS t
       SET sent_at = CASE WHEN p_error IS NULL THEN now() END, last_error = left(p_error, 200),
           not_before = CASE WHEN p_error IS NULL THEN t.not_before ELSE now() + make_interval(secs => p_wait) END
     WHERE t.realm_id = p_realm AND t.id = p_id AND t.sent_at IS NULL;
END
$$;
COMMENT ON FUNCTION postern.settle_logout_token IS 'Records how the sending of a logout token went';
GRANT EXECUTE ON FUNCTION postern.settle_logout_token TO postern_app;

CREATE OR REPLACE VIEW admin.logout_tokens AS
SELECT r.slug AS realm, t.id, c.client_id, t.user_id, t.session, t.uri, t.created_at, t.attempts, t.not_before,
       t.sent_at, t.expires_at, t.last_error
  FROM postern.logout_token AS t JOIN postern.realm AS r ON r.id = t.realm_id
  JOIN postern.client AS c ON c.realm_id = t.realm_id AND c.id = t.client;
COMMENT ON VIEW admin.logout_tokens IS 'Back-channel logout tokens of the last day: sent, waiting or failed';

RESET ROLE;
