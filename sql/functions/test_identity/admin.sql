-- Provisioning: test identities (docs/decisions/0015).
SET LOCAL ROLE postern_owner;

-- A fixed code can be guessed at for weeks. So it has eight digits at least, and common sequences are refused.
CREATE OR REPLACE FUNCTION postern.is_test_code(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN candidate COLLATE "C" ~ '\A[0-9]{8,12}\Z'
    AND (SELECT count(DISTINCT digit) FROM regexp_split_to_table(candidate, '') AS digit) >= 4
    AND position(candidate IN '012345678901234567890') = 0 AND position(candidate IN '098765432109876543210') = 0;
COMMENT ON FUNCTION postern.is_test_code IS '8 to 12 digits, four different ones at least, and no run such as 12345678';

-- Eight digits from 122 random bits.
CREATE OR REPLACE FUNCTION postern.new_test_code() RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    v_code text;
BEGIN
    LOOP
        v_code := lpad((('x' || left(replace(gen_random_uuid()::text, '-', ''),
                                     12))::bit(48)::bigint % 100000000)::text, 8, '0');
        EXIT WHEN postern.is_test_code(v_code);
    END LOOP;
    RETURN v_code;
END
$$;
COMMENT ON FUNCTION postern.new_test_code IS 'A random code for a test identity';

CREATE OR REPLACE FUNCTION admin.put_test_identity(
    realm text, email text, client_id text, code text DEFAULT NULL, expires_at timestamptz DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
    v_user uuid;
    v_old record;
    v_expires_at timestamptz;
    v_code text := code;
BEGIN
    PERFORM postern.check_email('email', email);
    IF code IS NOT NULL AND NOT postern.is_test_code(code) THEN
        PERFORM postern.refuse('code is not fit for a test identity',
            'Allowed are 8 to 12 digits, at least four different ones, and no run such as 12345678; NULL draws a code '
            'at random and returns it.');
    END IF;
    v_user := postern.find_user(v_realm, email);
    IF v_user IS NOT NULL AND NOT postern.is_test_identity(v_user) THEN
        PERFORM postern.refuse(format('email %s is an ordinary user', postern.shown(email)),
            'A test identity has an address of its own that no user of the realm has, such as review@example.com.');
    END IF;
    SELECT t.client, t.expires_at, t.ended_at INTO v_old
      FROM postern.test_identity AS t WHERE t.realm_id = v_realm AND t.user_id = v_user;
    v_expires_at := coalesce(expires_at, CASE WHEN v_old.expires_at > now() THEN v_old.expires_at END,
                             now() + interval '30 days');
    IF v_expires_at <= now() OR v_expires_at > now() + interval '30 days' THEN
        PERFORM postern.refuse(format('expires_at %s is out of range', postern.shown(expires_at::text)),
                               'Allowed is a time within the next 30 days; NULL is the latest.');
    END IF;
    IF v_user IS NULL THEN
        -- Requests that strangers made for this address do not belong to the test identity.
        DELETE FROM postern.sign_in_request AS a
         WHERE a.realm_id = v_realm AND a.address_key = postern.address_key(email);
        DELETE FROM postern.login_code AS c WHERE c.realm_id = v_realm AND c.address_key = postern.address_key(email);
        INSERT INTO postern.user_account (realm_id, id, email, email_verified)
        VALUES (v_realm, postern.test_identity_id(), email, false)
        RETURNING id INTO v_user;
    ELSE
        IF v_old.client <> v_client THEN
            PERFORM postern.end_access(v_realm, v_user);
            PERFORM postern.admin_audit(v_realm, 'user_signed_out', user_id => v_user,
                                        detail => jsonb_build_object('reason', 'client_changed'));
        END IF;
        UPDATE postern.user_account AS u SET enabled = true
         WHERE u.realm_id = v_realm AND u.id = v_user AND NOT u.enabled AND v_old.ended_at IS NOT NULL;
    END IF;
    IF v_code IS NULL AND (v_old.client IS NULL OR v_old.ended_at IS NOT NULL) THEN
        v_code := postern.new_test_code();
    END IF;
    INSERT INTO postern.test_identity AS t (realm_id, user_id, client, expires_at, pending_code)
    VALUES (v_realm, v_user, v_client, v_expires_at, v_code)
        ON CONFLICT (realm_id, user_id) DO UPDATE
       SET client = v_client, put_at = now(), expires_at = v_expires_at, ended_at = NULL,
           pending_code = coalesce(v_code, t.pending_code);
    -- A code that is replaced ends here; one that is kept follows the identity.
    UPDATE postern.login_code AS c SET client = v_client, expires_at = CASE WHEN v_code IS NULL THEN v_expires_at
        ELSE now() END
     WHERE c.realm_id = v_realm AND c.address_key = postern.address_key(email) AND c.is_test;
    PERFORM postern.admin_audit(v_realm, CASE WHEN v_old.client IS NULL THEN 'test_identity_created'
                                ELSE 'test_identity_updated' END, v_client, v_user,
        jsonb_build_object('expires_at', v_expires_at, 'new_code', v_code IS NOT NULL));
    RETURN CASE WHEN code IS NULL THEN v_code END;
END
$$;
COMMENT ON FUNCTION admin.put_test_identity IS
'Creates or updates a test identity, an account for app-store review: a fixed code in place of a mailbox, for one
client, for 30 days at most.
code: 8 to 12 digits, hard to guess; NULL draws one (returned, shown once) for a new or ended identity and keeps that of
a living one. It works as
soon as a running server has keyed it (a second or so), any number of times. expires_at: NULL is 30 days from now, or
leaves a living one as it is.
The address must not belong to a user; nothing is ever sent there. Its tokens carry test_identity: true. Every sign-in
is in the audit log.
Example: SELECT admin.put_test_identity(''acme'', ''review@acme.example'', ''acme-app'', ''41830572'',
    now() + interval ''14 days'');';

CREATE OR REPLACE FUNCTION admin.delete_test_identity(realm text, email text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_user uuid := postern.admin_user(v_realm, email);
BEGIN
    IF NOT postern.is_test_identity(v_user) THEN
        PERFORM postern.refuse(format('email %s is an ordinary user', postern.shown(email)),
                               'SELECT email FROM admin.test_identities WHERE realm = … lists the test identities.');
    END IF;
    DELETE FROM postern.user_account AS u WHERE u.realm_id = v_realm AND u.id = v_user;
    PERFORM postern.admin_audit(v_realm, 'test_identity_deleted', user_id => v_user);
END
$$;
COMMENT ON FUNCTION admin.delete_test_identity IS
'Deletes a test identity with its user and sessions; its code and tokens die at once.
Example: SELECT admin.delete_test_identity(''acme'', ''review@acme.example'');';

CREATE OR REPLACE VIEW admin.test_identities AS
SELECT r.slug AS realm, u.email, c.client_id, t.user_id, t.created_at, t.put_at, t.expires_at,
       CASE WHEN t.expires_at <= now() THEN 'ended' WHEN t.pending_code IS NOT NULL THEN 'pending' WHEN NOT u.enabled
           THEN 'disabled' ELSE 'live' END AS state
  FROM postern.test_identity AS t JOIN postern.realm AS r ON r.id = t.realm_id
  JOIN postern.user_account AS u ON u.realm_id = t.realm_id AND u.id = t.user_id
  JOIN postern.client AS c ON c.realm_id = t.realm_id AND c.id = t.client;
COMMENT ON VIEW admin.test_identities IS
    'Accounts for app-store review, without their codes; pending: no server has keyed the code yet';

-- For realm_config.
CREATE OR REPLACE FUNCTION postern.test_code_keys_config(p_realm uuid) RETURNS jsonb
LANGUAGE sql STABLE
RETURN (SELECT coalesce(jsonb_agg(jsonb_build_object('id', d.id, 'sealed', encode(d.sealed, 'hex'))), '[]')
          FROM postern.data_key AS d WHERE d.realm_id = p_realm AND d.purpose = 'test-code');
COMMENT ON FUNCTION postern.test_code_keys_config IS
    'What the codes of test identities are compared under, for realm_config';
GRANT EXECUTE ON FUNCTION postern.test_code_keys_config TO postern_app;

RESET ROLE;
