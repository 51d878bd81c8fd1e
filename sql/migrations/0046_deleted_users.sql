-- What proofs and messages keep about a person goes with the person's account.
SET LOCAL ROLE postern_owner;

-- Before the identifiers and devices go by their foreign keys: they name the rows. Identifiers that nobody has proven
-- may be somebody else's.
CREATE FUNCTION postern.user_traces_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    DELETE FROM postern.mail_outbox AS m
     USING postern.device_key AS d
     WHERE d.realm_id = OLD.realm_id AND d.user_id = OLD.id AND d.push_handle IS NOT NULL
       AND m.realm_id = OLD.realm_id AND m.channel = 'push'
       AND m.recipient = 'sealed:' || translate(encode(d.push_handle, 'base64'), E'\n', '');
    PERFORM postern.erase_traces(OLD.realm_id, i.kind, i.proven_key)
       FROM postern.user_identifier AS i
      WHERE i.realm_id = OLD.realm_id AND i.user_id = OLD.id AND i.proven_key IS NOT NULL;
    DELETE FROM postern.transaction AS t
     WHERE t.realm_id = OLD.realm_id AND t.user_id = OLD.id AND t.kind <> 'approval';
    DELETE FROM postern.auth_session AS t
     WHERE t.realm_id = OLD.realm_id AND OLD.id IN (t.user_id, t.confirmed_user, t.hint_user);
    RETURN OLD;
END
$$;
COMMENT ON FUNCTION postern.user_traces_deleted() IS
    'Trigger: proofs of a deleted user''s numbers, messages, wrong codes and requests under way go too';
REVOKE ALL ON FUNCTION postern.user_traces_deleted() FROM PUBLIC;
CREATE TRIGGER user_traces_deleted BEFORE DELETE ON postern.user_account
    FOR EACH ROW EXECUTE FUNCTION postern.user_traces_deleted();

RESET ROLE;
