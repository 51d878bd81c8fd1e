-- Data keys (docs/decisions/0024): random keys that protect long-lived secrets and are themselves sealed by a line of
-- the key file, so that a new line re-wraps a few rows and nothing else.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.data_key (
    realm_id     uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    id           uuid NOT NULL,
    purpose      text NOT NULL CHECK (purpose IN ('signing-key', 'totp-seed', 'recovery-code', 'test-code')),
    number       integer CHECK (number >= 1),
    derived_from bytea CHECK (octet_length(derived_from) = 4),
    file_key     bytea NOT NULL CHECK (octet_length(file_key) = 4),
    sealed       bytea NOT NULL CHECK (octet_length(sealed) BETWEEN 64 AND 4096),
    created_at   timestamptz NOT NULL DEFAULT now(),
    resealed_at  timestamptz,
    PRIMARY KEY (realm_id, id),
    CONSTRAINT data_key_number UNIQUE (realm_id, purpose, number),
    CONSTRAINT data_key_derived_from UNIQUE (realm_id, purpose, derived_from),
    CONSTRAINT data_key_origin CHECK ((number IS NULL) <> (derived_from IS NULL))
);
COMMENT ON TABLE postern.data_key IS
    'Keys of a realm for one purpose each, sealed by a line of the key file; they protect what must outlive that line';
COMMENT ON COLUMN postern.data_key.number IS 'Of a random key: counts up; new secrets are protected by the highest one';
COMMENT ON COLUMN postern.data_key.derived_from IS
    'Of a key that version 0 derived from a line: the id of that line. It verifies codes of version 0, and makes none';
COMMENT ON COLUMN postern.data_key.file_key IS 'Id of the key-file line that seals it';

ALTER TABLE postern.data_key ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY realm ON postern.data_key
    USING (realm_id = postern.current_realm()) WITH CHECK (realm_id = postern.current_realm());
CREATE POLICY owner ON postern.data_key TO postern_owner USING (true) WITH CHECK (true);
REVOKE ALL ON postern.data_key FROM PUBLIC;
GRANT SELECT, INSERT ON postern.data_key TO postern_app;

-- Servers compare the codes of test identities under this key: they must know it before such a code is redeemed.
CREATE FUNCTION postern.test_code_key_added() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    UPDATE postern.realm AS r SET config_version = nextval('postern.config_version') WHERE r.id = NEW.realm_id;
    PERFORM pg_notify('postern_config', NEW.realm_id::text);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.test_code_key_added() IS
    'Trigger: the data keys of test codes are part of a realm''s configuration';
REVOKE ALL ON FUNCTION postern.test_code_key_added() FROM PUBLIC;
CREATE TRIGGER test_code_key_added AFTER INSERT ON postern.data_key
    FOR EACH ROW WHEN (NEW.purpose = 'test-code') EXECUTE FUNCTION postern.test_code_key_added();

-- What is sealed under a data key names it: four bytes, then the key's id. The column therefore never disagrees with
-- the seal, and a function that an older binary calls needs no further argument. NULL: sealed by version 0, directly
-- under a line.
CREATE FUNCTION postern.data_key_of(p_sealed bytea) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN substr(p_sealed, 1, 4) = '\x0270646b'::bytea AND octet_length(p_sealed) >= 60
            THEN encode(substr(p_sealed, 5, 16), 'hex')::uuid END;
COMMENT ON FUNCTION postern.data_key_of(bytea) IS
    'The data key that a sealed secret names; NULL when version 0 sealed it';
REVOKE ALL ON FUNCTION postern.data_key_of(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION postern.data_key_of(bytea) TO postern_app;

ALTER TABLE postern.signing_key
    ADD COLUMN data_key uuid GENERATED ALWAYS AS (postern.data_key_of(sealed_private)) STORED,
    ADD CONSTRAINT signing_key_data_key FOREIGN KEY (realm_id, data_key) REFERENCES postern.data_key
        DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE postern.totp_factor
    ADD COLUMN data_key uuid GENERATED ALWAYS AS (postern.data_key_of(sealed_seed)) STORED,
    ADD CONSTRAINT totp_factor_data_key FOREIGN KEY (realm_id, data_key) REFERENCES postern.data_key
        DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE postern.recovery_code
    ADD COLUMN data_key uuid,
    ADD CONSTRAINT recovery_code_data_key FOREIGN KEY (realm_id, data_key) REFERENCES postern.data_key
        DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE postern.test_identity
    ADD COLUMN data_key uuid,
    ADD CONSTRAINT test_identity_data_key FOREIGN KEY (realm_id, data_key) REFERENCES postern.data_key
        DEFERRABLE INITIALLY DEFERRED;
COMMENT ON COLUMN postern.signing_key.data_key IS 'The data key that seals the private half';
COMMENT ON COLUMN postern.totp_factor.data_key IS 'The data key that seals the seed';
COMMENT ON COLUMN postern.recovery_code.data_key IS
    'The data key of the HMAC; NULL: a line''s own key, as version 0 made it';
COMMENT ON COLUMN postern.test_identity.data_key IS
    'The data key of its code''s HMAC; NULL: not keyed yet, or by version 0';

CREATE INDEX totp_factor_of_data_key ON postern.totp_factor (realm_id, data_key);
CREATE INDEX recovery_code_of_data_key ON postern.recovery_code (realm_id, data_key);
-- What version 0 left, until it is moved.
CREATE INDEX totp_factor_without_data_key ON postern.totp_factor (realm_id, user_id) WHERE data_key IS NULL;

RESET ROLE;
