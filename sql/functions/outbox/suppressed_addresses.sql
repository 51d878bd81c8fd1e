-- Provisioning: addresses that are sent nothing. Requests never look here: what is suppressed is dropped from the
-- outbox.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.sweep_rule (table_name, condition) VALUES
    ('suppressed_address', 't.expires_at < now()'),
    ('mail_refusal', 't.last_at < now() - interval ''30 days''')
    ON CONFLICT (table_name) DO UPDATE SET condition = excluded.condition;

CREATE OR REPLACE FUNCTION admin.suppress_address(realm text, email text, reason text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    PERFORM postern.check_email('email', email);
    PERFORM postern.check_text('reason', reason, 200);
    INSERT INTO postern.suppressed_address AS s (realm_id, email, reason)
    VALUES (v_realm, email, reason)
        ON CONFLICT (realm_id, address_key) DO UPDATE
       SET reason = coalesce(excluded.reason, s.reason), is_automatic = false, expires_at = NULL;
    PERFORM postern.admin_audit(v_realm, 'address_suppressed',
        user_id => postern.find_user(v_realm, email),
        detail => jsonb_build_object('reason', reason));
END
$$;
COMMENT ON FUNCTION admin.suppress_address IS
'Sends nothing more to an address (ASCII letters in any case), be it a user''s or not, until admin.unsuppress_address;
mail that waits is dropped.
Requests for a code or a link get the same answer as before. Passkeys and sessions go on.
reason: for administrators, 1 to 200 characters; put again, NULL leaves it.
Example: SELECT admin.suppress_address(''acme'', ''ada@example.com'', ''complained on 3 May'');';

CREATE OR REPLACE FUNCTION admin.unsuppress_address(realm text, email text)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_live boolean;
BEGIN
    DELETE FROM postern.mail_refusal AS f WHERE f.realm_id = v_realm AND f.address_key = postern.address_key(email);
    DELETE FROM postern.suppressed_address AS s
     WHERE s.realm_id = v_realm AND s.address_key = postern.address_key(email)
    RETURNING coalesce(s.expires_at > now(), true) INTO v_live;
    IF NOT FOUND OR NOT v_live THEN
        RETURN false;
    END IF;
    PERFORM postern.admin_audit(v_realm, 'address_unsuppressed',
        user_id => postern.find_user(v_realm, email));
    RETURN true;
END
$$;
COMMENT ON FUNCTION admin.unsuppress_address IS
'Sends to an address again and forgets how often it was refused; false when it was not suppressed. Mail that was dropped
does not come back.
Example: SELECT admin.unsuppress_address(''acme'', ''ada@example.com'');';

CREATE OR REPLACE VIEW admin.suppressed_addresses AS
SELECT r.slug AS realm, s.email, s.reason, s.is_automatic, s.created_at, s.expires_at
  FROM postern.suppressed_address AS s JOIN postern.realm AS r ON r.id = s.realm_id
 WHERE coalesce(s.expires_at > now(), true);
COMMENT ON VIEW admin.suppressed_addresses IS
    'Addresses that get no mail; is_automatic: for a week, after refusals of the mail server';

RESET ROLE;
