-- A form that is sent twice, by a double click or because its answer was lost: it is done once, and both requests get
-- the answer of the first, whichever node they reach.
SET LOCAL ROLE postern_owner;

-- Whether a form that is known leads on another request for it. p_has_waited: that request came while it was under way.
-- A request that is not answered after 20 seconds belongs to a node that is gone: its form is done again.
CREATE OR REPLACE FUNCTION postern.leads_on(f postern.sent_form, p_has_waited boolean) RETURNS boolean
LANGUAGE sql STABLE
RETURN CASE WHEN f.answered_at IS NULL THEN f.begun_at > now() - interval '20 seconds'
            WHEN NOT f.is_kept THEN p_has_waited AND f.answered_at > now() - interval '20 seconds'
            ELSE f.answered_at > now() - interval '60 seconds'
                 AND (f.cookie_hash IS NULL
                      OR EXISTS (SELECT FROM postern.live_browser_session(f.realm_id, f.cookie_hash, f.host)))
       END;
COMMENT ON FUNCTION postern.leads_on IS 'Whether a form that was sent before answers the same form now';
GRANT EXECUTE ON FUNCTION postern.leads_on TO postern_app;

-- Outcomes: begun (the caller does what the form asks for and says postern.end_form), under_way (ask again a little
-- later, with p_has_waited), answered (sealed is the answer), spent (the same, and its code has been redeemed or is too
-- old). p_mark: of the request, so that this call can be repeated.
CREATE OR REPLACE FUNCTION postern.begin_form(
    p_realm uuid, p_requester bytea, p_form bytea, p_mark uuid, p_host text, p_has_waited boolean,
    OUT outcome text, OUT sealed bytea)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_known postern.sent_form;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    INSERT INTO postern.sent_form AS f (realm_id, requester, form, mark, host)
    VALUES (p_realm, p_requester, p_form, p_mark, p_host)
        ON CONFLICT (realm_id, requester) DO UPDATE
           SET form = p_form, mark = p_mark, host = p_host, begun_at = now(), answered_at = NULL, is_kept = false,
               cookie_hash = NULL, code_hash = NULL, sealed = NULL
         WHERE f.form <> p_form OR f.mark = p_mark OR NOT postern.leads_on(f, p_has_waited);
    IF FOUND THEN
        outcome := 'begun';
        RETURN;
    END IF;
    SELECT f.* INTO v_known FROM postern.sent_form AS f WHERE f.realm_id = p_realm AND f.requester = p_requester;
    IF v_known.answered_at IS NULL THEN
        outcome := 'under_way';
        RETURN;
    END IF;
    sealed := v_known.sealed;
    outcome := CASE WHEN v_known.code_hash IS NULL
                      OR EXISTS (SELECT FROM postern.authorization_code AS a
                                  WHERE a.realm_id = p_realm AND a.code_hash = v_known.code_hash
                                    AND a.used_at IS NULL AND a.expires_at > now())
                      OR EXISTS (SELECT FROM postern.address_verification AS v
                                  WHERE v.realm_id = p_realm AND v.code_hash = v_known.code_hash
                                    AND v.used_at IS NULL AND v.expires_at > now())
                    THEN 'answered' ELSE 'spent' END;
END
$$;
COMMENT ON FUNCTION postern.begin_form IS
    'Begins what a form asks for, once; or says what the same form led to a short time ago';
GRANT EXECUTE ON FUNCTION postern.begin_form TO postern_app;

-- p_sealed NULL: the form is forgotten: sent again, it is done again. p_keeps: see is_kept.
CREATE OR REPLACE FUNCTION postern.end_form(
    p_realm uuid, p_requester bytea, p_mark uuid, p_keeps boolean, p_cookie_hash bytea, p_code_hash bytea,
    p_sealed bytea)
RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    IF p_sealed IS NULL THEN
        DELETE FROM postern.sent_form AS f
         WHERE f.realm_id = p_realm AND f.requester = p_requester AND f.mark = p_mark;
        RETURN;
    END IF;
    UPDATE postern.sent_form AS f
       SET answered_at = now(), is_kept = p_keeps, cookie_hash = p_cookie_hash, code_hash = p_code_hash,
           sealed = p_sealed
     WHERE f.realm_id = p_realm AND f.requester = p_requester AND f.mark = p_mark;
END
$$;
COMMENT ON FUNCTION postern.end_form IS 'Notes what a form led to, or forgets it';
GRANT EXECUTE ON FUNCTION postern.end_form TO postern_app;

RESET ROLE;
