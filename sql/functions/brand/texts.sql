-- Provisioning: texts of pages and messages.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION postern.check_locale(argument text, locale text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF locale <> ALL (postern.locales()) THEN
        PERFORM postern.refuse(format('%s %s is not a language of the pages', argument, postern.shown(locale)),
                               format('Allowed: %s.', array_to_string(postern.locales(), ', ')));
    END IF;
END
$$;
COMMENT ON FUNCTION postern.check_locale IS 'Refuses a language that pages and messages do not have; NULL passes';

CREATE OR REPLACE FUNCTION admin.put_text(realm text, locale text, key text, value text, app text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_placeholders text[];
    v_found text[];
BEGIN
    PERFORM postern.check_app(v_realm, app);
    IF locale IS NULL THEN
        PERFORM postern.refuse('locale is missing', format('Allowed: %s.', array_to_string(postern.locales(), ', ')));
    END IF;
    PERFORM postern.check_locale('locale', locale);
    SELECT k.placeholders INTO v_placeholders FROM postern.text_key AS k WHERE k.key = key;
    IF NOT FOUND THEN
        PERFORM postern.refuse(format('key %s is not a text', postern.shown(key)),
                               'SELECT key, default_text FROM admin.text_keys lists them.');
    END IF;
    IF value IS NULL THEN
        PERFORM postern.refuse('value NULL is not a text', 'admin.delete_text gives the product''s text back.');
    END IF;
    PERFORM postern.check_text('value', value, 1000);
    SELECT coalesce(array_agg(DISTINCT m[1] ORDER BY m[1]), '{}') INTO v_found
      FROM regexp_matches(value, '\{([^{}]*)\}', 'g') AS m;
    IF NOT (v_found @> v_placeholders AND v_placeholders @> v_found) THEN
        PERFORM postern.refuse(
            format('value of key "%s" has the placeholders %s', key,
                   coalesce(nullif(array_to_string(v_found, ', '), ''), 'none')),
            format('This text needs: %s.', coalesce((SELECT string_agg('{' || p || '}', ', ')
                                                       FROM unnest(v_placeholders) AS p), 'no placeholder')));
    END IF;
    INSERT INTO postern.text_override (realm_id, app, locale, key, value) VALUES (v_realm, app, locale, key, value)
        ON CONFLICT ON CONSTRAINT text_override_realm_id_app_locale_key_key DO UPDATE SET value = excluded.value;
    PERFORM postern.admin_audit(v_realm, 'text_put', detail => jsonb_build_object('app', app, 'locale', locale,
                                                                                  'key', key));
END
$$;
COMMENT ON FUNCTION admin.put_text IS
'Puts a text of a realm or App in the place of the product''s, in one language. Markup is shown as it is typed.
key, placeholders: see admin.text_keys. locale: en, de, fr, es, it, nl, pl, pt-BR, tr, ja or ar.
Example: SELECT admin.put_text(''acme'', ''de'', ''address-title'', ''Bei Acme anmelden'');';

CREATE OR REPLACE FUNCTION admin.delete_text(realm text, locale text, key text, app text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    DELETE FROM postern.text_override AS t
     WHERE t.realm_id = v_realm AND t.app IS NOT DISTINCT FROM app AND t.locale = locale AND t.key = key;
    PERFORM postern.admin_removed(v_realm, FOUND, 'text_deleted', detail => jsonb_build_object(
        'app', app, 'locale', locale, 'key', key));
END
$$;
COMMENT ON FUNCTION admin.delete_text IS
'Gives a text of the product back.
Example: SELECT admin.delete_text(''acme'', ''de'', ''address-title'');';

CREATE OR REPLACE VIEW admin.texts AS
SELECT r.slug AS realm, t.app, t.locale, t.key, t.value
  FROM postern.text_override AS t JOIN postern.realm AS r ON r.id = t.realm_id;
COMMENT ON VIEW admin.texts IS 'Texts that realms and Apps put in the place of the product''s';

CREATE OR REPLACE VIEW admin.text_keys AS SELECT k.key, k.default_text, k.placeholders FROM postern.text_key AS k;
COMMENT ON VIEW admin.text_keys IS 'Every text of pages and messages, in English, with its placeholders';

CREATE OR REPLACE FUNCTION postern.texts_config(p_realm uuid) RETURNS jsonb
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
               'app', t.app, 'locale', t.locale, 'key', t.key, 'value', t.value))
               ORDER BY t.app NULLS FIRST, t.locale, t.key), '[]')
      FROM postern.text_override AS t WHERE t.realm_id = p_realm
$$;
COMMENT ON FUNCTION postern.texts_config IS 'The texts of a realm and its Apps, for realm_config';
GRANT EXECUTE ON FUNCTION postern.texts_config TO postern_app;

RESET ROLE;
