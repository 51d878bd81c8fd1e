-- Offers to undo a change of an account.
SET LOCAL ROLE postern_owner;

-- Within seven days the owner can undo what a notice tells of. Each address that a notice goes to has a link of its
-- own, which ends with that address. The link's token is this id, sealed under a key outside the database.
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
CREATE INDEX undo_link_of_user ON postern.undo_link (user_id, realm_id);
CREATE INDEX undo_link_sent_to ON postern.undo_link (sent_to, realm_id);
COMMENT ON TABLE postern.undo_link IS 'Offers to undo a change of an account; each works once';
COMMENT ON COLUMN postern.undo_link.target IS
    'The passkey, TOTP factor, identifier or device that was added; of a removal the identifier that was removed';
COMMENT ON COLUMN postern.undo_link.source IS 'Where it was done from: shown on the page, shortened';
COMMENT ON COLUMN postern.undo_link.sent_to IS 'The address or number that the link was sent to, as compared';
COMMENT ON COLUMN postern.undo_link.proven_at IS
    'Since when that address was the account''s: of two addresses that undo each other''s changes the older one wins';
CALL postern.tenant_table('undo_link', 'SELECT, INSERT', 'cascade', 't.expires_at < now()');

RESET ROLE;
