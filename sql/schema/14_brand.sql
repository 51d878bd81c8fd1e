-- The look and the words of pages and messages, per realm or App.
SET LOCAL ROLE postern_owner;

-- app NULL: the realm's own row. A NULL setting takes the realm's, then the product's.
CREATE TABLE postern.brand (
    realm_id      uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    app           text,
    product_name  text CHECK (postern.is_plain_text(product_name, 100)),
    logo          bytea CHECK (octet_length(logo) = 32),
    logo_dark     bytea CHECK (octet_length(logo_dark) = 32),
    favicon       bytea CHECK (octet_length(favicon) = 32),
    accent        text CHECK (accent COLLATE "C" ~ '\A#[0-9a-f]{6}\Z'),
    accent_dark   text CHECK (accent_dark COLLATE "C" ~ '\A#[0-9a-f]{6}\Z'),
    terms_uri     text CHECK (octet_length(terms_uri) <= 2000),
    privacy_uri   text CHECK (octet_length(privacy_uri) <= 2000),
    support_uri   text CHECK (octet_length(support_uri) <= 2000),
    mail_from     text CHECK (octet_length(mail_from) <= 400),
    mail_reply_to text CHECK (octet_length(mail_reply_to) <= 400),
    UNIQUE NULLS NOT DISTINCT (realm_id, app),
    FOREIGN KEY (realm_id, app) REFERENCES postern.app ON DELETE CASCADE
);
COMMENT ON TABLE postern.brand IS
    'Name, logos (SHA-256 of a brand_image), colours and links of a realm''s or App''s pages';
ALTER TABLE postern.brand REPLICA IDENTITY FULL;
CALL postern.tenant_table('brand', 'SELECT', 'cascade', p_is_configuration => true);

CREATE TABLE postern.brand_image (
    realm_id   uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    hash       bytea NOT NULL CHECK (octet_length(hash) = 32),
    media_type text NOT NULL CHECK (media_type IN ('image/png', 'image/webp', 'image/svg+xml')),
    data       bytea NOT NULL CHECK (octet_length(data) BETWEEN 1 AND 65536),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (realm_id, hash)
);
COMMENT ON TABLE postern.brand_image IS 'Logos as they were given, by SHA-256; the server never decodes them';
CALL postern.tenant_table('brand_image', 'SELECT', 'cascade');

CREATE TABLE postern.text_override (
    realm_id uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    app      text,
    locale   text NOT NULL CHECK (locale COLLATE "C" ~ '\A[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}\Z'),
    key      text NOT NULL,
    value    text NOT NULL CHECK (value = '' OR postern.is_plain_text(value, 1000)),
    UNIQUE NULLS NOT DISTINCT (realm_id, app, locale, key),
    FOREIGN KEY (realm_id, app) REFERENCES postern.app ON DELETE CASCADE
);
COMMENT ON TABLE postern.text_override IS 'Texts that a realm or App puts in the place of the product''s';
ALTER TABLE postern.text_override REPLICA IDENTITY FULL;
CALL postern.tenant_table('text_override', 'SELECT', 'cascade', p_is_configuration => true);

CREATE TABLE postern.text_key (
    key          text PRIMARY KEY,
    default_text text NOT NULL,
    placeholders text[] NOT NULL
);
COMMENT ON TABLE postern.text_key IS 'The texts that a realm may replace, in English; no tenant data';
CALL postern.registry_table('text_key');

RESET ROLE;
