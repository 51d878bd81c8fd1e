-- Provisioning: the providers of channels.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION postern.check_call_url(argument text, value text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF NOT postern.is_call_url(value) THEN
        PERFORM postern.refuse(format('%s %s is not a URL that may be called', argument, postern.shown(value)),
            'Allowed is https://host[:port]/path without user, fragment or blanks, 2,000 bytes at most; http only for '
            'localhost, 127.0.0.1 and [::1].');
    END IF;
END
$$;
COMMENT ON FUNCTION postern.check_call_url IS 'Refuses a URL that the server may not call; NULL passes';

-- Placeholders stand in values, at any depth; in a key they would be sent as they are. A value of a form is text.
CREATE OR REPLACE FUNCTION postern.check_fields(fields jsonb, body text) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_allowed text[] := '{to,to_digits,from,text,code,spaced_code,link,id,locale}';
    v_name text;
    v_key text;
BEGIN
    IF jsonb_typeof(fields) <> 'object' OR fields = '{}' OR octet_length(fields::text) > 8192 THEN
        PERFORM postern.refuse('fields is not an object of 1 to 8,192 bytes',
            'Give the parameters of the vendor''s API, for example ''{"To": "{to}", "Body": "{text}"}''.');
    END IF;
    IF body = 'form' AND EXISTS (SELECT FROM jsonb_each(fields) AS f WHERE jsonb_typeof(f.value) <> 'string') THEN
        PERFORM postern.refuse('fields holds a value that is not text',
            'The values of body form are texts; with body json they may be of any type.');
    END IF;
    SELECT m.name[1] INTO v_name
      FROM jsonb_path_query(fields, 'lax $.** ? (@.type() == "string")') AS v (value),
           regexp_matches(v.value #>> '{}', '\{([^{}]*)\}', 'g') AS m (name)
     WHERE m.name[1] <> ALL (v_allowed) LIMIT 1;
    IF FOUND THEN
        PERFORM postern.refuse(format('fields has the unknown placeholder {%s}', left(v_name, 50)),
            format('Placeholders are: {%s}.', array_to_string(v_allowed, '} {')));
    END IF;
    SELECT k.key INTO v_key
      FROM jsonb_path_query(fields, 'lax $.** ? (@.type() == "object")') AS o (value),
           jsonb_object_keys(o.value) AS k (key)
     WHERE k.key ~ '\{[^{}]*\}' LIMIT 1;
    IF FOUND THEN
        PERFORM postern.refuse(format('fields has a placeholder in the name %s', postern.shown(v_key)),
            'Names are sent as they are. Put the placeholder into a value, for example ''{"To": "{to}"}''.');
    END IF;
END
$$;
COMMENT ON FUNCTION postern.check_fields IS 'Refuses a template that could not be filled in; NULL passes';

CREATE OR REPLACE FUNCTION admin.put_channel(
    realm text, channel text, name text, provider text DEFAULT NULL, url text DEFAULT NULL, sender text DEFAULT NULL,
    secret_name text DEFAULT NULL, auth text DEFAULT NULL, body text DEFAULT NULL, fields jsonb DEFAULT NULL,
    priority integer DEFAULT NULL, enabled boolean DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v postern.channel;
    v_is_new boolean;
BEGIN
    IF channel IS NULL THEN
        PERFORM postern.refuse('channel is NULL',
                               format('Allowed: %s.', array_to_string(postern.channels_with_providers(), ', ')));
    END IF;
    PERFORM postern.check_choice('channel', channel, VARIADIC postern.channels_with_providers());
    IF name IS NULL OR name COLLATE "C" !~ '\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z' THEN
        PERFORM postern.refuse(format('name %s is not the name of a provider', postern.shown(name)),
                               'Allowed are 1 to 63 lower-case letters, digits and inner hyphens.');
    END IF;
    PERFORM postern.check_choice('provider', provider, 'webhook', 'http');
    PERFORM postern.check_call_url('url', url);
    PERFORM postern.check_text('sender', sender, 100);
    IF secret_name COLLATE "C" !~ '\A[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z' THEN
        PERFORM postern.refuse(format('secret_name %s is not the name of a file', postern.shown(secret_name)),
            'Give the name of a file in POSTERN_SECRETS_DIR: letters, digits, dots, hyphens and underscores, without '
            'a folder and without a dot at the beginning.');
    END IF;
    IF auth COLLATE "C" !~ '\A(basic|bearer|header [A-Za-z0-9-]{1,64})\Z'
       OR lower(auth) ~ '\Aheader (host|content-.*|transfer-encoding|connection|expect|user-agent)\Z' THEN
        PERFORM postern.refuse(format('auth %s is unknown', postern.shown(auth)),
            'Allowed are basic (the file holds user:password), bearer, and header NAME with a header of the vendor.');
    END IF;
    PERFORM postern.check_choice('body', body, 'form', 'json');
    IF priority NOT BETWEEN 0 AND 1000 THEN
        PERFORM postern.refuse(format('priority %s is out of range', priority),
                               'Allowed is 0 (asked first) to 1000; 100 by default.');
    END IF;

    SELECT c.* INTO v FROM postern.channel AS c
     WHERE c.realm_id = v_realm AND c.channel = channel AND c.name = name;
    v_is_new := NOT FOUND OR v.provider <> coalesce(provider, v.provider);
    IF v_is_new THEN
        -- Nothing of another kind of provider is kept.
        v.url := NULL; v.secret_name := NULL; v.auth := NULL; v.body := NULL; v.fields := NULL;
        v.provider := provider;
    END IF;
    v.url := coalesce(url, v.url);
    v.sender := coalesce(sender, v.sender);
    v.secret_name := coalesce(secret_name, v.secret_name);
    v.auth := coalesce(auth, v.auth);
    v.body := coalesce(body, v.body, CASE WHEN v.provider = 'http' THEN 'form' END);
    v.fields := coalesce(fields, v.fields);
    IF v.provider IS NULL THEN
        PERFORM postern.refuse(format('provider of channel "%s" named "%s" is missing', channel, name),
            'Allowed: webhook (your own endpoint), http (a vendor''s API by template).');
    ELSIF v.url IS NULL THEN
        PERFORM postern.refuse('url is missing', 'Give the URL that messages are posted to.');
    ELSIF v.provider = 'webhook' AND num_nonnulls(v.secret_name, v.auth, v.body, v.fields) > 0 THEN
        PERFORM postern.refuse('secret_name, auth, body and fields are for provider http',
            'A webhook gets a fixed JSON document and a token that the realm signs: leave them out.');
    ELSIF v.provider = 'http' AND channel = 'push' THEN
        PERFORM postern.refuse('provider "http" cannot carry channel "push"', 'Use a webhook.');
    ELSIF v.provider = 'http' AND v.fields IS NULL THEN
        PERFORM postern.refuse('fields is missing',
            'Give the parameters of the vendor''s API, for example ''{"To": "{to}", "Body": "{text}"}''.');
    ELSIF v.provider = 'http' AND num_nulls(v.secret_name, v.auth) = 1 THEN
        PERFORM postern.refuse('secret_name and auth belong together',
            'auth says how the credential in the file secret_name is presented.');
    END IF;
    IF v.provider = 'http' THEN
        PERFORM postern.check_fields(v.fields, v.body);
    END IF;

    INSERT INTO postern.channel AS c (realm_id, channel, name, provider, url, sender, secret_name, auth, body, fields,
                                      priority, enabled)
    VALUES (v_realm, channel, name, v.provider, v.url, v.sender, v.secret_name, v.auth, v.body, v.fields,
            coalesce(priority, v.priority, 100), coalesce(enabled, v.enabled, true))
        ON CONFLICT ON CONSTRAINT channel_pkey DO UPDATE
       SET provider = excluded.provider, url = excluded.url, sender = excluded.sender,
           secret_name = excluded.secret_name, auth = excluded.auth, body = excluded.body, fields = excluded.fields,
           priority = excluded.priority, enabled = excluded.enabled;
    PERFORM postern.admin_audit(v_realm, 'channel_put', detail => jsonb_build_object(
        'channel', channel, 'name', name, 'provider', provider, 'url', url, 'sender', sender,
        'secret_name', secret_name, 'auth', auth, 'body', body, 'fields', fields, 'priority', priority,
        'enabled', enabled));
END
$$;
COMMENT ON FUNCTION admin.put_channel IS
'Names or changes a provider of a channel (sms, voice, whatsapp, push). NULL leaves a setting as it is.
provider: webhook (your endpoint gets a JSON document with a token signed by the realm) or http (a vendor''s API).
url: https; http only to this machine. priority: 0 is asked first, default 100; the next one takes over when one refuses
or fails twice.
Only for http: sender is {from}; secret_name is a file of POSTERN_SECRETS_DIR/<slug of the realm>, else of
POSTERN_SECRETS_DIR, and auth how its content is presented (basic, bearer, header NAME); body is form (default) or
json; fields are the vendor''s parameters, with {to} {to_digits} {from} {text} {code} {spaced_code} {link} {id} {locale}
in their values.
Example: SELECT admin.put_channel(''acme'', ''sms'', ''gateway'', ''webhook'',
    ''https://hooks.acme.example/sms'');';

CREATE OR REPLACE FUNCTION admin.delete_channel(realm text, channel text, name text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    DELETE FROM postern.channel AS c WHERE c.realm_id = v_realm AND c.channel = channel AND c.name = name;
    PERFORM postern.admin_removed(v_realm, FOUND, 'channel_deleted',
        detail => jsonb_build_object('channel', channel, 'name', name),
        p_missing => format('name %s is not a provider of channel %s in this realm', postern.shown(name),
                            postern.shown(channel)),
        p_hint => 'SELECT channel, name FROM admin.channels WHERE realm = … lists them.');
END
$$;
COMMENT ON FUNCTION admin.delete_channel IS
'Deletes a provider of a channel. Messages that wait go to the next one, or wait for one until they expire.
Example: SELECT admin.delete_channel(''acme'', ''sms'', ''gateway'');';

CREATE OR REPLACE VIEW admin.channels AS
SELECT r.slug AS realm, c.channel, c.name, c.provider, c.url, c.sender, c.secret_name, c.auth, c.body, c.fields,
       c.priority, c.enabled, c.created_at
  FROM postern.channel AS c JOIN postern.realm AS r ON r.id = c.realm_id;
COMMENT ON VIEW admin.channels IS 'The providers of channels; credentials are in files and never here';

RESET ROLE;
