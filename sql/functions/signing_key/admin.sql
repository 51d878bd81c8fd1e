-- Provisioning: signing keys.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.rotate_signing_key(realm text, alg text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_now text := postern.signing_alg(v_realm);
    v_alg text := coalesce(alg, v_now, 'ES256');
BEGIN
    PERFORM postern.check_choice('alg', v_alg, 'ES256', 'RS256', 'EdDSA');
    -- A key of an algorithm that only clients ask for stays theirs. The RS256 key of a realm with pages stays beside
    -- the realm's own.
    PERFORM postern.request_signing_key(v_realm, v_alg, v_alg = coalesce(v_now, v_alg)
        OR NOT EXISTS (SELECT FROM postern.client AS c
                        WHERE c.realm_id = v_realm AND c.settings ->> 'signing_alg' = v_alg)
           AND NOT (v_alg = 'RS256' AND EXISTS (SELECT FROM postern.realm AS r
                                                 WHERE r.id = v_realm AND r.hosted_enabled)));
    PERFORM postern.tell_when_signing(v_realm, v_alg, 'the realm', p_is_new => true);
    PERFORM postern.admin_audit(v_realm, 'signing_key_rotation_requested', detail => jsonb_build_object('alg', v_alg));
END
$$;
COMMENT ON FUNCTION admin.rotate_signing_key IS
'Asks for a new signing key; a running server publishes it within 5 seconds, signs with it 10 minutes later, and
withdraws the former one when
its last token has expired. alg: ES256, RS256 or EdDSA; default is the realm''s present one. Another algorithm becomes
the realm''s, unless
clients ask for it themselves (admin.put_client … signing_alg): then it is theirs. RS256 stays beside the realm''s own
where there are pages; admin.put_realm(slug, signing_alg) makes it the realm''s. admin.signing_keys shows each key''s
state.
At once, or without a running server: postern keys rotate --realm R [--alg A] --now.
Example: SELECT admin.rotate_signing_key(''acme'', ''ES256'');';

CREATE OR REPLACE FUNCTION postern.request_signing_key(p_realm uuid, p_alg text, p_for_realm boolean) RETURNS void
LANGUAGE sql
AS $$
    INSERT INTO postern.signing_key_request AS q (realm_id, alg, for_realm) VALUES (p_realm, p_alg, p_for_realm)
        ON CONFLICT (realm_id, alg) DO UPDATE SET for_realm = q.for_realm OR excluded.for_realm
$$;
COMMENT ON FUNCTION postern.request_signing_key IS 'Records that a key is wanted';

-- A new key is published first, so that receivers know it when it signs.
CREATE OR REPLACE FUNCTION postern.tell_when_signing(
    p_realm uuid, p_alg text, p_whose text, p_is_new boolean DEFAULT false)
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_from timestamptz := (SELECT min(k.activates_at) FROM postern.signing_key AS k
                            WHERE k.realm_id = p_realm AND k.alg = p_alg AND k.retires_at IS NULL AND NOT p_is_new);
BEGIN
    v_from := coalesce(v_from, now() + interval '10 minutes');
    IF v_from > now() THEN
        RAISE NOTICE '% signs for % from about % on, and until then the key that signs now',
            p_alg, p_whose, to_char(v_from AT TIME ZONE 'UTC', 'HH24:MI "UTC"')
            USING HINT = 'A running server publishes the key within 5 seconds and signs 10 minutes later; '
                         'admin.signing_keys shows it. At once: postern keys rotate --realm R --alg A --now.';
    END IF;
END
$$;
COMMENT ON FUNCTION postern.tell_when_signing IS 'Tells the administrator when a key that was asked for will sign';

CREATE OR REPLACE FUNCTION admin.retire_signing_key(realm text, kid text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_key record;
BEGIN
    SELECT k.alg, k.activates_at, k.for_realm, k.retires_at INTO v_key FROM postern.signing_key AS k
     WHERE k.realm_id = v_realm AND k.kid = kid;
    IF NOT FOUND THEN
        PERFORM postern.refuse(format('kid %s is not a signing key of this realm', postern.shown(kid)),
                               'SELECT kid, alg, state FROM admin.signing_keys shows them.');
    END IF;
    IF v_key.retires_at IS NULL OR NOT EXISTS (SELECT FROM postern.signing_key AS k
            WHERE k.realm_id = v_realm AND k.kid <> kid AND k.activates_at <= now()
              AND k.activates_at >= v_key.activates_at AND k.retires_at IS NULL) THEN
        PERFORM postern.refuse(format('kid %s still signs', postern.shown(kid)),
                               'Switch to another key first: postern keys rotate --realm R --now.');
    END IF;
    -- The key may be compromised, and its holder could forge ID tokens. So it no longer verifies ID-token hints.
    UPDATE postern.signing_key AS k SET retires_at = least(k.retires_at, now()), withdrawn = true
     WHERE k.realm_id = v_realm AND k.kid = kid;
    PERFORM postern.admin_audit(v_realm, 'signing_key_retired', detail => jsonb_build_object('kid', kid));
END
$$;
COMMENT ON FUNCTION admin.retire_signing_key IS
'Withdraws a replaced signing key at once, for a key that may be known to others: its JWTs stop verifying, and its ID
tokens vouch for no
known device any more. Otherwise it goes by itself.
Example: SELECT admin.retire_signing_key(''acme'', ''Zk1o…'');';

CREATE OR REPLACE VIEW admin.signing_keys AS
SELECT r.slug AS realm, k.kid, k.alg, k.public_jwk, k.created_at, k.activates_at, k.retires_at,
       CASE WHEN k.retires_at <= now() THEN 'retired' WHEN k.activates_at > now() THEN 'published'
            WHEN EXISTS (SELECT FROM postern.signing_key AS n
                          WHERE n.realm_id = k.realm_id AND n.kid <> k.kid AND n.activates_at <= now()
                            AND n.activates_at >= k.activates_at
                            AND k.retires_at IS NOT NULL) THEN 'retiring'
            ELSE 'active' END AS state,
       k.for_realm
  FROM postern.signing_key AS k JOIN postern.realm AS r ON r.id = k.realm_id;
COMMENT ON VIEW admin.signing_keys IS
    'Public halves of the signing keys. published: in the JWKS, signs from activates_at; active; retiring: replaced, '
    'published until retires_at; retired';

RESET ROLE;
