-- Sign-out: where browsers go, and the logout tokens that clients are sent.
SET LOCAL ROLE postern_owner;

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
CALL postern.tenant_table('logout_uri', 'SELECT', 'cascade', p_is_configuration => true);

-- Logout tokens that wait to be sent. client has no foreign key: each ended session would lock the client's one row.
CREATE TABLE postern.logout_token (
    realm_id   uuid NOT NULL,
    id         uuid NOT NULL DEFAULT gen_random_uuid(),
    client     uuid NOT NULL,
    user_id    uuid NOT NULL,
    session    uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    not_before timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL DEFAULT now() + interval '24 hours',
    sent_at    timestamptz,
    attempts   integer NOT NULL DEFAULT 0,
    uri        text NOT NULL,
    last_error text CHECK (char_length(last_error) <= 200),
    PRIMARY KEY (realm_id, id)
);
CREATE INDEX logout_token_due ON postern.logout_token (not_before) WHERE sent_at IS NULL;
COMMENT ON TABLE postern.logout_token IS 'Back-channel logout: which client is to be told that a session ended';
CALL postern.tenant_table('logout_token', 'SELECT, INSERT, UPDATE', 'delete',
    $$t.expires_at < now() OR t.sent_at < now() - interval '1 hour'$$);

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
COMMENT ON FUNCTION postern.session_ended IS 'Trigger: queues the logout tokens of a session that ended';
CREATE TRIGGER session_ended AFTER UPDATE OF revoked_at ON postern.session
    FOR EACH ROW WHEN (OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL
                       AND coalesce(current_setting('postern.ended_by_client', true), '') <> 'on')
    EXECUTE FUNCTION postern.session_ended();

CREATE TRIGGER session_deleted AFTER DELETE ON postern.session
    FOR EACH ROW WHEN (OLD.revoked_at IS NULL AND OLD.expires_at > now()
                       AND coalesce(OLD.refresh_expires_at > now(), true))
    EXECUTE FUNCTION postern.session_ended();

RESET ROLE;
