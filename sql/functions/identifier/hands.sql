-- Whose hands an identifier is in. What was proven by an address or number serves the person who had it then, and never
-- its next holder.
SET LOCAL ROLE postern_owner;

-- Called by triggers of user_identifier whenever an identifier leaves an account (p_from; p_to is NULL) or becomes an
-- account's (p_to; p_from is NULL), whatever statement does it; p_key: as user_identifier.key. A number that moves from
-- one account to another leaves first. What the caller redeems at that moment is not to be ended here.
CREATE OR REPLACE FUNCTION postern.change_hands(p_realm uuid, p_kind text, p_key text, p_from uuid, p_to uuid)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
BEGIN
    -- A realm that is being deleted keeps nothing.
    IF NOT EXISTS (SELECT FROM postern.realm AS r WHERE r.id = p_realm) THEN
        RETURN;
    END IF;
    IF p_from IS NOT NULL THEN
        PERFORM postern.end_hinted_approvals(p_realm, p_from, p_key);
    END IF;
    IF p_kind = 'phone' THEN
        -- Transactions for a number without an account go on: the person who has the number passes them. An earlier
        -- message may be in other hands, so another one must be sent.
        IF p_from IS NOT NULL THEN
            PERFORM postern.end_possessions(p_realm, p_key);
        ELSE
            UPDATE postern.device_request AS t SET code_hash = NULL, link_hash = NULL, return_hash = NULL
             WHERE t.realm_id = p_realm AND t.phone = p_key AND t.kind <> 'approval' AND t.state IN ('sent', 'linked');
            PERFORM postern.supersede_message(p_realm, t.message)
               FROM postern.device_request AS t
              WHERE t.realm_id = p_realm AND t.phone = p_key AND t.kind <> 'approval' AND t.state = 'sent';
        END IF;
        PERFORM postern.end_phone_bindings(p_realm, p_key, 'hands');
    END IF;
    -- Links that were sent there, but while the account can still take the address back.
    DELETE FROM postern.undo_link AS l
     WHERE l.realm_id = p_realm AND l.sent_to = p_key AND l.user_id IS DISTINCT FROM p_to
       AND NOT (l.user_id IS NOT DISTINCT FROM p_from
                AND EXISTS (SELECT FROM postern.removed_identifier AS r
                             WHERE r.realm_id = p_realm AND r.user_id = p_from AND r.key = p_key AND r.is_contested));
    IF p_to IS NULL THEN
        RETURN;
    END IF;
    -- A registration that waits for names, and a number that waits for one more proof. One that is locked is being
    -- redeemed beside this: it waits for this transaction, and finds that there is an account.
    UPDATE postern.sign_in_request AS a SET expires_at = '-infinity', proved_at = NULL
     WHERE a.realm_id = p_realm
       AND a.id IN (SELECT h.id FROM postern.sign_in_request AS h
                     WHERE h.realm_id = p_realm AND h.address_key = p_key AND h.proved_at IS NOT NULL
                       FOR UPDATE SKIP LOCKED);
    -- An account that lost it in contest has it back, as old as it was: else a thief who removes it and adds it again
    -- makes it younger than an address of his own. What another account has lost stays on record, and is decided.
    UPDATE postern.user_identifier AS i
       SET added_at = r.added_at, proved_at = CASE i.kind WHEN 'phone' THEN i.proved_at ELSE r.proved_at END
      FROM postern.removed_identifier AS r
     WHERE r.realm_id = p_realm AND r.user_id = p_to AND r.key = p_key AND r.is_contested
       AND i.realm_id = p_realm AND i.user_id = p_to AND i.key = p_key;
    DELETE FROM postern.removed_identifier AS r WHERE r.realm_id = p_realm AND r.user_id = p_to AND r.key = p_key;
    UPDATE postern.removed_identifier AS r SET is_contested = false
     WHERE r.realm_id = p_realm AND r.key = p_key AND r.is_contested;
END
$$;
COMMENT ON FUNCTION postern.change_hands IS
    'Ends what was proven by an identifier that leaves an account or becomes an account''s';

RESET ROLE;
