-- Possession of phone numbers: identities, the operators that a realm asks about a number, test numbers.
SET LOCAL ROLE postern_owner;

-- The same person is the same for all clients of a realm, as long as the number is hers.
CREATE TABLE postern.phone_identity (
    realm_id   uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    id         uuid NOT NULL DEFAULT gen_random_uuid(),
    created_at timestamptz NOT NULL DEFAULT now(),
    phone      text NOT NULL CHECK (phone COLLATE "C" ~ '\A\+[1-9][0-9]{4,14}\Z'),
    PRIMARY KEY (realm_id, phone),
    UNIQUE (realm_id, id)
);
COMMENT ON TABLE postern.phone_identity IS 'proveId of each number that was proven';
CALL postern.tenant_table('phone_identity', NULL, 'cascade');

CREATE TABLE postern.signal_provider (
    realm_id uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    kind     text NOT NULL CHECK (kind IN ('risk', 'sim-swap', 'number-verification')),
    url      text NOT NULL CHECK (postern.is_call_url(url)),
    mode     text NOT NULL DEFAULT 'require' CHECK (mode IN ('observe', 'require')),
    enabled  boolean NOT NULL DEFAULT true,
    PRIMARY KEY (realm_id, kind)
);
COMMENT ON TABLE postern.signal_provider IS 'Operators'' endpoints that are asked about a phone number';
CALL postern.tenant_table('signal_provider', 'SELECT', 'cascade', p_is_configuration => true);

CREATE TABLE postern.test_number (
    realm_id     uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    phone        text NOT NULL CHECK (phone COLLATE "C" ~ '\A\+[1-9][0-9]{4,14}\Z'),
    client       uuid NOT NULL,
    expires_at   timestamptz NOT NULL,
    outcome      text NOT NULL CHECK (outcome IN ('code', 'pass', 'fail')),
    pending_code text CHECK (pending_code COLLATE "C" ~ '\A[0-9]{4,8}\Z'),
    code_salt    bytea CHECK (octet_length(code_salt) = 16),
    code_mac     bytea CHECK (octet_length(code_mac) = 32),
    data_key     uuid,
    PRIMARY KEY (realm_id, phone),
    FOREIGN KEY (realm_id, client) REFERENCES postern.client ON DELETE CASCADE,
    FOREIGN KEY (realm_id, data_key) REFERENCES postern.data_key DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT test_number_code CHECK (num_nulls(code_salt, code_mac, data_key) IN (0, 3)
        AND num_nonnulls(pending_code, code_mac) = CASE outcome WHEN 'code' THEN 1 ELSE 0 END)
);
CREATE INDEX test_number_of_client ON postern.test_number (client, realm_id);
COMMENT ON TABLE postern.test_number IS 'Numbers to which nothing is sent, each for one client, at most 30 days';
COMMENT ON COLUMN postern.test_number.pending_code IS
    'A password that an administrator typed, until a running server has keyed it; then only its salted HMAC is left';
COMMENT ON COLUMN postern.test_number.data_key IS 'The data key of code_mac';
CALL postern.tenant_table('test_number', NULL, 'cascade', 't.expires_at < now()');

-- However it goes: deleted, replaced, swept, with its client.
CREATE FUNCTION postern.test_number_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    PERFORM postern.end_test_number(OLD.realm_id, OLD.phone, OLD.client);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.test_number_deleted IS 'Trigger: what was proven by a test number goes with it';
CREATE TRIGGER test_number_deleted AFTER DELETE ON postern.test_number
    FOR EACH ROW EXECUTE FUNCTION postern.test_number_deleted();

RESET ROLE;
