-- TOTP (RFC 6238) as a second factor, and the recovery codes that stand in for it.
SET LOCAL ROLE postern_owner;

-- The five newest wrong tries, newest first: while the fifth is younger than ten minutes nothing is compared.
CREATE TABLE postern.totp_factor (
    realm_id       uuid NOT NULL,
    user_id        uuid NOT NULL,
    id             uuid NOT NULL,
    enrolled_by    uuid NOT NULL,
    data_key       uuid GENERATED ALWAYS AS (postern.data_key_of(sealed_seed)) STORED,
    created_at     timestamptz NOT NULL DEFAULT now(),
    last_step_at   timestamptz NOT NULL,
    last_used_at   timestamptz,
    wrong_1_at     timestamptz,
    wrong_2_at     timestamptz,
    wrong_3_at     timestamptz,
    wrong_4_at     timestamptz,
    wrong_5_at     timestamptz,
    locked_until   timestamptz,
    wrong_in_a_row integer NOT NULL DEFAULT 0,
    sealed_seed    bytea NOT NULL,
    PRIMARY KEY (realm_id, user_id),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE,
    CONSTRAINT totp_factor_data_key FOREIGN KEY (realm_id, data_key) REFERENCES postern.data_key
        DEFERRABLE INITIALLY DEFERRED
) WITH (fillfactor = 70);
CREATE INDEX totp_factor_of_data_key ON postern.totp_factor (data_key, realm_id);
COMMENT ON TABLE postern.totp_factor IS
    'The TOTP seed of an account, sealed, with the time step it accepted last and the wrong tries that count';
COMMENT ON COLUMN postern.totp_factor.id IS 'New with every seed; the seed is sealed for realm and id';
COMMENT ON COLUMN postern.totp_factor.enrolled_by IS
    'The session that enrolled it, which may undo that without a second factor';
COMMENT ON COLUMN postern.totp_factor.data_key IS 'The data key that seals the seed';
COMMENT ON COLUMN postern.totp_factor.last_step_at IS 'Start of the newest time step accepted: only later ones are';
CALL postern.tenant_table('totp_factor', 'SELECT, INSERT, UPDATE, DELETE', 'cascade');

CREATE FUNCTION postern.totp_factor_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        UPDATE postern.user_account AS u SET has_totp = true WHERE u.realm_id = NEW.realm_id AND u.id = NEW.user_id;
    ELSE
        UPDATE postern.user_account AS u SET has_totp = false WHERE u.realm_id = OLD.realm_id AND u.id = OLD.user_id;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.totp_factor_changed IS 'Trigger: user_account.has_totp says whether there is a row';
CREATE TRIGGER totp_factor_changed AFTER INSERT OR DELETE ON postern.totp_factor
    FOR EACH ROW EXECUTE FUNCTION postern.totp_factor_changed();

CREATE TABLE postern.recovery_code (
    realm_id uuid NOT NULL,
    user_id  uuid NOT NULL,
    data_key uuid,
    mac      bytea NOT NULL CHECK (octet_length(mac) = 32),
    PRIMARY KEY (realm_id, user_id, mac),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.totp_factor ON DELETE CASCADE,
    CONSTRAINT recovery_code_data_key FOREIGN KEY (realm_id, data_key) REFERENCES postern.data_key
        DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX recovery_code_of_data_key ON postern.recovery_code (data_key, realm_id);
COMMENT ON TABLE postern.recovery_code IS 'Unused recovery codes: HMAC under a key outside the database';
COMMENT ON COLUMN postern.recovery_code.data_key IS 'The data key of the HMAC';
CALL postern.tenant_table('recovery_code', 'SELECT, INSERT, DELETE', 'cascade');

RESET ROLE;
