-- Approval on another device: a handle is polled for until its request is answered (RFC 8628 section 3.5). What answers
-- it sets confirmed_user and confirmed_stamp of the handle, or denied.
SET LOCAL ROLE postern_owner;

-- Outcomes: approved (by user_id, whose stamp must still be security_stamp), pending, slow_down, denied, refused
-- (reason is for logs only), busy (another transaction holds the handle: call again). p_kind: the kind of request.
-- A handle of an address without an account takes the same path as one that was not answered.
-- The row is locked to the end of the transaction: polls of one handle go one after another, and an answer comes before
-- or after.
CREATE OR REPLACE FUNCTION postern.poll_approval(
    p_caller postern.caller, p_kind text, p_handle bytea,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT security_stamp uuid, OUT address_key text, OUT device uuid)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_asked record;
BEGIN
    SELECT a.client, a.page_browser, a.jkt, a.address_key, a.confirmed_user, a.confirmed_stamp, a.device, a.denied,
           a.expires_at > now() AS live,
           -- A quarter of a second is the network's, which may delay one poll more than the next.
           now() < a.polled_at + make_interval(secs => a.poll_interval - 0.25) AS early
      INTO v_asked
      FROM postern.sign_in_request AS a
     WHERE a.realm_id = p_caller.realm AND a.id = p_handle AND a.kind = p_kind
       FOR NO KEY UPDATE OF a SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT FROM postern.sign_in_request AS a
                              WHERE a.realm_id = p_caller.realm AND a.id = p_handle AND a.kind = p_kind) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    reason := CASE WHEN v_asked.live IS NULL THEN 'unknown' WHEN NOT v_asked.live THEN 'expired'
                   WHEN NOT postern.is_for_client(v_asked.client, v_asked.page_browser, p_caller.client)
                       THEN 'client'
                   WHEN v_asked.jkt <> coalesce((p_caller.proof).key, '') THEN 'key' END;
    outcome := CASE WHEN reason IS NOT NULL THEN 'refused' WHEN v_asked.denied THEN 'denied'
                    WHEN v_asked.confirmed_user IS NOT NULL THEN 'approved'
                    WHEN v_asked.early THEN 'slow_down' ELSE 'pending' END;
    IF outcome = 'approved' THEN
        user_id := v_asked.confirmed_user;
        security_stamp := v_asked.confirmed_stamp;
        address_key := v_asked.address_key;
        device := v_asked.device;
    ELSIF outcome IN ('slow_down', 'pending') THEN
        UPDATE postern.sign_in_request AS a
           SET polled_at = CASE WHEN v_asked.early THEN a.polled_at ELSE now() END,
               poll_interval = CASE WHEN v_asked.early THEN least(a.poll_interval + 5, 60) ELSE a.poll_interval END
         WHERE a.realm_id = p_caller.realm AND a.id = p_handle;
    END IF;
END
$$;
COMMENT ON FUNCTION postern.poll_approval IS
    'Whether a request was answered on another device, for the device that polls';
GRANT EXECUTE ON FUNCTION postern.poll_approval TO postern_app;

CREATE OR REPLACE FUNCTION postern.use_approval(p_realm uuid, p_handle bytea) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    -- Earlier than any clock: a poll that began before this one must not find it alive.
    UPDATE postern.sign_in_request AS a SET expires_at = '-infinity'
     WHERE a.realm_id = p_realm AND a.id = p_handle AND a.expires_at > now();
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION postern.use_approval IS 'Uses up an approval; false when it was used before';
GRANT EXECUTE ON FUNCTION postern.use_approval TO postern_app;

RESET ROLE;
