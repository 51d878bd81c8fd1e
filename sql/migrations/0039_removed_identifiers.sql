-- Addresses that accounts have lost: an undo gives them back, and so does an administrator after an incident.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.removed_identifier (
    realm_id     uuid NOT NULL,
    id           uuid NOT NULL,
    user_id      uuid NOT NULL,
    added_at     timestamptz NOT NULL,
    proved_at    timestamptz NOT NULL,
    removed_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    was_primary  boolean NOT NULL,
    is_contested boolean NOT NULL DEFAULT false,
    kind         text NOT NULL,
    value        text NOT NULL,
    key          text NOT NULL GENERATED ALWAYS AS (lower(value COLLATE "C")) STORED,
    PRIMARY KEY (realm_id, id),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE
);
CREATE INDEX removed_identifier_of_user ON postern.removed_identifier (realm_id, user_id);
CREATE INDEX removed_identifier_key ON postern.removed_identifier (realm_id, key);
COMMENT ON TABLE postern.removed_identifier IS
    'Proven identifiers that accounts have lost in the last 30 days, as they were; a row goes when its value is proven again';
COMMENT ON COLUMN postern.removed_identifier.id IS 'The id that the identifier had';
COMMENT ON COLUMN postern.removed_identifier.is_contested IS
    'Its removal may be a thief''s: the session had proven an address alone. Links that were sent there go on';

DO $$
BEGIN
    PERFORM postern.tenant_table('removed_identifier', 'SELECT', 'cascade', 't.removed_at < now() - interval ''30 days''');
END
$$;

-- By whatever statement an address leaves an account. A contested removal has written its row before.
CREATE FUNCTION postern.user_identifier_removed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO postern.removed_identifier (realm_id, id, user_id, added_at, proved_at, was_primary, kind, value)
        SELECT OLD.realm_id, OLD.id, OLD.user_id, OLD.added_at, OLD.proved_at, OLD.is_primary, OLD.kind, OLD.value
          FROM postern.user_account AS u WHERE u.realm_id = OLD.realm_id AND u.id = OLD.user_id
            ON CONFLICT (realm_id, id) DO NOTHING;
    END IF;
    DELETE FROM postern.undo_link AS l
     WHERE l.realm_id = OLD.realm_id AND l.user_id = OLD.user_id AND l.sent_to = OLD.key
       AND NOT EXISTS (SELECT FROM postern.removed_identifier AS r
                        WHERE r.realm_id = OLD.realm_id AND r.id = OLD.id AND r.is_contested);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.user_identifier_removed() IS
    'Trigger: an address that leaves an account is kept for 30 days, and undo links that were sent there end';

CREATE FUNCTION postern.user_identifier_proven() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    DELETE FROM postern.undo_link AS l
     WHERE l.realm_id = NEW.realm_id AND l.sent_to = NEW.key AND l.user_id <> NEW.user_id;
    DELETE FROM postern.removed_identifier AS r WHERE r.realm_id = NEW.realm_id AND r.key = NEW.key;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.user_identifier_proven() IS
    'Trigger: what an address did for its former accounts ends when an account proves it';

REVOKE ALL ON FUNCTION postern.user_identifier_removed(), postern.user_identifier_proven() FROM PUBLIC;
CREATE TRIGGER user_identifier_removed AFTER DELETE ON postern.user_identifier
    FOR EACH ROW WHEN (OLD.proven_key IS NOT NULL) EXECUTE FUNCTION postern.user_identifier_removed();
CREATE TRIGGER user_identifier_unproven AFTER UPDATE OF proved_at ON postern.user_identifier
    FOR EACH ROW WHEN (OLD.proven_key IS NOT NULL AND NEW.proven_key IS NULL)
    EXECUTE FUNCTION postern.user_identifier_removed();
CREATE TRIGGER user_identifier_proven AFTER INSERT ON postern.user_identifier
    FOR EACH ROW WHEN (NEW.proven_key IS NOT NULL) EXECUTE FUNCTION postern.user_identifier_proven();
CREATE TRIGGER user_identifier_proven_later AFTER UPDATE OF proved_at ON postern.user_identifier
    FOR EACH ROW WHEN (OLD.proven_key IS NULL AND NEW.proven_key IS NOT NULL)
    EXECUTE FUNCTION postern.user_identifier_proven();

RESET ROLE;
