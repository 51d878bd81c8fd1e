-- Possession of phone numbers: the settings of realms and clients, whom a realm asks about a number, test numbers.
SET LOCAL ROLE postern_owner;

ALTER TABLE postern.realm
    ADD COLUMN possession_enabled boolean NOT NULL DEFAULT false,
    ADD COLUMN possession_otp_lifetime interval NOT NULL DEFAULT interval '120 seconds',
    ADD COLUMN possession_link_lifetime interval NOT NULL DEFAULT interval '5 minutes',
    ADD COLUMN possession_resend_cooldown interval NOT NULL DEFAULT interval '10 seconds',
    ADD COLUMN possession_otp_digits integer NOT NULL DEFAULT 6
        CONSTRAINT realm_possession_otp_digits CHECK (possession_otp_digits BETWEEN 4 AND 8);
COMMENT ON COLUMN postern.realm.possession_enabled IS 'Whether phone numbers may be proven for clients'' backends';

ALTER TABLE postern.client
    ADD COLUMN possession_phone_change boolean NOT NULL DEFAULT false,
    ADD COLUMN possession_link_match boolean NOT NULL DEFAULT true,
    ADD COLUMN possession_login_client uuid;
COMMENT ON COLUMN postern.client.possession_phone_change IS
    'Whether a person may name another number than the backend did';
COMMENT ON COLUMN postern.client.possession_link_match IS
    'Whether a link to a desktop asks for the number that the desktop shows';
COMMENT ON COLUMN postern.client.possession_login_client IS
    'The client that signs users in by this one''s transactions';

ALTER TABLE postern.transaction
    ADD COLUMN opened_at timestamptz,
    ADD COLUMN region text CONSTRAINT transaction_region CHECK (octet_length(region) <= 3),
    ADD COLUMN device_id uuid,
    ADD COLUMN message uuid,
    ADD COLUMN test_outcome text CONSTRAINT transaction_test_outcome CHECK (test_outcome IN ('code', 'pass', 'fail'));
COMMENT ON COLUMN postern.transaction.opened_at IS 'When the app had said hello with its key and signals were answered';
COMMENT ON COLUMN postern.transaction.device_id IS 'The key that passed it';
COMMENT ON COLUMN postern.transaction.message IS 'The last message that was queued for it (mail_outbox.id)';
COMMENT ON COLUMN postern.transaction.test_outcome IS 'Of a test number: nothing is sent';

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

CREATE TABLE postern.signal_provider (
    realm_id uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    kind     text NOT NULL CHECK (kind IN ('risk', 'sim-swap', 'number-verification')),
    url      text NOT NULL CHECK (postern.is_call_url(url)),
    mode     text NOT NULL DEFAULT 'require' CHECK (mode IN ('observe', 'require')),
    enabled  boolean NOT NULL DEFAULT true,
    PRIMARY KEY (realm_id, kind)
);
COMMENT ON TABLE postern.signal_provider IS 'Operators'' endpoints that are asked about a phone number';

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
CREATE INDEX test_number_of_client ON postern.test_number (realm_id, client);
COMMENT ON TABLE postern.test_number IS 'Numbers to which nothing is sent, each for one client, at most 30 days';
COMMENT ON COLUMN postern.test_number.pending_code IS
    'A password that an administrator typed, until a running server has keyed it; then only its salted HMAC is left';
COMMENT ON COLUMN postern.test_number.data_key IS 'The data key of code_mac';

-- However it goes: deleted, replaced, swept, with its client.
CREATE FUNCTION postern.test_number_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    PERFORM postern.end_test_number(OLD.realm_id, OLD.phone, OLD.client);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.test_number_deleted() IS 'Trigger: what was proven by a test number goes with it';
REVOKE ALL ON FUNCTION postern.test_number_deleted() FROM PUBLIC;
CREATE TRIGGER test_number_deleted AFTER DELETE ON postern.test_number
    FOR EACH ROW EXECUTE FUNCTION postern.test_number_deleted();

DO $do$
BEGIN
    PERFORM postern.tenant_table('phone_identity', NULL, 'cascade');
    PERFORM postern.tenant_table('signal_provider', 'SELECT', 'cascade', p_is_configuration => true);
    PERFORM postern.tenant_table('test_number', NULL, 'cascade', 't.expires_at < now()');
END
$do$;

RESET ROLE;
