-- Sessions (refresh families) that sign-ins made.
SET LOCAL ROLE postern_owner;

-- One row per sign-in, and the only row a refresh writes. No column that a rotation changes is in an index: rotations
-- are HOT. client has no foreign key, since every sign-in would lock the one row of its client: postern.client_deleted
-- cascades instead. It has no CHECK, which PostgreSQL would read and plan anew in every sign-in and every rotation: the
-- bound of a column is a domain, and that revoked_jtis and revoked_untils are of one length is revoke_access_token's.
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
    token_salt         postern.bytes_16 NOT NULL,
    current_hash       postern.bytes_32,
    scope              text[] NOT NULL,
    resource           text[] NOT NULL,
    amr                text[] NOT NULL,
    client_id          text NOT NULL,
    server_key         postern.bytes_4,
    user_agent         postern.chars_to_256,
    acr                postern.text_to_100,
    proof              jsonb,
    jkt                postern.bytes_32,
    revoked_jtis       bytea[],
    revoked_untils     timestamptz[],
    rotation_mark      bigint,
    cotter             boolean NOT NULL DEFAULT false,
    PRIMARY KEY (realm_id, id),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE
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

-- An authorization request as answer_request judges it. client NULL: there is none.
CREATE TYPE postern.code_request AS (
    client        uuid,
    redirect_uri  text,
    scope         text[],
    resource      text[],
    acr_values    text[],
    nonce         text,
    challenge     text,
    max_age       integer,
    user_id       uuid,
    proof         text,
    login         boolean,
    proved        boolean,
    asks_consent  boolean,
    consents      boolean,
    offer_passkey boolean,
    pushed        bytea,
    code          bytea,
    jkt           bytea
);
COMMENT ON TYPE postern.code_request IS
    'An authorization request: user_id whom it is for; max_age in seconds; proof: the kind of address (email, phone)'
    ' that the client wants proven; login: prompt=login; proved: a factor was proven for it; asks_consent:'
    ' prompt=consent; consents: the user allows it now; pushed: SHA-256 of its request_uri; code: SHA-256 of the code'
    ' to store, NULL: only look; jkt: the key that the code is bound to';
-- What a sign-in on a page opens in place of the session of a client. host NULL: it is none on a page.
CREATE TYPE postern.page_sign_in AS (
    cookie         bytea,
    former         bytea,
    host           text,
    locale         text,
    proves         text,
    value          text,
    method         text,
    profile_handle bytea,
    number_handle  bytea,
    held_handle    bytea,
    accepts_terms  boolean,
    request        postern.code_request
);
COMMENT ON TYPE postern.page_sign_in IS
    'A sign-in on a page: cookie and former are SHA-256 of the cookie that the browser gets and of the one it showed;'
    ' locale: language of the page; proves: email, phone or passkey; value, method: the address as it was typed and how'
    ' it was proven; profile_handle: of the code, where a new user is asked for names first; number_handle: of the code'
    ' of a phone number, which waits there for one more proof if it is stale; held_handle: of a number that waits for'
    ' this proof; accepts_terms: the person accepted the terms on the way here';
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
    server_key       bytea,
    acr              text,
    level            integer,
    is_repeatable    boolean,
    page             postern.page_sign_in
);
COMMENT ON TYPE postern.new_session IS
    'A session to be opened: lifetimes in seconds; refresh_hash NULL: no refresh token; acr and level: what acr_values'
    ' asked for (acr: what the session says, NULL: what amr says; level: the least that will do, NULL: anything);'
    ' is_repeatable: id, salt and hash are derived from the request, so that an identical one names this session';
-- A user whose first factor is right: what a grant hands to sign_in.
CREATE TYPE postern.candidate AS (
    user_id         uuid,
    security_stamp  uuid,
    has_totp        boolean,
    client_id       text,
    session_end     timestamptz,
    auth_time       timestamptz,
    address_key     text,
    device          uuid,
    factor          uuid,
    browser_session uuid,
    detail          jsonb
);
COMMENT ON TYPE postern.candidate IS
    'A user whose first factor is right: session_end: when the session ends at the latest; auth_time NULL: now;'
    ' address_key NULL: wrong codes of the user''s addresses stay counted; device: the known device that it came from;'
    ' factor: the passkey or trusted device; browser_session: through which a client''s session is opened; detail: of'
    ' the audit event';
CREATE TYPE postern.second_factor_proof AS (
    factor    uuid,
    totp_step bigint,
    recovery  bytea[]
);
COMMENT ON TYPE postern.second_factor_proof IS
    'What is presented beside a first factor, as use_second_factor takes it; factor NULL: nothing';
CREATE TYPE postern.sign_in_result AS (
    outcome            text,
    reason             text,
    user_id            uuid,
    db_now             double precision,
    auth_time          double precision,
    session_expires_at double precision,
    repeated           text[],
    page_outcome       text,
    compared           integer,
    factor             uuid,
    sealed_seed        bytea,
    last_step_at       double precision,
    limit_ord          integer,
    retry_after        double precision,
    granted            integer[]
);
COMMENT ON TYPE postern.sign_in_result IS
    'What became of a sign-in. outcome: ok, refused (reason is for logs only), rate_limited (limit_ord, retry_after),'
    ' busy (nothing was done: call again), second_factor (factor and what to compare it with), second_factor_wrong,'
    ' second_factor_gone, unmet, and those of a grant. is_repeated: the session is one that the same request opened'
    ' before. page_outcome: see answer_request. compared: codes that were compared and wrong';

RESET ROLE;
