-- Tells a rotation that the server repeats, because an answer was lost, from a token that is presented again.
SET LOCAL ROLE postern_owner;

ALTER TABLE postern.session ADD COLUMN rotation_mark bigint;
COMMENT ON COLUMN postern.session.rotation_mark IS
    'Random number of the request that made the live refresh token: the same request gets the same answer again';

RESET ROLE;
