-- What messages are sent by.
SET LOCAL ROLE postern_owner;

-- Sources/Persistence/Outbox/Channel.swift has the same rows.
INSERT INTO postern.known_channel (channel, reaches, amr, place) VALUES
    ('email', 'mailbox', '{otp}', 1),
    ('sms', 'phone', '{otp,sms}', 2),
    ('voice', 'phone', '{otp,tel}', 3),
    ('whatsapp', 'phone', '{otp}', 4),
    ('push', 'device', '{otp}', 5)
    ON CONFLICT (channel) DO UPDATE SET reaches = excluded.reaches, amr = excluded.amr, place = excluded.place;

-- SECURITY DEFINER: the registry is its owner's.
CREATE OR REPLACE FUNCTION postern.channel_of(p_channel text) RETURNS postern.known_channel
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT k FROM postern.known_channel AS k WHERE k.channel = p_channel
$$;
COMMENT ON FUNCTION postern.channel_of IS 'What is known of a channel; NULL: there is none of this name';
GRANT EXECUTE ON FUNCTION postern.channel_of TO postern_app;

-- Mail has one server for all realms; every other channel has providers.
CREATE OR REPLACE FUNCTION postern.channels_with_providers() RETURNS text[]
LANGUAGE sql STABLE
AS $$
    SELECT array_agg(k.channel ORDER BY k.place) FROM postern.known_channel AS k WHERE k.reaches <> 'mailbox'
$$;
COMMENT ON FUNCTION postern.channels_with_providers IS 'The channels that an administrator gives providers';

CREATE OR REPLACE VIEW admin.known_channels AS
SELECT k.channel, k.reaches, k.amr, k.place FROM postern.known_channel AS k;
COMMENT ON VIEW admin.known_channels IS
    'What messages are sent by, and what it reaches: a mailbox, a phone or an app on a device';

RESET ROLE;
