-- Which address a browser proved is in browser_session.proofs, for all who ask; two columns said it once more.
SET LOCAL ROLE postern_owner;

COMMENT ON COLUMN postern.browser_session.email_proved IS 'Not used: proofs says it; a later release drops the column';
COMMENT ON COLUMN postern.browser_session.phone_proved IS 'Not used: proofs says it; a later release drops the column';

RESET ROLE;
