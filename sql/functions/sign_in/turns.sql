-- Which undecided requests a worker decides next. SECURITY DEFINER, since the app role sees one realm at a time.
SET LOCAL ROLE postern_owner;

-- The realms with undecided requests that follow p_after in a circle, p_limit at most; p_age as below. A loose index
-- scan: its cost does not depend on how many requests there are.
CREATE OR REPLACE FUNCTION postern.request_turns(p_limit integer, p_after uuid, p_age interval)
RETURNS uuid[]
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, postern, pg_temp SET enable_seqscan = off SET enable_sort = off
    SET enable_incremental_sort = off
AS $$
DECLARE
    v_turns uuid[] := '{}';
    v_without uuid[] := postern.unserved_realms();
    v_at uuid := p_after;
    v_wrapped boolean := false;
BEGIN
    WHILE cardinality(v_turns) < p_limit LOOP
        SELECT a.realm_id INTO v_at
          FROM postern.auth_session AS a
         WHERE a.pending AND a.realm_id > v_at AND a.created_at <= now() - p_age
         ORDER BY a.realm_id, (a.hint_user IS NULL), a.created_at LIMIT 1;
        IF FOUND THEN
            EXIT WHEN v_wrapped AND v_at > p_after;
            IF NOT v_at = ANY (v_without) THEN
                v_turns := v_turns || v_at;
            END IF;
        ELSE
            EXIT WHEN v_wrapped;
            v_wrapped := true;
            -- No realm has the least UUID: ids of realms are random.
            v_at := '00000000-0000-0000-0000-000000000000';
        END IF;
    END LOOP;
    RETURN v_turns;
END
$$;
COMMENT ON FUNCTION postern.request_turns IS 'The realms with undecided requests in the order of their turns';

-- Undecided requests, locked for the caller's transaction. Realms take turns, beginning after p_after: each gets an
-- equal share of the batch, and what the others leave of theirs. Within a realm those that a known device seems to have
-- asked for first, so that strangers cannot make it wait, and then the oldest. The caller begins its next batch after the realm of the last row. p_age: how old a request is at least: its answer has left by
-- then, and the work for it delays no answer that depends on whether there is an account. public_origin: of the page
-- that asked, else the issuer.
CREATE OR REPLACE FUNCTION postern.take_undecided(p_limit integer, p_after uuid, p_age interval DEFAULT '0')
RETURNS TABLE (realm_id uuid, id bytea, kind text, email text, email_key text, first_name text, last_name text,
               client uuid, display_name text, public_origin text, otp_lifetime integer, magic_link_lifetime integer,
                   otp_digits integer)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, postern, pg_temp SET enable_seqscan = off SET enable_sort = off
    SET enable_incremental_sort = off
AS $$
#variable_conflict use_column
DECLARE
    v_turns uuid[] := postern.request_turns(
        p_limit, coalesce(p_after, '00000000-0000-0000-0000-000000000000'), p_age);
    v_share integer := ceil(p_limit / greatest(cardinality(v_turns), 1)::numeric);
    v_left integer := p_limit;
    v_taken bytea[] := '{}';
    v_realm uuid;
BEGIN
    FOR v_round IN 1..2 LOOP
        FOREACH v_realm IN ARRAY v_turns LOOP
            EXIT WHEN v_left = 0;
            FOR realm_id, id, kind, email, email_key, first_name, last_name, client, display_name, public_origin,
                otp_lifetime, magic_link_lifetime, otp_digits IN
                SELECT a.realm_id, a.id, a.kind, a.email, a.email_key, a.first_name, a.last_name, a.client,
                       coalesce(p.display_name, r.display_name),
                       coalesce(a.page_origin, postern.issuer(r.public_origin, r.primary_domain)),
                       postern.seconds(r.otp_lifetime), postern.seconds(r.magic_link_lifetime), r.otp_digits
                  FROM (SELECT s.*
                          FROM postern.auth_session AS s
                         WHERE s.pending AND s.realm_id = v_realm AND NOT s.id = ANY (v_taken)
                           AND s.created_at <= now() - p_age
                         ORDER BY s.realm_id, (s.hint_user IS NULL), s.created_at
                         LIMIT CASE v_round WHEN 1 THEN least(v_share, v_left) ELSE v_left END
                           FOR NO KEY UPDATE SKIP LOCKED) AS a
                  JOIN postern.realm AS r ON r.id = a.realm_id
                  LEFT JOIN postern.app AS p ON p.realm_id = a.realm_id AND p.slug = a.app
            LOOP
                v_taken := v_taken || id;
                v_left := v_left - 1;
                RETURN NEXT;
            END LOOP;
        END LOOP;
    END LOOP;
END
$$;
COMMENT ON FUNCTION postern.take_undecided IS
    'Undecided requests of realms in turn, locked for the caller''s transaction';
GRANT EXECUTE ON FUNCTION postern.take_undecided TO postern_app;

RESET ROLE;
