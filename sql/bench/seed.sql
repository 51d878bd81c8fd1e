-- One realm, 20 clients, 100,000 people, 500,000 sessions: the size of the floor it is compared with. Other sizes: psql
-- -v users=… -v sessions=….
SET client_min_messages = warning;
\if :{?users}
\else
    \set users 100000
\endif
\if :{?sessions}
\else
    \set sessions 500000
\endif
CREATE SCHEMA bench;
-- Version 4 as every ordinary id: version 8 would make test identities of one person in sixteen.
CREATE FUNCTION bench.uid(k text, n bigint) RETURNS uuid IMMUTABLE PARALLEL SAFE
    LANGUAGE sql AS $$ SELECT overlay(md5(k || n::text) PLACING '4' FROM 13)::uuid $$;
SELECT format('CREATE FUNCTION bench.users() RETURNS bigint IMMUTABLE PARALLEL SAFE LANGUAGE sql AS ''SELECT '
              '%s::bigint''', :users) \gexec
-- pgbench takes ':urn' inside a literal for a variable.
CREATE FUNCTION bench.grant_otp() RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$ SELECT 'gt:urn:cocoar:otp' $$;
CREATE FUNCTION bench.grant_passkey() RETURNS text IMMUTABLE PARALLEL SAFE
    LANGUAGE sql AS $$ SELECT 'gt:urn:cocoar:passkey' $$;
INSERT INTO postern.realm (id, slug, display_name, primary_domain, native_grants_enabled)
VALUES (bench.uid('realm', 1), 'bench', 'Bench', 'bench.example.com', true);
INSERT INTO postern.client (realm_id, id, client_id, display_name, permissions)
SELECT bench.uid('realm', 1), bench.uid('client', i), 'client-' || i, 'Client',
       '{gt:refresh_token,gt:urn:cocoar:otp,gt:urn:cocoar:passkey}' FROM generate_series(1, 20) AS i;
INSERT INTO postern.user_account (realm_id, id, email, security_stamp)
SELECT bench.uid('realm', 1), bench.uid('user', i), 'user' || i || '@example.org', bench.uid('stamp', i)
  FROM generate_series(1, :users) AS i;
-- References hold by construction; checking each of ten million would take longer than all the rest.
SET session_replication_role = replica;
INSERT INTO postern.session (realm_id, id, user_id, client, client_id, security_stamp, auth_time, expires_at,
                             refresh_expires_at, token_salt, current_hash, scope, resource, amr)
SELECT bench.uid('realm', 1), bench.uid('session', i), bench.uid('user', 1 + i % :users),
       bench.uid('client', 1 + i % 20), 'client-' || (1 + i % 20), bench.uid('stamp', 1 + i % :users),
       date_trunc('second', now()), now() + interval '365 days', now() + interval '14 days',
           uuid_send(bench.uid('salt', i)), sha256(('rt' || i)::bytea), '{openid,profile,offline_access}', '{}', '{otp}'
  FROM generate_series(1, :sessions) AS i;
INSERT INTO postern.passkey (realm_id, id, user_id, rp_id, credential_id, public_key, backup_eligible, backup_state)
SELECT bench.uid('realm', 1), bench.uid('passkey', i), bench.uid('user', i), 'bench.example.com', sha256(int4send(i)),
       decode(repeat('ab', 77), 'hex'), true, true FROM generate_series(1, least(20000, :users)) AS i;
RESET session_replication_role;
-- One fresh rotation chain per pgbench client.
CREATE FUNCTION bench.seed_chains(p_run int, p_n int) RETURNS void LANGUAGE sql AS $$
INSERT INTO postern.session (realm_id, id, user_id, client, client_id, security_stamp, auth_time, expires_at,
                             refresh_expires_at, token_salt, current_hash, scope, resource, amr)
SELECT bench.uid('realm', 1), bench.uid('chain' || p_run || ':', c),
       bench.uid('user', 1 + (p_run::bigint * 64 + c) % bench.users()), bench.uid('client', 1 + c % 20),
           'client-' || (1 + c % 20),
       bench.uid('stamp', 1 + (p_run::bigint * 64 + c) % bench.users()), now(), now() + interval '365 days',
           now() + interval '14 days',
       uuid_send(bench.uid('salt', c)), sha256(int4send(p_run) || int4send(c) || int4send(0)),
           '{openid,profile,offline_access}', '{}', '{otp}'
  FROM generate_series(0, p_n - 1) AS c $$;
-- Each of another person: one success takes all codes of its address.
CREATE FUNCTION bench.seed_otps(p_run int, p_clients int, p_n int) RETURNS void LANGUAGE sql AS $$
TRUNCATE postern.login_code, postern.sign_in_request;
WITH one AS (SELECT c, i, 1 + (i::bigint * p_clients + c) % bench.users() AS n
             FROM generate_series(0, p_clients - 1) AS c, generate_series(1, p_n) AS i),
codes AS (INSERT INTO postern.login_code (realm_id, address_key, id, user_id, client, expires_at, salt, mac)
    SELECT bench.uid('realm', 1), 'user' || n || '@example.org', bench.uid('code' || p_run || ':' || c || ':', i),
           bench.uid('user', n), NULL,
           now() + interval '1 hour', uuid_send(bench.uid('salt', i)),
               sha256(uuid_send(bench.uid('salt', i)) || sha256('123456')) FROM one)
INSERT INTO postern.sign_in_request (realm_id, id, kind, email, address_key, expires_at, pending, code_ids)
SELECT bench.uid('realm', 1), uuid_send(bench.uid('handle' || p_run || ':' || c || ':', i)), 'otp',
       'user' || n || '@example.org', 'user' || n || '@example.org',
       now() + interval '1 hour', false, ARRAY[bench.uid('code' || p_run || ':' || c || ':', i)] FROM one $$;
GRANT USAGE ON SCHEMA bench TO PUBLIC;
ANALYZE;
