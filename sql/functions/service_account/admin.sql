-- Provisioning: service accounts.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.put_service_account(realm text, name text, client_id text)
RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
    v_other text;
    v_id uuid;
BEGIN
    IF name IS NULL OR name COLLATE "C" !~ '\A[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z' THEN
        PERFORM postern.refuse(format('name %s is not a name', postern.shown(name)),
                               'Allowed are 1 to 100 letters, digits and . _ -, beginning with a letter or digit.');
    END IF;
    SELECT s.name INTO v_other
      FROM postern.service_account AS s WHERE s.realm_id = v_realm AND s.client = v_client AND s.name <> name;
    IF FOUND THEN
        PERFORM postern.refuse(format('client_id "%s" already has the service account "%s"', client_id, v_other),
                               'A client has one service account.');
    END IF;
    UPDATE postern.service_account AS s SET client = v_client WHERE s.realm_id = v_realm AND s.name = name
    RETURNING s.id INTO v_id;
    IF NOT FOUND THEN
        INSERT INTO postern.service_account (realm_id, name, client) VALUES (v_realm, name, v_client)
        RETURNING id INTO v_id;
    END IF;
    PERFORM postern.admin_audit(v_realm, 'service_account_put', client => v_client,
                                detail => jsonb_build_object('name', name));
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION admin.put_service_account IS
'Gives a client an account of its own to act as, and returns its id: needed before gt:client_credentials is granted.
Example: SELECT admin.put_service_account(''acme'', ''nightly-export'', ''acme-export'');';

CREATE OR REPLACE FUNCTION admin.delete_service_account(realm text, name text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid;
BEGIN
    -- A trigger refuses while the client may still act for itself.
    DELETE FROM postern.service_account AS s WHERE s.realm_id = v_realm AND s.name = name
    RETURNING s.client INTO v_client;
    PERFORM postern.admin_removed(v_realm, FOUND, 'service_account_deleted', client => v_client,
        detail => jsonb_build_object('name', name),
        p_missing => format('name %s is not a service account of this realm', postern.shown(name)),
        p_hint => 'SELECT name, client_id FROM admin.service_accounts WHERE realm = … lists them.');
END
$$;
COMMENT ON FUNCTION admin.delete_service_account IS
'Deletes a service account; its tokens die at once. Revoke gt:client_credentials from its client first: a client that
acts for itself needs one.
Example: SELECT admin.delete_service_account(''acme'', ''nightly-export'');';

CREATE OR REPLACE VIEW admin.service_accounts AS
SELECT r.slug AS realm, a.name, a.id, c.client_id, a.created_at,
       (SELECT max(u.at) FROM postern.service_account_use AS u WHERE u.realm_id = a.realm_id
        AND u.account = a.id) AS last_audited_at
  FROM postern.service_account AS a JOIN postern.realm AS r ON r.id = a.realm_id
  JOIN postern.client AS c ON c.realm_id = a.realm_id AND c.id = a.client;
COMMENT ON VIEW admin.service_accounts IS
    'Service accounts; id is the sub of their tokens, last_audited_at their last use, to the hour';

RESET ROLE;
