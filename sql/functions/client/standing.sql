-- What a statement that redeems something sees of its client, and the node's configuration did not show yet.
SET LOCAL ROLE postern_owner;

-- Asked when a grant is refused, so that a grant that succeeds pays nothing: client (unknown or disabled), permission,
-- switch (of the realm or the App, for that permission) or realm (disabled); NULL: nothing is in the way.
CREATE OR REPLACE FUNCTION postern.client_fault(
    p_realm uuid, p_client uuid, p_permission text, p_app text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
DECLARE
    v record;
BEGIN
    SELECT r.enabled AS serves, coalesce(k.enabled, false) AS enabled, p_permission = ANY (k.permissions) AS permitted,
           CASE p_permission
               WHEN 'gt:refresh_token' THEN true
               WHEN 'gt:client_credentials' THEN true
               WHEN 'gt:urn:openid:params:grant-type:ciba' THEN r.approvals_enabled
               ELSE postern.is_switched_on(r, p_permission, p_app)
                   AND CASE p_permission WHEN 'gt:urn:postern:device' THEN r.approvals_enabled
                                         WHEN 'gt:urn:postern:possession' THEN r.possession_enabled
                                         ELSE true END END AS is_on
      INTO v
      FROM postern.realm AS r
      LEFT JOIN postern.client AS k ON k.realm_id = r.id AND k.id = p_client
     WHERE r.id = p_realm;
    RETURN CASE WHEN NOT coalesce(v.serves, false) THEN 'realm'
                WHEN NOT v.enabled THEN 'client'
                WHEN NOT v.permitted THEN 'permission'
                WHEN NOT v.is_on THEN 'switch' END;
END
$$;
COMMENT ON FUNCTION postern.client_fault IS
    'Why a client may not use a grant now, whatever it presents: client, permission, switch or realm; NULL: it may';
GRANT EXECUTE ON FUNCTION postern.client_fault TO postern_app;

-- The exception undoes what the refused statement counted: a client that may not ask is refused before its factor is
-- looked at. Codes: PC001 client, PC002 permission, PC003 switch, PC004 realm.
CREATE OR REPLACE FUNCTION postern.require_client(p_caller postern.caller) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    CASE postern.client_fault(p_caller.realm, p_caller.client, p_caller.permission, p_caller.app)
        WHEN 'client' THEN RAISE EXCEPTION 'the client is disabled or gone' USING ERRCODE = 'PC001';
        WHEN 'permission' THEN RAISE EXCEPTION 'the client may not use this grant' USING ERRCODE = 'PC002';
        WHEN 'switch' THEN RAISE EXCEPTION 'the grant is switched off' USING ERRCODE = 'PC003';
        WHEN 'realm' THEN RAISE EXCEPTION 'the realm is disabled' USING ERRCODE = 'PC004';
        ELSE NULL;
    END CASE;
END
$$;
COMMENT ON FUNCTION postern.require_client IS
    'Fails a refused statement whose client may not use the grant at all; exceptions PC001 to PC004 say why';
GRANT EXECUTE ON FUNCTION postern.require_client TO postern_app;

RESET ROLE;
