-- What the functions of schema admin share. Only their owner may call these.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION postern.refuse(message text, hint text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = message, HINT = hint;
END
$$;
COMMENT ON FUNCTION postern.refuse IS 'Raises invalid_parameter_value with a hint';

CREATE OR REPLACE FUNCTION postern.issuer(public_origin text, primary_domain text) RETURNS text
LANGUAGE sql IMMUTABLE
RETURN coalesce(public_origin, 'https://' || primary_domain);
COMMENT ON FUNCTION postern.issuer IS 'iss of a realm';

CREATE OR REPLACE FUNCTION postern.origin_host(origin text) RETURNS text
LANGUAGE sql IMMUTABLE
RETURN substring(origin FROM '\A[a-z]+://([^:/]+)');
COMMENT ON FUNCTION postern.origin_host IS 'The host of an origin, without its port';
GRANT EXECUTE ON FUNCTION postern.origin_host TO postern_app;

-- Quotes a value for a message, so that blanks and NULL are visible.
CREATE OR REPLACE FUNCTION postern.shown(value text) RETURNS text
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN value IS NULL THEN 'NULL' ELSE '"' || left(value, 200) || CASE WHEN char_length(value) > 200 THEN '…'
    ELSE '' END || '"' END;
COMMENT ON FUNCTION postern.shown IS 'A value as error messages show it';

-- The realm of a slug; locks its row, so that changes of one realm's configuration come one after the other.
CREATE OR REPLACE FUNCTION postern.admin_realm(slug text) RETURNS uuid
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    v_id uuid;
BEGIN
    SELECT r.id INTO v_id FROM postern.realm AS r WHERE r.slug = slug FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        PERFORM postern.refuse(format('realm %s does not exist', postern.shown(slug)),
            coalesce('Realms are: ' || (SELECT string_agg(r.slug, ', ' ORDER BY r.slug)
                                        FROM (SELECT x.slug FROM postern.realm AS x ORDER BY x.slug LIMIT 20) AS r)
                                            || '.',
                     'Make one with admin.put_realm(slug, primary_domain).'));
    END IF;
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION postern.admin_realm IS 'Realm by slug, or a refusal';

CREATE OR REPLACE FUNCTION postern.admin_client(p_realm uuid, client_id text) RETURNS uuid
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    v_id uuid;
BEGIN
    SELECT c.id INTO v_id FROM postern.client AS c WHERE c.realm_id = p_realm AND c.client_id = client_id;
    IF NOT FOUND THEN
        PERFORM postern.refuse(format('client_id %s does not exist in this realm', postern.shown(client_id)),
            coalesce('Clients are: ' || (SELECT string_agg(c.client_id, ', ' ORDER BY c.client_id)
                                           FROM (SELECT x.client_id FROM postern.client AS x WHERE x.realm_id = p_realm
                                                 ORDER BY x.client_id LIMIT 20) AS c) || '.',
                     'Make one with admin.put_client(realm, client_id).'));
    END IF;
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION postern.admin_client IS 'Client by client_id, or a refusal';

CREATE OR REPLACE FUNCTION postern.user_by_id(p_realm uuid, p_id text) RETURNS uuid
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF p_id ~* '\A[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z' THEN
        RETURN (SELECT u.id FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.id = p_id::uuid);
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.user_by_id IS 'User by the text of an id; NULL when there is none, and for any other text';

CREATE OR REPLACE FUNCTION postern.admin_user(p_realm uuid, email text) RETURNS uuid
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    v_id uuid := coalesce(postern.user_by_id(p_realm, email), postern.find_user(p_realm, email));
BEGIN
    IF v_id IS NULL THEN
        PERFORM postern.refuse(format('email %s is not a user of this realm', postern.shown(email)),
            'SELECT id, email, phone FROM admin.users WHERE realm = … lists them: give one of the three.');
    END IF;
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION postern.admin_user IS 'User by e-mail address, phone number or id, or a refusal';

CREATE OR REPLACE FUNCTION postern.admin_audit(
    p_realm uuid, event text, client uuid DEFAULT NULL, user_id uuid DEFAULT NULL, detail jsonb DEFAULT NULL)
RETURNS void
LANGUAGE sql
AS $$
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, source, detail)
    VALUES ($1, $2, $3, $4, 'sql:' || session_user, jsonb_strip_nulls($5))
$$;
COMMENT ON FUNCTION postern.admin_audit IS 'Records what an administrator did';

-- The end of every function that takes something away. p_missing, p_hint: the refusal when there was nothing; without
-- them that is no error.
CREATE OR REPLACE FUNCTION postern.admin_removed(
    p_realm uuid, p_found boolean, event text, client uuid DEFAULT NULL, user_id uuid DEFAULT NULL,
    detail jsonb DEFAULT NULL, p_missing text DEFAULT NULL, p_hint text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF p_found THEN
        PERFORM postern.admin_audit(p_realm, event, client, user_id, detail);
    ELSIF p_missing IS NOT NULL THEN
        PERFORM postern.refuse(p_missing, p_hint);
    END IF;
END
$$;
COMMENT ON FUNCTION postern.admin_removed IS
    'Records that an administrator removed something, or refuses when it was not there';

CREATE OR REPLACE FUNCTION postern.span(value interval) RETURNS text
LANGUAGE sql IMMUTABLE
RETURN (WITH whole AS (SELECT extract(epoch FROM value)::bigint AS seconds),
             counted AS (SELECT CASE WHEN seconds > 0 AND seconds % 86400 = 0 THEN seconds / 86400
                                     WHEN seconds > 0 AND seconds % 60 = 0 THEN seconds / 60
                                     ELSE seconds END AS count,
                                CASE WHEN seconds > 0 AND seconds % 86400 = 0 THEN 'day'
                                     WHEN seconds > 0 AND seconds % 60 = 0 THEN 'minute'
                                     ELSE 'second' END AS unit FROM whole)
        SELECT count || ' ' || unit || CASE WHEN count = 1 THEN '' ELSE 's' END FROM counted);
COMMENT ON FUNCTION postern.span IS 'An interval in the words of messages';

-- Exact seconds, within bounds; NULL stays NULL.
CREATE OR REPLACE FUNCTION postern.checked_interval(argument text, value interval, least_ interval, most interval)
RETURNS interval
LANGUAGE plpgsql
AS $$
DECLARE
    v_seconds numeric := extract(epoch FROM value);
BEGIN
    IF v_seconds IS NULL THEN
        RETURN NULL;
    END IF;
    IF v_seconds < extract(epoch FROM least_) OR v_seconds > extract(epoch FROM most) OR v_seconds <> trunc(v_seconds)
        THEN
        PERFORM postern.refuse(format('%s %s is out of range', argument, postern.shown(value::text)),
            format('Allowed is an interval of whole seconds from %s to %s.', postern.span(least_), postern.span(most)));
    END IF;
    RETURN make_interval(secs => v_seconds::double precision);
END
$$;
COMMENT ON FUNCTION postern.checked_interval IS 'An interval within bounds, or a refusal';

CREATE OR REPLACE FUNCTION postern.check_choice(argument text, value text, VARIADIC choices text[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF value <> ALL (choices) THEN
        PERFORM postern.refuse(format('%s %s is unknown', argument, postern.shown(value)),
            format('Allowed (spelled exactly so): %s.', array_to_string(choices, ', ')));
    END IF;
END
$$;
COMMENT ON FUNCTION postern.check_choice IS 'Refuses a value that is not one of the choices; NULL passes';

CREATE OR REPLACE FUNCTION postern.check_host(argument text, value text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF NOT postern.is_host(value) THEN
        PERFORM postern.refuse(format('%s %s is not a bare lower-case host', argument, postern.shown(value)),
            'Allowed is a host name as in id.example.com: lower case, no scheme, port, path, wildcard or trailing dot; '
            'international names in their xn-- form.');
    END IF;
END
$$;
COMMENT ON FUNCTION postern.check_host IS 'Refuses a value that is not a bare host; NULL passes';

CREATE OR REPLACE FUNCTION postern.check_text(argument text, value text, longest integer) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF NOT postern.is_plain_text(value, longest) THEN
        PERFORM postern.refuse(format('%s %s is not a line of text', argument, postern.shown(value)),
            format('Allowed are 1 to %s characters on one line, without control characters and without blanks around '
                   'them.', longest));
    END IF;
END
$$;
COMMENT ON FUNCTION postern.check_text IS 'Refuses a value that is not a short line of text; NULL passes';

CREATE OR REPLACE FUNCTION postern.check_email(argument text, value text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF value IS NULL OR NOT postern.is_email(value) THEN
        PERFORM postern.refuse(format('%s %s is not an address', argument, postern.shown(value)),
            'Allowed is one plain mailbox such as ada@example.com: no name, comment, list or quotes; '
            'international domains in their xn-- form.');
    END IF;
END
$$;
COMMENT ON FUNCTION postern.check_email IS 'Refuses a text that is not an address';

CREATE OR REPLACE FUNCTION postern.check_phone(argument text, value text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF value IS NULL OR NOT postern.is_phone(value) THEN
        PERFORM postern.refuse(format('%s %s is not a phone number', argument, postern.shown(value)),
            'Allowed is E.164: + and 7 to 15 digits without blanks, such as +4366412345678.');
    END IF;
END
$$;
COMMENT ON FUNCTION postern.check_phone IS 'Refuses a text that is not a phone number in E.164 form';

RESET ROLE;
