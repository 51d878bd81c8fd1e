-- Provisioning: the look of pages and messages.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.sweep_rule (table_name, condition) VALUES
    ('brand_image', 't.created_at < now() - interval ''1 day'' AND NOT EXISTS (SELECT FROM postern.brand AS b '
                    'WHERE b.realm_id = t.realm_id AND t.hash IN (b.logo, b.logo_dark, b.favicon))')
    ON CONFLICT (table_name) DO UPDATE SET condition = excluded.condition;

-- WCAG 2.2: relative luminance of an sRGB colour #rrggbb.
CREATE OR REPLACE FUNCTION postern.luminance(colour text) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT sum(w.weight * CASE WHEN c.part <= 0.04045 THEN c.part / 12.92 ELSE ((c.part + 0.055) / 1.055) ^ 2.4 END)
      FROM (VALUES (0, 0.2126::double precision), (1, 0.7152), (2, 0.0722)) AS w (place, weight),
           LATERAL (SELECT get_byte(decode(substr($1, 2), 'hex'), w.place) / 255.0::double precision AS part) AS c
$$;
COMMENT ON FUNCTION postern.luminance IS 'Relative luminance of #rrggbb, 0 to 1 (WCAG 2.2)';

CREATE OR REPLACE FUNCTION postern.contrast(one text, other text) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT (greatest(a, b) + 0.05) / (least(a, b) + 0.05)
      FROM (SELECT postern.luminance($1) AS a, postern.luminance($2) AS b) AS l
$$;
COMMENT ON FUNCTION postern.contrast IS 'Contrast ratio of two colours, 1 to 21 (WCAG 2.2)';

-- p_page: the colour of the card that the accent is seen on, as in Sources/HostedPages/Templates/pages.css.
CREATE OR REPLACE FUNCTION postern.check_accent(argument text, value text, p_page text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF value COLLATE "C" !~ '\A(#[0-9a-f]{6})?\Z' THEN
        PERFORM postern.refuse(format('%s %s is not a colour', argument, postern.shown(value)),
                               'Allowed is #rrggbb with lower-case hexadecimal digits, for example #1f5fbf.');
    ELSIF value <> '' AND postern.contrast(value, p_page) < 3 THEN
        PERFORM postern.refuse(
            format('%s %s has a contrast of %s:1 against the page', argument, postern.shown(value),
                   trunc(postern.contrast(value, p_page)::numeric, 1)),
            format('Buttons need 3:1 against %s: choose a %s colour.', p_page,
                   CASE WHEN postern.luminance(p_page) > 0.5 THEN 'darker' ELSE 'lighter' END));
    END IF;
END
$$;
COMMENT ON FUNCTION postern.check_accent IS
    'Refuses a colour that people cannot tell from the page; NULL and '''' pass';

CREATE OR REPLACE FUNCTION postern.check_page_uri(argument text, value text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF value <> '' AND (octet_length(value) > 2000 OR value COLLATE "C" !~
            '\A(https://[a-z0-9.-]+(:[0-9]{1,5})?(/[!-;=?-~]*)?|mailto:[!-;=?-~]+)\Z' OR value ~ '["''\\`{|}^]') THEN
        PERFORM postern.refuse(format('%s %s is not a link', argument, postern.shown(value)),
                               'Allowed are https://host/path and mailto:address of at most 2,000 bytes, in ASCII.');
    END IF;
END
$$;
COMMENT ON FUNCTION postern.check_page_uri IS 'Refuses what cannot be a link of a page; NULL and '''' pass';

-- Stores an image and returns its hash. By its first bytes: the name that somebody gives a file says little.
CREATE OR REPLACE FUNCTION postern.put_brand_image(p_realm uuid, argument text, image bytea) RETURNS bytea
LANGUAGE plpgsql
AS $$
DECLARE
    v_type text := CASE
        WHEN substr(image, 1, 8) = '\x89504e470d0a1a0a' THEN 'image/png'
        WHEN substr(image, 1, 4) = 'RIFF' AND substr(image, 9, 4) = 'WEBP' THEN 'image/webp'
        WHEN position('<svg'::bytea IN substr(image, 1, 1024)) > 0
            AND convert_from(substr(image, 1, 1), 'LATIN1') IN ('<', chr(239), ' ', chr(10)) THEN 'image/svg+xml' END;
BEGIN
    IF octet_length(image) = 0 OR image IS NULL THEN
        RETURN NULL;
    END IF;
    IF octet_length(image) > 65536 THEN
        PERFORM postern.refuse(format('%s has %s bytes', argument, octet_length(image)),
                               'Allowed are 65,536 bytes. A logo is shown 48 pixels high; SVG is the smallest.');
    ELSIF v_type IS NULL THEN
        PERFORM postern.refuse(format('%s is not an image', argument), 'Allowed are PNG, WebP and SVG.');
    END IF;
    INSERT INTO postern.brand_image (realm_id, hash, media_type, data)
    VALUES (p_realm, sha256(image), v_type, image) ON CONFLICT DO NOTHING;
    RETURN sha256(image);
END
$$;
COMMENT ON FUNCTION postern.put_brand_image IS 'Stores a logo and returns its SHA-256; NULL for no image';

CREATE OR REPLACE FUNCTION postern.check_app(p_realm uuid, app text) RETURNS void
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
BEGIN
    IF app IS NOT NULL AND NOT EXISTS (SELECT FROM postern.app AS a WHERE a.realm_id = p_realm AND a.slug = app) THEN
        PERFORM postern.refuse(format('app %s is not an App of this realm', postern.shown(app)),
                               'admin.put_app makes one.');
    END IF;
END
$$;
COMMENT ON FUNCTION postern.check_app IS 'Refuses what is not an App of the realm; NULL passes';

CREATE OR REPLACE FUNCTION postern.check_mailbox(argument text, value text) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_address text := coalesce(substring(value FROM '<([^<>]*)>\Z'), value);
BEGIN
    IF value <> '' AND (octet_length(value) > 400 OR NOT postern.is_email(v_address)
                        OR value COLLATE "C" ~ '[\x01-\x1f\x7f"\\;,]') THEN
        PERFORM postern.refuse(format('%s %s is not a mailbox', argument, postern.shown(value)),
                               'Allowed is one address, with or without a name: Acme <login@acme.example>.');
    END IF;
END
$$;
COMMENT ON FUNCTION postern.check_mailbox IS 'Refuses what is not one mailbox; NULL and '''' pass';

CREATE OR REPLACE FUNCTION admin.set_branding(
    realm text, product_name text DEFAULT NULL, logo bytea DEFAULT NULL, logo_dark bytea DEFAULT NULL,
    favicon bytea DEFAULT NULL, accent text DEFAULT NULL, accent_dark text DEFAULT NULL, terms_uri text DEFAULT NULL,
    privacy_uri text DEFAULT NULL, support_uri text DEFAULT NULL, mail_from text DEFAULT NULL,
    mail_reply_to text DEFAULT NULL, app text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_logo bytea := postern.put_brand_image(v_realm, 'logo', logo);
    v_logo_dark bytea := postern.put_brand_image(v_realm, 'logo_dark', logo_dark);
    v_favicon bytea := postern.put_brand_image(v_realm, 'favicon', favicon);
BEGIN
    PERFORM postern.check_app(v_realm, app);
    PERFORM postern.check_text('product_name', nullif(product_name, ''), 100);
    PERFORM postern.check_accent('accent', accent, '#ffffff');
    PERFORM postern.check_accent('accent_dark', accent_dark, '#1c2128');
    PERFORM postern.check_page_uri('terms_uri', terms_uri);
    PERFORM postern.check_page_uri('privacy_uri', privacy_uri);
    PERFORM postern.check_page_uri('support_uri', support_uri);
    PERFORM postern.check_mailbox('mail_from', mail_from);
    PERFORM postern.check_mailbox('mail_reply_to', mail_reply_to);
    INSERT INTO postern.brand (realm_id, app) VALUES (v_realm, app) ON CONFLICT DO NOTHING;
    -- NULL leaves a setting, an empty value removes it.
    UPDATE postern.brand AS b
       SET product_name = CASE WHEN product_name IS NULL THEN b.product_name ELSE nullif(product_name, '') END,
           logo = CASE WHEN logo IS NULL THEN b.logo ELSE v_logo END,
           logo_dark = CASE WHEN logo_dark IS NULL THEN b.logo_dark ELSE v_logo_dark END,
           favicon = CASE WHEN favicon IS NULL THEN b.favicon ELSE v_favicon END,
           accent = CASE WHEN accent IS NULL THEN b.accent ELSE nullif(accent, '') END,
           accent_dark = CASE WHEN accent_dark IS NULL THEN b.accent_dark ELSE nullif(accent_dark, '') END,
           terms_uri = CASE WHEN terms_uri IS NULL THEN b.terms_uri ELSE nullif(terms_uri, '') END,
           privacy_uri = CASE WHEN privacy_uri IS NULL THEN b.privacy_uri ELSE nullif(privacy_uri, '') END,
           support_uri = CASE WHEN support_uri IS NULL THEN b.support_uri ELSE nullif(support_uri, '') END,
           mail_from = CASE WHEN mail_from IS NULL THEN b.mail_from ELSE nullif(mail_from, '') END,
           mail_reply_to = CASE WHEN mail_reply_to IS NULL THEN b.mail_reply_to ELSE nullif(mail_reply_to, '') END
     WHERE b.realm_id = v_realm AND b.app IS NOT DISTINCT FROM app;
    PERFORM postern.admin_audit(v_realm, 'branding_set', detail => jsonb_build_object(
        'app', app, 'product_name', product_name, 'logo', encode(v_logo, 'hex'),
        'logo_dark', encode(v_logo_dark, 'hex'), 'favicon', encode(v_favicon, 'hex'), 'accent', accent,
        'accent_dark', accent_dark, 'terms_uri', terms_uri,
        'privacy_uri', privacy_uri, 'support_uri', support_uri, 'mail_from', mail_from,
        'mail_reply_to', mail_reply_to));
END
$$;
COMMENT ON FUNCTION admin.set_branding IS
'Sets the look of the pages and the sender of the mails of a realm, or of one App (which otherwise does as the realm).
NULL leaves a setting as it is; an empty value removes it.
logo, logo_dark, favicon: PNG, WebP or SVG of at most 64 KiB. accent, accent_dark: #rrggbb for buttons, on light and on
dark pages; at least 3:1 against the page (#ffffff, #1c2128). Without accent_dark a lighter shade of accent is used.
terms_uri, privacy_uri, support_uri: links in the footer; with terms_uri a registration asks to accept the terms.
mail_from, mail_reply_to: mailboxes such as Acme <login@acme.example>.
Example: SELECT admin.set_branding(''acme'', product_name => ''Acme'', accent => ''#1f5fbf'',
    terms_uri => ''https://acme.example/terms'');';

CREATE OR REPLACE VIEW admin.branding AS
SELECT r.slug AS realm, b.app, b.product_name, encode(b.logo, 'hex') AS logo, encode(b.logo_dark, 'hex') AS logo_dark,
       encode(b.favicon, 'hex') AS favicon, b.accent, b.accent_dark, b.terms_uri, b.privacy_uri, b.support_uri,
       b.mail_from, b.mail_reply_to
  FROM postern.brand AS b JOIN postern.realm AS r ON r.id = b.realm_id;
COMMENT ON VIEW admin.branding IS 'Names, colours, links and logos (SHA-256) of pages and mails';

-- What servers put into their snapshot of a realm: one member per realm and App that has a look of its own.
CREATE OR REPLACE FUNCTION postern.brands_config(p_realm uuid) RETURNS jsonb
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
               'app', b.app, 'product_name', b.product_name, 'logo', encode(b.logo, 'hex'),
               'logo_dark', encode(b.logo_dark, 'hex'), 'favicon', encode(b.favicon, 'hex'), 'accent', b.accent,
               'accent_dark', b.accent_dark, 'terms_uri', b.terms_uri, 'privacy_uri', b.privacy_uri,
               'support_uri', b.support_uri, 'mail_from', b.mail_from, 'mail_reply_to', b.mail_reply_to))
               ORDER BY b.app NULLS FIRST), '[]')
      FROM postern.brand AS b WHERE b.realm_id = p_realm
$$;
COMMENT ON FUNCTION postern.brands_config IS 'The looks of a realm and its Apps, for realm_config';
GRANT EXECUTE ON FUNCTION postern.brands_config TO postern_app;

CREATE OR REPLACE FUNCTION postern.brand_image(p_realm uuid, p_hash bytea, OUT media_type text, OUT data bytea)
RETURNS SETOF record
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    RETURN QUERY SELECT i.media_type, i.data FROM postern.brand_image AS i
                  WHERE i.realm_id = p_realm AND i.hash = p_hash;
END
$$;
COMMENT ON FUNCTION postern.brand_image IS 'A logo of a realm by its SHA-256';
GRANT EXECUTE ON FUNCTION postern.brand_image TO postern_app;

RESET ROLE;
