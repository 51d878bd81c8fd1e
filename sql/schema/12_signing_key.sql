-- Signing keys, which follow one another, and the rotations that administrators ask for.
SET LOCAL ROLE postern_owner;

-- The realm's own key is the newest active one made for it; keys made for clients that ask for an algorithm stand
-- beside it.
CREATE TABLE postern.signing_key (
    realm_id       uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    data_key       uuid GENERATED ALWAYS AS (postern.data_key_of(sealed_private)) STORED,
    kid            text NOT NULL CHECK (kid COLLATE "C" ~ '\A[A-Za-z0-9_-]{1,128}\Z'),
    alg            text NOT NULL CHECK (alg IN ('ES256', 'RS256', 'EdDSA')),
    public_jwk     jsonb NOT NULL
        CHECK (jsonb_typeof(public_jwk) = 'object' AND NOT public_jwk ?| ARRAY['d', 'p', 'q', 'dp', 'dq', 'qi', 'k']),
    sealed_private bytea NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    activates_at   timestamptz NOT NULL DEFAULT now(),
    retires_at     timestamptz,
    for_realm      boolean NOT NULL DEFAULT true,
    withdrawn      boolean NOT NULL DEFAULT false,
    PRIMARY KEY (realm_id, kid),
    CONSTRAINT signing_key_data_key FOREIGN KEY (realm_id, data_key) REFERENCES postern.data_key
        DEFERRABLE INITIALLY DEFERRED
);
COMMENT ON TABLE postern.signing_key IS
    'Signing keys of a realm; the private half is sealed by the server under a key outside the database';
COMMENT ON COLUMN postern.signing_key.data_key IS 'The data key that seals the private half';
COMMENT ON COLUMN postern.signing_key.for_realm IS 'Signs for every client that asks for no algorithm of its own';
COMMENT ON COLUMN postern.signing_key.withdrawn IS
    'Taken back by an administrator, since others may know it: ID tokens it signed vouch for no device';
CALL postern.tenant_table('signing_key', 'SELECT, INSERT, UPDATE', 'cascade', p_is_configuration => true);

CREATE TABLE postern.signing_key_request (
    realm_id     uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    alg          text NOT NULL CHECK (alg IN ('ES256', 'RS256', 'EdDSA')),
    requested_at timestamptz NOT NULL DEFAULT now(),
    for_realm    boolean NOT NULL DEFAULT true,
    PRIMARY KEY (realm_id, alg)
);
COMMENT ON TABLE postern.signing_key_request IS 'Key rotations an administrator asked for and no server has done yet';
CALL postern.tenant_table('signing_key_request', 'SELECT, DELETE', 'cascade', p_is_configuration => true);

RESET ROLE;
