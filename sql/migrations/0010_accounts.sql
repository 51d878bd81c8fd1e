-- Clients that act for themselves, clients that authenticate by key, and signing keys that follow one another.
SET LOCAL ROLE postern_owner;

-- Keys the tokens of the account, as a session's salt keys the session's: another salt, and they are all dead.
ALTER TABLE postern.service_account
    ADD COLUMN token_salt bytea NOT NULL DEFAULT uuid_send(gen_random_uuid()) CHECK (octet_length(token_salt) = 16);

-- Tokens do not come back to life when a client is closed and opened again, and do not move to another client with the account.
CREATE FUNCTION postern.service_account_restamp() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    NEW.token_salt := uuid_send(gen_random_uuid());
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION postern.service_account_restamp() IS 'Trigger: another client, other tokens';
CREATE TRIGGER service_account_restamp BEFORE UPDATE OF client ON postern.service_account
    FOR EACH ROW WHEN (OLD.client <> NEW.client) EXECUTE FUNCTION postern.service_account_restamp();

CREATE FUNCTION postern.client_stopped() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    UPDATE postern.service_account AS a SET token_salt = uuid_send(gen_random_uuid()) WHERE a.realm_id = NEW.realm_id AND a.client = NEW.id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.client_stopped() IS 'Trigger: a client that is closed, or may no longer act for itself, loses the tokens it has';
CREATE TRIGGER client_stopped AFTER UPDATE OF enabled, permissions ON postern.client
    FOR EACH ROW WHEN (OLD.enabled AND NOT NEW.enabled
                       OR 'gt:client_credentials' = ANY (OLD.permissions) AND 'gt:client_credentials' <> ALL (NEW.permissions))
    EXECUTE FUNCTION postern.client_stopped();

CREATE TABLE postern.revoked_service_token (
    realm_id   uuid NOT NULL,
    jti        bytea NOT NULL CHECK (octet_length(jti) = 16),
    account    uuid NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (realm_id, jti),
    FOREIGN KEY (realm_id, account) REFERENCES postern.service_account ON DELETE CASCADE
);
CREATE INDEX revoked_service_token_account ON postern.revoked_service_token (realm_id, account);
COMMENT ON TABLE postern.revoked_service_token IS 'Access tokens of service accounts revoked before their time, until they would have expired';

CREATE TABLE postern.service_account_use (
    realm_id uuid NOT NULL,
    account  uuid NOT NULL,
    source   text NOT NULL,
    at       timestamptz NOT NULL,
    PRIMARY KEY (realm_id, account, source),
    FOREIGN KEY (realm_id, account) REFERENCES postern.service_account ON DELETE CASCADE
);
COMMENT ON TABLE postern.service_account_use IS 'When a service account was last audited from which source: once an hour, not once a token';

-- private_key_jwt (RFC 7523): public keys of a client, and the assertions that were used.
ALTER TABLE postern.client
    ADD COLUMN jwks jsonb CHECK (jsonb_typeof(jwks -> 'keys') = 'array'),
    ADD CONSTRAINT client_jwks_is_confidential CHECK (client_type = 'confidential' OR jwks IS NULL);
COMMENT ON COLUMN postern.client.jwks IS 'Public keys (RFC 7517) with which the client signs its assertions';

CREATE TABLE postern.spent_assertion (
    realm_id   uuid NOT NULL,
    id         bytea NOT NULL CHECK (octet_length(id) = 32),
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (realm_id, id)
);
COMMENT ON TABLE postern.spent_assertion IS 'Client assertions that were used, as SHA-256 of client and jti, until they would have expired';

-- No foreign key, as for everything that comes by the thousand (0004).
CREATE FUNCTION postern.realm_deleted_assertions() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    DELETE FROM postern.spent_assertion AS t WHERE t.realm_id = OLD.id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.realm_deleted_assertions() IS 'Trigger: spent assertions of a realm go with it';
CREATE TRIGGER realm_deleted_assertions AFTER DELETE ON postern.realm FOR EACH ROW EXECUTE FUNCTION postern.realm_deleted_assertions();

-- The realm's own key is the newest active one made for it; keys made for clients that ask for an algorithm stand beside it.
ALTER TABLE postern.signing_key ADD COLUMN for_realm boolean NOT NULL DEFAULT true;
ALTER TABLE postern.signing_key_request ADD COLUMN for_realm boolean NOT NULL DEFAULT true;
COMMENT ON COLUMN postern.signing_key.for_realm IS 'Signs for every client that asks for no algorithm of its own';

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['revoked_service_token', 'service_account_use', 'spent_assertion'] LOOP
        EXECUTE format('ALTER TABLE postern.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY realm ON postern.%I USING (realm_id = postern.current_realm()) WITH CHECK (realm_id = postern.current_realm())', t);
        EXECUTE format('CREATE POLICY owner ON postern.%I TO postern_owner USING (true) WITH CHECK (true)', t);
        EXECUTE format('REVOKE ALL ON postern.%I FROM PUBLIC', t);
    END LOOP;
END
$$;
GRANT SELECT, INSERT ON postern.revoked_service_token, postern.spent_assertion TO postern_app;
GRANT SELECT, INSERT, UPDATE ON postern.service_account_use TO postern_app;

RESET ROLE;
