-- Sessions (refresh families) that sign-ins made.
SET LOCAL ROLE postern_owner;

-- One row per sign-in, and the only row a refresh writes. No column that a rotation changes is in an index: rotations
-- are HOT. client has no foreign key, since every sign-in would lock the one row of its client: postern.client_deleted
-- cascades instead. The statement that opens a session says in settings which User-Agent and key it came with.
CREATE TABLE postern.session (
    realm_id           uuid NOT NULL,
    id                 uuid NOT NULL,
    user_id            uuid NOT NULL,
    client             uuid NOT NULL,
    security_stamp     uuid NOT NULL,
    browser_session    uuid,
    factor             uuid,
    auth_time          timestamptz NOT NULL,
    created_at         timestamptz NOT NULL DEFAULT now(),
    last_used_at       timestamptz NOT NULL DEFAULT now(),
    expires_at         timestamptz NOT NULL,
    refresh_expires_at timestamptz,
    rotated_at         timestamptz,
    revoked_at         timestamptz,
    generation         integer NOT NULL DEFAULT 0,
    bound_from         integer,
    token_salt         bytea NOT NULL CHECK (octet_length(token_salt) = 16),
    current_hash       bytea CHECK (octet_length(current_hash) = 32),
    scope              text[] NOT NULL,
    resource           text[] NOT NULL,
    amr                text[] NOT NULL,
    client_id          text NOT NULL,
    server_key         bytea CONSTRAINT session_server_key CHECK (octet_length(server_key) = 4),
    user_agent         text DEFAULT NULLIF(current_setting('postern.user_agent', true), ''),
    acr                text CONSTRAINT session_acr CHECK (octet_length(acr) <= 100),
    proof              jsonb,
    jkt                bytea DEFAULT decode(NULLIF(current_setting('postern.binding_key', true), ''), 'hex'),
    revoked_jtis       bytea[],
    revoked_untils     timestamptz[],
    rotation_mark      bigint,
    cotter             boolean NOT NULL DEFAULT false,
    PRIMARY KEY (realm_id, id),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE,
    CHECK ((current_hash IS NULL) = (refresh_expires_at IS NULL)),
    CHECK (cardinality(revoked_jtis) = cardinality(revoked_untils)),
    CONSTRAINT session_user_agent CHECK (char_length(user_agent) <= 256),
    CONSTRAINT session_jkt CHECK (octet_length(jkt) = 32)
) WITH (fillfactor = 70);
CREATE INDEX session_of_user ON postern.session (user_id, realm_id);
CREATE INDEX session_of_browser ON postern.session (browser_session, realm_id) WHERE browser_session IS NOT NULL;
COMMENT ON TABLE postern.session IS 'A sign-in and its refresh family; the live refresh token only as SHA-256';
COMMENT ON COLUMN postern.session.browser_session IS
    'The browser session through which it was opened; NULL: a native grant';
COMMENT ON COLUMN postern.session.factor IS
    'The passkey or trusted device that opened or approved it; NULL: another proof did';
COMMENT ON COLUMN postern.session.bound_from IS
    'The first generation of refresh tokens that is bound to jkt, of a family that a refresh bound; NULL: all of them';
COMMENT ON COLUMN postern.session.client_id IS
    'Copy of the client''s client_id, which never changes: introspection needs no join';
COMMENT ON COLUMN postern.session.server_key IS
    'Id of the key-file line under which the live refresh token was made; NULL: there is none';
COMMENT ON COLUMN postern.session.user_agent IS
    'User-Agent of the request that opened the session, as far as it is printable ASCII';
COMMENT ON COLUMN postern.session.acr IS 'acr of the sign-in; NULL: what amr says';
COMMENT ON COLUMN postern.session.proof IS
    'Of a session whose request asked for a proven address: {"kind", "value", "method"}';
COMMENT ON COLUMN postern.session.jkt IS
    'SHA-256 thumbprint (RFC 7638) of the key that its refresh tokens are bound to; NULL: none';
COMMENT ON COLUMN postern.session.revoked_jtis IS
    'Single access tokens revoked before their time; revoked_untils says until when to remember each';
COMMENT ON COLUMN postern.session.rotation_mark IS
    'Random number of the request that made the live refresh token: the same request gets the same answer again';
COMMENT ON COLUMN postern.session.cotter IS
    'Whether Cotter''s wire opened it: apps hand its tokens to servers of their own, so they manage no account';
CALL postern.tenant_table('session', 'SELECT, INSERT, UPDATE', 'cascade');

-- What a grant knows about the session that it opens.
CREATE TYPE postern.new_session AS (
    id               uuid,
    token_salt       bytea,
    refresh_hash     bytea,
    scope            text[],
    resource         text[],
    amr              text[],
    access_lifetime  integer,
    refresh_lifetime integer,
    source           text,
    server_key       bytea
);
COMMENT ON TYPE postern.new_session IS
    'A session to be opened: lifetimes in seconds; refresh_hash NULL: no refresh token; see open_session';

RESET ROLE;
