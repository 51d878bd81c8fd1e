-- Cotter's web wire: which address a browser proved, so that codes and sessions can name it.
SET LOCAL ROLE postern_owner;

ALTER TABLE postern.browser_session ADD COLUMN proofs jsonb NOT NULL DEFAULT '{}';
COMMENT ON COLUMN postern.browser_session.proofs IS
    'By kind (email, phone): the address last proven in it, and by which method: {"value", "method"}';
ALTER TABLE postern.authorization_code ADD COLUMN proof jsonb;
COMMENT ON COLUMN postern.authorization_code.proof IS
    'Of a request that asked for a proven address: {"kind", "value", "method"}';
ALTER TABLE postern.session ADD COLUMN proof jsonb;
COMMENT ON COLUMN postern.session.proof IS 'Of a session that such a code opened: the same';
ALTER TABLE postern.session ADD COLUMN cotter boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN postern.session.cotter IS
    'Whether Cotter''s wire opened it: apps hand its tokens to servers of their own, so they manage no account';

-- A link names its user, so an account exists before the address is proven; it goes again if that does not happen.
ALTER TABLE postern.user_account ADD COLUMN unproven_until timestamptz;
COMMENT ON COLUMN postern.user_account.unproven_until IS
    'Of an account made for a link to an unknown address: when it goes unless the address is proven; NULL: it stays';

RESET ROLE;
