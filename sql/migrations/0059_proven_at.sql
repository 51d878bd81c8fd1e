-- A browser session gathers methods, and its sign-in was as new as the latest of them: a passkey of yesterday and a
-- code by mail of now passed for a passkey of now.
SET LOCAL ROLE postern_owner;

-- The default comes afterwards, so that sessions of before keep NULL: for them auth_time says it.
ALTER TABLE postern.browser_session ADD COLUMN proven_at timestamptz;
ALTER TABLE postern.browser_session ALTER COLUMN proven_at SET DEFAULT now();
COMMENT ON COLUMN postern.browser_session.proven_at IS
    'When methods as strong as those of amr were last proven; NULL: at auth_time';
COMMENT ON COLUMN postern.browser_session.auth_time IS 'When the user last proved a factor, however weak';

RESET ROLE;
