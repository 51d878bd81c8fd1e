-- Trusted devices and possession of phones: keys that devices hold, and the transactions that they answer.
SET LOCAL ROLE postern_owner;

-- One row is a trusted device (it has a user), the key of a proven phone (it has a phone), or both.
CREATE TABLE postern.device_key (
    realm_id        uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    id              uuid NOT NULL DEFAULT gen_random_uuid(),
    thumbprint      bytea NOT NULL CHECK (octet_length(thumbprint) = 32),
    public_key      bytea NOT NULL CHECK (octet_length(public_key) = 64),
    created_at      timestamptz NOT NULL DEFAULT now(),
    used_at         timestamptz NOT NULL DEFAULT now(),
    user_id         uuid,
    client          uuid,
    added_at        timestamptz,
    probation_until timestamptz,
    added_by        uuid,
    display_name    text CHECK (char_length(display_name) BETWEEN 1 AND 64),
    push_handle     bytea CHECK (octet_length(push_handle) <= 700),
    phone           text CHECK (phone COLLATE "C" ~ '\A\+[1-9][0-9]{4,14}\Z'),
    phone_at        timestamptz,
    phone_by        text CHECK (phone_by IN ('code', 'link', 'operator', 'asserted', 'test')),
    phone_client    uuid,
    PRIMARY KEY (realm_id, id),
    UNIQUE (realm_id, thumbprint),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE,
    CHECK (user_id IS NOT NULL OR phone IS NOT NULL OR added_at IS NULL),
    CONSTRAINT device_key_binding CHECK (num_nulls(phone, phone_at, phone_by, phone_client) IN (0, 4))
) WITH (fillfactor = 80);
CREATE INDEX device_key_of_user ON postern.device_key (realm_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX device_key_of_phone ON postern.device_key (realm_id, phone) WHERE phone IS NOT NULL;
COMMENT ON TABLE postern.device_key IS 'P-256 keys of devices: trusted devices of users, keys of proven phones';
COMMENT ON COLUMN postern.device_key.thumbprint IS 'SHA-256 thumbprint of the key (RFC 7638)';
COMMENT ON COLUMN postern.device_key.public_key IS 'x and y, 32 bytes each';
COMMENT ON COLUMN postern.device_key.client IS 'Through which it became a trusted device';
COMMENT ON COLUMN postern.device_key.added_at IS 'Since when it is a trusted device of user_id';
COMMENT ON COLUMN postern.device_key.added_by IS 'The trusted device that adopted it; NULL: a sign-in';
COMMENT ON COLUMN postern.device_key.push_handle IS 'Sealed; for providers of channel push';
COMMENT ON COLUMN postern.device_key.phone_at IS 'When it was bound; a number that changed hands since is not its number';
COMMENT ON COLUMN postern.device_key.phone_by IS
    'How it was bound. asserted (a backend said so) and test (a test number) count for phone_client alone';
COMMENT ON COLUMN postern.device_key.phone_client IS 'The client whose transaction bound the phone last';

ALTER TABLE postern.user_account ADD COLUMN device_removed_at timestamptz;
COMMENT ON COLUMN postern.user_account.device_removed_at IS
    'When a trusted device was last removed other than by itself or an administrator: no way around probation';

-- A transaction: somebody is asked to approve a sign-in, or to prove a phone number. Its state changes by one conditional
-- UPDATE and never goes back. An expired one counts as failed, whatever the column says.
CREATE TABLE postern.transaction (
    realm_id         uuid NOT NULL,
    id               uuid NOT NULL DEFAULT gen_random_uuid(),
    kind             text NOT NULL CHECK (kind IN ('approval', 'mobile', 'desktop', 'none')),
    state            text NOT NULL DEFAULT 'open'
        CHECK (state IN ('open', 'sent', 'linked', 'required', 'passed', 'failed', 'redeemed')),
    reason           text CHECK (octet_length(reason) <= 100),
    created_at       timestamptz NOT NULL DEFAULT now(),
    expires_at       timestamptz NOT NULL,
    ended_at         timestamptz,
    client           uuid NOT NULL,
    user_id          uuid,
    source           text CHECK (octet_length(source) <= 100),
    jkt              bytea CHECK (octet_length(jkt) = 32),
    match_number     text CHECK (match_number COLLATE "C" ~ '\A[0-9]{2}\Z'),
    detail           jsonb NOT NULL DEFAULT '{}' CHECK (octet_length(detail::text) <= 16384),
    -- Approvals.
    event            text CHECK (event COLLATE "C" ~ '\A[A-Z0-9_]{1,32}\Z'),
    event_id         integer CHECK (event_id > 0),
    hint             text CHECK (octet_length(hint) <= 400),
    binding_message  text CHECK (char_length(binding_message) <= 64),
    challenge        bytea CHECK (octet_length(challenge) = 32),
    resolved_at      timestamptz,
    is_shown         boolean,
    decision         text CHECK (decision IN ('approve', 'deny', 'report', 'number_mismatch')),
    decided_at       timestamptz,
    decided_by       uuid,
    security_stamp   uuid,
    polled_at        timestamptz,
    poll_interval    integer NOT NULL DEFAULT 5,
    -- Possession.
    auth_id          uuid,
    key              bytea CHECK (octet_length(key) = 32),
    public_key       bytea CHECK (octet_length(public_key) = 64),
    phone            text CHECK (phone COLLATE "C" ~ '\A\+[1-9][0-9]{4,14}\Z'),
    numbers          smallint NOT NULL DEFAULT 0,
    sends            smallint NOT NULL DEFAULT 0,
    sent_at          timestamptz,
    tries            smallint NOT NULL DEFAULT 0,
    code_hash        bytea CHECK (octet_length(code_hash) = 32),
    code_salt        bytea CHECK (octet_length(code_salt) = 16),
    code_key         bytea CHECK (octet_length(code_key) = 4),
    code_expires_at  timestamptz,
    link_hash        bytea CHECK (octet_length(link_hash) = 32),
    link_expires_at  timestamptz,
    return_hash      bytea CHECK (octet_length(return_hash) = 32),
    return_expires_at timestamptz,
    is_test          boolean NOT NULL DEFAULT false,
    PRIMARY KEY (realm_id, id),
    UNIQUE (realm_id, event_id),
    UNIQUE (realm_id, auth_id),
    UNIQUE (realm_id, link_hash)
) WITH (fillfactor = 70);
CREATE INDEX transaction_unresolved ON postern.transaction (realm_id, created_at)
    WHERE kind = 'approval' AND resolved_at IS NULL;
CREATE INDEX transaction_of_user ON postern.transaction (realm_id, user_id, created_at) WHERE user_id IS NOT NULL;
CREATE INDEX transaction_of_phone ON postern.transaction (realm_id, phone) WHERE phone IS NOT NULL;
CREATE INDEX transaction_expires ON postern.transaction (expires_at);
COMMENT ON TABLE postern.transaction IS 'Approvals of sign-ins and proofs of phones: asked, answered, redeemed';
COMMENT ON COLUMN postern.transaction.reason IS 'Of a failed one: codes of the failure, separated by blanks';
COMMENT ON COLUMN postern.transaction.jkt IS 'Thumbprint of the key that must be proven when an approval is polled';
COMMENT ON COLUMN postern.transaction.detail IS 'What the asker gave and only gets back';
COMMENT ON COLUMN postern.transaction.hint IS 'Whom the asker means, as given';
COMMENT ON COLUMN postern.transaction.is_shown IS 'Whether devices see it; NULL: not resolved yet';
COMMENT ON COLUMN postern.transaction.key IS 'Thumbprint of the key that opened it, which it is pinned to';
COMMENT ON COLUMN postern.transaction.code_key IS 'Line of the key file that code_hash was made with';

-- Hands: which account has proven an identifier. Triggers see every way in which that changes; postern.change_hands
-- decides what ends by it. They do not fire while a realm is copied (session_replication_role).
CREATE FUNCTION postern.user_identifier_hands() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.proven_key IS NOT NULL THEN
        PERFORM postern.change_hands(OLD.realm_id, OLD.kind, OLD.proven_key, OLD.user_id, NULL);
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.proven_key IS NOT NULL THEN
        PERFORM postern.change_hands(NEW.realm_id, NEW.kind, NEW.proven_key, NULL, NEW.user_id);
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.user_identifier_hands() IS 'Trigger: an identifier leaves a user, or becomes a user''s';
REVOKE ALL ON FUNCTION postern.user_identifier_hands() FROM PUBLIC;
CREATE TRIGGER user_identifier_comes AFTER INSERT ON postern.user_identifier
    FOR EACH ROW WHEN (NEW.proven_key IS NOT NULL) EXECUTE FUNCTION postern.user_identifier_hands();
CREATE TRIGGER user_identifier_changes AFTER UPDATE OF user_id, proved_at, value ON postern.user_identifier
    FOR EACH ROW
    WHEN (OLD.proven_key IS DISTINCT FROM NEW.proven_key OR OLD.user_id <> NEW.user_id AND NEW.proven_key IS NOT NULL)
    EXECUTE FUNCTION postern.user_identifier_hands();
CREATE TRIGGER user_identifier_leaves AFTER DELETE ON postern.user_identifier
    FOR EACH ROW WHEN (OLD.proven_key IS NOT NULL) EXECUTE FUNCTION postern.user_identifier_hands();

ALTER TABLE postern.session ADD COLUMN factor uuid;
COMMENT ON COLUMN postern.session.factor IS
    'The passkey or trusted device that opened or approved it; NULL: another proof did';
ALTER TABLE postern.browser_session ADD COLUMN factor uuid;
COMMENT ON COLUMN postern.browser_session.factor IS 'The last passkey or trusted device that was proven in it; NULL: none';

-- No foreign keys to the realm, client or user: rows go in batches.
DO $do$
BEGIN
    PERFORM postern.tenant_table('device_key', NULL, 'cascade',
        'user_id IS NULL AND used_at < now() - interval ''12 months''');
    PERFORM postern.tenant_table('transaction', NULL, 'delete', 'expires_at < now() - interval ''24 hours''');
END
$do$;

RESET ROLE;
