-- Clients that act for themselves: their accounts, and the tokens of these that are dead before their time.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.service_account (
    realm_id     uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    id           uuid NOT NULL DEFAULT gen_random_uuid(),
    name         text NOT NULL CHECK (name COLLATE "C" ~ '\A[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z'),
    token_salt   bytea NOT NULL DEFAULT uuid_send(gen_random_uuid()) CHECK (octet_length(token_salt) = 16),
    client       uuid NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    tokens_since timestamptz NOT NULL DEFAULT 'epoch',
    PRIMARY KEY (realm_id, id),
    UNIQUE (realm_id, name),
    UNIQUE (realm_id, client),
    FOREIGN KEY (realm_id, client) REFERENCES postern.client ON DELETE CASCADE
);
COMMENT ON TABLE postern.service_account IS 'The subject of a client that acts for itself (client_credentials)';
COMMENT ON COLUMN postern.service_account.token_salt IS
    'Keys the tokens of the account, as a session''s salt keys the session''s: another salt, and they are all dead';
COMMENT ON COLUMN postern.service_account.tokens_since IS
    'Of JWTs, which have no salt: tokens with an earlier iat are dead. Whole seconds, as iat has; moves with the salt';
CALL postern.tenant_table('service_account', 'SELECT', 'cascade', p_is_configuration => true);

CREATE FUNCTION postern.service_account_in_use() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM postern.client AS c
                WHERE c.realm_id = OLD.realm_id AND c.id = OLD.client AND 'gt:client_credentials' = ANY (c.permissions))
       AND (TG_OP = 'DELETE' OR NEW.client <> OLD.client) THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = format('service account "%s" belongs to a client that holds "gt:client_credentials"', OLD.name),
            HINT = 'Revoke the permission first: admin.revoke_permission(realm, client_id, ''gt:client_credentials'').';
    END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END
$$;
COMMENT ON FUNCTION postern.service_account_in_use IS
    'Trigger: a service account stays while its client holds client_credentials';
CREATE TRIGGER service_account_in_use BEFORE DELETE OR UPDATE OF client ON postern.service_account
    FOR EACH ROW EXECUTE FUNCTION postern.service_account_in_use();

-- Tokens do not come back to life when a client is closed and opened again, and do not move to another client with the
-- account.
CREATE FUNCTION postern.service_account_restamp() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    NEW.token_salt := uuid_send(gen_random_uuid());
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION postern.service_account_restamp IS 'Trigger: another client, other tokens';
CREATE TRIGGER service_account_restamp BEFORE UPDATE OF client ON postern.service_account
    FOR EACH ROW WHEN (OLD.client <> NEW.client) EXECUTE FUNCTION postern.service_account_restamp();

-- iat is rounded down. The next whole second keeps a token of the present second from living on, and each change a
-- token of the change before it. An administrator who changes a client many times in a second moves it by a minute at
-- most.
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
COMMENT ON FUNCTION postern.service_account_since IS 'Trigger: with another salt the former tokens are dead, JWTs too';
-- Fires after service_account_restamp (triggers of one event fire in the order of their names).
CREATE TRIGGER service_account_since BEFORE UPDATE ON postern.service_account
    FOR EACH ROW WHEN (OLD.token_salt <> NEW.token_salt) EXECUTE FUNCTION postern.service_account_since();

CREATE TABLE postern.revoked_service_token (
    realm_id   uuid NOT NULL,
    jti        bytea NOT NULL CHECK (octet_length(jti) = 16),
    account    uuid NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (realm_id, jti),
    FOREIGN KEY (realm_id, account) REFERENCES postern.service_account ON DELETE CASCADE
);
CREATE INDEX revoked_service_token_account ON postern.revoked_service_token (account, realm_id);
COMMENT ON TABLE postern.revoked_service_token IS
    'Access tokens of service accounts revoked before their time, until they would have expired';
CALL postern.tenant_table('revoked_service_token', 'SELECT, INSERT', 'cascade');

CREATE TABLE postern.service_account_use (
    realm_id uuid NOT NULL,
    account  uuid NOT NULL,
    source   text NOT NULL,
    at       timestamptz NOT NULL,
    PRIMARY KEY (realm_id, account, source),
    FOREIGN KEY (realm_id, account) REFERENCES postern.service_account ON DELETE CASCADE
);
COMMENT ON TABLE postern.service_account_use IS
    'When a service account was last audited from which source: once an hour, not once a token';
CALL postern.tenant_table('service_account_use', 'SELECT, INSERT, UPDATE', 'cascade');

-- client_credentials: only with a service account, for as long as the client holds it.
CREATE FUNCTION postern.client_needs_service_account() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM postern.service_account AS s WHERE s.realm_id = NEW.realm_id AND s.client = NEW.id) THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = format('permission "gt:client_credentials" needs a service account, and client_id "%s" has none',
                             NEW.client_id),
            HINT = 'Call admin.put_service_account(realm, name, client_id) first.';
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION postern.client_needs_service_account IS 'Trigger: client_credentials only with a service account';
CREATE TRIGGER client_needs_service_account BEFORE INSERT OR UPDATE OF permissions ON postern.client
    FOR EACH ROW WHEN ('gt:client_credentials' = ANY (NEW.permissions))
    EXECUTE FUNCTION postern.client_needs_service_account();

CREATE FUNCTION postern.client_stopped() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    UPDATE postern.service_account AS a SET token_salt = uuid_send(gen_random_uuid())
     WHERE a.realm_id = NEW.realm_id AND a.client = NEW.id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.client_stopped IS
    'Trigger: a client that is closed or opened, or loses or regains client_credentials, loses the tokens it has';
CREATE TRIGGER client_stopped AFTER UPDATE OF enabled, permissions ON postern.client
    FOR EACH ROW WHEN (OLD.enabled AND NOT NEW.enabled
                       OR 'gt:client_credentials' = ANY (OLD.permissions)
                          AND 'gt:client_credentials' <> ALL (NEW.permissions))
    EXECUTE FUNCTION postern.client_stopped();

-- A token that was made while the client was being stopped carries a time after the stop. It is before the start.
CREATE TRIGGER client_started AFTER UPDATE OF enabled, permissions ON postern.client
    FOR EACH ROW WHEN (NOT OLD.enabled AND NEW.enabled
                       OR 'gt:client_credentials' <> ALL (OLD.permissions)
                          AND 'gt:client_credentials' = ANY (NEW.permissions))
    EXECUTE FUNCTION postern.client_stopped();

RESET ROLE;
