-- What a sender takes: messages of all its channels in one call, with what it needs to send them.
SET LOCAL ROLE postern_owner;

-- Leases due messages (lease_messages). Per channel: how many, and the realm served last. p_held_…: one entry for
-- each message that the caller has in hand. Commit before sending.
-- recipient: mail address, number, or handle of a device. payload: sealed; NULL for a notice, which has detail.
-- realm_name: the App or realm as people know it; asked_by: the client. page_host: of the page where a code
-- is typed, else of the App or realm.
-- provider, provider_failures, refused_by: how the message fared so far. providers: who carries the channel now, in
-- order; NULL for mail. hook: what to ask before sending; NULL: nothing, or it was allowed. texts: what the App or
-- realm puts in the place of our texts, by key. accent, logo: of its brand; the address of a picture that mail programs
-- can show.
CREATE OR REPLACE FUNCTION postern.take_messages(
    p_channels text[], p_limits integer[], p_after uuid[], p_lease interval, p_share integer, p_held_channel text[],
    p_held_realm uuid[], p_held_priority integer[])
RETURNS TABLE (realm_id uuid, id uuid, channel text, recipient text, template text, kind text, purpose text,
               payload bytea, detail jsonb, attempts integer, created_at timestamptz, expires_at timestamptz,
               last_error text, priority smallint, locale text, realm text, realm_name text, app text, client_id text,
               asked_by text, page_host text, sms_hash text, provider text, provider_failures smallint,
               refused_by text[], providers jsonb, hook jsonb, mail_from text, reply_to text, texts jsonb, accent text,
               logo text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_key record;
BEGIN
    PERFORM postern.end_waits();
    FOR v_key IN
        SELECT l.realm_id, l.id
          FROM unnest(p_channels, p_limits, p_after) WITH ORDINALITY AS c (channel, wanted, after, place),
               LATERAL postern.lease_messages(
                   c.channel, c.wanted, p_lease, c.after, p_share,
                   ARRAY(SELECT h.realm FROM unnest(p_held_channel, p_held_realm) AS h (channel, realm)
                          WHERE h.channel = c.channel),
                   ARRAY(SELECT h.realm FROM unnest(p_held_channel, p_held_realm, p_held_priority)
                                                 AS h (channel, realm, priority)
                          WHERE h.channel = c.channel AND h.priority = 2)) AS l
         WHERE c.wanted > 0
    LOOP
        RETURN QUERY
        SELECT m.realm_id, m.id, m.channel::text, m.recipient::text, m.template, postern.message_kind(m.template),
               m.purpose::text, m.payload, m.detail::jsonb, m.attempts, m.created_at, m.expires_at, m.last_error::text,
               m.priority,
               coalesce(m.locale, p.default_locale, r.default_locale), r.slug,
               coalesce(s.product_name, p.display_name, r.display_name), p.slug, k.client_id, k.display_name,
               coalesce(m.page_host, p.subdomain,
                        postern.origin_host(postern.issuer(r.public_origin, r.primary_domain))),
               (SELECT a.sms_hash FROM postern.client_android_app AS a
                 WHERE a.realm_id = m.realm_id AND a.client = m.client AND a.sms_hash IS NOT NULL
                 ORDER BY a.package_name LIMIT 1),
               m.provider, m.provider_failures, m.refused_by, postern.providers(m.realm_id, m.channel),
               (SELECT jsonb_build_object('url', h.url, 'on_failure', h.on_failure)
                  FROM postern.pre_send_hook AS h WHERE h.realm_id = m.realm_id AND NOT m.is_allowed),
               s.mail_from, s.reply_to, postern.message_texts(
                   m.realm_id, p.slug, coalesce(m.locale, p.default_locale, r.default_locale)),
               s.accent, postern.issuer(r.public_origin, r.primary_domain) || '/brand/' || encode(s.logo, 'hex')
          FROM postern.message_outbox AS m JOIN postern.realm AS r ON r.id = m.realm_id
          LEFT JOIN postern.app AS p ON p.realm_id = m.realm_id AND p.slug = coalesce(m.detail ->> 'app', m.app)
          LEFT JOIN postern.client AS k ON k.realm_id = m.realm_id AND k.id = m.client
          LEFT JOIN LATERAL postern.message_brand(m.realm_id, p.slug) AS s ON true
         WHERE m.realm_id = v_key.realm_id AND m.id = v_key.id;
    END LOOP;
END
$$;
COMMENT ON FUNCTION postern.take_messages IS
    'Leases due messages of several channels, realms in turn, with all that is needed to send them';
GRANT EXECUTE ON FUNCTION postern.take_messages TO postern_app;

-- Whose messages they are, as their readers see it: name, colour and logo of the pages, the sender of the mails (NULL:
-- the server's) and where answers go. What the App has goes before the realm's. An SVG logo is left out, since mail
-- programs do not show it.
CREATE OR REPLACE FUNCTION postern.message_brand(
    p_realm uuid, p_app text, OUT product_name text, OUT accent text, OUT logo bytea, OUT mail_from text,
    OUT reply_to text)
LANGUAGE sql STABLE
AS $$
    SELECT (array_agg(b.product_name ORDER BY b.app) FILTER (WHERE b.product_name IS NOT NULL))[1],
           (array_agg(b.accent ORDER BY b.app) FILTER (WHERE b.accent IS NOT NULL))[1],
           (array_agg(b.logo ORDER BY b.app) FILTER (WHERE i.hash IS NOT NULL))[1],
           (array_agg(b.mail_from ORDER BY b.app) FILTER (WHERE b.mail_from IS NOT NULL))[1],
           (array_agg(b.mail_reply_to ORDER BY b.app) FILTER (WHERE b.mail_reply_to IS NOT NULL))[1]
      FROM postern.brand AS b
      LEFT JOIN postern.brand_image AS i
        ON i.realm_id = p_realm AND i.hash = b.logo AND i.media_type <> 'image/svg+xml'
     WHERE b.realm_id = p_realm AND coalesce(b.app = p_app, b.app IS NULL)
$$;
COMMENT ON FUNCTION postern.message_brand IS 'Name, colour, logo and sender of the messages of a realm or App';

CREATE OR REPLACE FUNCTION postern.message_texts(p_realm uuid, p_app text, p_locale text) RETURNS jsonb
LANGUAGE sql STABLE
AS $$
    SELECT jsonb_object_agg(t.key, t.value ORDER BY t.app NULLS FIRST)
      FROM postern.text_override AS t
     WHERE t.realm_id = p_realm AND coalesce(t.app = p_app, t.app IS NULL) AND t.locale = p_locale
       AND t.key ~ '\A(mail|sms|voice|time)-'
$$;
COMMENT ON FUNCTION postern.message_texts IS 'The texts of messages that a realm or App replaces, in one language';

RESET ROLE;
