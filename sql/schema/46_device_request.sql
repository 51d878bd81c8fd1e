-- Approvals of sign-ins and proofs of phone numbers, and what protects people from requests for approval.
SET LOCAL ROLE postern_owner;

-- postern.may_follow has the rule which state leads to which; postern.state_of counts an expired one as failed.
CREATE TYPE postern.device_request_state AS ENUM ('open', 'sent', 'linked', 'required', 'passed', 'failed', 'redeemed');
COMMENT ON TYPE postern.device_request_state IS 'How far a device request is';
CREATE DOMAIN postern.device_request_kind AS text CHECK (VALUE IN ('approval', 'mobile', 'desktop', 'none'));
COMMENT ON DOMAIN postern.device_request_kind IS 'An approval, or how a number is proven';
CREATE DOMAIN postern.device_request_detail AS jsonb CHECK (octet_length(VALUE::text) <= 16384);
COMMENT ON DOMAIN postern.device_request_detail IS 'What else a request to a device says';
CREATE DOMAIN postern.two_digits AS text CHECK (VALUE COLLATE "C" ~ '\A[0-9]{2}\Z');
COMMENT ON DOMAIN postern.two_digits IS 'A number of two digits, to be compared by people';
CREATE DOMAIN postern.approval_event_name AS text CHECK (VALUE COLLATE "C" ~ '\A[A-Z0-9_]{1,32}\Z');
COMMENT ON DOMAIN postern.approval_event_name IS 'Name of the event that is to be approved';
CREATE DOMAIN postern.approval_event_id AS integer CHECK (VALUE > 0);
COMMENT ON DOMAIN postern.approval_event_id IS 'Number of an approval, for apps that keep numbers';
CREATE DOMAIN postern.approval_decision AS text CHECK (VALUE IN ('approve', 'deny', 'report', 'number_mismatch'));
COMMENT ON DOMAIN postern.approval_decision IS 'What a person answered';
CREATE DOMAIN postern.phone_number AS text CHECK (VALUE COLLATE "C" ~ '\A\+[1-9][0-9]{4,14}\Z');
COMMENT ON DOMAIN postern.phone_number IS 'A number that a device is asked to prove: + and 5 to 15 digits';
CREATE DOMAIN postern.test_outcome AS text CHECK (VALUE IN ('code', 'pass', 'fail'));
COMMENT ON DOMAIN postern.test_outcome IS 'What becomes of a request to a test number';

-- What a person is asked on a device: to approve a sign-in, or to prove a phone number. Its state changes by one
-- conditional UPDATE and never goes back. An expired one counts as failed, whatever the column says. No foreign keys to
-- the realm, client or user: rows go in batches.
CREATE TABLE postern.device_request (
    realm_id          uuid NOT NULL,
    id                uuid NOT NULL DEFAULT gen_random_uuid(),
    kind              postern.device_request_kind NOT NULL,
    state             postern.device_request_state NOT NULL DEFAULT 'open',
    reason            postern.text_to_100,
    created_at        timestamptz NOT NULL DEFAULT now(),
    expires_at        timestamptz NOT NULL,
    ended_at          timestamptz,
    client            uuid NOT NULL,
    user_id           uuid,
    source            postern.text_to_100,
    jkt               postern.bytes_32,
    match_number      postern.two_digits,
    detail            postern.device_request_detail NOT NULL DEFAULT '{}',
    -- Approvals.
    event             postern.approval_event_name,
    event_id          postern.approval_event_id,
    hint              postern.text_to_400,
    binding_message   postern.chars_to_64,
    challenge         postern.bytes_32,
    resolved_at       timestamptz,
    is_shown          boolean,
    decision          postern.approval_decision,
    decided_at        timestamptz,
    decided_by        uuid,
    security_stamp    uuid,
    polled_at         timestamptz,
    poll_interval     integer NOT NULL DEFAULT 5,
    -- Possession.
    auth_id           uuid,
    key               postern.bytes_32,
    public_key        postern.bytes_64,
    phone             postern.phone_number,
    numbers           smallint NOT NULL DEFAULT 0,
    sends             smallint NOT NULL DEFAULT 0,
    sent_at           timestamptz,
    tries             smallint NOT NULL DEFAULT 0,
    code_hash         postern.bytes_32,
    code_salt         postern.bytes_16,
    code_key          postern.bytes_4,
    code_expires_at   timestamptz,
    link_hash         postern.bytes_32,
    link_expires_at   timestamptz,
    return_hash       postern.bytes_32,
    return_expires_at timestamptz,
    is_test           boolean NOT NULL DEFAULT false,
    opened_at         timestamptz,
    region            postern.text_to_3,
    device_id         uuid,
    message           uuid,
    test_outcome      postern.test_outcome,
    PRIMARY KEY (realm_id, id),
    UNIQUE (event_id, realm_id),
    UNIQUE (auth_id, realm_id),
    UNIQUE (link_hash, realm_id)
) WITH (fillfactor = 70);
CREATE INDEX device_request_unresolved ON postern.device_request (realm_id, created_at)
    WHERE kind = 'approval' AND resolved_at IS NULL;
CREATE INDEX device_request_of_user ON postern.device_request (user_id, realm_id, created_at) WHERE user_id IS NOT NULL;
CREATE INDEX device_request_of_phone ON postern.device_request (phone, realm_id) WHERE phone IS NOT NULL;
CREATE INDEX device_request_expires ON postern.device_request (expires_at);
-- For the requests that a newer one replaces, and for the newest of a hint.
CREATE INDEX device_request_of_hint ON postern.device_request
    (client, lower(hint COLLATE "C"), realm_id, created_at) WHERE kind = 'approval';
COMMENT ON TABLE postern.device_request IS 'Approvals of sign-ins and proofs of phones: asked, answered, redeemed';
COMMENT ON COLUMN postern.device_request.reason IS 'Of a failed one: codes of the failure, separated by blanks';
COMMENT ON COLUMN postern.device_request.jkt IS 'Thumbprint of the key that must be proven when an approval is polled';
COMMENT ON COLUMN postern.device_request.detail IS 'What the asker gave and only gets back';
COMMENT ON COLUMN postern.device_request.hint IS 'Whom the asker means, as given';
COMMENT ON COLUMN postern.device_request.is_shown IS 'Whether devices see it; NULL: not resolved yet';
COMMENT ON COLUMN postern.device_request.key IS 'Thumbprint of the key that opened it, which it is pinned to';
COMMENT ON COLUMN postern.device_request.code_key IS 'Line of the key file that code_hash was made with';
COMMENT ON COLUMN postern.device_request.opened_at IS
    'When the app had opened it with its key and signals were answered';
COMMENT ON COLUMN postern.device_request.device_id IS 'The key that passed it';
COMMENT ON COLUMN postern.device_request.message IS 'The last message that was queued for it (message_outbox.id)';
COMMENT ON COLUMN postern.device_request.test_outcome IS 'Of a test number: nothing is sent';
CALL postern.tenant_table('device_request', NULL, 'delete', 'expires_at < now() - interval ''24 hours''');

CREATE TABLE postern.approval_guard (
    realm_id    uuid NOT NULL,
    user_id     uuid NOT NULL,
    rank        integer NOT NULL DEFAULT 0,
    refused_at  timestamptz,
    quiet_until timestamptz,
    resumed_at  timestamptz NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (realm_id, user_id, rank),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE
);
COMMENT ON TABLE postern.approval_guard IS 'Who is shown no requests for approval for a while';
COMMENT ON COLUMN postern.approval_guard.rank IS 'Of the requests that are not shown (postern.rank_of_asker)';
COMMENT ON COLUMN postern.approval_guard.refused_at IS 'The last denial, wrong number or report';
COMMENT ON COLUMN postern.approval_guard.resumed_at IS 'Denials of before count no more (admin.resume_approvals)';
CALL postern.tenant_table('approval_guard', NULL, 'cascade',
    'greatest(t.refused_at, t.quiet_until, t.resumed_at) < now() - interval ''24 hours''');

-- To its asker a request to a deleted user looks like one that stays without an answer. Nothing of the user stays in
-- it.
CREATE FUNCTION postern.user_approvals_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    UPDATE postern.device_request AS t
       SET user_id = NULL, hint = NULL, binding_message = NULL, decided_by = NULL, is_shown = false
     WHERE t.realm_id = OLD.realm_id AND t.user_id = OLD.id AND t.kind = 'approval';
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.user_approvals_deleted IS
    'Trigger: takes what belongs to a deleted user out of the requests that were addressed to that user';
CREATE TRIGGER user_approvals_deleted AFTER DELETE ON postern.user_account
    FOR EACH ROW EXECUTE FUNCTION postern.user_approvals_deleted();

RESET ROLE;
