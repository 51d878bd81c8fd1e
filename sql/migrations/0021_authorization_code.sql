-- The authorization code flow: browser sessions, authorization codes, pushed requests, consent, redirect and logout URIs.
SET LOCAL ROLE postern_owner;

-- Switches and lifetimes of the pages.
ALTER TABLE postern.realm
    ADD COLUMN hosted_enabled boolean NOT NULL DEFAULT false,
    ADD COLUMN hosted_methods text[] NOT NULL DEFAULT '{passkey,email-code,magic-link}',
    ADD COLUMN default_locale text NOT NULL DEFAULT 'en',
    ADD COLUMN sso_idle interval NOT NULL DEFAULT '30 days',
    ADD COLUMN sso_absolute interval NOT NULL DEFAULT '180 days',
    ADD COLUMN sign_in_lifetime interval NOT NULL DEFAULT '30 minutes',
    ADD COLUMN code_lifetime interval NOT NULL DEFAULT '60 seconds',
    ADD COLUMN offer_passkey boolean NOT NULL DEFAULT true,
    ADD CONSTRAINT realm_hosted_methods
        CHECK (hosted_methods <@ '{passkey,email-code,magic-link,phone-code}' AND cardinality(hosted_methods) > 0),
    ADD CONSTRAINT realm_default_locale CHECK (default_locale COLLATE "C" ~ '\A[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*\Z'),
    ADD CONSTRAINT realm_sso_idle
        CHECK (sso_idle = '0 seconds' OR sso_idle BETWEEN '1 hour' AND '365 days'),
    ADD CONSTRAINT realm_sso_absolute CHECK (sso_absolute BETWEEN '1 hour' AND '3650 days'),
    ADD CONSTRAINT realm_sign_in_lifetime CHECK (sign_in_lifetime BETWEEN '5 minutes' AND '60 minutes'),
    ADD CONSTRAINT realm_code_lifetime CHECK (code_lifetime BETWEEN '30 seconds' AND '600 seconds');
COMMENT ON COLUMN postern.realm.hosted_enabled IS 'Whether the realm serves sign-in pages and the authorization endpoint';
COMMENT ON COLUMN postern.realm.sso_idle IS 'Idle time of a browser session; 0: no single sign-on';

ALTER TABLE postern.app
    ADD COLUMN hosted_enabled boolean NOT NULL DEFAULT true,
    ADD COLUMN hosted_methods text[],
    ADD COLUMN default_locale text,
    ADD COLUMN offer_passkey boolean,
    ADD CONSTRAINT app_hosted_methods
        CHECK (hosted_methods <@ '{passkey,email-code,magic-link,phone-code}' AND cardinality(hosted_methods) > 0),
    ADD CONSTRAINT app_default_locale CHECK (default_locale COLLATE "C" ~ '\A[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*\Z');
COMMENT ON COLUMN postern.app.hosted_enabled IS 'The App''s own switch of the pages; the realm''s counts as well';
COMMENT ON COLUMN postern.app.hosted_methods IS 'NULL: the realm''s';

ALTER TABLE postern.client
    ADD COLUMN consent text NOT NULL DEFAULT 'implicit' CONSTRAINT client_consent
        CHECK (consent IN ('implicit', 'explicit', 'systematic')),
    ADD COLUMN require_pkce boolean NOT NULL DEFAULT true,
    ADD COLUMN require_par boolean NOT NULL DEFAULT false,
    ADD COLUMN home_uri text CONSTRAINT client_home_uri CHECK (octet_length(home_uri) <= 2000),
    ADD CONSTRAINT client_public_needs_pkce CHECK (require_pkce OR client_type = 'confidential');
COMMENT ON COLUMN postern.client.consent IS 'When the pages ask a user to allow what the client wants';
COMMENT ON COLUMN postern.client.home_uri IS 'Where pages without a way back to the client lead';

CREATE TABLE postern.redirect_uri (
    realm_id uuid NOT NULL,
    client   uuid NOT NULL,
    uri      text NOT NULL CHECK (octet_length(uri) BETWEEN 1 AND 2000),
    PRIMARY KEY (realm_id, client, uri),
    FOREIGN KEY (realm_id, client) REFERENCES postern.client ON DELETE CASCADE
);
COMMENT ON TABLE postern.redirect_uri IS 'Where authorization responses of a client may go';
DO $do$ BEGIN PERFORM postern.tenant_table('redirect_uri', 'SELECT', 'cascade', p_is_configuration => true); END $do$;

CREATE TABLE postern.logout_uri (
    realm_id uuid NOT NULL,
    client   uuid NOT NULL,
    kind     text NOT NULL CHECK (kind IN ('post-logout', 'backchannel')),
    uri      text NOT NULL CHECK (octet_length(uri) BETWEEN 1 AND 2000),
    PRIMARY KEY (realm_id, client, kind, uri),
    FOREIGN KEY (realm_id, client) REFERENCES postern.client ON DELETE CASCADE
);
COMMENT ON TABLE postern.logout_uri IS
    'Where a browser may go after a sign-out (post-logout), and where logout tokens are sent (backchannel)';
DO $do$ BEGIN PERFORM postern.tenant_table('logout_uri', 'SELECT', 'cascade', p_is_configuration => true); END $do$;

-- One row per signed-in browser and host. The cookie changes with every proof; the row stays.
CREATE TABLE postern.browser_session (
    realm_id        uuid NOT NULL,
    id              uuid NOT NULL,
    user_id         uuid NOT NULL,
    security_stamp  uuid NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    auth_time       timestamptz NOT NULL DEFAULT now(),
    last_used_at    timestamptz NOT NULL DEFAULT now(),
    cookie_set_at   timestamptz NOT NULL DEFAULT now(),
    idle_expires_at timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    ended_at        timestamptz,
    email_proved_at timestamptz,
    phone_proved_at timestamptz,
    cookie_hash     bytea NOT NULL CHECK (octet_length(cookie_hash) = 32),
    host            text NOT NULL CHECK (octet_length(host) <= 253),
    amr             text[] NOT NULL,
    user_agent      text CHECK (char_length(user_agent) <= 256),
    PRIMARY KEY (realm_id, id),
    CONSTRAINT browser_session_cookie UNIQUE (realm_id, cookie_hash),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE
) WITH (fillfactor = 80);
CREATE INDEX browser_session_of_user ON postern.browser_session (realm_id, user_id);
COMMENT ON TABLE postern.browser_session IS 'A browser that is signed in to the pages of a host; the cookie only as SHA-256';
COMMENT ON COLUMN postern.browser_session.cookie_set_at IS
    'When the browser last got its cookie, whose life runs from then on';
COMMENT ON COLUMN postern.browser_session.email_proved_at IS 'When an e-mail address of the user was last proven in it';
-- An ended session still tells that the account knows this browser (docs/decisions/0025).
DO $do$ BEGIN PERFORM postern.tenant_table('browser_session', 'SELECT, INSERT, UPDATE', 'cascade',
    $$least(t.expires_at, t.idle_expires_at) < now() - interval '30 days' OR t.ended_at < now() - interval '30 days'$$); END $do$;

-- Kept after its use as long as the first access token may live, so that a second use ends the session.
CREATE TABLE postern.authorization_code (
    realm_id        uuid NOT NULL,
    code_hash       bytea NOT NULL CHECK (octet_length(code_hash) = 32),
    user_id         uuid NOT NULL,
    client          uuid NOT NULL,
    browser_session uuid NOT NULL,
    security_stamp  uuid NOT NULL,
    session         uuid,
    created_at      timestamptz NOT NULL DEFAULT now(),
    auth_time       timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    used_at         timestamptz,
    redirect_uri    text NOT NULL CHECK (octet_length(redirect_uri) <= 2000),
    code_challenge  text CHECK (octet_length(code_challenge) = 43),
    nonce           text CHECK (octet_length(nonce) <= 512),
    acr             text NOT NULL,
    scope           text[] NOT NULL,
    resource        text[] NOT NULL,
    amr             text[] NOT NULL,
    PRIMARY KEY (realm_id, code_hash),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE
);
CREATE INDEX authorization_code_of_user ON postern.authorization_code (realm_id, user_id);
COMMENT ON TABLE postern.authorization_code IS 'Authorization codes, only as SHA-256, and what each may be redeemed for';
COMMENT ON COLUMN postern.authorization_code.session IS 'The session that the code opened; NULL: not used yet';
DO $do$ BEGIN PERFORM postern.tenant_table('authorization_code', 'SELECT, INSERT, UPDATE', 'cascade',
    $$t.expires_at < now() - interval '1 hour' AND coalesce(t.used_at < now() - interval '2 hours', true)$$); END $do$;

-- Opened: read by the authorization endpoint in time. Such a request may be finished later, once.
CREATE TABLE postern.pushed_request (
    realm_id   uuid NOT NULL,
    id_hash    bytea NOT NULL CHECK (octet_length(id_hash) = 32),
    client     uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    ends_at    timestamptz NOT NULL,
    opened_at  timestamptz,
    used_at    timestamptz,
    source     text NOT NULL CHECK (char_length(source) <= 100),
    sealed     bytea NOT NULL CHECK (octet_length(sealed) <= 4300),
    PRIMARY KEY (realm_id, id_hash)
);
CREATE INDEX pushed_request_unopened ON postern.pushed_request (realm_id, client, source) WHERE opened_at IS NULL;
COMMENT ON TABLE postern.pushed_request IS
    'Authorization requests that a client pushed (RFC 9126), sealed under the key file; the request_uri only as SHA-256';
COMMENT ON COLUMN postern.pushed_request.expires_at IS 'Until when it can be opened';
COMMENT ON COLUMN postern.pushed_request.ends_at IS
    'When the row goes: with expires_at while it was not opened, then sign_in_lifetime after it was opened';
COMMENT ON COLUMN postern.pushed_request.source IS 'Where it came from: what one source keeps unopened is bounded';
DO $do$ BEGIN PERFORM postern.tenant_table('pushed_request', 'SELECT, INSERT, UPDATE, DELETE', 'delete',
    't.ends_at < now() OR t.used_at < now() - interval ''2 minutes'''); END $do$;

CREATE TABLE postern.consent (
    realm_id uuid NOT NULL,
    user_id  uuid NOT NULL,
    client   uuid NOT NULL,
    given_at timestamptz NOT NULL DEFAULT now(),
    scope    text[] NOT NULL,
    resource text[] NOT NULL,
    PRIMARY KEY (realm_id, user_id, client),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE,
    FOREIGN KEY (realm_id, client) REFERENCES postern.client ON DELETE CASCADE
);
CREATE INDEX consent_of_client ON postern.consent (realm_id, client);
COMMENT ON TABLE postern.consent IS 'What users allowed clients: scopes and the resources that these opened then';
DO $do$ BEGIN PERFORM postern.tenant_table('consent', 'SELECT, INSERT, UPDATE, DELETE', 'cascade'); END $do$;

-- Logout tokens that wait to be sent. client has no foreign key: each ended session would lock the client's one row.
CREATE TABLE postern.logout_token (
    realm_id     uuid NOT NULL,
    id           uuid NOT NULL DEFAULT gen_random_uuid(),
    client       uuid NOT NULL,
    user_id      uuid NOT NULL,
    session      uuid NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    not_before   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz NOT NULL DEFAULT now() + interval '24 hours',
    sent_at      timestamptz,
    attempts     integer NOT NULL DEFAULT 0,
    uri          text NOT NULL,
    last_error   text CHECK (char_length(last_error) <= 200),
    PRIMARY KEY (realm_id, id)
);
CREATE INDEX logout_token_due ON postern.logout_token (not_before) WHERE sent_at IS NULL;
COMMENT ON TABLE postern.logout_token IS 'Back-channel logout: which client is to be told that a session ended';
DO $do$ BEGIN PERFORM postern.tenant_table('logout_token', 'SELECT, INSERT, UPDATE', 'delete',
    $$t.expires_at < now() OR t.sent_at < now() - interval '1 hour'$$); END $do$;

ALTER TABLE postern.session
    ADD COLUMN browser_session uuid,
    ADD COLUMN acr text CONSTRAINT session_acr CHECK (octet_length(acr) <= 100);
COMMENT ON COLUMN postern.session.browser_session IS 'The browser session through which it was opened; NULL: a native grant';
COMMENT ON COLUMN postern.session.acr IS 'acr of the sign-in; NULL: what amr says';
CREATE INDEX session_of_browser ON postern.session (realm_id, browser_session) WHERE browser_session IS NOT NULL;

-- The page asks for names after the proof: until then the handle remembers that its address was proven.
ALTER TABLE postern.auth_session ADD COLUMN proved_at timestamptz;
COMMENT ON COLUMN postern.auth_session.proved_at IS
    'When the code of an address without an account was right on a page; the account is made when the names are given';
ALTER TABLE postern.user_account ADD COLUMN passkey_offered_at timestamptz;
COMMENT ON COLUMN postern.user_account.passkey_offered_at IS 'When a page last offered to create a passkey';
GRANT UPDATE (passkey_offered_at) ON postern.user_account TO postern_app;

-- rst: response types.
CREATE OR REPLACE FUNCTION postern.is_permission(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN candidate COLLATE "C" ~ '\A(gt|ept|rst|cap):[A-Za-z0-9._:-]{1,120}\Z'
    OR (candidate LIKE 'scp:%' AND postern.is_scope(substr(candidate, 5)));

-- The codes and requests of a client go with it.
CREATE OR REPLACE FUNCTION postern.client_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    DELETE FROM postern.session AS s WHERE s.realm_id = OLD.realm_id AND s.client = OLD.id;
    DELETE FROM postern.authorization_code AS c WHERE c.realm_id = OLD.realm_id AND c.client = OLD.id;
    DELETE FROM postern.pushed_request AS p WHERE p.realm_id = OLD.realm_id AND p.client = OLD.id;
    DELETE FROM postern.logout_token AS t WHERE t.realm_id = OLD.realm_id AND t.client = OLD.id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.client_deleted() IS 'Trigger: sessions, codes and requests of a client go with it';

-- A session that ends is told to its client. A session that its client ends itself is not (postern.ended_by_client).
CREATE FUNCTION postern.session_ended() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    INSERT INTO postern.logout_token (realm_id, client, user_id, session, uri)
    SELECT OLD.realm_id, OLD.client, OLD.user_id, OLD.id, l.uri
      FROM postern.logout_uri AS l JOIN postern.client AS c ON c.realm_id = l.realm_id AND c.id = l.client
      JOIN postern.realm AS r ON r.id = l.realm_id
     WHERE l.realm_id = OLD.realm_id AND l.client = OLD.client AND l.kind = 'backchannel';
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.session_ended() IS 'Trigger: queues the logout tokens of a session that ended';
REVOKE ALL ON FUNCTION postern.session_ended() FROM PUBLIC;
CREATE TRIGGER session_ended AFTER UPDATE OF revoked_at ON postern.session
    FOR EACH ROW WHEN (OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL
                       AND coalesce(current_setting('postern.ended_by_client', true), '') <> 'on')
    EXECUTE FUNCTION postern.session_ended();
CREATE TRIGGER session_deleted AFTER DELETE ON postern.session
    FOR EACH ROW WHEN (OLD.revoked_at IS NULL AND OLD.expires_at > now()
                       AND coalesce(OLD.refresh_expires_at > now(), true))
    EXECUTE FUNCTION postern.session_ended();

-- An earlier form: a call by some of its arguments would be ambiguous. No binary calls it.
DROP FUNCTION IF EXISTS admin.put_client(text, text, text, text, text, text, interval, interval, boolean, boolean, text);

RESET ROLE;
