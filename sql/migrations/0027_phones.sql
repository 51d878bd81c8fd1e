-- Phone numbers: which ones a realm sends to and what that may cost; requests by phone; links that undo an added factor.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.phone_policy (
    realm_id       uuid PRIMARY KEY REFERENCES postern.realm ON DELETE CASCADE,
    regions        text[] NOT NULL DEFAULT '{}',
    default_region text CHECK (default_region COLLATE "C" ~ '\A[A-Z]{2}\Z'),
    sends          integer NOT NULL DEFAULT 3 CHECK (sends BETWEEN 1 AND 5),
    stale_after    interval NOT NULL DEFAULT interval '90 days',
    CHECK (array_to_string(regions, ',') COLLATE "C" ~ '\A([A-Z]{2}(,[A-Z]{2})*)?\Z')
);
COMMENT ON TABLE postern.phone_policy IS 'Where a realm sends messages to phones, and how long a proof of a number counts';
COMMENT ON COLUMN postern.phone_policy.regions IS 'ISO 3166 codes of the countries; no message goes to any other';
COMMENT ON COLUMN postern.phone_policy.stale_after IS 'A number that was proven longer ago may have passed to another person';

CREATE TABLE postern.phone_prefix (
    realm_id uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    prefix   text NOT NULL CHECK (prefix COLLATE "C" ~ '\A\+[1-9][0-9]{0,13}\Z'),
    action   text NOT NULL DEFAULT 'allow' CHECK (action IN ('allow', 'deny')),
    cost     integer NOT NULL DEFAULT 1 CHECK (cost BETWEEN 1 AND 1000),
    PRIMARY KEY (realm_id, prefix)
);
COMMENT ON TABLE postern.phone_prefix IS 'Numbers that are refused, and what a message to others costs; the longest prefix decides';

-- A handle of a request by phone names its channel and the country that the number counts to. A request to add an
-- identifier has its code on the handle: it is no code that signs in.
ALTER TABLE postern.auth_session
    ADD COLUMN channel text CONSTRAINT auth_session_channel CHECK (channel IN ('sms', 'voice', 'whatsapp')),
    ADD COLUMN region text CONSTRAINT auth_session_region CHECK (octet_length(region) <= 3),
    ADD COLUMN sends integer NOT NULL DEFAULT 0,
    ADD COLUMN last_send_at timestamptz,
    ADD COLUMN user_id uuid,
    ADD COLUMN message uuid,
    ADD COLUMN code_salt bytea CONSTRAINT auth_session_code_salt CHECK (octet_length(code_salt) = 16),
    ADD COLUMN code_mac bytea CONSTRAINT auth_session_code_mac CHECK (octet_length(code_mac) = 32),
    DROP CONSTRAINT auth_session_kind_check,
    ADD CONSTRAINT auth_session_kind_check CHECK (kind IN ('otp', 'register', 'magic', 'identifier'));
COMMENT ON COLUMN postern.auth_session.channel IS 'What carries the message to a phone; NULL: mail';
COMMENT ON COLUMN postern.auth_session.region IS 'The country of the number asked for, for the permits that a redeemed code gives back';
COMMENT ON COLUMN postern.auth_session.sends IS 'Messages asked for with this handle, but for those within the cooldown';
COMMENT ON COLUMN postern.auth_session.user_id IS 'Whose identifier is to be added (kind identifier)';
COMMENT ON COLUMN postern.auth_session.message IS 'The last message that was queued for it (mail_outbox.id)';

ALTER TABLE postern.login_code
    ADD COLUMN region text,
    ADD COLUMN source text;
COMMENT ON COLUMN postern.login_code.region IS 'Of a code to a phone: with source and number it names the permits that a redemption gives back';

-- What a notice offers: within seven days the owner undoes what it tells of. Each address that a notice goes to has a
-- link of its own, which ends with that address. The link's token is this id, sealed under a key outside the database.
CREATE TABLE postern.undo_link (
    realm_id   uuid NOT NULL,
    id         uuid NOT NULL DEFAULT gen_random_uuid(),
    user_id    uuid NOT NULL,
    target     uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL DEFAULT now() + interval '7 days',
    used_at    timestamptz,
    kind       text NOT NULL CHECK (kind IN ('passkey', 'totp', 'identifier', 'device', 'phone-key', 'removal')),
    label      text NOT NULL CHECK (octet_length(label) <= 400),
    source     text,
    sent_to    text NOT NULL,
    proven_at  timestamptz NOT NULL,
    PRIMARY KEY (realm_id, id),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE
);
CREATE INDEX undo_link_of_user ON postern.undo_link (realm_id, user_id);
CREATE INDEX undo_link_sent_to ON postern.undo_link (realm_id, sent_to);
COMMENT ON TABLE postern.undo_link IS 'Offers to undo a change of an account; each works once';
COMMENT ON COLUMN postern.undo_link.target IS
    'The passkey, TOTP factor, identifier or device that was added; of a removal the identifier that was removed';
COMMENT ON COLUMN postern.undo_link.source IS 'Where it was done from: shown on the page, shortened';
COMMENT ON COLUMN postern.undo_link.sent_to IS 'The address or number that the link was sent to, as compared';
COMMENT ON COLUMN postern.undo_link.proven_at IS
    'Since when that address was the account''s: of two addresses that undo each other''s changes the older one wins';

DO $$
BEGIN
    PERFORM postern.tenant_table('phone_policy', 'SELECT', 'cascade', p_is_configuration => true);
    PERFORM postern.tenant_table('phone_prefix', 'SELECT', 'cascade', p_is_configuration => true);
    PERFORM postern.tenant_table('undo_link', 'SELECT, INSERT', 'cascade', 't.expires_at < now()');
END
$$;

-- A realm's scope "phone" comes with its phone policy (admin.set_phone_policy).
RESET ROLE;
