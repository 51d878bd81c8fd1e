-- The life of a signing key: published first, signing after the overlap, withdrawn when the last token it signed has
-- expired. The realm's own key is the newest active one made for the realm. Other keys serve clients that ask for
-- another algorithm.
SET LOCAL ROLE postern_owner;

-- Twice as long as a JWKS may be cached (300 s), so that a client that honours this limit has seen a key before it
-- signs.
CREATE OR REPLACE FUNCTION postern.signing_key_overlap() RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN interval '10 minutes';
COMMENT ON FUNCTION postern.signing_key_overlap() IS 'How long a signing key is published before it signs';

-- The longest life of a token (60 minutes) and five minutes for clocks that differ.
CREATE OR REPLACE FUNCTION postern.signing_key_afterlife() RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN interval '65 minutes';
COMMENT ON FUNCTION postern.signing_key_afterlife() IS 'How long a signing key stays published after its successor signs';

CREATE OR REPLACE FUNCTION postern.signing_key_document(k postern.signing_key) RETURNS jsonb
LANGUAGE sql STABLE
AS $$
    SELECT jsonb_build_object('kid', k.kid, 'alg', k.alg, 'public_jwk', k.public_jwk, 'sealed_private', encode(k.sealed_private, 'hex'),
                              'sealed_data_key', (SELECT encode(d.sealed, 'hex') FROM postern.data_key AS d
                                                   WHERE d.realm_id = k.realm_id AND d.id = k.data_key),
                              'for_realm', k.for_realm, 'activates_at', extract(epoch FROM k.activates_at), 'retires_at', extract(epoch FROM k.retires_at))
$$;
COMMENT ON FUNCTION postern.signing_key_document(postern.signing_key) IS 'A signing key as servers read it';

DROP FUNCTION IF EXISTS postern.add_signing_key(uuid, text, text, jsonb, bytea);
-- The first key of a realm, or of a client's algorithm without a key. When several servers try at once, one inserts,
-- and all get that key.
CREATE OR REPLACE FUNCTION postern.add_signing_key(p_realm uuid, p_kid text, p_alg text, p_public_jwk jsonb, p_sealed bytea, p_for_realm boolean)
RETURNS jsonb
LANGUAGE plpgsql
AS $$
DECLARE
    v_key jsonb;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    PERFORM pg_advisory_xact_lock(hashtextextended('postern.signing_key:' || p_realm, 0));
    INSERT INTO postern.signing_key (realm_id, kid, alg, public_jwk, sealed_private, for_realm)
    SELECT p_realm, p_kid, p_alg, p_public_jwk, p_sealed, p_for_realm
     WHERE NOT EXISTS (SELECT FROM postern.signing_key AS k
                        WHERE k.realm_id = p_realm AND (CASE WHEN p_for_realm THEN k.for_realm ELSE k.alg = p_alg END) AND k.activates_at <= now()
                          AND (k.retires_at IS NULL OR k.retires_at > now()));
    SELECT postern.signing_key_document(k) INTO v_key
      FROM postern.signing_key AS k
     WHERE k.realm_id = p_realm AND (CASE WHEN p_for_realm THEN k.for_realm ELSE k.alg = p_alg END) AND k.activates_at <= now()
       AND (k.retires_at IS NULL OR k.retires_at > now())
     ORDER BY k.activates_at DESC, k.kid LIMIT 1;
    RETURN v_key;
END
$$;
COMMENT ON FUNCTION postern.add_signing_key(uuid, text, text, jsonb, bytea, boolean) IS 'Stores the key unless one is in force; returns the one that is';

-- The algorithm of the key that signs for the realm, or soon will: the latest made for it.
CREATE OR REPLACE FUNCTION postern.signing_alg(p_realm uuid) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT k.alg FROM postern.signing_key AS k
     WHERE k.realm_id = p_realm AND k.for_realm AND (k.retires_at IS NULL OR k.retires_at > now()) ORDER BY k.activates_at DESC, k.kid LIMIT 1
$$;
COMMENT ON FUNCTION postern.signing_alg(uuid) IS 'The algorithm of the realm''s latest key; NULL before there is one';

-- Publishes the next key; it signs after the overlap, or at once with p_now. While a next key of the algorithm is
-- waiting, the new one is dropped, and p_now lets the waiting one sign. p_request: carries out an administrator's
-- request, and does nothing when another server has done so. Returns the document of the next key, or NULL when there
-- was nothing to do.
CREATE OR REPLACE FUNCTION postern.rotate_signing_key(p_realm uuid, p_kid text, p_alg text, p_public_jwk jsonb, p_sealed bytea,
    p_now boolean, p_for_realm boolean, p_request boolean, p_source text)
RETURNS jsonb
LANGUAGE plpgsql
AS $$
DECLARE
    v_for_realm boolean := p_for_realm;
    v_next record;
    v_at timestamptz;
    v_key jsonb;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    PERFORM pg_advisory_xact_lock(hashtextextended('postern.signing_key:' || p_realm, 0));
    IF p_request THEN
        DELETE FROM postern.signing_key_request AS q WHERE q.realm_id = p_realm AND q.alg = p_alg RETURNING q.for_realm INTO v_for_realm;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    v_for_realm := v_for_realm OR p_alg = coalesce(postern.signing_alg(p_realm), '');
    SELECT k.kid, k.for_realm INTO v_next FROM postern.signing_key AS k
     WHERE k.realm_id = p_realm AND k.alg = p_alg AND k.activates_at > now() AND (k.retires_at IS NULL OR k.retires_at > now())
     ORDER BY k.activates_at DESC LIMIT 1;
    -- No JWKS of a realm without keys can be cached, so the first key signs at once.
    v_at := CASE WHEN p_now OR NOT EXISTS (SELECT FROM postern.signing_key AS k WHERE k.realm_id = p_realm) THEN now()
                 ELSE now() + postern.signing_key_overlap() END;
    IF v_next.kid IS NULL THEN
        INSERT INTO postern.signing_key (realm_id, kid, alg, public_jwk, sealed_private, activates_at, for_realm)
        VALUES (p_realm, p_kid, p_alg, p_public_jwk, p_sealed, v_at, v_for_realm);
    ELSE
        UPDATE postern.signing_key AS k
           SET activates_at = CASE WHEN p_now THEN now() ELSE k.activates_at END, for_realm = k.for_realm OR v_for_realm
         WHERE k.realm_id = p_realm AND k.kid = v_next.kid
        RETURNING k.activates_at INTO v_at;
    END IF;
    -- What the key replaces: the same algorithm, and with a key for the realm the realm's former one, unless a client asks for it.
    UPDATE postern.signing_key AS k
       SET retires_at = least(k.retires_at, v_at + postern.signing_key_afterlife())
     WHERE k.realm_id = p_realm AND k.kid <> coalesce(v_next.kid, p_kid) AND (k.retires_at IS NULL OR k.retires_at > v_at + postern.signing_key_afterlife())
       AND (k.alg = p_alg
            OR v_for_realm AND NOT EXISTS (SELECT FROM postern.client AS c WHERE c.realm_id = p_realm AND c.signing_alg = k.alg));
    SELECT postern.signing_key_document(k) INTO v_key FROM postern.signing_key AS k WHERE k.realm_id = p_realm AND k.kid = coalesce(v_next.kid, p_kid);
    INSERT INTO postern.audit_event (realm_id, event, source, detail)
    VALUES (p_realm, CASE WHEN v_next.kid IS NULL THEN 'signing_key_published' ELSE 'signing_key_rotation_repeated' END, p_source,
            jsonb_build_object('kid', coalesce(v_next.kid, p_kid), 'alg', p_alg, 'for_realm', v_for_realm, 'activates_at', v_at));
    RETURN v_key;
END
$$;
COMMENT ON FUNCTION postern.rotate_signing_key(uuid, text, text, jsonb, bytea, boolean, boolean, boolean, text) IS
    'Publishes the next signing key of an algorithm, once, when several servers try';

-- SECURITY DEFINER: what was asked for in any realm.
CREATE OR REPLACE FUNCTION postern.signing_key_requests()
RETURNS TABLE (realm_id uuid, alg text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT q.realm_id, q.alg FROM postern.signing_key_request AS q JOIN postern.realm AS r ON r.id = q.realm_id
     WHERE r.enabled ORDER BY q.requested_at LIMIT 10
$$;
COMMENT ON FUNCTION postern.signing_key_requests() IS 'Rotations waiting for a server';

DROP FUNCTION IF EXISTS admin.rotate_signing_key(text, text);
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
    -- A key of an algorithm that only clients ask for stays theirs.
    PERFORM postern.request_signing_key(v_realm, v_alg, v_alg = coalesce(v_now, v_alg)
        OR NOT EXISTS (SELECT FROM postern.client AS c WHERE c.realm_id = v_realm AND c.signing_alg = v_alg));
    PERFORM postern.admin_audit(v_realm, 'signing_key_rotation_requested', detail => jsonb_build_object('alg', v_alg));
END
$$;
COMMENT ON FUNCTION admin.rotate_signing_key(text, text) IS
'Asks for a new signing key; a running server publishes it within 5 seconds, signs with it 10 minutes later, and withdraws the former one when
its last token has expired. alg: ES256, RS256 or EdDSA; default is the realm''s present one. Another algorithm becomes the realm''s, unless
clients ask for it themselves (admin.put_client … signing_alg): then it is theirs. admin.signing_keys shows the state of each key.
At once, or without a running server: postern keys rotate --realm R [--alg A] --now.
Example: SELECT admin.rotate_signing_key(''acme'', ''ES256'');';

CREATE OR REPLACE FUNCTION postern.request_signing_key(p_realm uuid, p_alg text, p_for_realm boolean) RETURNS void
LANGUAGE sql
AS $$
    INSERT INTO postern.signing_key_request AS q (realm_id, alg, for_realm) VALUES (p_realm, p_alg, p_for_realm)
        ON CONFLICT (realm_id, alg) DO UPDATE SET for_realm = q.for_realm OR excluded.for_realm
$$;
COMMENT ON FUNCTION postern.request_signing_key(uuid, text, boolean) IS 'Records that a key is wanted';

CREATE OR REPLACE FUNCTION admin.retire_signing_key(realm text, kid text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_key record;
BEGIN
    SELECT k.alg, k.activates_at, k.for_realm, k.retires_at INTO v_key FROM postern.signing_key AS k WHERE k.realm_id = v_realm AND k.kid = kid;
    IF NOT FOUND THEN
        PERFORM postern.refuse(format('kid %s is not a signing key of this realm', postern.shown(kid)), 'SELECT kid, alg, state FROM admin.signing_keys shows them.');
    END IF;
    IF v_key.retires_at IS NULL OR NOT EXISTS (SELECT FROM postern.signing_key AS k
            WHERE k.realm_id = v_realm AND k.kid <> kid AND k.activates_at <= now() AND k.activates_at >= v_key.activates_at AND k.retires_at IS NULL) THEN
        PERFORM postern.refuse(format('kid %s still signs', postern.shown(kid)), 'Switch to another key first: postern keys rotate --realm R --now.');
    END IF;
    -- The key may be compromised, and its holder could forge ID tokens. So it no longer verifies ID-token hints.
    UPDATE postern.signing_key AS k SET retires_at = least(k.retires_at, now()), withdrawn = true
     WHERE k.realm_id = v_realm AND k.kid = kid;
    PERFORM postern.admin_audit(v_realm, 'signing_key_retired', detail => jsonb_build_object('kid', kid));
END
$$;
COMMENT ON FUNCTION admin.retire_signing_key(text, text) IS
'Withdraws a replaced signing key at once, for a key that may be known to others: its JWTs stop verifying, and its ID tokens vouch for no
known device any more. Otherwise it goes by itself.
Example: SELECT admin.retire_signing_key(''acme'', ''Zk1o…'');';

CREATE OR REPLACE VIEW admin.signing_keys AS
SELECT r.slug AS realm, k.kid, k.alg, k.public_jwk, k.created_at, k.activates_at, k.retires_at,
       CASE WHEN k.retires_at <= now() THEN 'retired' WHEN k.activates_at > now() THEN 'published'
            WHEN EXISTS (SELECT FROM postern.signing_key AS n
                          WHERE n.realm_id = k.realm_id AND n.kid <> k.kid AND n.activates_at <= now() AND n.activates_at >= k.activates_at
                            AND k.retires_at IS NOT NULL) THEN 'retiring'
            ELSE 'active' END AS state,
       k.for_realm
  FROM postern.signing_key AS k JOIN postern.realm AS r ON r.id = k.realm_id;
COMMENT ON VIEW admin.signing_keys IS
    'Public halves of the signing keys. published: in the JWKS, signs from activates_at; active; retiring: replaced, published until retires_at; retired';
REVOKE ALL ON admin.signing_keys FROM PUBLIC;
GRANT SELECT ON admin.signing_keys TO postern_admin;

REVOKE ALL ON FUNCTION postern.signing_key_overlap(), postern.signing_key_afterlife(), postern.signing_key_document(postern.signing_key), postern.signing_alg(uuid),
    postern.add_signing_key(uuid, text, text, jsonb, bytea, boolean), postern.request_signing_key(uuid, text, boolean), postern.signing_key_requests(),
    postern.rotate_signing_key(uuid, text, text, jsonb, bytea, boolean, boolean, boolean, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION postern.signing_key_overlap(), postern.signing_key_afterlife(), postern.signing_key_document(postern.signing_key), postern.signing_alg(uuid),
    postern.add_signing_key(uuid, text, text, jsonb, bytea, boolean), postern.signing_key_requests(),
    postern.rotate_signing_key(uuid, text, text, jsonb, bytea, boolean, boolean, boolean, text) TO postern_app;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA admin FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA admin TO postern_admin;

RESET ROLE;
