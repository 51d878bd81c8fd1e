-- cap:cotter: which clients may use Cotter's web wire, and what they need for it.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.known_permission (permission, purpose) VALUES
    ('cap:cotter', 'Cotter''s wire. Public clients: the web; who proves an address there has an account.'
                   ' Confidential ones: events')
    ON CONFLICT (permission) DO UPDATE SET purpose = excluded.purpose;

CREATE OR REPLACE FUNCTION postern.speaks_cotter(k postern.client) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(k.client_type = 'public' AND 'cap:cotter' = ANY (k.permissions), false);
COMMENT ON FUNCTION postern.speaks_cotter IS 'Whether a client uses Cotter''s web wire; false for no client';
GRANT EXECUTE ON FUNCTION postern.speaks_cotter TO postern_app;

-- Called after a change of a client: refuses what would leave cap:cotter without what it needs.
CREATE OR REPLACE FUNCTION postern.check_cotter(p_realm uuid, p_client uuid) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_client postern.client;
    v_needs text;
BEGIN
    SELECT k.* INTO v_client FROM postern.client AS k WHERE k.realm_id = p_realm AND k.id = p_client;
    IF v_client.client_type = 'confidential' AND 'cap:cotter' = ANY (v_client.permissions)
       AND 'gt:urn:openid:params:grant-type:ciba' <> ALL (v_client.permissions) THEN
        PERFORM postern.refuse(format('permission "cap:cotter" of the confidential client_id "%s" needs the permission '
                                      '"gt:urn:openid:params:grant-type:ciba"', v_client.client_id),
            'Give it that too: its events are requests for approval. Or revoke "cap:cotter".');
    END IF;
    IF NOT postern.speaks_cotter(v_client) THEN
        RETURN;
    END IF;
    v_needs := CASE
        WHEN 'gt:authorization_code' <> ALL (v_client.permissions) THEN 'the permission "gt:authorization_code"'
        WHEN 'gt:refresh_token' <> ALL (v_client.permissions) THEN 'the permission "gt:refresh_token"'
        WHEN postern.client_setting_of(v_client.settings, 'access_token_type') <> 'jwt' THEN 'access_token_type "jwt"'
        -- Cotter's wire has no proofs of possession, so its tokens are bearer tokens.
        WHEN postern.client_setting_of(v_client.settings, 'require_dpop')::boolean THEN 'require_dpop "false"' END;
    IF v_needs IS NOT NULL THEN
        PERFORM postern.refuse(format('permission "cap:cotter" of the public client_id "%s" needs %s',
                                      v_client.client_id, v_needs),
            'Give it that first: admin.put_client(realm, client_id, access_token_type => ''jwt'', require_dpop => '
            'false), admin.grant_permission(realm, client_id, ''gt:authorization_code'', ''gt:refresh_token''). Or '
            'revoke "cap:cotter": admin.revoke_permission(realm, client_id, ''cap:cotter'').');
    END IF;
END
$$;
COMMENT ON FUNCTION postern.check_cotter IS
    'Refuses a client that holds cap:cotter without the permissions and the token type that it needs';

RESET ROLE;
