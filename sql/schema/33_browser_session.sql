-- Browsers that are signed in to the pages.
SET LOCAL ROLE postern_owner;

-- One row per signed-in browser and host. The cookie changes with every proof; the row stays.
CREATE TABLE postern.browser_session (
    realm_id        uuid NOT NULL,
    id              uuid NOT NULL,
    user_id         uuid NOT NULL,
    security_stamp  uuid NOT NULL,
    factor          uuid,
    created_at      timestamptz NOT NULL DEFAULT now(),
    auth_time       timestamptz NOT NULL DEFAULT now(),
    last_used_at    timestamptz NOT NULL DEFAULT now(),
    cookie_set_at   timestamptz NOT NULL DEFAULT now(),
    idle_expires_at timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    ended_at        timestamptz,
    email_proved_at timestamptz,
    phone_proved_at timestamptz,
    proven_at       timestamptz NOT NULL DEFAULT now(),
    cookie_hash     postern.bytes_32 NOT NULL,
    host            postern.text_to_253 NOT NULL,
    amr             text[] NOT NULL,
    user_agent      postern.chars_to_256,
    proofs          jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (realm_id, id),
    CONSTRAINT browser_session_cookie UNIQUE (cookie_hash, realm_id),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE
) WITH (fillfactor = 80);
CREATE INDEX browser_session_of_user ON postern.browser_session (user_id, realm_id);
COMMENT ON TABLE postern.browser_session IS
    'A browser that is signed in to the pages of a host; the cookie only as SHA-256';
COMMENT ON COLUMN postern.browser_session.factor IS
    'The last passkey or trusted device that was proven in it; NULL: none';
COMMENT ON COLUMN postern.browser_session.auth_time IS 'When the user last proved a factor, however weak';
COMMENT ON COLUMN postern.browser_session.cookie_set_at IS
    'When the browser last got its cookie, whose life runs from then on';
COMMENT ON COLUMN postern.browser_session.email_proved_at IS 'When an e-mail address of the user was last proven in it';
COMMENT ON COLUMN postern.browser_session.proven_at IS 'When methods as strong as those of amr were last proven';
COMMENT ON COLUMN postern.browser_session.proofs IS
    'By kind (email, phone): the address last proven in it, and by which method: {"value", "method"}';
-- An ended session still tells that the account knows this browser (docs/decisions/0025).
CALL postern.tenant_table('browser_session', 'SELECT, INSERT, UPDATE', 'cascade',
    $$least(t.expires_at, t.idle_expires_at) < now() - interval '30 days' OR t.ended_at < now() - interval '30 days'$$);

RESET ROLE;
