-- Which phone numbers a realm sends to, and what that may cost.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.phone_policy (
    realm_id       uuid PRIMARY KEY REFERENCES postern.realm ON DELETE CASCADE,
    regions        text[] NOT NULL DEFAULT '{}',
    default_region text CHECK (default_region COLLATE "C" ~ '\A[A-Z]{2}\Z'),
    sends          integer NOT NULL DEFAULT 3 CHECK (sends BETWEEN 1 AND 5),
    stale_after    interval NOT NULL DEFAULT interval '90 days',
    CHECK (array_to_string(regions, ',') COLLATE "C" ~ '\A([A-Z]{2}(,[A-Z]{2})*)?\Z')
);
-- A realm's scope "phone" comes with its phone policy (admin.set_phone_policy).
COMMENT ON TABLE postern.phone_policy IS
    'Where a realm sends messages to phones, and how long a proof of a number counts';
COMMENT ON COLUMN postern.phone_policy.regions IS 'ISO 3166 codes of the countries; no message goes to any other';
COMMENT ON COLUMN postern.phone_policy.stale_after IS
    'A number that was proven longer ago may have passed to another person';
CALL postern.tenant_table('phone_policy', 'SELECT', 'cascade', p_is_configuration => true);

CREATE TABLE postern.phone_prefix (
    realm_id uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    prefix   text NOT NULL CHECK (prefix COLLATE "C" ~ '\A\+[1-9][0-9]{0,13}\Z'),
    action   text NOT NULL DEFAULT 'allow' CHECK (action IN ('allow', 'deny')),
    cost     integer NOT NULL DEFAULT 1 CHECK (cost BETWEEN 1 AND 1000),
    PRIMARY KEY (realm_id, prefix)
);
COMMENT ON TABLE postern.phone_prefix IS
    'Numbers that are refused, and what a message to others costs; the longest prefix decides';
CALL postern.tenant_table('phone_prefix', 'SELECT', 'cascade', p_is_configuration => true);

RESET ROLE;
