-- Signing keys follow one another: published first, signing after the overlap, gone when the last token of theirs has
-- expired.
-- The realm's own key is the newest active one made for the realm; beside it stand keys for clients that ask for an
-- algorithm.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.sweep_rule (table_name, condition) VALUES
    ('signing_key', 't.retires_at < now() - interval ''1 day''')
    ON CONFLICT (table_name) DO UPDATE SET condition = excluded.condition;

-- Twice as long as a JWKS may be cached (300 s), so that a client that honours this limit has seen a key before it
-- signs.
CREATE OR REPLACE FUNCTION postern.signing_key_overlap() RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN interval '10 minutes';
COMMENT ON FUNCTION postern.signing_key_overlap IS 'How long a signing key is published before it signs';
GRANT EXECUTE ON FUNCTION postern.signing_key_overlap TO postern_app;

-- The longest life of a token (60 minutes) and five minutes for clocks that differ.
CREATE OR REPLACE FUNCTION postern.signing_key_afterlife() RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN interval '65 minutes';
COMMENT ON FUNCTION postern.signing_key_afterlife IS 'How long a signing key stays published after its successor signs';
GRANT EXECUTE ON FUNCTION postern.signing_key_afterlife TO postern_app;

CREATE OR REPLACE FUNCTION postern.signing_key_document(k postern.signing_key) RETURNS jsonb
LANGUAGE sql STABLE
AS $$
    SELECT jsonb_build_object('kid', k.kid, 'alg', k.alg, 'public_jwk', k.public_jwk,
                              'sealed_private', encode(k.sealed_private, 'hex'),
                              'sealed_data_key', (SELECT encode(d.sealed, 'hex') FROM postern.data_key AS d
                                                   WHERE d.realm_id = k.realm_id AND d.id = k.data_key),
                              'for_realm', k.for_realm, 'activates_at', extract(epoch FROM k.activates_at),
                                  'retires_at', extract(epoch FROM k.retires_at))
$$;
COMMENT ON FUNCTION postern.signing_key_document IS 'A signing key as servers read it';
GRANT EXECUTE ON FUNCTION postern.signing_key_document TO postern_app;

-- The first key of a realm, or of a client's algorithm without a key. When several servers try at once, one inserts,
-- and all get that key.
CREATE OR REPLACE FUNCTION postern.add_signing_key(
    p_realm uuid, p_kid text, p_alg text, p_public_jwk jsonb, p_sealed bytea, p_for_realm boolean)
RETURNS jsonb
LANGUAGE plpgsql
AS $$
DECLARE
    v_key jsonb;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    PERFORM pg_advisory_xact_lock(postern.lock_of_signing_keys(p_realm));
    INSERT INTO postern.signing_key (realm_id, kid, alg, public_jwk, sealed_private, for_realm)
    SELECT p_realm, p_kid, p_alg, p_public_jwk, p_sealed, p_for_realm
     WHERE NOT EXISTS (SELECT FROM postern.signing_key AS k
                        WHERE k.realm_id = p_realm AND (CASE WHEN p_for_realm THEN k.for_realm ELSE k.alg = p_alg END)
                          AND k.activates_at <= now()
                          AND (k.retires_at IS NULL OR k.retires_at > now()));
    SELECT postern.signing_key_document(k) INTO v_key
      FROM postern.signing_key AS k
     WHERE k.realm_id = p_realm AND (CASE WHEN p_for_realm THEN k.for_realm ELSE k.alg = p_alg END)
       AND k.activates_at <= now()
       AND (k.retires_at IS NULL OR k.retires_at > now())
     ORDER BY k.activates_at DESC, k.kid LIMIT 1;
    RETURN v_key;
END
$$;
COMMENT ON FUNCTION postern.add_signing_key IS 'Stores the key unless one is in force; returns the one that is';
GRANT EXECUTE ON FUNCTION postern.add_signing_key TO postern_app;

-- The algorithm of the key that signs for the realm, or soon will: the latest made for it.
CREATE OR REPLACE FUNCTION postern.signing_alg(p_realm uuid) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT k.alg FROM postern.signing_key AS k
     WHERE k.realm_id = p_realm AND k.for_realm AND (k.retires_at IS NULL OR k.retires_at > now())
         ORDER BY k.activates_at DESC, k.kid LIMIT 1
$$;
COMMENT ON FUNCTION postern.signing_alg IS 'The algorithm of the realm''s latest key; NULL before there is one';
GRANT EXECUTE ON FUNCTION postern.signing_alg TO postern_app;

-- Publishes the next key; it signs after the overlap, or at once with p_now. While a next key of the algorithm is
-- waiting, the new one is dropped, and p_now lets the waiting one sign. p_request: carries out an administrator's
-- request, and does nothing when another server has done so. Returns the document of the next key, or NULL when there
-- was nothing to do.
CREATE OR REPLACE FUNCTION postern.rotate_signing_key(
    p_realm uuid, p_kid text, p_alg text, p_public_jwk jsonb, p_sealed bytea, p_now boolean, p_for_realm boolean,
    p_request boolean, p_source text)
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
    PERFORM pg_advisory_xact_lock(postern.lock_of_signing_keys(p_realm));
    IF p_request THEN
        DELETE FROM postern.signing_key_request AS q WHERE q.realm_id = p_realm AND q.alg = p_alg
        RETURNING q.for_realm INTO v_for_realm;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    v_for_realm := v_for_realm OR p_alg = coalesce(postern.signing_alg(p_realm), '');
    SELECT k.kid, k.for_realm INTO v_next FROM postern.signing_key AS k
     WHERE k.realm_id = p_realm AND k.alg = p_alg AND k.activates_at > now()
       AND (k.retires_at IS NULL OR k.retires_at > now())
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
    -- What the key replaces: the same algorithm, and with a key for the realm the realm's former one, unless a client
    -- asks for it.
    UPDATE postern.signing_key AS k
       SET retires_at = least(k.retires_at, v_at + postern.signing_key_afterlife())
     WHERE k.realm_id = p_realm AND k.kid <> coalesce(v_next.kid, p_kid)
       AND (k.retires_at IS NULL OR k.retires_at > v_at + postern.signing_key_afterlife())
       AND (k.alg = p_alg
            OR v_for_realm AND NOT EXISTS (SELECT FROM postern.client AS c WHERE c.realm_id = p_realm
                                           AND c.settings ->> 'signing_alg' = k.alg));
    SELECT postern.signing_key_document(k) INTO v_key
      FROM postern.signing_key AS k WHERE k.realm_id = p_realm AND k.kid = coalesce(v_next.kid, p_kid);
    INSERT INTO postern.audit_event (realm_id, event, source, detail)
    VALUES (p_realm, CASE WHEN v_next.kid IS NULL THEN 'signing_key_published' ELSE 'signing_key_rotation_repeated' END,
            p_source, jsonb_build_object('kid', coalesce(v_next.kid, p_kid), 'alg', p_alg, 'for_realm', v_for_realm,
                               'activates_at', v_at));
    RETURN v_key;
END
$$;
COMMENT ON FUNCTION postern.rotate_signing_key IS
    'Publishes the next signing key of an algorithm, once, when several servers try';
GRANT EXECUTE ON FUNCTION postern.rotate_signing_key TO postern_app;

-- SECURITY DEFINER: what was asked for in any realm.
CREATE OR REPLACE FUNCTION postern.signing_key_requests()
RETURNS TABLE (realm_id uuid, alg text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT q.realm_id, q.alg FROM postern.signing_key_request AS q JOIN postern.realm AS r ON r.id = q.realm_id
     WHERE r.enabled AND r.id <> ALL ((SELECT postern.unserved_realms())::uuid[])
     ORDER BY q.requested_at LIMIT 10
$$;
COMMENT ON FUNCTION postern.signing_key_requests IS 'Rotations waiting for a server';
GRANT EXECUTE ON FUNCTION postern.signing_key_requests TO postern_app;

-- For realm_config.
CREATE OR REPLACE FUNCTION postern.signing_keys_config(p_realm uuid) RETURNS jsonb
LANGUAGE sql STABLE
RETURN (SELECT coalesce(jsonb_agg(postern.signing_key_document(k) ORDER BY k.activates_at, k.kid), '[]')
          FROM postern.signing_key AS k
         WHERE k.realm_id = p_realm AND (k.retires_at IS NULL OR k.retires_at > now()));
COMMENT ON FUNCTION postern.signing_keys_config IS
    'The signing keys of a realm that are in force or soon will be, for realm_config';
GRANT EXECUTE ON FUNCTION postern.signing_keys_config TO postern_app;

-- For realm_config. Public halves only, of retired keys too.
CREATE OR REPLACE FUNCTION postern.hint_keys_config(p_realm uuid) RETURNS jsonb
LANGUAGE sql STABLE
RETURN (SELECT coalesce(jsonb_agg(jsonb_build_object('kid', k.kid, 'alg', k.alg, 'public_jwk', k.public_jwk)
                                  ORDER BY k.activates_at DESC, k.kid), '[]')
          FROM postern.signing_key AS k WHERE k.realm_id = p_realm AND NOT k.withdrawn);
COMMENT ON FUNCTION postern.hint_keys_config IS
    'What ID tokens that are sent as hints may have been signed with, for realm_config';
GRANT EXECUTE ON FUNCTION postern.hint_keys_config TO postern_app;

RESET ROLE;
