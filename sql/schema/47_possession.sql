-- Possession of phone numbers: identities, the operators that a realm asks about a number, test numbers.
SET LOCAL ROLE postern_owner;

-- What servers and the database say to each other about a proof of a phone number. Sources/Persistence has the same
-- words, and the tests compare both.
CREATE TYPE postern.possession_kind AS ENUM ('mobile', 'desktop', 'none');
COMMENT ON TYPE postern.possession_kind IS
    'Where the app is: on the phone, beside it, or on a device whose number the backend asserts';
CREATE TYPE postern.possession_family AS ENUM ('unify', 'start');
COMMENT ON TYPE postern.possession_family IS 'Which calls of a backend may ask for a transaction';
CREATE TYPE postern.possession_channel AS ENUM ('otp', 'link');
COMMENT ON TYPE postern.possession_channel IS 'What a message to the number contains';
CREATE TYPE postern.possession_risk AS ENUM ('allow', 'deny', 'unknown', 'unavailable');
COMMENT ON TYPE postern.possession_risk IS
    'What the risk provider answered; without a usable answer unavailable if the realm requires one, else unknown';
CREATE TYPE postern.possession_sim AS ENUM ('swapped', 'unavailable');
COMMENT ON TYPE postern.possession_sim IS 'Why the provider of SIM changes stops a message';
CREATE TYPE postern.possession_reason AS ENUM
    ('9100', '9101', '9200', '9201', '9202', '9203', '9210', '9211', '9212');
COMMENT ON TYPE postern.possession_reason IS 'What decided a transaction, as backends are told';

-- The outcomes of the steps.
CREATE TYPE postern.possession_started AS ENUM ('started', 'rate_limited');
CREATE TYPE postern.possession_entered AS ENUM ('ok', 'unknown', 'wrong_key');
CREATE TYPE postern.possession_opened AS ENUM ('ok', 'wrong_key');
CREATE TYPE postern.possession_sent AS ENUM ('sent', 'settled', 'failed', 'refused', 'rate_limited');
CREATE TYPE postern.possession_refusal AS ENUM ('step', 'no_change', 'phone_limit', 'too_soon', 'send_limit');
COMMENT ON TYPE postern.possession_refusal IS 'Why no message is sent';
CREATE TYPE postern.possession_checked AS ENUM ('passed', 'wrong', 'failed', 'step');
CREATE TYPE postern.possession_finished AS ENUM ('passed', 'unknown', 'wrong_key', 'gone');
CREATE TYPE postern.possession_cancelled AS ENUM ('cancelled', 'over', 'step', 'wrong_key', 'gone');
CREATE TYPE postern.possession_answered AS ENUM ('passed', 'linked', 'failed', 'number_due', 'gone');
CREATE TYPE postern.possession_bound AS ENUM ('bound', 'unknown', 'step');

-- What a backend gives when it starts a transaction.
CREATE TYPE postern.possession_detail AS (
    family           postern.possession_family,
    target           text,    -- where the page of a link leads
    retries          boolean, -- three tries at the code; NULL: one
    rebind           boolean, -- a bound key proves nothing; NULL: it does
    check_reputation boolean, -- ask the risk provider; NULL: do not
    device_id        uuid,    -- the key that the backend expects
    sms_message      text,    -- the text of the message, with a run of #
    request_id       text,    -- given back, as the next one is
    human_id         text,
    customer_id      text,
    ip               text,    -- the person's address, for the audit log and the risk provider
    email            text     -- the person's mail address, sealed, for the risk provider
);
COMMENT ON TYPE postern.possession_detail IS 'What a backend gives when it starts a proof of a phone number';

CREATE TYPE postern.possession_facts AS (
    id               uuid,
    auth_id          uuid,
    kind             postern.possession_kind,
    state            postern.device_request_state,
    reasons          postern.possession_reason[],
    phone            text,
    client_id        text,
    is_opened        boolean,
    expires_in       double precision,
    sends_left       integer,
    cooldown         double precision, -- seconds until the next message may be sent
    tries_left       integer,
    send_refusal     postern.possession_refusal, -- why a message would be refused now; NULL: it would be sent
    link_match       boolean,
    is_test          boolean,
    test_code        text,    -- the fixed code of a test number while no server has keyed it
    test_key         uuid,    -- the data key that it is compared under from then on
    test_key_sealed  bytea,
    knows_key        boolean, -- whether the asking key is bound to a number and decides by itself
    device_id        uuid,
    prove_id         uuid,
    family           postern.possession_family,
    target           text,
    check_reputation boolean,
    sms_message      text,
    request_id       text,
    human_id         text,
    ip               text,
    email            text,
    risk             postern.possession_risk
);
COMMENT ON TYPE postern.possession_facts IS 'What a server needs to know about a proof of a phone number';

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
