-- People, and the sessions (refresh families) their sign-ins made.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.user_account (
    realm_id       uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    id             uuid NOT NULL DEFAULT gen_random_uuid(),
    security_stamp uuid NOT NULL DEFAULT gen_random_uuid(),
    created_at     timestamptz NOT NULL DEFAULT now(),
    email_verified boolean NOT NULL DEFAULT true,
    enabled        boolean NOT NULL DEFAULT true,
    email          text NOT NULL CHECK (postern.is_email(email)),
    email_key      text NOT NULL GENERATED ALWAYS AS (lower(email COLLATE "C")) STORED,
    first_name     text CHECK (postern.is_plain_text(first_name, 100)),
    last_name      text CHECK (postern.is_plain_text(last_name, 100)),
    locale         text CHECK (octet_length(locale) <= 35),
    PRIMARY KEY (realm_id, id),
    UNIQUE (realm_id, email_key)
);
COMMENT ON TABLE postern.user_account IS 'A person in a realm; email as given, email_key folded in ASCII only';
COMMENT ON COLUMN postern.user_account.locale IS
    'Language of notices: that of the registration or of the first sign-in on a page; NULL: that of the App or realm';
COMMENT ON COLUMN postern.user_account.security_stamp IS 'Sessions carry a copy; a new stamp ends them all';

-- One row per sign-in, and the only row a refresh writes. No column that a rotation changes is in an index: rotations are HOT.
-- client has no foreign key, since every sign-in would lock the one row of its client: the trigger below cascades instead.
CREATE TABLE postern.session (
    realm_id           uuid NOT NULL,
    id                 uuid NOT NULL,
    user_id            uuid NOT NULL,
    client             uuid NOT NULL,
    security_stamp     uuid NOT NULL,
    auth_time          timestamptz NOT NULL,
    created_at         timestamptz NOT NULL DEFAULT now(),
    last_used_at       timestamptz NOT NULL DEFAULT now(),
    expires_at         timestamptz NOT NULL,
    refresh_expires_at timestamptz,
    rotated_at         timestamptz,
    revoked_at         timestamptz,
    generation         integer NOT NULL DEFAULT 0,
    token_salt         bytea NOT NULL CHECK (octet_length(token_salt) = 16),
    current_hash       bytea CHECK (octet_length(current_hash) = 32),
    scope              text[] NOT NULL,
    resource           text[] NOT NULL,
    amr                text[] NOT NULL,
    client_id          text NOT NULL,
    revoked_jtis       bytea[],
    revoked_untils     timestamptz[],
    PRIMARY KEY (realm_id, id),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE,
    CHECK ((current_hash IS NULL) = (refresh_expires_at IS NULL)),
    CHECK (cardinality(revoked_jtis) = cardinality(revoked_untils))
) WITH (fillfactor = 70);
CREATE INDEX session_of_user ON postern.session (realm_id, user_id);
COMMENT ON TABLE postern.session IS 'A sign-in and its refresh family; the live refresh token only as SHA-256';
COMMENT ON COLUMN postern.session.client_id IS 'Copy of the client''s client_id, which never changes: introspection needs no join';
COMMENT ON COLUMN postern.session.revoked_jtis IS 'Single access tokens revoked before their time; revoked_untils says until when to remember each';

CREATE TABLE postern.passkey (
    realm_id        uuid NOT NULL,
    id              uuid NOT NULL DEFAULT gen_random_uuid(),
    user_id         uuid NOT NULL,
    rp_id           text NOT NULL CHECK (postern.is_rp_id(rp_id)),
    credential_id   bytea NOT NULL CHECK (octet_length(credential_id) BETWEEN 1 AND 1023),
    public_key      bytea NOT NULL,
    sign_count      bigint NOT NULL DEFAULT 0 CHECK (sign_count BETWEEN 0 AND 4294967295),
    aaguid          uuid,
    backup_eligible boolean NOT NULL,
    backup_state    boolean NOT NULL,
    transports      text[] NOT NULL DEFAULT '{}',
    display_name    text CHECK (char_length(display_name) BETWEEN 1 AND 64),
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_used_at    timestamptz,
    PRIMARY KEY (realm_id, id),
    UNIQUE (realm_id, credential_id),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE,
    CHECK (backup_eligible OR NOT backup_state)
);
CREATE INDEX passkey_of_user ON postern.passkey (realm_id, user_id);
COMMENT ON TABLE postern.passkey IS 'WebAuthn credential records';

-- Whatever ends trust in earlier sign-ins changes the stamp, however the row is written.
CREATE FUNCTION postern.user_account_restamp() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    NEW.security_stamp := gen_random_uuid();
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION postern.user_account_restamp() IS 'Trigger: enabling, disabling or a new address makes a new security stamp';
-- A generated column is not known before the write; email stands for email_key.
CREATE TRIGGER user_account_restamp BEFORE UPDATE OF enabled, email ON postern.user_account
    FOR EACH ROW WHEN (OLD.enabled <> NEW.enabled OR OLD.email <> NEW.email) EXECUTE FUNCTION postern.user_account_restamp();

CREATE FUNCTION postern.client_id_is_fixed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = format('client_id "%s" cannot be renamed', OLD.client_id),
        HINT = 'Make a new client: apps and sessions hold on to the name.';
END
$$;
COMMENT ON FUNCTION postern.client_id_is_fixed() IS 'Trigger: a client keeps its client_id, of which sessions have a copy';
CREATE TRIGGER client_id_is_fixed BEFORE UPDATE OF client_id ON postern.client
    FOR EACH ROW WHEN (OLD.client_id <> NEW.client_id) EXECUTE FUNCTION postern.client_id_is_fixed();

CREATE FUNCTION postern.client_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    DELETE FROM postern.session AS s WHERE s.realm_id = OLD.realm_id AND s.client = OLD.id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.client_deleted() IS 'Trigger: the sessions of a client go with it';
CREATE TRIGGER client_deleted AFTER DELETE ON postern.client FOR EACH ROW EXECUTE FUNCTION postern.client_deleted();

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['user_account', 'session', 'passkey'] LOOP
        EXECUTE format('ALTER TABLE postern.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY realm ON postern.%I USING (realm_id = postern.current_realm()) WITH CHECK (realm_id = postern.current_realm())', t);
        EXECUTE format('CREATE POLICY owner ON postern.%I TO postern_owner USING (true) WITH CHECK (true)', t);
        EXECUTE format('REVOKE ALL ON postern.%I FROM PUBLIC', t);
    END LOOP;
END
$$;
GRANT SELECT ON postern.user_account TO postern_app;
GRANT SELECT, INSERT, UPDATE ON postern.session TO postern_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON postern.passkey TO postern_app;

RESET ROLE;
