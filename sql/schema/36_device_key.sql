-- Keys that devices hold: trusted devices, and keys of proven phones.
SET LOCAL ROLE postern_owner;

-- One row is a trusted device (it has a user), the key of a proven phone (it has a phone), or both.
CREATE TABLE postern.device_key (
    realm_id        uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    id              uuid NOT NULL DEFAULT gen_random_uuid(),
    thumbprint      bytea NOT NULL CHECK (octet_length(thumbprint) = 32),
    public_key      bytea NOT NULL CHECK (octet_length(public_key) = 64),
    created_at      timestamptz NOT NULL DEFAULT now(),
    used_at         timestamptz NOT NULL DEFAULT now(),
    user_id         uuid,
    client          uuid,
    added_at        timestamptz,
    probation_until timestamptz,
    added_by        uuid,
    display_name    text CHECK (char_length(display_name) BETWEEN 1 AND 64),
    push_handle     bytea CHECK (octet_length(push_handle) <= 700),
    phone           text CHECK (phone COLLATE "C" ~ '\A\+[1-9][0-9]{4,14}\Z'),
    phone_at        timestamptz,
    phone_by        text CHECK (phone_by IN ('code', 'link', 'operator', 'asserted', 'test')),
    phone_client    uuid,
    PRIMARY KEY (realm_id, id),
    UNIQUE (thumbprint, realm_id),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE,
    CHECK (user_id IS NOT NULL OR phone IS NOT NULL OR added_at IS NULL),
    CONSTRAINT device_key_binding CHECK (num_nulls(phone, phone_at, phone_by, phone_client) IN (0, 4))
) WITH (fillfactor = 80);
CREATE INDEX device_key_of_user ON postern.device_key (user_id, realm_id) WHERE user_id IS NOT NULL;
CREATE INDEX device_key_of_phone ON postern.device_key (phone, realm_id) WHERE phone IS NOT NULL;
COMMENT ON TABLE postern.device_key IS 'P-256 keys of devices: trusted devices of users, keys of proven phones';
COMMENT ON COLUMN postern.device_key.thumbprint IS 'SHA-256 thumbprint of the key (RFC 7638)';
COMMENT ON COLUMN postern.device_key.public_key IS 'x and y, 32 bytes each';
COMMENT ON COLUMN postern.device_key.client IS 'Through which it became a trusted device';
COMMENT ON COLUMN postern.device_key.added_at IS 'Since when it is a trusted device of user_id';
COMMENT ON COLUMN postern.device_key.added_by IS 'The trusted device that adopted it; NULL: a sign-in';
COMMENT ON COLUMN postern.device_key.push_handle IS 'Sealed; for providers of channel push';
COMMENT ON COLUMN postern.device_key.phone_at IS
    'When it was bound; a number that changed hands since is not its number';
COMMENT ON COLUMN postern.device_key.phone_by IS
    'How it was bound. asserted (a backend said so) and test (a test number) count for phone_client alone';
COMMENT ON COLUMN postern.device_key.phone_client IS 'The client whose transaction bound the phone last';
CALL postern.tenant_table('device_key', NULL, 'cascade',
    'user_id IS NULL AND used_at < now() - interval ''12 months''');

RESET ROLE;
