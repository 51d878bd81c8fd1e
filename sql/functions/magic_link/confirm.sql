-- The page that a link opens: what it says about the request, and its answer. No call waits for a lock of a link or a
-- handle:
-- it answers busy, has consumed nothing, and the server tries again without holding a connection meanwhile.
SET LOCAL ROLE postern_owner;

-- Two digits that the requesting device shows and that are typed on the page. Outside the server the handle's id exists
-- only sealed.
CREATE OR REPLACE FUNCTION postern.match_number(p_handle bytea) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT 10 + (get_byte(h, 0) * 256 + get_byte(h, 1)) % 90 FROM sha256('match number'::bytea || p_handle) AS h $$;
COMMENT ON FUNCTION postern.match_number IS 'The number of a handle, 10 to 99';
GRANT EXECUTE ON FUNCTION postern.match_number TO postern_app;

-- Why a link can be neither confirmed nor opened: answered (confirmed or denied before), redeemed, superseded (ended by
-- another sign-in, a new security stamp or another address), expired, unknown (its account or its realm is closed).
-- NULL: it can. The holder of the token may know.
CREATE OR REPLACE FUNCTION postern.link_end(l postern.login_link) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT CASE WHEN u.id IS NULL OR NOT r.enabled OR NOT (r.native_grants_enabled OR r.hosted_enabled) THEN 'unknown'
                WHEN l.ended IN ('confirmed', 'denied', 'disowned') THEN 'answered'
                WHEN l.ended IS NOT NULL THEN l.ended
                WHEN l.security_stamp IS DISTINCT FROM u.security_stamp THEN 'superseded'
                WHEN l.expires_at <= now() THEN 'expired' END
      FROM postern.realm AS r
      LEFT JOIN postern.user_account AS u ON u.realm_id = r.id AND u.id = l.user_id AND u.enabled
          AND postern.has_identifier(r.id, u.id, l.address_key)
     WHERE r.id = l.realm_id
$$;
COMMENT ON FUNCTION postern.link_end IS 'Why a link can no longer be used; NULL while it can';
GRANT EXECUTE ON FUNCTION postern.link_end TO postern_app;

-- What the page shows about the request of a link, or why the link can no longer be used (postern.link_end). Changes
-- nothing but the limits. Outcomes: shown, rate_limited. asked_by is NULL when the link does not exist.
CREATE OR REPLACE FUNCTION postern.link_page(
    p_realm uuid, p_user uuid, p_token_hash bytea,
    p_permits postern.permits,
    OUT outcome text, OUT asked_by text, OUT asked_at double precision, OUT source text, OUT ended text,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_permits) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    outcome := 'shown';
    SELECT coalesce(p.display_name, k.display_name, r.display_name),
           date_part('epoch', coalesce(l.asked_at, l.created_at)), l.source, postern.link_end(l)
      INTO asked_by, asked_at, source, ended
      FROM postern.login_link AS l JOIN postern.realm AS r ON r.id = l.realm_id
      LEFT JOIN postern.app AS p ON p.realm_id = l.realm_id AND p.slug = l.app
      LEFT JOIN postern.client AS k ON k.realm_id = l.realm_id AND k.id = l.client
     WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.token_hash = p_token_hash;
    IF NOT FOUND THEN
        ended := 'unknown';
    END IF;
END
$$;
COMMENT ON FUNCTION postern.link_page IS
    'Who requested a link, when and from where, and whether it has ended; changes nothing but the rate limits';
GRANT EXECUTE ON FUNCTION postern.link_page TO postern_app;

-- The answer of the page's form. p_number NULL: the owner says that the request is not theirs. Outcomes: confirmed,
-- denied (the wrong number, or NULL), answered (confirmed or denied before), redeemed, superseded (ended by another
-- sign-in or a new security stamp), expired, unknown, rate_limited, busy. Only the first two end anything.
CREATE OR REPLACE FUNCTION postern.confirm_link(
    p_realm uuid, p_user uuid, p_token_hash bytea, p_number integer, p_source text,
    p_permits postern.permits,
    OUT outcome text, OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
DECLARE
    v_link record;
BEGIN
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_permits) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    -- A request without a valid link takes no lock, so that a stranger cannot block the owner of a link.
    IF NOT EXISTS (SELECT FROM postern.login_link AS l
                    WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.token_hash = p_token_hash) THEN
        outcome := 'unknown';
        RETURN;
    END IF;
    IF NOT postern.try_lock_links(p_realm, p_user) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    SELECT l.handle, l.client, l.security_stamp, postern.link_end(l) AS ended INTO v_link
      FROM postern.login_link AS l
     WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.token_hash = p_token_hash;
    outcome := CASE WHEN NOT FOUND THEN 'unknown' WHEN v_link.ended IS NOT NULL THEN v_link.ended
                    WHEN NOT postern.try_hold_handle(p_realm, v_link.handle)
                        OR NOT postern.try_hold_user(p_realm, p_user)
                         THEN 'busy' END;
    IF outcome IS NOT NULL THEN
        RETURN;
    END IF;
    IF p_number IS NOT DISTINCT FROM postern.match_number(v_link.handle) THEN
        -- A moment is left to poll, however late the answer came.
        UPDATE postern.sign_in_request AS a
           SET confirmed_user = p_user, confirmed_stamp = v_link.security_stamp,
               expires_at = greatest(a.expires_at, now() + interval '1 minute')
         WHERE a.realm_id = p_realm AND a.id = v_link.handle AND a.kind = 'magic' AND a.expires_at > now()
           AND NOT a.denied;
        IF NOT FOUND THEN
            outcome := 'expired';
            RETURN;
        END IF;
        outcome := 'confirmed';
        UPDATE postern.login_link AS l
           SET ended = CASE WHEN l.token_hash = p_token_hash THEN 'confirmed' ELSE 'superseded' END
         WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.ended IS NULL;
    ELSE
        outcome := 'denied';
        -- All links of this handle: it is the handle that was refused.
        UPDATE postern.login_link AS l
           SET ended = CASE WHEN p_number IS NULL THEN 'disowned' ELSE 'denied' END,
               -- While the row lives, requests of strangers send no link.
               expires_at = CASE WHEN p_number IS NULL THEN greatest(l.expires_at, now() + interval '15 minutes')
                   ELSE l.expires_at END
         WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.handle = v_link.handle AND l.ended IS NULL;
        UPDATE postern.sign_in_request AS a SET denied = true
         WHERE a.realm_id = p_realm AND a.id = v_link.handle AND a.confirmed_user IS NULL;
    END IF;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, source, detail)
    VALUES (p_realm, 'link_' || outcome, v_link.client, p_user, p_source,
            CASE WHEN p_number IS NULL THEN jsonb_build_object('reason', 'disowned') END);
END
$$;
COMMENT ON FUNCTION postern.confirm_link IS
    'Confirms a link by the number that the requesting device shows, or ends it';
GRANT EXECUTE ON FUNCTION postern.confirm_link TO postern_app;

RESET ROLE;
