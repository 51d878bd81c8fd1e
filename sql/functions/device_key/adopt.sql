-- A trusted device adopts a new one, whose key is in an offer that the new one showed as a QR code.
SET LOCAL ROLE postern_owner;

-- The offer is sealed and in no table. p_approver: thumbprint of the key that signed the approval. p_is_valid: whether
-- offer and approval are as they should be, but for the digits; p_is_right: whether the digits are. Outcomes, in the
-- order of the checks: signed_out; not_trusted (no device of this user off probation); invalid (spends nothing, except
-- for wrong digits); then those of put_device.
CREATE OR REPLACE FUNCTION postern.adopt_device(
    p_realm uuid, p_session uuid, p_approver bytea, p_is_valid boolean, p_offer bytea, p_expires double precision,
    p_is_right boolean, p_client uuid, p_thumbprint bytea, p_public_key bytea, p_display_name text, p_source text,
    OUT outcome text, OUT id uuid, OUT display_name text, OUT client_id text, OUT created_at double precision,
    OUT last_used_at double precision, OUT probation_until double precision, OUT is_adopted boolean,
    OUT is_trusted boolean, OUT phone text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_user record;
    v_approver uuid;
    v_put record;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    v_user := postern.hold_session_owner(p_realm, p_session);
    IF v_user.id IS NULL THEN
        outcome := 'signed_out';
        RETURN;
    END IF;
    SELECT d.id INTO v_approver FROM postern.device_by_key(p_realm, p_approver) AS d
     WHERE d.user_id = v_user.id AND postern.device_may_approve(d);
    IF NOT FOUND THEN
        outcome := 'not_trusted';
        RETURN;
    END IF;
    outcome := 'invalid';
    IF NOT p_is_valid THEN
        RETURN;
    END IF;
    -- An offer lives for 300 seconds (DeviceOffer.lifetime).
    IF NOT postern.spend(p_realm, p_offer, p_expires, interval '300 seconds') OR NOT p_is_right THEN
        RETURN;
    END IF;
    PERFORM postern.note_device_use(p_realm, v_approver);
    SELECT p.* INTO v_put
      FROM postern.put_device(p_realm, v_user.id, p_client, p_thumbprint, p_public_key, p_display_name, NULL,
                              v_approver, p_session, p_source) AS p;
    outcome := v_put.outcome;
    IF outcome IN ('added', 'same') THEN
        SELECT l.* INTO id, display_name, client_id, created_at, last_used_at, probation_until, is_adopted, is_trusted,
                        phone
          FROM postern.list_devices(p_realm, v_user.id, (v_put.device).id) AS l;
    END IF;
END
$$;
COMMENT ON FUNCTION postern.adopt_device IS
    'A trusted device makes the key of an offer a trusted device of its user; spends the offer';
GRANT EXECUTE ON FUNCTION postern.adopt_device TO postern_app;

RESET ROLE;
