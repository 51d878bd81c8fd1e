-- Identifiers: the e-mail addresses and phone numbers by which people are found. user_account.email is the primary
-- address; a trigger keeps its row here.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.user_identifier (
    realm_id     uuid NOT NULL,
    id           uuid NOT NULL DEFAULT gen_random_uuid(),
    user_id      uuid NOT NULL,
    added_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    proved_at    timestamptz,
    held_since   timestamptz,
    is_primary   boolean NOT NULL DEFAULT false,
    kind         text NOT NULL CHECK (kind IN ('email', 'phone')),
    value        text NOT NULL,
    key          text NOT NULL GENERATED ALWAYS AS (lower(value COLLATE "C")) STORED,
    proven_key   text GENERATED ALWAYS AS (CASE WHEN proved_at IS NOT NULL THEN lower(value COLLATE "C") END) STORED,
    primary_kind text GENERATED ALWAYS AS (CASE WHEN is_primary THEN kind END) STORED,
    PRIMARY KEY (realm_id, id),
    UNIQUE (user_id, key, realm_id),
    UNIQUE (proven_key, realm_id),
    UNIQUE (user_id, primary_kind, realm_id),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE,
    CONSTRAINT user_identifier_value
        CHECK (CASE kind WHEN 'email' THEN postern.is_email(value) ELSE postern.is_phone(value) END)
) WITH (fillfactor = 90);
CREATE INDEX user_identifier_unproven ON postern.user_identifier (key, realm_id) WHERE proven_key IS NULL;
COMMENT ON TABLE postern.user_identifier IS
    'E-mail addresses and phone numbers of people. A proven one belongs to one person; an unproven one opens nothing';
COMMENT ON COLUMN postern.user_identifier.proved_at IS
    'When its owner showed to receive messages there; of a phone number the last time, within an hour. NULL: never';
COMMENT ON COLUMN postern.user_identifier.held_since IS
    'Since when it is proven to be this user''s; what was proven by it before counts for somebody else. NULL: unproven';
COMMENT ON COLUMN postern.user_identifier.key IS
    'As compared: ASCII letters folded. A phone''s begins with +, an address has an @';
CALL postern.tenant_table('user_identifier', 'SELECT', 'cascade');

-- What was sent to a proven identifier ends with it, however the row goes. A number that moves to another person is
-- updated, not deleted.
CREATE FUNCTION postern.user_identifier_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    DELETE FROM postern.sign_in_request AS t WHERE t.realm_id = OLD.realm_id AND t.address_key = OLD.key;
    DELETE FROM postern.login_code AS t WHERE t.realm_id = OLD.realm_id AND t.address_key = OLD.key;
    UPDATE postern.login_link AS t SET ended = 'superseded'
     WHERE t.realm_id = OLD.realm_id AND t.user_id = OLD.user_id AND t.address_key = OLD.key AND t.ended IS NULL;
    -- Not the notices: the former owner of an address is told even if it is removed right away.
    DELETE FROM postern.message_outbox AS t
     WHERE t.realm_id = OLD.realm_id AND t.state = 'queued' AND t.template IN ('otp', 'magic-link')
       AND left(lower(t.recipient COLLATE "C"), 254) = OLD.key;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.user_identifier_deleted IS
    'Trigger: requests, codes and links of a removed identifier go with it';
CREATE TRIGGER user_identifier_deleted AFTER DELETE ON postern.user_identifier
    FOR EACH ROW WHEN (OLD.proven_key IS NOT NULL) EXECUTE FUNCTION postern.user_identifier_deleted();

CREATE FUNCTION postern.user_identifier_held() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    NEW.held_since := CASE
        WHEN NEW.proved_at IS NULL THEN NULL
        WHEN TG_OP = 'UPDATE' AND OLD.user_id = NEW.user_id AND OLD.proved_at IS NOT NULL
             AND lower(OLD.value COLLATE "C") = lower(NEW.value COLLATE "C") THEN NEW.held_since
        ELSE clock_timestamp() END;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION postern.user_identifier_held IS 'Trigger: since when a user has an identifier proven';
CREATE TRIGGER user_identifier_held BEFORE INSERT OR UPDATE OF user_id, proved_at, value ON postern.user_identifier
    FOR EACH ROW EXECUTE FUNCTION postern.user_identifier_held();

-- Hands: which account has proven an identifier. Triggers see every way in which that changes; postern.change_hands
-- decides what ends by it. They do not fire while a realm is copied (session_replication_role).
CREATE FUNCTION postern.user_identifier_hands() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.proven_key IS NOT NULL THEN
        PERFORM postern.change_hands(OLD.realm_id, OLD.kind, OLD.proven_key, OLD.user_id, NULL);
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.proven_key IS NOT NULL THEN
        PERFORM postern.change_hands(NEW.realm_id, NEW.kind, NEW.proven_key, NULL, NEW.user_id);
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.user_identifier_hands IS 'Trigger: an identifier leaves a user, or becomes a user''s';
CREATE TRIGGER user_identifier_comes AFTER INSERT ON postern.user_identifier
    FOR EACH ROW WHEN (NEW.proven_key IS NOT NULL) EXECUTE FUNCTION postern.user_identifier_hands();
CREATE TRIGGER user_identifier_changes AFTER UPDATE OF user_id, proved_at, value ON postern.user_identifier
    FOR EACH ROW
    WHEN (OLD.proven_key IS DISTINCT FROM NEW.proven_key OR OLD.user_id <> NEW.user_id AND NEW.proven_key IS NOT NULL)
    EXECUTE FUNCTION postern.user_identifier_hands();
CREATE TRIGGER user_identifier_leaves AFTER DELETE ON postern.user_identifier
    FOR EACH ROW WHEN (OLD.proven_key IS NOT NULL) EXECUTE FUNCTION postern.user_identifier_hands();

-- Addresses that accounts have lost: an undo gives them back, and so does an administrator after an incident.
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
CREATE INDEX removed_identifier_of_user ON postern.removed_identifier (user_id, realm_id);
CREATE INDEX removed_identifier_key ON postern.removed_identifier (key, realm_id);
COMMENT ON TABLE postern.removed_identifier IS
    'Proven identifiers that accounts lost in the last 30 days, as they were. A row goes when its account '
    'has it back';
COMMENT ON COLUMN postern.removed_identifier.id IS 'The id that the identifier had';
COMMENT ON COLUMN postern.removed_identifier.is_contested IS
    'Its removal may be a thief''s: the session had proven an address alone. Links that were sent there go on, and for '
    'seven days no other account can prove it';
CALL postern.tenant_table('removed_identifier', 'SELECT', 'cascade', 't.removed_at < now() - interval ''30 days''');

-- By whatever statement an address leaves an account. A contested removal has written its row before.
-- postern.change_hands decides what else ends.
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
COMMENT ON FUNCTION postern.user_identifier_removed IS 'Trigger: an address that leaves an account is kept for 30 days';
CREATE TRIGGER user_identifier_removed AFTER DELETE ON postern.user_identifier
    FOR EACH ROW WHEN (OLD.proven_key IS NOT NULL) EXECUTE FUNCTION postern.user_identifier_removed();

RESET ROLE;
