-- Tenants and what is configured for them. Every key starts with the realm.
SET LOCAL ROLE postern_owner;

CREATE SEQUENCE postern.config_version;
COMMENT ON SEQUENCE postern.config_version IS 'Numbers configuration changes: a new value is higher than any in use';

CREATE TABLE postern.realm (
    id                     uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    slug                   text NOT NULL UNIQUE CHECK (slug COLLATE "C" ~ '\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z'),
    display_name           text NOT NULL CHECK (postern.is_plain_text(display_name, 100)),
    primary_domain         text CHECK (postern.is_host(primary_domain)),
    public_origin          text CHECK (postern.is_origin(public_origin)),
    enabled                boolean NOT NULL DEFAULT true,
    config_version         bigint NOT NULL DEFAULT 0,
    native_grants_enabled  boolean NOT NULL DEFAULT false,
    access_token_lifetime  interval NOT NULL DEFAULT '15 minutes' CHECK (access_token_lifetime BETWEEN '1 minute' AND '60 minutes'),
    refresh_token_lifetime interval NOT NULL DEFAULT '14 days' CHECK (refresh_token_lifetime BETWEEN '1 day' AND '365 days'),
    refresh_retry_window   interval NOT NULL DEFAULT '120 seconds' CHECK (refresh_retry_window BETWEEN '0 seconds' AND '600 seconds'),
    session_lifetime       interval NOT NULL DEFAULT '365 days' CHECK (session_lifetime BETWEEN '1 day' AND '3650 days'),
    otp_lifetime           interval NOT NULL DEFAULT '10 minutes' CHECK (otp_lifetime BETWEEN '1 minute' AND '10 minutes'),
    otp_attempts           integer NOT NULL DEFAULT 5 CHECK (otp_attempts BETWEEN 1 AND 10),
    magic_link_lifetime    interval NOT NULL DEFAULT '15 minutes' CHECK (magic_link_lifetime BETWEEN '1 minute' AND '60 minutes'),
    resend_cooldown        interval NOT NULL DEFAULT '60 seconds' CHECK (resend_cooldown BETWEEN '0 seconds' AND '600 seconds'),
    ceremony_lifetime      interval NOT NULL DEFAULT '5 minutes' CHECK (ceremony_lifetime BETWEEN '30 seconds' AND '10 minutes'),
    registration_firstname text NOT NULL DEFAULT 'Optional' CHECK (registration_firstname IN ('Off', 'Optional', 'Required')),
    registration_lastname  text NOT NULL DEFAULT 'Optional' CHECK (registration_lastname IN ('Off', 'Optional', 'Required')),
    created_at             timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT realm_has_an_origin CHECK (primary_domain IS NOT NULL OR public_origin IS NOT NULL)
);
COMMENT ON TABLE postern.realm IS 'A tenant: its hosts, lifetimes and switches';
COMMENT ON COLUMN postern.realm.public_origin IS 'Issuer when set; otherwise https:// and the primary domain';
COMMENT ON COLUMN postern.realm.config_version IS 'Changes with every change of this realm''s configuration';

CREATE TABLE postern.realm_domain (
    realm_id uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    domain   text PRIMARY KEY CHECK (postern.is_host(domain)),
    app      text,
    claimed_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX realm_domain_realm ON postern.realm_domain (realm_id);
COMMENT ON COLUMN postern.realm_domain.claimed_at IS 'Of two clusters'' realms the earlier one keeps a host, served or not';
COMMENT ON TABLE postern.realm_domain IS 'Which host belongs to which realm; a host belongs to one realm (hence no realm in the key); app: the App whose subdomain it is';

CREATE TABLE postern.scope (
    realm_id     uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    name         text NOT NULL CHECK (postern.is_scope(name)),
    description  text CHECK (postern.is_plain_text(description, 500)),
    resources    text[] NOT NULL DEFAULT '{}',
    in_discovery boolean NOT NULL DEFAULT true,
    enabled      boolean NOT NULL DEFAULT true,
    PRIMARY KEY (realm_id, name)
);
COMMENT ON TABLE postern.scope IS 'Scopes of a realm and the resources (audiences) they open';

CREATE TABLE postern.client (
    realm_id                   uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    id                         uuid NOT NULL DEFAULT gen_random_uuid(),
    client_id                  text NOT NULL CHECK (client_id COLLATE "C" ~ '\A[A-Za-z0-9][A-Za-z0-9._~-]{0,99}\Z'),
    client_type                text NOT NULL DEFAULT 'public' CHECK (client_type IN ('public', 'confidential')),
    display_name               text NOT NULL CHECK (postern.is_plain_text(display_name, 100)),
    access_token_type          text NOT NULL DEFAULT 'reference' CHECK (access_token_type IN ('reference', 'jwt')),
    rp_id                      text CHECK (postern.is_rp_id(rp_id)),
    access_token_lifetime      interval CHECK (access_token_lifetime BETWEEN '1 minute' AND '60 minutes'),
    refresh_token_lifetime     interval CHECK (refresh_token_lifetime BETWEEN '1 day' AND '365 days'),
    require_dpop               boolean NOT NULL DEFAULT false,
    enabled                    boolean NOT NULL DEFAULT true,
    secret_hash                bytea CHECK (octet_length(secret_hash) = 32),
    previous_secret_hash       bytea CHECK (octet_length(previous_secret_hash) = 32),
    previous_secret_expires_at timestamptz,
    permissions                text[] NOT NULL DEFAULT '{}' CONSTRAINT client_permissions CHECK (postern.are_permissions(permissions)),
    signing_alg                text CHECK (signing_alg IN ('ES256', 'RS256', 'EdDSA')),
    created_at                 timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (realm_id, id),
    UNIQUE (realm_id, client_id),
    CONSTRAINT client_secret_is_confidential CHECK (client_type = 'confidential' OR (secret_hash IS NULL AND previous_secret_hash IS NULL)),
    CONSTRAINT client_credentials_is_confidential CHECK (client_type = 'confidential' OR 'gt:client_credentials' <> ALL (permissions)),
    CONSTRAINT client_previous_secret_expires CHECK ((previous_secret_hash IS NULL) = (previous_secret_expires_at IS NULL))
);
COMMENT ON TABLE postern.client IS 'OAuth clients; secrets only as SHA-256, permissions sorted and distinct';

CREATE TABLE postern.service_account (
    realm_id   uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    id         uuid NOT NULL DEFAULT gen_random_uuid(),
    name       text NOT NULL CHECK (name COLLATE "C" ~ '\A[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z'),
    client     uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (realm_id, id),
    UNIQUE (realm_id, name),
    UNIQUE (realm_id, client),
    FOREIGN KEY (realm_id, client) REFERENCES postern.client ON DELETE CASCADE
);
COMMENT ON TABLE postern.service_account IS 'The subject of a client that acts for itself (client_credentials)';

CREATE TABLE postern.rate_limit (
    realm_id  uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    policy    text NOT NULL CHECK (policy IN ('native-otp', 'magic-link', 'passkey-begin', 'token')),
    dimension text NOT NULL CHECK (dimension IN ('target', 'target-total', 'source', 'client', 'app', 'failures')),
    permits   integer NOT NULL CHECK (permits >= 1),
    per       interval NOT NULL CHECK (per BETWEEN '1 second' AND '1 day'),
    burst     integer NOT NULL CHECK (burst BETWEEN 1 AND 1000000),
    mode      text NOT NULL DEFAULT 'enforce' CHECK (mode IN ('enforce', 'log-only')),
    PRIMARY KEY (realm_id, policy, dimension),
    CONSTRAINT rate_limit_ceiling CHECK (permits <= 1000000 * extract(epoch FROM per) / 60),
    CONSTRAINT rate_limit_failures CHECK (dimension <> 'failures' OR policy = 'token'),
    CONSTRAINT rate_limit_target CHECK (dimension NOT IN ('target', 'target-total') OR policy IN ('native-otp', 'magic-link'))
);
COMMENT ON TABLE postern.rate_limit IS 'Overrides of the default rate limits (postern.default_rate_limits)';

CREATE TABLE postern.signing_key (
    realm_id       uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    kid            text NOT NULL CHECK (kid COLLATE "C" ~ '\A[A-Za-z0-9_-]{1,128}\Z'),
    alg            text NOT NULL CHECK (alg IN ('ES256', 'RS256', 'EdDSA')),
    public_jwk     jsonb NOT NULL CHECK (jsonb_typeof(public_jwk) = 'object' AND NOT public_jwk ?| ARRAY['d', 'p', 'q', 'dp', 'dq', 'qi', 'k']),
    sealed_private bytea NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    activates_at   timestamptz NOT NULL DEFAULT now(),
    retires_at     timestamptz,
    PRIMARY KEY (realm_id, kid)
);
COMMENT ON TABLE postern.signing_key IS 'Signing keys of a realm; the private half is sealed by the server under a key outside the database';

CREATE TABLE postern.signing_key_request (
    realm_id     uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    alg          text NOT NULL CHECK (alg IN ('ES256', 'RS256', 'EdDSA')),
    requested_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (realm_id, alg)
);
COMMENT ON TABLE postern.signing_key_request IS 'Key rotations an administrator asked for and no server has done yet';

-- client_credentials: only with a service account, for as long as the client holds it.
CREATE FUNCTION postern.client_needs_service_account() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM postern.service_account AS s WHERE s.realm_id = NEW.realm_id AND s.client = NEW.id) THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = format('permission "gt:client_credentials" needs a service account, and client_id "%s" has none', NEW.client_id),
            HINT = 'Call admin.put_service_account(realm, name, client_id) first.';
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION postern.client_needs_service_account() IS 'Trigger: client_credentials only with a service account';
CREATE TRIGGER client_needs_service_account BEFORE INSERT OR UPDATE OF permissions ON postern.client
    FOR EACH ROW WHEN ('gt:client_credentials' = ANY (NEW.permissions)) EXECUTE FUNCTION postern.client_needs_service_account();

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
COMMENT ON FUNCTION postern.service_account_in_use() IS 'Trigger: a service account stays while its client holds client_credentials';
CREATE TRIGGER service_account_in_use BEFORE DELETE OR UPDATE OF client ON postern.service_account
    FOR EACH ROW EXECUTE FUNCTION postern.service_account_in_use();

-- A fresh realm has the scopes every client library expects.
CREATE FUNCTION postern.realm_seed_scopes() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    INSERT INTO postern.scope (realm_id, name, description)
    VALUES (NEW.id, 'openid', 'Sign in'),
           (NEW.id, 'offline_access', 'Stay signed in'),
           (NEW.id, 'profile', 'Name'),
           (NEW.id, 'email', 'E-mail address');
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.realm_seed_scopes() IS 'Trigger: the standard scopes of a new realm';
CREATE TRIGGER realm_seed_scopes AFTER INSERT ON postern.realm FOR EACH ROW EXECUTE FUNCTION postern.realm_seed_scopes();

-- Configuration changes: a new version for the realm and a notification to every server, sent at commit.
CREATE FUNCTION postern.realm_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM pg_notify('postern_config', OLD.id::text);
        RETURN OLD;
    END IF;
    IF TG_OP = 'INSERT' OR to_jsonb(NEW) - 'config_version' <> to_jsonb(OLD) - 'config_version' THEN
        NEW.config_version := nextval('postern.config_version');
        PERFORM pg_notify('postern_config', NEW.id::text);
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION postern.realm_changed() IS 'Trigger: numbers and announces changes of a realm''s own row';
CREATE TRIGGER realm_changed BEFORE INSERT OR UPDATE OR DELETE ON postern.realm
    FOR EACH ROW EXECUTE FUNCTION postern.realm_changed();

CREATE FUNCTION postern.config_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
DECLARE
    v_realm uuid;
BEGIN
    FOR v_realm IN SELECT DISTINCT c.realm_id FROM changed AS c LOOP
        UPDATE postern.realm AS r SET config_version = nextval('postern.config_version') WHERE r.id = v_realm;
        PERFORM pg_notify('postern_config', v_realm::text);
    END LOOP;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.config_changed() IS 'Trigger: numbers and announces changes of what belongs to a realm''s configuration';

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['realm_domain', 'scope', 'client', 'service_account', 'rate_limit', 'signing_key', 'signing_key_request'] LOOP
        EXECUTE format('CREATE TRIGGER config_inserted AFTER INSERT ON postern.%I REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION postern.config_changed()', t);
        EXECUTE format('CREATE TRIGGER config_updated AFTER UPDATE ON postern.%I REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION postern.config_changed()', t);
        EXECUTE format('CREATE TRIGGER config_deleted AFTER DELETE ON postern.%I REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION postern.config_changed()', t);
        EXECUTE format('CREATE POLICY realm ON postern.%I USING (realm_id = postern.current_realm()) WITH CHECK (realm_id = postern.current_realm())', t);
    END LOOP;
    CREATE POLICY realm ON postern.realm USING (id = postern.current_realm()) WITH CHECK (id = postern.current_realm());
    FOREACH t IN ARRAY ARRAY['realm', 'realm_domain', 'scope', 'client', 'service_account', 'rate_limit', 'signing_key', 'signing_key_request'] LOOP
        EXECUTE format('ALTER TABLE postern.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY owner ON postern.%I TO postern_owner USING (true) WITH CHECK (true)', t);
        EXECUTE format('REVOKE ALL ON postern.%I FROM PUBLIC', t);
        EXECUTE format('GRANT SELECT ON postern.%I TO postern_app', t);
    END LOOP;
END
$$;
GRANT INSERT, UPDATE ON postern.signing_key TO postern_app;
GRANT DELETE ON postern.signing_key_request TO postern_app;

RESET ROLE;
