-- A browser session collects authentication methods, and auth_time was the time of the latest one. So a passkey of
-- yesterday and a code by mail of now passed max_age as a passkey of now.
SET LOCAL ROLE postern_owner;

-- The default is set afterwards, so that existing sessions keep NULL; for them auth_time counts.
ALTER TABLE postern.browser_session ADD COLUMN proven_at timestamptz;
ALTER TABLE postern.browser_session ALTER COLUMN proven_at SET DEFAULT now();
COMMENT ON COLUMN postern.browser_session.proven_at IS
    'When methods as strong as those of amr were last proven; NULL: at auth_time';
COMMENT ON COLUMN postern.browser_session.auth_time IS 'When the user last proved a factor, however weak';

RESET ROLE;
