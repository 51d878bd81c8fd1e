-- Magic links, and what the device that asked for one learns by polling.
SET LOCAL ROLE postern_owner;

-- Ended links stay until they would have expired, so that the page can say what became of them.
CREATE TABLE postern.login_link (
    realm_id   uuid NOT NULL,
    user_id    uuid NOT NULL,
    token_hash bytea NOT NULL CHECK (octet_length(token_hash) = 32),
    handle     bytea NOT NULL CHECK (octet_length(handle) = 16),
    client     uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    ended      text CHECK (ended IN ('redeemed', 'confirmed', 'denied', 'superseded')),
    email_key  text NOT NULL,
    source     text NOT NULL,
    PRIMARY KEY (realm_id, user_id, token_hash),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE
) WITH (fillfactor = 70);
COMMENT ON TABLE postern.login_link IS 'Magic links: SHA-256 of 256 random bits, and the handle (auth_session.id) that a confirmation signs in';

ALTER TABLE postern.login_link ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY realm ON postern.login_link USING (realm_id = postern.current_realm()) WITH CHECK (realm_id = postern.current_realm());
CREATE POLICY owner ON postern.login_link TO postern_owner USING (true) WITH CHECK (true);
REVOKE ALL ON postern.login_link FROM PUBLIC;
GRANT SELECT, INSERT, UPDATE ON postern.login_link TO postern_app;

ALTER TABLE postern.auth_session
    ADD COLUMN polled_at timestamptz,
    ADD COLUMN poll_interval integer NOT NULL DEFAULT 5,
    ADD COLUMN denied boolean NOT NULL DEFAULT false,
    ADD COLUMN confirmed_user uuid,
    ADD COLUMN source text;
COMMENT ON COLUMN postern.auth_session.source IS 'Where a link was asked for from: within the cooldown the same source gets the link already sent';
COMMENT ON COLUMN postern.auth_session.polled_at IS 'The last poll that was not too early';
COMMENT ON COLUMN postern.auth_session.poll_interval IS 'Seconds; five more after each poll that was too early';
COMMENT ON COLUMN postern.auth_session.confirmed_user IS 'Whom the next poll signs in';

-- A link proves the mailbox it was sent to.
GRANT UPDATE (email_verified) ON postern.user_account TO postern_app;

RESET ROLE;
