-- Clients that authenticate by key (private_key_jwt, RFC 7523).
SET LOCAL ROLE postern_owner;

INSERT INTO postern.sweep_rule (table_name, condition) VALUES
    ('spent_assertion', 't.expires_at < now()')
    ON CONFLICT (table_name) DO UPDATE SET condition = excluded.condition;

-- True for the first use. The insert makes it single use: of any number of concurrent calls one inserts.
CREATE OR REPLACE FUNCTION postern.spend_assertion(p_realm uuid, p_id bytea, p_expires double precision)
RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    INSERT INTO postern.spent_assertion (realm_id, id, expires_at)
    VALUES (p_realm, p_id, to_timestamp(p_expires)) ON CONFLICT DO NOTHING;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION postern.spend_assertion IS 'Uses up a client assertion; false when it was used before';
GRANT EXECUTE ON FUNCTION postern.spend_assertion TO postern_app;

-- A request calls this for the assertion that it has just used up, when its proof of possession is refused. SECURITY
-- DEFINER, because postern_app may not delete from the table.
CREATE OR REPLACE FUNCTION postern.give_back_assertion(p_realm uuid, p_id bytea) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    DELETE FROM postern.spent_assertion AS s WHERE s.realm_id = p_realm AND s.id = p_id
$$;
COMMENT ON FUNCTION postern.give_back_assertion IS
    'Makes a client assertion unused again, for the request that has used it up';
GRANT EXECUTE ON FUNCTION postern.give_back_assertion TO postern_app;

-- Whether a JWK holds what only its owner may have (RFC 7518 section 6).
CREATE OR REPLACE FUNCTION postern.is_private_jwk(k jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE
RETURN jsonb_typeof(k) = 'object' AND k ?| ARRAY['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];
COMMENT ON FUNCTION postern.is_private_jwk IS 'Whether a JWK is a private or symmetric key';

-- The reason why a JWK cannot be a client's key, or NULL. Whether a point is on its curve is checked by the server
-- only.
CREATE OR REPLACE FUNCTION postern.jwk_refusal(k jsonb) RETURNS text
LANGUAGE sql IMMUTABLE
AS $$
    SELECT CASE
        WHEN jsonb_typeof(k) IS DISTINCT FROM 'object' THEN 'is no object'
        WHEN postern.is_private_jwk(k) THEN 'has a private member: give the public half only'
        WHEN EXISTS (SELECT FROM jsonb_each(k) AS m WHERE m.key IN ('kty', 'crv', 'x', 'y', 'n', 'e', 'kid', 'alg',
            'use') AND jsonb_typeof(m.value) <> 'string')
            THEN 'has a member that is no string'
        WHEN coalesce(k ->> 'use', 'sig') <> 'sig' THEN 'has another use than sig'
        WHEN k ? 'key_ops' AND NOT k -> 'key_ops' @> '["verify"]' THEN 'has no key_ops verify'
        WHEN octet_length(k ->> 'kid') NOT BETWEEN 1 AND 200 THEN 'has an empty or long kid'
        WHEN k ->> 'kty' = 'EC' THEN CASE
            WHEN k ->> 'crv' IS DISTINCT FROM 'P-256' THEN 'is on another curve than P-256'
            WHEN coalesce(k ->> 'alg', 'ES256') <> 'ES256' THEN 'has another alg than ES256'
            WHEN coalesce(k ->> 'x', '') COLLATE "C" !~ '\A[A-Za-z0-9_-]{43}\Z'
                OR coalesce(k ->> 'y', '') COLLATE "C" !~ '\A[A-Za-z0-9_-]{43}\Z'
                THEN 'has no x and y of 32 bytes in base64url' END
        WHEN k ->> 'kty' = 'OKP' THEN CASE
            WHEN k ->> 'crv' IS DISTINCT FROM 'Ed25519' THEN 'is on another curve than Ed25519'
            WHEN coalesce(k ->> 'alg', 'EdDSA') <> 'EdDSA' THEN 'has another alg than EdDSA'
            WHEN coalesce(k ->> 'x', '') COLLATE "C" !~ '\A[A-Za-z0-9_-]{43}\Z'
                THEN 'has no x of 32 bytes in base64url' END
        WHEN k ->> 'kty' = 'RSA' THEN CASE
            WHEN coalesce(k ->> 'alg', 'RS256') NOT IN ('RS256', 'PS256') THEN 'has another alg than RS256 or PS256'
            -- 2048 bits are 256 bytes with the highest bit set, 4096 bits 512 bytes.
            WHEN coalesce(k ->> 'n', '') COLLATE "C" !~ '\A[A-Za-z0-9_-]+\Z'
                OR length(k ->> 'n') NOT BETWEEN 342 AND 683
                 OR length(k ->> 'n') = 342 AND k ->> 'n' COLLATE "C" !~ '\A[g-z0-9_-]'
                THEN 'has no modulus of 2048 to 4096 bits'
            WHEN coalesce(k ->> 'e', '') COLLATE "C" !~ '\A[A-Za-z0-9_-]{2,6}\Z' THEN 'has no exponent' END
        ELSE 'has another kty than EC, OKP or RSA' END
$$;
COMMENT ON FUNCTION postern.jwk_refusal IS 'Why a JWK cannot be a client''s key; NULL when it can';

CREATE OR REPLACE FUNCTION admin.put_client_jwks(realm text, client_id text, jwks jsonb)
RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
    v_kept jsonb := '[]';
    v_refusal text;
    v_left_out text;
    v_key record;
BEGIN
    IF (SELECT c.client_type FROM postern.client AS c WHERE c.realm_id = v_realm AND c.id = v_client) <> 'confidential'
        THEN
        PERFORM postern.refuse(format('client_id "%s" is a public client and has no keys', client_id),
            'Make it confidential first: admin.put_client(realm, client_id, client_type => ''confidential'').');
    END IF;
    IF jsonb_typeof(jwks -> 'keys') IS DISTINCT FROM 'array' OR jsonb_array_length(jwks -> 'keys') > 10 THEN
        PERFORM postern.refuse('jwks is not a JWK Set of at most ten keys',
            'Allowed is {"keys": [ … ]} (RFC 7517 section 5); no keys take away what the client has.');
    END IF;
    FOR v_key IN SELECT x.key, x.place FROM jsonb_array_elements(jwks -> 'keys') WITH ORDINALITY AS x (key, place) LOOP
        v_refusal := postern.jwk_refusal(v_key.key);
        IF postern.is_private_jwk(v_key.key) THEN
            PERFORM postern.refuse(format('jwks: key %s %s', v_key.place, v_refusal),
                'Allowed are public keys: give the public half. Make a new pair if others may have seen this one.');
        END IF;
        -- A set is written for every reader, for instance with a key for encryption (RFC 7517 section 5).
        IF v_refusal IS NOT NULL THEN
            v_left_out := coalesce(v_left_out, format('jwks: key %s %s', v_key.place, v_refusal));
            RAISE NOTICE 'key % is left out: it %', v_key.place, v_refusal
                USING HINT = 'Assertions that it signs are refused.';
            CONTINUE;
        END IF;
        v_kept := v_kept || jsonb_build_array((SELECT jsonb_object_agg(m.key, m.value) FROM jsonb_each(v_key.key) AS m
                                                WHERE m.key IN ('kty', 'crv', 'x', 'y', 'n', 'e', 'kid', 'alg')));
    END LOOP;
    IF v_kept = '[]' AND v_left_out IS NOT NULL THEN
        PERFORM postern.refuse(v_left_out,
            'Allowed are public keys: EC P-256 (ES256), OKP Ed25519 (EdDSA), RSA of 2048 to 4096 bits (RS256, PS256). '
            'None of these is in the set.');
    END IF;
    IF (SELECT count(*) > 1 AND count(DISTINCT x ->> 'kid') < count(*) FROM jsonb_array_elements(v_kept) AS x) THEN
        PERFORM postern.refuse('jwks has several keys, and not each a kid of its own',
                               'Give every key a different kid: assertions name their key by it.');
    END IF;
    UPDATE postern.client AS c SET jwks = CASE WHEN jsonb_array_length(v_kept) > 0
        THEN jsonb_build_object('keys', v_kept) END
     WHERE c.realm_id = v_realm AND c.id = v_client;
    PERFORM postern.admin_audit(v_realm, 'client_jwks_put', client => v_client,
        detail => jsonb_build_object('kids', (SELECT jsonb_agg(x -> 'kid') FROM jsonb_array_elements(v_kept) AS x)));
    RETURN jsonb_array_length(v_kept);
END
$$;
COMMENT ON FUNCTION admin.put_client_jwks IS
'Sets the public keys (a JWK Set, RFC 7517) with which a confidential client signs assertions to authenticate
(private_key_jwt), and returns how
many there are; replaces all earlier ones, no keys take them away. At most ten: EC P-256, OKP Ed25519, RSA of 2048 to
4096 bits.
Keys of other kinds are left out, with a notice; a set of these alone, or with a private key, is refused.
A secret the client has stays valid: see admin.delete_client_secret.
Example: SELECT admin.put_client_jwks(''acme'', ''acme-export'', ''{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"2026",
    "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}'');';

RESET ROLE;
