-- A signed-in browser proves one more address, because a client asked for it (acr_values).
SET LOCAL ROLE postern_owner;

-- Adds the address of a handle to the user of a browser session, or proves it again; the session gets a new cookie and
-- answers its authorization request. An address that the account had before this sign-in shows again who is there, and
-- renews the sign-in. One that was added since does not: a thief of the cookie could add an address of his own.
-- p_amr: of the message. p_request: as for postern.answer_request.
-- Outcomes: those of answer_request; in_use, too_many, refused (postern.add_identifier).
CREATE OR REPLACE FUNCTION postern.prove_in_browser(
    p_realm uuid, p_cookie_hash bytea, p_host text, p_new_cookie_hash bytea, p_handle bytea, p_keyed bytea[],
    p_amr text[], p_request postern.code_request, p_source text)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    v_set text := set_config('postern.realm', p_realm::text, true);
    v_session postern.browser_session;
    v_added record;
BEGIN
    SELECT b.* INTO v_session FROM postern.live_browser_session(p_realm, p_cookie_hash, p_host) AS b;
    IF v_session.id IS NULL THEN
        RETURN 'login';
    END IF;
    SELECT t.outcome, t.id INTO v_added
      FROM postern.add_identifier(p_realm, v_session.user_id, v_session.id, p_handle, p_keyed, p_source) AS t;
    IF v_added.outcome <> 'added' THEN
        RETURN v_added.outcome;
    END IF;
    UPDATE postern.browser_session AS b
       SET cookie_hash = p_new_cookie_hash, cookie_set_at = now(),
           auth_time = CASE WHEN i.added_at < b.auth_time THEN now() ELSE b.auth_time END, last_used_at = now(),
           idle_expires_at = now() + postern.browser_session_idle(r),
           amr = postern.proven_methods(b, p_amr, p_request),
           proven_at = CASE WHEN i.added_at < b.auth_time THEN postern.proven_at(b, p_amr, p_request)
                            ELSE b.proven_at END,
           email_proved_at = CASE WHEN i.kind = 'email' THEN now() ELSE b.email_proved_at END,
           phone_proved_at = CASE WHEN i.kind = 'phone' THEN now() ELSE b.phone_proved_at END,
           proofs = b.proofs || jsonb_build_object(i.kind, jsonb_build_object('value', i.value, 'method', 'OTP'))
      FROM postern.realm AS r, postern.user_identifier AS i
     WHERE b.realm_id = p_realm AND b.id = v_session.id AND r.id = p_realm AND i.realm_id = p_realm
       AND i.id = v_added.id
    RETURNING b.* INTO v_session;
    RETURN postern.answer_request(p_realm, v_session, p_request);
END
$$;
COMMENT ON FUNCTION postern.prove_in_browser IS
    'Proves one more address of the user of a browser session, and answers its authorization request';
GRANT EXECUTE ON FUNCTION postern.prove_in_browser TO postern_app;

RESET ROLE;
