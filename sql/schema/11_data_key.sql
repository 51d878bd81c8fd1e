-- Data keys (docs/decisions/0024): random keys that protect long-lived secrets and are themselves sealed by a line of
-- the key file, so that a new line re-wraps a few rows and nothing else.
SET LOCAL ROLE postern_owner;

-- What is sealed under a data key names it: four bytes, then the key's id. So a column that is made from the secret
-- never disagrees with the seal.
CREATE FUNCTION postern.data_key_of(p_sealed bytea) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN substr(p_sealed, 1, 4) = '\x0270646b'::bytea AND octet_length(p_sealed) >= 60
            THEN encode(substr(p_sealed, 5, 16), 'hex')::uuid END;
COMMENT ON FUNCTION postern.data_key_of IS 'The data key that a sealed secret names; NULL when it names none';
GRANT EXECUTE ON FUNCTION postern.data_key_of TO postern_app;

CREATE TABLE postern.data_key (
    realm_id    uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    id          uuid NOT NULL,
    purpose     text NOT NULL
        CHECK (purpose IN ('signing-key', 'totp-seed', 'recovery-code', 'test-code', 'address-subject')),
    number      integer NOT NULL CHECK (number >= 1),
    file_key    bytea NOT NULL CHECK (octet_length(file_key) = 4),
    sealed      bytea NOT NULL CHECK (octet_length(sealed) BETWEEN 64 AND 4096),
    created_at  timestamptz NOT NULL DEFAULT now(),
    resealed_at timestamptz,
    PRIMARY KEY (realm_id, id),
    CONSTRAINT data_key_number UNIQUE (realm_id, purpose, number)
);
COMMENT ON TABLE postern.data_key IS
    'Keys of a realm for one purpose each, sealed by a line of the key file; they protect what must outlive that line';
COMMENT ON COLUMN postern.data_key.number IS 'Counts up; new secrets are protected by the highest one';
COMMENT ON COLUMN postern.data_key.file_key IS 'Id of the key-file line that seals it';
CALL postern.tenant_table('data_key', 'SELECT, INSERT', 'cascade');

RESET ROLE;
