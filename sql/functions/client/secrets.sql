-- Provisioning: the secrets of confidential clients.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.rotate_client_secret(realm text, client_id text, overlap interval DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
    v_overlap interval := coalesce(postern.checked_interval('overlap', overlap, '0 seconds', '7 days'), interval '0');
    v_secret text;
    v_is_replaced boolean;
BEGIN
    IF (SELECT c.client_type FROM postern.client AS c WHERE c.realm_id = v_realm AND c.id = v_client) <> 'confidential'
        THEN
        PERFORM postern.refuse(format('client_id "%s" is a public client and has no secret', client_id),
            'Make it confidential first: admin.put_client(realm, client_id, client_type => ''confidential''). A secret '
            'inside an app is no secret.');
    END IF;
    -- 256 bits: three random UUIDs (366 random bits from the server's strong generator) through SHA-256.
    v_secret := 'pcs_' || rtrim(translate(encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
                                                        || uuid_send(gen_random_uuid())),
                                                 'base64'), '+/', '-_'), '=');
    SELECT c.secret_hash IS NOT NULL AND v_overlap = interval '0' INTO v_is_replaced
      FROM postern.client AS c WHERE c.realm_id = v_realm AND c.id = v_client FOR NO KEY UPDATE;
    UPDATE postern.client AS c
       SET previous_secret_hash = CASE WHEN v_overlap > interval '0' THEN c.secret_hash END,
           previous_secret_expires_at = CASE WHEN v_overlap > interval '0' AND c.secret_hash IS NOT NULL
               THEN now() + v_overlap END,
           secret_hash = sha256(convert_to(v_secret, 'UTF8'))
     WHERE c.realm_id = v_realm AND c.id = v_client;
    -- Who had the former secret has its tokens, too. Another salt ends them.
    IF v_is_replaced THEN
        UPDATE postern.service_account AS a SET token_salt = uuid_send(gen_random_uuid())
         WHERE a.realm_id = v_realm AND a.client = v_client;
    END IF;
    PERFORM postern.admin_audit(v_realm, 'client_secret_rotated', client => v_client,
                                detail => jsonb_build_object('overlap', v_overlap));
    RETURN v_secret;
END
$$;
COMMENT ON FUNCTION admin.rotate_client_secret IS
'Makes a new secret for a confidential client and returns it, this once: only its SHA-256 is stored.
The former secret dies at once, and the tokens of the service account with it; or after overlap (up to 7 days), with
tokens that go on.
Example: SELECT admin.rotate_client_secret(''acme'', ''acme-api'');';

CREATE OR REPLACE FUNCTION admin.delete_client_secret(realm text, client_id text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
BEGIN
    UPDATE postern.client AS c SET secret_hash = NULL, previous_secret_hash = NULL, previous_secret_expires_at = NULL
     WHERE c.realm_id = v_realm AND c.id = v_client;
    PERFORM postern.admin_audit(v_realm, 'client_secret_deleted', client => v_client);
END
$$;
COMMENT ON FUNCTION admin.delete_client_secret IS
'Takes a client''s secret away, at once: for a client that authenticates by key alone.
Example: SELECT admin.delete_client_secret(''acme'', ''acme-export'');';

RESET ROLE;
