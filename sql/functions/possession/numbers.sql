-- Provisioning: test numbers, the end of a number, and what administrators see of proofs.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.put_test_number(
    realm text, phone text, client_id text, outcome text DEFAULT NULL, code text DEFAULT NULL,
    expires_at timestamptz DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
    v_outcome text := coalesce(outcome, 'code');
    v_expires_at timestamptz := coalesce(expires_at, now() + interval '30 days');
BEGIN
    PERFORM postern.check_phone('phone', phone);
    PERFORM postern.check_choice('outcome', v_outcome, 'code', 'pass', 'fail');
    IF v_outcome = 'code' AND (code IS NULL OR code COLLATE "C" !~ '\A[0-9]{4,8}\Z') THEN
        PERFORM postern.refuse('code is not 4 to 8 digits', 'Outcome "code" needs the code that will be right.');
    ELSIF v_outcome <> 'code' AND code IS NOT NULL THEN
        PERFORM postern.refuse(format('code is of no use with outcome "%s"', v_outcome),
                               'Leave it out, or choose outcome "code".');
    ELSIF v_expires_at <= now() OR v_expires_at > now() + interval '30 days' THEN
        PERFORM postern.refuse(format('expires_at %s is out of range', postern.shown(v_expires_at::text)),
                               'Allowed is a time within the next 30 days.');
    ELSIF NOT EXISTS (SELECT FROM postern.client AS c
                       WHERE c.realm_id = v_realm AND c.id = v_client AND 'ept:possession' = ANY (c.permissions)) THEN
        PERFORM postern.refuse(format('client_id %s does not hold "ept:possession"', postern.shown(client_id)),
            'Call admin.grant_permission(realm, client_id, ''gt:client_credentials'', ''ept:possession'') first.');
    END IF;
    -- What was proven by the former one ends: who knows the former code may not be who knows the new one.
    DELETE FROM postern.test_number AS n WHERE n.realm_id = v_realm AND n.phone = phone;
    INSERT INTO postern.test_number (realm_id, phone, client, expires_at, outcome, pending_code)
    VALUES (v_realm, phone, v_client, v_expires_at, v_outcome, code);
    PERFORM postern.admin_audit(v_realm, 'test_number_put', client => v_client,
                                detail => jsonb_build_object('phone', postern.masked_identifier(phone),
                                    'outcome', v_outcome, 'expires_at', v_expires_at));
    RETURN phone;
END
$$;
COMMENT ON FUNCTION admin.put_test_number IS
'Makes a number to which nothing is sent, for one client and at most 30 days (default 30). Returns the number.
outcome: code (default: as a real number, with the given code of 4 to 8 digits), pass (proven at once; for
possessionType none: to be asserted, without a key) or fail. Who knows the code proves the number: it is a password, and
no server keeps it in clear for longer than a second. Put again, everything that was proven by the former one ends.
Example: SELECT admin.put_test_number(''acme'', ''+12001004014'', ''acme-server'', ''code'', ''123406'');';

CREATE OR REPLACE FUNCTION admin.delete_test_number(realm text, phone text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid;
BEGIN
    DELETE FROM postern.test_number AS n WHERE n.realm_id = v_realm AND n.phone = phone
    RETURNING n.client INTO v_client;
    PERFORM postern.admin_removed(v_realm, v_client IS NOT NULL, 'test_number_deleted', client => v_client,
        detail => jsonb_build_object('phone', postern.masked_identifier(phone)),
        p_missing => format('phone %s is not a test number of this realm', postern.shown(phone)),
        p_hint => 'SELECT phone, client_id FROM admin.test_numbers WHERE realm = … lists them, masked.');
END
$$;
COMMENT ON FUNCTION admin.delete_test_number IS
'Makes a test number a number like any other again. Keys that were bound to it and proofs of it end.
Example: SELECT admin.delete_test_number(''acme'', ''+12001004014'');';

-- Erases what proofs and messages keep about an address or number that no user has any more.
CREATE OR REPLACE FUNCTION postern.erase_traces(p_realm uuid, p_kind text, p_key text) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_client uuid := '00000000-0000-0000-0000-000000000000';
BEGIN
    IF p_kind = 'phone' THEN
        DELETE FROM postern.device_request AS t WHERE t.realm_id = p_realm AND t.phone = p_key;
        PERFORM postern.end_phone_bindings(p_realm, p_key, 'erased');
        DELETE FROM postern.phone_identity AS i WHERE i.realm_id = p_realm AND i.phone = p_key;
    END IF;
    -- A request that no worker has resolved yet names its user by the hint alone. One client after another, as the
    -- index has them, also those that are gone.
    LOOP
        SELECT t.client INTO v_client FROM postern.device_request AS t
         WHERE t.realm_id = p_realm AND t.kind = 'approval' AND t.client > v_client
         ORDER BY t.realm_id, t.client, lower(t.hint COLLATE "C"), t.created_at LIMIT 1;
        EXIT WHEN NOT FOUND;
        UPDATE postern.device_request AS t SET hint = NULL, binding_message = NULL
         WHERE t.realm_id = p_realm AND t.kind = 'approval' AND t.client = v_client
           AND lower(t.hint COLLATE "C") = p_key;
    END LOOP;
    DELETE FROM postern.code_guard AS g WHERE g.realm_id = p_realm AND g.address_key = p_key;
    DELETE FROM postern.message_outbox AS m 
     WHERE m.realm_id = p_realm AND left(lower(m.recipient COLLATE "C"), 254) = p_key;
END
$$;
COMMENT ON FUNCTION postern.erase_traces IS
    'Removes the transactions, keys, proveId, hints, messages and wrong codes of an address or number';

CREATE OR REPLACE FUNCTION admin.erase_phone(realm text, phone text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    PERFORM postern.check_phone('phone', phone);
    PERFORM postern.erase_traces(v_realm, 'phone', phone);
    DELETE FROM postern.test_number AS n WHERE n.realm_id = v_realm AND n.phone = phone;
    PERFORM postern.admin_audit(v_realm, 'phone_erased');
END
$$;
COMMENT ON FUNCTION admin.erase_phone IS
'Erases what proofs of a phone number left: transactions, keys that prove it, its proveId, messages, wrong codes. A
trusted device stays one, without the number. Identifiers of users are removed with
admin.delete_identifier.
Example: SELECT admin.erase_phone(''acme'', ''+4366412345678'');';

CREATE OR REPLACE VIEW admin.possessions AS
SELECT r.slug AS realm, t.id AS correlation_id, t.kind, postern.state_of(t)::text AS state, t.reason AS codes,
       c.client_id, '···' || right(t.phone, 4) AS phone, t.created_at, t.expires_at, t.ended_at, t.sends, t.tries,
       t.device_id, t.is_test
  FROM postern.device_request AS t JOIN postern.realm AS r ON r.id = t.realm_id
  LEFT JOIN postern.client AS c ON c.realm_id = t.realm_id AND c.id = t.client
 WHERE t.kind <> 'approval';
COMMENT ON VIEW admin.possessions IS 'Proofs of phone numbers of the last day, without codes and links';
GRANT EXECUTE ON FUNCTION postern.state_of TO postern_admin;

CREATE OR REPLACE VIEW admin.phone_keys AS
SELECT r.slug AS realm, k.id, '···' || right(k.phone, 4) AS phone, k.phone_by AS bound_by, c.client_id,
       k.phone_at AS bound_at, k.used_at AS last_used_at, i.user_id, encode(k.thumbprint, 'hex') AS thumbprint
  FROM postern.device_key AS k JOIN postern.realm AS r ON r.id = k.realm_id
  LEFT JOIN postern.client AS c ON c.realm_id = k.realm_id AND c.id = k.phone_client
  LEFT JOIN postern.user_identifier AS i ON i.realm_id = k.realm_id AND i.proven_key = k.phone
                                        AND i.held_since <= k.phone_at
 WHERE k.phone IS NOT NULL;
COMMENT ON VIEW admin.phone_keys IS
    'Keys of devices that prove a phone number, and the user whose number it is: admin.delete_device ends one';

CREATE OR REPLACE VIEW admin.providers AS
SELECT r.slug AS realm, p.kind, p.url, p.mode, p.enabled
  FROM postern.signal_provider AS p JOIN postern.realm AS r ON r.id = p.realm_id;
COMMENT ON VIEW admin.providers IS 'Endpoints that are asked about phone numbers';

CREATE OR REPLACE VIEW admin.test_numbers AS
SELECT r.slug AS realm, '···' || right(n.phone, 4) AS phone, c.client_id, n.outcome, n.expires_at,
       CASE WHEN n.expires_at <= now() THEN 'ended' WHEN n.pending_code IS NOT NULL THEN 'pending'
            ELSE 'live' END AS state
  FROM postern.test_number AS n JOIN postern.realm AS r ON r.id = n.realm_id
  JOIN postern.client AS c ON c.realm_id = n.realm_id AND c.id = n.client;
COMMENT ON VIEW admin.test_numbers IS 'Numbers to which nothing is sent, masked and without their codes';

RESET ROLE;
