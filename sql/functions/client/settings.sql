-- Settings of clients: what there is, and what each may be. admin.put_client sets them, servers read them by name.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.client_setting (setting, type, default_value, least, most, choices, longest, purpose) VALUES
    ('access_token_type', 'choice', '"reference"', NULL, NULL, '{reference,jwt}', NULL,
     'Whether access tokens are opaque or JWTs (RFC 9068)'),
    ('access_token_lifetime', 'interval', NULL, '1 minute', '60 minutes', NULL, NULL,
     'Life of an access token; the realm''s'),
    ('refresh_token_lifetime', 'interval', NULL, '1 day', '365 days', NULL, NULL,
     'Idle time of a session; the realm''s'),
    ('signing_alg', 'choice', '"realm"', NULL, NULL, '{ES256,RS256,EdDSA,realm}', NULL,
     'What its JWTs are signed with'),
    ('require_dpop', 'boolean', 'false', NULL, NULL, NULL, NULL, 'Whether its tokens are bound to a key (RFC 9449)'),
    ('require_pkce', 'boolean', 'true', NULL, NULL, NULL, NULL,
     'Whether authorization requests need a code_challenge (RFC 7636)'),
    ('require_par', 'boolean', 'false', NULL, NULL, NULL, NULL,
     'Whether authorization requests must be pushed (RFC 9126)'),
    ('consent', 'choice', '"implicit"', NULL, NULL, '{implicit,explicit,systematic}', NULL,
     'When pages ask a user to allow what the client wants'),
    ('rp_id', 'rp_id', NULL, NULL, NULL, NULL, NULL, 'WebAuthn RP-ID; the realm''s primary domain'),
    ('home_uri', 'web_address', NULL, NULL, NULL, NULL, 2000, 'Where pages without a way back to the client lead')
    ON CONFLICT (setting) DO UPDATE
   SET type = excluded.type, default_value = excluded.default_value, least = excluded.least, most = excluded.most,
       choices = excluded.choices, longest = excluded.longest, purpose = excluded.purpose;

-- As it is stored: a span of time in seconds, all else as it was given.
CREATE OR REPLACE FUNCTION postern.checked_client_setting(k postern.client_setting, value jsonb) RETURNS jsonb
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    v_text text := value #>> '{}';
    v_span interval;
    v_host text;
BEGIN
    IF jsonb_typeof(value) <> ALL (CASE k.type WHEN 'boolean' THEN '{boolean}'::text[]
                                               WHEN 'interval' THEN '{string,number}' ELSE '{string}' END) THEN
        PERFORM postern.refuse(format('%s %s is of another type', k.setting, postern.shown(v_text)),
            CASE k.type WHEN 'boolean' THEN 'Allowed: true, false.' ELSE 'Allowed is a text.' END);
    END IF;
    CASE k.type
        WHEN 'boolean' THEN
            RETURN value;
        WHEN 'interval' THEN
            BEGIN
                v_span := v_text;
            EXCEPTION WHEN data_exception THEN
                PERFORM postern.refuse(format('%s %s is not an interval', k.setting, postern.shown(v_text)),
                    format('Allowed is one from %s to %s.', postern.span(k.least), postern.span(k.most)));
            END;
            RETURN to_jsonb(postern.seconds(postern.checked_interval(k.setting, v_span, k.least, k.most)));
        WHEN 'choice' THEN
            PERFORM postern.check_choice(k.setting, v_text, VARIADIC k.choices);
        WHEN 'text' THEN
            PERFORM postern.check_text(k.setting, v_text, k.longest);
        WHEN 'rp_id' THEN
            IF NOT postern.is_rp_id(v_text) THEN
                PERFORM postern.refuse(format('%s %s is not a bare DNS host', k.setting, postern.shown(v_text)),
                    'Allowed is a lower-case host of your own such as example.com or login.example.com, or localhost: '
                    'no scheme, port, path, wildcard or IP address, and no public suffix such as com or co.uk.');
            END IF;
        WHEN 'web_address' THEN
            v_host := substring(v_text COLLATE "C" FROM '\Ahttp://(\[::1\]|[^:/]+)(:[0-9]{1,5})?(/[!-~]*)?\Z');
            IF octet_length(v_text) > k.longest
               OR v_text COLLATE "C" !~ '\Ahttps://[!-~]+\Z' AND coalesce(v_host, '') NOT IN ('127.0.0.1', '[::1]')
                  AND NOT postern.is_localhost(coalesce(v_host, '')) THEN
                PERFORM postern.refuse(format('%s %s is not a web address', k.setting, postern.shown(v_text)),
                    format('Allowed is https://…, or http:// to localhost or a host below it, of %s bytes at most.',
                           btrim(to_char(k.longest, '9,999'))));
            END IF;
    END CASE;
    RETURN value;
END
$$;
COMMENT ON FUNCTION postern.checked_client_setting IS 'A value of a setting of clients as it is stored, or a refusal';

CREATE OR REPLACE FUNCTION postern.checked_client_settings(given jsonb) RETURNS jsonb
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    v_given record;
    v_known postern.client_setting;
    v_checked jsonb := '{}';
BEGIN
    IF jsonb_typeof(given) <> 'object' THEN
        PERFORM postern.refuse('settings is not a JSON object',
                               'Allowed is an object such as {"access_token_type": "jwt"}.');
    END IF;
    FOR v_given IN SELECT * FROM jsonb_each(given) LOOP
        SELECT k.* INTO v_known FROM postern.client_setting AS k WHERE k.setting = v_given.key;
        IF NOT FOUND THEN
            PERFORM postern.refuse(format('setting %s is unknown', postern.shown(v_given.key)),
                (SELECT format('Allowed: %s.', string_agg(k.setting, ', ' ORDER BY k.setting COLLATE "C"))
                   FROM postern.client_setting AS k));
        END IF;
        v_checked := v_checked || jsonb_build_object(v_given.key, CASE WHEN v_given.value <> 'null'
            THEN postern.checked_client_setting(v_known, v_given.value) END);
    END LOOP;
    RETURN v_checked;
END
$$;
COMMENT ON FUNCTION postern.checked_client_settings IS
    'Settings of a client as they are stored, null for those that get their default back; or a refusal';

-- SECURITY DEFINER: the registry is its owner's.
CREATE OR REPLACE FUNCTION postern.client_setting_of(p_settings jsonb, p_setting text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
RETURN (SELECT coalesce(p_settings ->> k.setting, k.default_value #>> '{}')
          FROM postern.client_setting AS k WHERE k.setting = p_setting);
COMMENT ON FUNCTION postern.client_setting_of IS 'What a client has of a setting: its own value, else the default';
GRANT EXECUTE ON FUNCTION postern.client_setting_of TO postern_app;

CREATE OR REPLACE FUNCTION postern.client_defaults() RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
RETURN (SELECT coalesce(jsonb_object_agg(k.setting, k.default_value), '{}')
          FROM postern.client_setting AS k WHERE k.default_value IS NOT NULL);
COMMENT ON FUNCTION postern.client_defaults IS 'The settings that a client has without being given any';
GRANT EXECUTE ON FUNCTION postern.client_defaults TO postern_app;

CREATE OR REPLACE VIEW admin.known_client_settings AS
SELECT k.setting, k.type, k.default_value, k.least, k.most, k.choices, k.longest, k.purpose
  FROM postern.client_setting AS k;
COMMENT ON VIEW admin.known_client_settings IS
    'What admin.put_client sets of a client, with the bounds of each setting; without a default:'
    ' nothing, or the realm''s';

RESET ROLE;
