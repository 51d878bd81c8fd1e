-- Provisioning: trusted devices and approvals.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.set_approvals(
    realm text, enabled boolean DEFAULT NULL, public_clients boolean DEFAULT NULL, lifetime interval DEFAULT NULL,
    probation interval DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_lifetime interval := postern.checked_interval('lifetime', lifetime, '30 seconds', '300 seconds');
    v_probation interval := postern.checked_interval('probation', probation, '0 seconds', '7 days');
BEGIN
    UPDATE postern.realm AS r
       SET approvals_enabled = coalesce(enabled, r.approvals_enabled),
           approvals_public = coalesce(public_clients, r.approvals_public),
           approval_lifetime = coalesce(v_lifetime, r.approval_lifetime),
           approval_probation = coalesce(v_probation, r.approval_probation)
     WHERE r.id = v_realm;
    PERFORM postern.admin_audit(v_realm, 'approvals_set',
                                detail => jsonb_build_object('enabled', enabled, 'public_clients', public_clients,
                                                             'lifetime', v_lifetime, 'probation', v_probation));
END
$$;
COMMENT ON FUNCTION admin.set_approvals IS
'Switches trusted devices and approvals on or off. NULL leaves a setting as it is.
enabled: default off. public_clients: whether clients without a secret may ask for approvals (off).
lifetime: 30 to 300 seconds (120) in which an approval can be given.
probation: 0 to 7 days (24 hours) in which a device that was added beside others may neither approve, adopt nor sign in
by itself. A change holds for devices that are added later.
Example: SELECT admin.set_approvals(''acme'', true);';

CREATE OR REPLACE FUNCTION admin.delete_device(realm text, device uuid)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_user uuid := (SELECT d.user_id FROM postern.device_key AS d WHERE d.realm_id = v_realm AND d.id = device);
    v_holder uuid := (SELECT i.user_id FROM postern.device_key AS d
                        JOIN postern.user_identifier AS i ON i.realm_id = v_realm AND i.proven_key = d.phone
                       WHERE d.realm_id = v_realm AND d.id = device);
    v_unbound boolean := postern.unbind_phone(v_realm, device, 'administrator', p_user => v_holder);
BEGIN
    PERFORM postern.forget_device(v_realm, device);
    PERFORM postern.admin_removed(v_realm, v_user IS NOT NULL OR v_unbound, 'device_removed',
        user_id => coalesce(v_user, v_holder),
        detail => jsonb_build_object('device', device),
        p_missing => format('device %s is not a device of this realm', postern.shown(device::text)),
        p_hint => 'SELECT id FROM admin.devices WHERE realm = … AND email = … lists them; admin.phone_keys has those '
                  'of phone numbers.');
    PERFORM postern.queue_notice(v_realm, u.id, 'device-removed')
       FROM (SELECT v_user UNION SELECT v_holder) AS u (id) WHERE u.id IS NOT NULL;
END
$$;
COMMENT ON FUNCTION admin.delete_device IS
'Deletes one trusted device of a user, or a key that proves a phone number; a key that is both proves nothing any more.
The user, and the user who has the number, are told. Sessions that it opened go on: see admin.end_session and
admin.sign_out_everywhere.
Example: SELECT admin.delete_device(''acme'', id) FROM admin.devices
    WHERE realm = ''acme'' AND email = ''ada@example.com'';';

-- For realm_config.
CREATE OR REPLACE FUNCTION postern.approvals_config(p_realm uuid) RETURNS jsonb
LANGUAGE sql STABLE
RETURN (SELECT jsonb_build_object('enabled', r.approvals_enabled, 'public_clients', r.approvals_public,
                                  'lifetime', postern.seconds(r.approval_lifetime))
          FROM postern.realm AS r WHERE r.id = p_realm);
COMMENT ON FUNCTION postern.approvals_config IS 'What a realm lets trusted devices do, for realm_config';
GRANT EXECUTE ON FUNCTION postern.approvals_config TO postern_app;

CREATE OR REPLACE VIEW admin.devices AS
SELECT r.slug AS realm, u.email, d.user_id, d.id, d.display_name, c.client_id, d.added_at, d.added_by,
       d.probation_until, d.used_at AS last_used_at, encode(d.thumbprint, 'hex') AS thumbprint
  FROM postern.device_key AS d JOIN postern.realm AS r ON r.id = d.realm_id
  JOIN postern.user_account AS u ON u.realm_id = d.realm_id AND u.id = d.user_id
  LEFT JOIN postern.client AS c ON c.realm_id = d.realm_id AND c.id = d.client;
COMMENT ON VIEW admin.devices IS 'Trusted devices of users, without keys and push handles';

RESET ROLE;
