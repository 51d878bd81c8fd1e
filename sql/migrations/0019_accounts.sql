-- Accounts: when the tokens of a service account begin, on what a person signed in, and which realms are gone.
SET LOCAL ROLE postern_owner;

-- A JWT has no salt in it. The time says whether it was made before its client was stopped.
ALTER TABLE postern.service_account ADD COLUMN tokens_since timestamptz NOT NULL DEFAULT 'epoch';
COMMENT ON COLUMN postern.service_account.tokens_since IS
    'Tokens with an earlier iat are dead; whole seconds, as iat has. Moves with the salt';

-- iat is rounded down. The next whole second keeps a token of the present second from living on, and each change a token
-- of the change before it. An administrator who changes a client many times in a second moves it a minute at most.
CREATE FUNCTION postern.service_account_since() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    NEW.tokens_since := date_trunc('second', clock_timestamp()) + interval '1 second';
    IF OLD.tokens_since BETWEEN NEW.tokens_since AND NEW.tokens_since + interval '1 minute' THEN
        NEW.tokens_since := OLD.tokens_since + interval '1 second';
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION postern.service_account_since() IS 'Trigger: with another salt the former tokens are dead, JWTs too';
-- Fires after service_account_restamp (triggers of one event fire in the order of their names).
CREATE TRIGGER service_account_since BEFORE UPDATE ON postern.service_account
    FOR EACH ROW WHEN (OLD.token_salt <> NEW.token_salt) EXECUTE FUNCTION postern.service_account_since();

-- A token that was made while the client was being stopped carries a time after the stop. It is before the start.
CREATE TRIGGER client_started AFTER UPDATE OF enabled, permissions ON postern.client
    FOR EACH ROW WHEN (NOT OLD.enabled AND NEW.enabled
                       OR 'gt:client_credentials' <> ALL (OLD.permissions) AND 'gt:client_credentials' = ANY (NEW.permissions))
    EXECUTE FUNCTION postern.client_stopped();
COMMENT ON FUNCTION postern.client_stopped() IS
    'Trigger: a client that is closed or opened, or loses or regains client_credentials, loses the tokens it has';

-- The statement that opens a session says it in postern.user_agent.
ALTER TABLE postern.session
    ADD COLUMN user_agent text DEFAULT NULLIF(current_setting('postern.user_agent', true), ''),
    ADD CONSTRAINT session_user_agent CHECK (char_length(user_agent) <= 256);
COMMENT ON COLUMN postern.session.user_agent IS 'User-Agent of the request that opened the session, as far as it is printable ASCII';

-- The audit log of a realm goes with it. This stays: no name or address of a person is in it.
CREATE TABLE postern.deleted_realm (
    realm_id    uuid PRIMARY KEY,
    deleted_at  timestamptz NOT NULL DEFAULT now(),
    created_at  timestamptz NOT NULL,
    users       bigint NOT NULL,
    clients     bigint NOT NULL,
    slug        text NOT NULL,
    issuer      text,
    deleted_by  text NOT NULL,
    erased_at   timestamptz
);
COMMENT ON TABLE postern.deleted_realm IS 'Realms that were deleted, when and by whom';
COMMENT ON COLUMN postern.deleted_realm.erased_at IS 'When its last row went; NULL: it can still be undeleted, or is being erased';

ALTER TABLE postern.realm
    ADD COLUMN deleted_at timestamptz,
    ADD COLUMN erased_at timestamptz,
    ADD CONSTRAINT realm_deleted CHECK ((deleted_at IS NULL) = (erased_at IS NULL) AND (deleted_at IS NULL OR NOT enabled));
COMMENT ON COLUMN postern.realm.deleted_at IS 'When an administrator deleted it; until erased_at it can be undeleted';
COMMENT ON COLUMN postern.realm.erased_at IS 'From when on the sweeper erases it';

CREATE FUNCTION postern.realm_deletion_recorded() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    UPDATE postern.deleted_realm AS d SET erased_at = now() WHERE d.realm_id = OLD.id;
    INSERT INTO postern.deleted_realm (realm_id, erased_at, created_at, users, clients, slug, issuer, deleted_by)
    SELECT OLD.id, now(), OLD.created_at, (SELECT count(*) FROM postern.user_account AS u WHERE u.realm_id = OLD.id),
           (SELECT count(*) FROM postern.client AS c WHERE c.realm_id = OLD.id), OLD.slug,
           coalesce(OLD.public_origin, 'https://' || OLD.primary_domain), 'sql:' || session_user
        ON CONFLICT (realm_id) DO NOTHING;
    RETURN OLD;
END
$$;
COMMENT ON FUNCTION postern.realm_deletion_recorded() IS 'Trigger: the deletion of a realm leaves a record';
CREATE TRIGGER realm_deletion_recorded BEFORE DELETE ON postern.realm
    FOR EACH ROW EXECUTE FUNCTION postern.realm_deletion_recorded();

ALTER TABLE postern.deleted_realm ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY realm ON postern.deleted_realm
    USING (realm_id = postern.current_realm()) WITH CHECK (realm_id = postern.current_realm());
CREATE POLICY owner ON postern.deleted_realm TO postern_owner USING (true) WITH CHECK (true);
REVOKE ALL ON postern.deleted_realm FROM PUBLIC;
REVOKE ALL ON FUNCTION postern.service_account_since(), postern.realm_deletion_recorded() FROM PUBLIC;

RESET ROLE;
