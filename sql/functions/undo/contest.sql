-- Removals that are in contest: what a session must have proved to remove an address for good.
SET LOCAL ROLE postern_owner;

-- Before the removal of an identifier that may be a thief's doing. p_since: contested only if it was proven before.
CREATE OR REPLACE FUNCTION postern.contest_removal(p_realm uuid, p_id uuid, p_since timestamptz DEFAULT 'infinity')
RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    INSERT INTO postern.removed_identifier (realm_id, id, user_id, added_at, proved_at, was_primary, is_contested, kind,
                                            value)
    SELECT i.realm_id, i.id, i.user_id, i.added_at, i.proved_at, i.is_primary, true, i.kind, i.value
      FROM postern.user_identifier AS i
     WHERE i.realm_id = p_realm AND i.id = p_id AND i.proven_key IS NOT NULL
       AND least(i.added_at, i.proved_at) < p_since;
    -- An older one that stays wins in any case. So the newer one keeps the links alone that give addresses back, which
    -- the older one can answer: not those that take away what the account has added since.
    DELETE FROM postern.undo_link AS l
     USING postern.user_identifier AS i
     WHERE i.realm_id = p_realm AND i.id = p_id AND l.realm_id = i.realm_id AND l.user_id = i.user_id
       AND l.sent_to = i.key AND l.kind <> 'removal'
       AND EXISTS (SELECT FROM postern.user_identifier AS o
                    WHERE o.realm_id = i.realm_id AND o.user_id = i.user_id AND o.proven_key IS NOT NULL
                      AND least(o.added_at, o.proved_at) < least(i.added_at, i.proved_at))
$$;
COMMENT ON FUNCTION postern.contest_removal IS
    'Notes that the account may want an identifier back that is about to be removed: links sent there go on, but those '
    'against other factors only while none is older';

-- Whether the removal of an address that is in contest now keeps it from other accounts than p_except: as long as links
-- can give it back.
CREATE OR REPLACE FUNCTION postern.is_contested(p_realm uuid, p_key text, p_except uuid DEFAULT NULL) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT EXISTS (SELECT FROM postern.removed_identifier AS r
                    WHERE r.realm_id = p_realm AND r.key = p_key AND r.is_contested
                      AND r.removed_at > now() - interval '7 days' AND r.user_id IS DISTINCT FROM p_except)
$$;
COMMENT ON FUNCTION postern.is_contested IS
    'Whether another account can still take back an address that it has lost';
GRANT EXECUTE ON FUNCTION postern.is_contested TO postern_app;

-- Second factor, passkey, or a trusted device off probation. A person who only reads the account's mail has none, but
-- can add one and sign in by it. So it must be older than the links that undo its addition live, or older than the
-- address that is to be removed (p_since), which then got no such link. Of two passkeys only the one counts that the
-- session was opened by; a passkey says mfa too, which then is no second factor.
CREATE OR REPLACE FUNCTION postern.proved_more_than_an_address(s postern.session, p_since timestamptz) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT EXISTS (
        SELECT FROM (
            SELECT p.created_at FROM postern.passkey AS p
             WHERE p.realm_id = s.realm_id AND p.user_id = s.user_id AND p.id = s.factor AND s.amr && '{hwk,swk}'
            UNION ALL
            SELECT d.added_at FROM postern.device_key AS d
             WHERE d.realm_id = s.realm_id AND d.user_id = s.user_id AND d.id = s.factor AND 'pop' = ANY (s.amr)
               AND postern.device_may_approve(d)
            UNION ALL
            SELECT f.created_at FROM postern.totp_factor AS f
             WHERE f.realm_id = s.realm_id AND f.user_id = s.user_id AND 'mfa' = ANY (s.amr)
               AND NOT s.amr && '{hwk,swk}') AS proved (since)
         WHERE proved.since < greatest(now() - interval '7 days', p_since))
$$;
COMMENT ON FUNCTION postern.proved_more_than_an_address IS
    'Whether a session was opened by more than messages to an address, and by a factor that nothing can undo any more';

RESET ROLE;
