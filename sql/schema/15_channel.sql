-- Providers that carry messages to phones, mail domains, and what is asked before a message is sent.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.channel (
    realm_id    uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    created_at  timestamptz NOT NULL DEFAULT now(),
    priority    integer NOT NULL DEFAULT 100 CHECK (priority BETWEEN 0 AND 1000),
    enabled     boolean NOT NULL DEFAULT true,
    channel     text NOT NULL CHECK (postern.is_channel(channel)),
    name        text NOT NULL CHECK (name COLLATE "C" ~ '\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z'),
    provider    text NOT NULL CHECK (provider IN ('webhook', 'http', 'outbox')),
    url         text CHECK (postern.is_call_url(url)),
    sender      text CHECK (postern.is_plain_text(sender, 100)),
    secret_name text CHECK (secret_name COLLATE "C" ~ '\A[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z'),
    auth        text CHECK (auth COLLATE "C" ~ '\A(basic|bearer|header [A-Za-z0-9-]{1,64})\Z'),
    body        text CHECK (body IN ('form', 'json')),
    fields      jsonb CHECK (jsonb_typeof(fields) = 'object' AND octet_length(fields::text) <= 8192),
    PRIMARY KEY (realm_id, channel, name),
    CONSTRAINT channel_outbox CHECK (provider <> 'outbox' OR num_nonnulls(url, secret_name, auth, body, fields) = 0),
    CONSTRAINT channel_webhook
        CHECK (provider <> 'webhook' OR url IS NOT NULL AND num_nonnulls(secret_name, auth, body, fields) = 0),
    CONSTRAINT channel_http
        CHECK (provider <> 'http' OR num_nulls(url, body, fields) = 0 AND channel <> 'push'
        AND num_nulls(secret_name, auth) IN (0, 2))
);
COMMENT ON TABLE postern.channel IS 'Who carries the messages of a channel, in the order of priority';
COMMENT ON COLUMN postern.channel.provider IS
    'webhook: the operator''s own endpoint; http: a vendor''s API by template; outbox: the memory of postern dev';
COMMENT ON COLUMN postern.channel.secret_name IS 'File of POSTERN_SECRETS_DIR with the credential, which is never here';
CALL postern.tenant_table('channel', 'SELECT', 'cascade', p_is_configuration => true);

CREATE TABLE postern.address_rule (
    realm_id uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    app      text,
    domain   text NOT NULL CHECK (postern.is_host(regexp_replace(domain, '\A\*\.', ''))),
    action   text NOT NULL CHECK (action IN ('allow', 'deny')),
    UNIQUE NULLS NOT DISTINCT (realm_id, app, domain),
    FOREIGN KEY (realm_id, app) REFERENCES postern.app ON DELETE CASCADE
);
COMMENT ON TABLE postern.address_rule IS 'E-mail domains that a realm or an App accepts or refuses';
COMMENT ON COLUMN postern.address_rule.domain IS 'Exact, or *. and a domain: its sub-domains';
ALTER TABLE postern.address_rule REPLICA IDENTITY FULL;
CALL postern.tenant_table('address_rule', 'SELECT', 'cascade', p_is_configuration => true);

CREATE TABLE postern.pre_send_hook (
    realm_id   uuid PRIMARY KEY REFERENCES postern.realm ON DELETE CASCADE,
    url        text NOT NULL CHECK (postern.is_call_url(url)),
    on_failure text NOT NULL DEFAULT 'deny' CHECK (on_failure IN ('allow', 'deny'))
);
COMMENT ON TABLE postern.pre_send_hook IS 'Whom the sender asks before each message';
CALL postern.tenant_table('pre_send_hook', NULL, 'cascade');

RESET ROLE;
