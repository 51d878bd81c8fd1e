-- Whether a signed-in browser may be given an authorization code, and the code.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.known_permission (permission, purpose) VALUES
    ('gt:authorization_code', 'Authorization codes (RFC 6749 section 4.1)'),
    ('ept:authorization', 'The authorization endpoint; gt:authorization_code implies it'),
    ('ept:end_session', 'The end-session endpoint; gt:authorization_code implies it'),
    ('ept:pushed_authorization', 'Pushed authorization requests; gt:authorization_code implies it'),
    ('rst:code', 'The response type code; gt:authorization_code implies it')
    ON CONFLICT (permission) DO UPDATE SET purpose = excluded.purpose;

-- Whether a browser session meets one value of acr_values. Unknown values are not met.
CREATE OR REPLACE FUNCTION postern.meets_acr(b postern.browser_session, p_acr text) RETURNS boolean
LANGUAGE sql IMMUTABLE
RETURN CASE p_acr
    WHEN 'urn:postern:acr:email' THEN b.email_proved_at IS NOT NULL
    WHEN 'urn:postern:acr:phone' THEN b.phone_proved_at IS NOT NULL
    ELSE coalesce(postern.level_of_acr(p_acr) <= postern.acr_level(b.amr), false) END;
COMMENT ON FUNCTION postern.meets_acr IS 'Whether a browser session meets an authentication context class';
GRANT EXECUTE ON FUNCTION postern.meets_acr TO postern_app;

-- Whether the sign-in at p_auth_time is not the one that a request wants: the client asked for a new one (login), or it
-- is older than max_age. A proof that was given for this request (proved) is new, however long its user reads a page.
CREATE OR REPLACE FUNCTION postern.wants_sign_in(p_auth_time timestamptz, p_request postern.code_request)
RETURNS boolean
LANGUAGE sql STABLE
RETURN NOT coalesce((p_request).proved, false)
    AND (coalesce((p_request).login, false)
         OR coalesce(p_auth_time < now() - make_interval(secs => (p_request).max_age), false));
COMMENT ON FUNCTION postern.wants_sign_in IS 'Whether an authorization request wants a newer sign-in';
GRANT EXECUTE ON FUNCTION postern.wants_sign_in TO postern_app;

-- Answers an authorization request from a live browser session. Returns what is due, in this order, or what was done:
--   account: it is for another user (user); login: there is no session, or its sign-in is too old (max_age, login);
--   acr: none of acr_values is met, or the address of proof is not the user's; offer-passkey: not asked for 30 days
--   (offer_passkey); consent: the user has not allowed this; continue: nothing, and no code was asked for (code null);
--   issued: the code is stored; closed: client, permission or pages were closed meanwhile; used: the pushed request
--   was answered before.
-- The code of a request that wants an address proven lives five minutes (docs/decisions/0037).
CREATE OR REPLACE FUNCTION postern.answer_request(
    p_realm uuid, p_session postern.browser_session, p_request postern.code_request) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    v_client record;
    v_acr text;
BEGIN
    IF p_request.client IS NULL THEN
        RETURN 'continue';
    ELSIF p_session.id IS NULL THEN
        RETURN 'login';
    ELSIF p_request.user_id <> p_session.user_id THEN
        RETURN 'account';
    ELSIF postern.wants_sign_in(p_session.proven_at, p_request) THEN
        RETURN 'login';
    END IF;
    SELECT a INTO v_acr
      FROM unnest(CASE WHEN cardinality(p_request.acr_values) > 0 THEN p_request.acr_values
                       ELSE '{phr,urn:postern:acr:2,urn:postern:acr:1}' END) WITH ORDINALITY AS x (a, place)
     WHERE postern.meets_acr(p_session, a) ORDER BY place LIMIT 1;
    IF v_acr IS NULL
       OR p_request.proof IS NOT NULL AND NOT EXISTS (
           SELECT FROM postern.user_identifier AS i
            WHERE i.realm_id = p_realm AND i.user_id = p_session.user_id
              AND i.proven_key = postern.address_key(p_session.proofs -> p_request.proof ->> 'value')) THEN
        RETURN 'acr';
    END IF;
    SELECT postern.client_setting_of(c.settings, 'consent') AS consent, r.code_lifetime INTO v_client
      FROM postern.client AS c, postern.realm AS r
     WHERE c.realm_id = p_realm AND c.id = p_request.client AND c.enabled
       AND 'gt:authorization_code' = ANY (c.permissions) AND r.id = p_realm AND r.enabled AND r.hosted_enabled;
    IF NOT FOUND THEN
        RETURN 'closed';
    END IF;
    IF p_request.offer_passkey AND NOT p_session.amr && '{hwk,swk}' THEN
        UPDATE postern.user_account AS u SET passkey_offered_at = now()
         WHERE u.realm_id = p_realm AND u.id = p_session.user_id
           AND coalesce(u.passkey_offered_at < now() - interval '30 days', true);
        IF FOUND THEN
            RETURN 'offer-passkey';
        END IF;
    END IF;
    IF p_request.consents THEN
        IF (postern.hold_session_owner(p_realm, p_session.id)).id IS NULL THEN
            RETURN 'login';
        END IF;
        PERFORM postern.give_consent(p_realm, p_session.user_id, p_request.client, p_request.scope,
                                     p_request.resource);
    ELSIF p_request.asks_consent OR v_client.consent = 'systematic'
          OR v_client.consent = 'explicit'
             AND NOT postern.has_consent(p_realm, p_session.user_id, p_request.client, p_request.scope,
                                         p_request.resource) THEN
        RETURN 'consent';
    END IF;
    IF p_request.code IS NULL THEN
        RETURN 'continue';
    END IF;
    IF p_request.pushed IS NOT NULL THEN
        UPDATE postern.pushed_request AS p SET used_at = now()
         WHERE p.realm_id = p_realm AND p.id_hash = p_request.pushed AND p.used_at IS NULL;
        IF NOT FOUND THEN
            RETURN 'used';
        END IF;
    END IF;
    INSERT INTO postern.authorization_code (realm_id, code_hash, user_id, client, browser_session, security_stamp,
                                            auth_time, expires_at, redirect_uri, code_challenge, nonce, acr, scope,
                                            resource, amr, proof, jkt)
    VALUES (p_realm, p_request.code, p_session.user_id, p_request.client, p_session.id, p_session.security_stamp,
            p_session.proven_at,
            now() + CASE WHEN p_request.proof IS NULL THEN v_client.code_lifetime ELSE interval '5 minutes' END,
            p_request.redirect_uri, p_request.challenge, p_request.nonce, v_acr, p_request.scope,
            p_request.resource, p_session.amr,
            p_session.proofs -> p_request.proof || jsonb_build_object('kind', p_request.proof), p_request.jkt);
    RETURN 'issued';
END
$$;
COMMENT ON FUNCTION postern.answer_request IS
    'Stores an authorization code for a signed-in browser, or says what is due before it';
GRANT EXECUTE ON FUNCTION postern.answer_request TO postern_app;

-- The authorization endpoint and the pages of a browser that shows a session cookie. outcome: see answer_request.
-- user_id is NULL without a live session. email: what names the account to its user: the address of the kind that the
-- request wants proven, the e-mail address, or the phone number. The session's use is noted once a second at most, and
-- not while another transaction holds the row, so that parallel requests of one browser do not wait for each other.
-- expires_at: when it ends however much it is used. cookie_due: the browser is to get its cookie again, whose life
-- would else run from the sign-in; true once an hour at most.
CREATE OR REPLACE FUNCTION postern.continue_browser_session(
    p_realm uuid, p_cookie_hash bytea, p_host text, p_request postern.code_request,
    OUT outcome text, OUT session uuid, OUT user_id uuid, OUT email text, OUT first_name text, OUT last_name text,
    OUT amr text[], OUT auth_time double precision, OUT db_now double precision,
    OUT email_proved_at double precision, OUT phone_proved_at double precision, OUT expires_at double precision,
    OUT cookie_due boolean)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_set text;
    v_session postern.browser_session;
BEGIN
    v_set := set_config('postern.realm', p_realm::text, true);
    db_now := date_part('epoch', now());
    cookie_due := false;
    SELECT b.* INTO v_session FROM postern.live_browser_session(p_realm, p_cookie_hash, p_host) AS b;
    IF v_session.id IS NULL THEN
        outcome := 'login';
        RETURN;
    END IF;
    outcome := postern.answer_request(p_realm, v_session, p_request);
    session := v_session.id;
    amr := v_session.amr;
    auth_time := date_part('epoch', v_session.auth_time);
    email_proved_at := date_part('epoch', v_session.email_proved_at);
    phone_proved_at := date_part('epoch', v_session.phone_proved_at);
    expires_at := date_part('epoch', v_session.expires_at);
    SELECT u.id,
           coalesce(v_session.proofs -> p_request.proof ->> 'value', u.email,
                    (SELECT i.value FROM postern.user_identifier AS i
                      WHERE i.realm_id = p_realm AND i.user_id = u.id AND i.primary_kind = 'phone')),
           u.first_name, u.last_name
      INTO user_id, email, first_name, last_name
      FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.id = v_session.user_id;
    IF outcome = 'issued' AND v_session.last_used_at < now() - interval '1 second' THEN
        UPDATE postern.browser_session AS b
           SET last_used_at = now(), idle_expires_at = now() + postern.browser_session_idle(r),
               cookie_set_at = CASE WHEN b.cookie_set_at <= now() - interval '1 hour' THEN now()
                                    ELSE b.cookie_set_at END
          FROM postern.realm AS r
         WHERE b.realm_id = p_realm AND r.id = p_realm
           AND b.id = (SELECT h.id FROM postern.browser_session AS h
                        WHERE h.realm_id = p_realm AND h.id = v_session.id AND h.ended_at IS NULL
                          FOR NO KEY UPDATE SKIP LOCKED)
        RETURNING b.cookie_set_at > v_session.cookie_set_at INTO cookie_due;
        cookie_due := coalesce(cookie_due, false);
    END IF;
END
$$;
COMMENT ON FUNCTION postern.continue_browser_session IS
    'Who is signed in in a browser, and the answer to its authorization request';
GRANT EXECUTE ON FUNCTION postern.continue_browser_session TO postern_app;

RESET ROLE;
