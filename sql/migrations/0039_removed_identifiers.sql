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
    'Proven identifiers that accounts have lost in the last 30 days, as they were; a row goes when its account has it back';
COMMENT ON COLUMN postern.removed_identifier.id IS 'The id that the identifier had';
COMMENT ON COLUMN postern.removed_identifier.is_contested IS
    'Its removal may be a thief''s: the session had proven an address alone. Links that were sent there go on, and for '
    'seven days no other account can prove it';

DO $$
BEGIN
    PERFORM postern.tenant_table('removed_identifier', 'SELECT', 'cascade', 't.removed_at < now() - interval ''30 days''');
END
$$;

-- By whatever statement an address leaves an account. A contested removal has written its row before. What else ends
-- then says postern.change_hands.
CREATE FUNCTION postern.user_identifier_removed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    INSERT INTO postern.removed_identifier (realm_id, id, user_id, added_at, proved_at, was_primary, kind, value)
    SELECT OLD.realm_id, OLD.id, OLD.user_id, OLD.added_at, OLD.proved_at, OLD.is_primary, OLD.kind, OLD.value
      FROM postern.user_account AS u WHERE u.realm_id = OLD.realm_id AND u.id = OLD.user_id
        ON CONFLICT (realm_id, id) DO NOTHING;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.user_identifier_removed() IS
    'Trigger: an address that leaves an account is kept for 30 days';
REVOKE ALL ON FUNCTION postern.user_identifier_removed() FROM PUBLIC;
CREATE TRIGGER user_identifier_removed AFTER DELETE ON postern.user_identifier
    FOR EACH ROW WHEN (OLD.proven_key IS NOT NULL) EXECUTE FUNCTION postern.user_identifier_removed();

RESET ROLE;
