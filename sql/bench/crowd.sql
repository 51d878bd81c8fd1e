-- A database in which strangers have left rows behind: psql -v rows=2000 -f sql/bench/crowd.sql. Each table that grows
-- gets so many rows of one realm, which does not exist yet. The realm with the slug a, that tests make, becomes it, and
-- its client app is the client of all those rows. No statistics are made: autovacuum is off here, and tables of an
-- installation that was set up today have none either.
SET client_min_messages = warning;
-- Rows refer to persons that do not exist, and their texts mean nothing: no check would let them pass.
CREATE TEMP TABLE checks AS
SELECT c.conrelid::regclass AS of, c.conname AS name, pg_get_constraintdef(c.oid) AS definition
  FROM pg_constraint AS c JOIN pg_class AS r ON r.oid = c.conrelid
 WHERE c.contype = 'c' AND r.relnamespace = 'postern'::regnamespace AND r.relkind = 'r' AND NOT r.relispartition;
SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', of, name) FROM checks \gexec
CREATE TEMP TABLE bounds AS
SELECT t.oid AS type, t.oid::regtype AS of, c.conname AS name, pg_get_constraintdef(c.oid) AS definition
  FROM pg_type AS t JOIN pg_constraint AS c ON c.contypid = t.oid WHERE t.typnamespace = 'postern'::regnamespace;
SELECT format('ALTER DOMAIN %s DROP CONSTRAINT %I', of, name) FROM bounds \gexec
CREATE FUNCTION pg_temp.base(a pg_attribute) RETURNS text LANGUAGE sql AS $$
    SELECT format_type(coalesce(NULLIF(t.typbasetype, 0), t.oid), NULL) FROM pg_type AS t WHERE t.oid = a.atttypid $$;

-- One value of a column for row n of a table; what is not required is missing in half of the rows. A column whose check
-- lists its values gets each of them in turn.
CREATE FUNCTION pg_temp.value(t regclass, a pg_attribute) RETURNS text LANGUAGE sql AS $$
    SELECT CASE
        WHEN a.attname = 'realm_id' THEN quote_literal(md5('crowd')::uuid) || '::uuid'
        WHEN a.attname = 'client' THEN quote_literal(md5('client')::uuid) || '::uuid'
        ELSE CASE WHEN a.attnotnull THEN v.value
             ELSE format('CASE WHEN hashint4(n * 64 + %s) %% 2 = 0 THEN %s END', a.attnum, v.value) END END
      FROM (SELECT coalesce(
                (SELECT substring(c.definition FROM '\(' || a.attname || ' = ANY \((ARRAY\[[^]]*\])') FROM checks AS c
                  WHERE c.of = t AND c.definition ~ ('\(' || a.attname || ' = ANY ') LIMIT 1),
                (SELECT substring(b.definition FROM '\(VALUE = ANY \((ARRAY\[[^]]*\])') FROM bounds AS b
                  WHERE b.type = a.atttypid AND b.definition ~ 'VALUE = ANY '),
                (SELECT format('enum_range(NULL::%s)', t.oid::regtype) FROM pg_type AS t
                  WHERE t.oid = a.atttypid AND t.typtype = 'e'),
                CASE a.attname WHEN 'channel' THEN (SELECT format('%L::text[]', array_agg(k.channel))
                                                      FROM postern.known_channel AS k) END) AS listed) AS l,
           LATERAL (SELECT CASE
               WHEN l.listed IS NOT NULL THEN format('(%s)[1 + n %% cardinality(%1$s)]', l.listed)
               WHEN a.attndims > 0 OR pg_temp.base(a) LIKE '%[]' THEN '''{}''::' || pg_temp.base(a)
               ELSE CASE pg_temp.base(a)
                   WHEN 'uuid' THEN 'gen_random_uuid()'
                   WHEN 'text' THEN format('%L || n', left(a.attname, 4))
                   WHEN 'bytea' THEN format('sha256(int4send(n * 64 + %s))', a.attnum)
                   WHEN 'timestamp with time zone' THEN 'now() + make_interval(mins => 1 + n % 1000)'
                   WHEN 'interval' THEN 'interval ''1 hour'''
                   WHEN 'boolean' THEN format('hashint4(n * 64 + %s) %% 2 = 0', a.attnum)
                   WHEN 'jsonb' THEN '''{}''::jsonb'
                   WHEN 'xid8' THEN '(n + 100)::text::xid8'
                   WHEN 'smallint' THEN '(n % 3)::smallint'
                   ELSE 'n' END END AS value) AS v $$;
-- Not what administrators put, nor what holds a row for each of a known few.
SET session_replication_role = replica;
SELECT format('INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM generate_series(1, %s) AS n '
              'ON CONFLICT DO NOTHING', c.oid::regclass, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum),
              string_agg(pg_temp.value(c.oid, a), ', ' ORDER BY a.attnum), :rows)
  FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                                           AND a.attgenerated = ''
 WHERE c.relnamespace = 'postern'::regnamespace AND c.relkind = 'r' AND NOT c.relispartition
   AND c.relname IN (
       'address_verification', 'approval_guard', 'audit_event', 'authorization_code', 'browser_session', 'code_guard',
       'consent', 'device_guard', 'device_key', 'device_request', 'login_code', 'login_link', 'logout_token',
       'mail_refusal', 'message_outbox', 'passkey', 'phone_identity', 'pushed_request', 'rate_bucket', 'recovery_code',
       'removed_identifier', 'revoked_service_token', 'service_account_use', 'session', 'sign_in_request',
       'spent_assertion', 'spent_ceremony', 'suppressed_address', 'totp_factor', 'undo_link', 'user_account',
       'user_identifier', 'webhook_delivery', 'webhook_subject')
 GROUP BY c.oid \gexec
RESET session_replication_role;
-- The next number that is drawn is that of no row.
SELECT setval(c.oid, :rows) FROM pg_class AS c WHERE c.relnamespace = 'postern'::regnamespace AND c.relkind = 'S' \g /dev/null
CREATE FUNCTION public.crowded() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.id := md5(TG_ARGV[0])::uuid;
    RETURN NEW;
END
$$;
CREATE TRIGGER a_crowd BEFORE INSERT ON postern.realm
    FOR EACH ROW WHEN (NEW.slug = 'a') EXECUTE FUNCTION public.crowded('crowd');
CREATE TRIGGER a_crowd BEFORE INSERT ON postern.client
    FOR EACH ROW WHEN (NEW.realm_id = md5('crowd')::uuid AND NEW.client_id = 'app')
    EXECUTE FUNCTION public.crowded('client');
