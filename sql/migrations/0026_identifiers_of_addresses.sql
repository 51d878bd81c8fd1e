-- The addresses that people have already. Apart from the migration before, whose locks end with it: this one reads
-- user_account while people sign in, and the trigger stands in for what changes meanwhile.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.user_identifier (realm_id, user_id, kind, value, is_primary, added_at, proved_at)
SELECT u.realm_id, u.id, 'email', u.email, true, u.created_at, CASE WHEN u.email_verified THEN u.created_at END
  FROM postern.user_account AS u WHERE u.email IS NOT NULL
    ON CONFLICT DO NOTHING;

RESET ROLE;
