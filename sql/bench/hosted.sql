-- Signed-in browsers for the benchmarks of the authorization endpoint: one each for the first of the people. Needs the
-- client bench-web with its redirect URI.
SELECT format('CREATE FUNCTION bench.web() RETURNS uuid IMMUTABLE PARALLEL SAFE LANGUAGE sql AS %L',
              format('SELECT %L::uuid', id)) FROM postern.client WHERE client_id = 'bench-web' \gexec
CREATE FUNCTION bench.grant_code() RETURNS text IMMUTABLE PARALLEL SAFE
    LANGUAGE sql AS $$ SELECT 'gt:authorization_code' $$;
CREATE FUNCTION bench.random_text(k text, n bigint) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
SELECT k || rtrim(translate(encode(sha256(int8send(n)), 'base64'), '+/', '-_'), '=') $$;
CREATE FUNCTION bench.hash(t text) RETURNS bytea IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
SELECT sha256(convert_to(t, 'UTF8')) $$;
INSERT INTO postern.browser_session (realm_id, id, user_id, security_stamp, idle_expires_at, expires_at,
                                     email_proved_at, cookie_hash, host, amr)
SELECT bench.uid('realm', 1), bench.uid('browser', n), bench.uid('user', n), bench.uid('stamp', n),
       now() + interval '30 days', now() + interval '180 days', now(), bench.hash(bench.random_text('pss_', n)),
       'bench.example.com', '{otp}' FROM generate_series(1, least(50000, bench.users())) AS n;
-- Codes p_first and p_count - 1 more, for anybody who holds the verifier of sixty-four x.
CREATE FUNCTION bench.seed_authorization_codes(p_first bigint, p_count bigint) RETURNS void LANGUAGE sql AS $$
INSERT INTO postern.authorization_code (realm_id, code_hash, user_id, client, browser_session, security_stamp,
                                        auth_time, expires_at, redirect_uri, code_challenge, acr, scope, resource, amr)
SELECT bench.uid('realm', 1), bench.hash(bench.random_text('pac_', n)), bench.uid('user', p), bench.web(),
       bench.uid('browser', p), bench.uid('stamp', p), now(), now() + interval '1 hour',
       'https://app.example.com/cb',
       rtrim(translate(encode(bench.hash(repeat('x', 64)), 'base64'), '+/', '-_'), '='), 'urn:postern:acr:1',
       '{openid,profile,offline_access}', '{bench-web}', '{otp}'
  FROM generate_series(p_first, p_first + p_count - 1) AS n,
       LATERAL (SELECT 1 + n % least(50000, bench.users())) AS x (p) $$;
ANALYZE postern.browser_session;
