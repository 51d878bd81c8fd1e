-- Provisioning: what a realm asks of proofs of possession.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.set_dpop(
    realm text, nonce text DEFAULT NULL, nonce_lifetime interval DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_lifetime interval := postern.checked_interval('nonce_lifetime', nonce_lifetime, '1 minute', '30 minutes');
BEGIN
    PERFORM postern.check_choice('nonce', nonce, 'auto', 'required');
    UPDATE postern.realm AS r
       SET dpop_nonce = coalesce(nonce, r.dpop_nonce),
           dpop_nonce_lifetime = coalesce(v_lifetime, r.dpop_nonce_lifetime)
     WHERE r.id = v_realm;
    PERFORM postern.admin_audit(v_realm, 'dpop_set',
                                detail => jsonb_build_object('nonce', nonce, 'nonce_lifetime', v_lifetime));
END
$$;
COMMENT ON FUNCTION admin.set_dpop IS
'Sets what a realm asks of DPoP proofs (RFC 9449). NULL leaves a setting as it is.
nonce: auto (the default) asks for a nonce only where iat is more than 60 seconds off; required asks for one in every
proof, which costs an app a second request whenever its nonce is too old.
nonce_lifetime: 1 to 30 minutes (5) in which a nonce is accepted.
Whether a client must send proofs at all: admin.put_client(realm, client_id, require_dpop => true).
Example: SELECT admin.set_dpop(''acme'', nonce => ''required'');';

-- For realm_config.
CREATE OR REPLACE FUNCTION postern.dpop_config(p_realm uuid) RETURNS jsonb
LANGUAGE sql STABLE
RETURN (SELECT jsonb_build_object('nonce', r.dpop_nonce, 'nonce_lifetime', postern.seconds(r.dpop_nonce_lifetime))
          FROM postern.realm AS r WHERE r.id = p_realm);
COMMENT ON FUNCTION postern.dpop_config IS 'What a realm asks of proofs of possession, for realm_config';
GRANT EXECUTE ON FUNCTION postern.dpop_config TO postern_app;

RESET ROLE;
