-- What a realm asks of proofs of possession (RFC 9449).
SET LOCAL ROLE postern_owner;

ALTER TABLE postern.realm
    ADD COLUMN dpop_nonce text NOT NULL DEFAULT 'auto' CHECK (dpop_nonce IN ('auto', 'required')),
    ADD COLUMN dpop_nonce_lifetime interval NOT NULL DEFAULT '5 minutes'
        CHECK (dpop_nonce_lifetime BETWEEN interval '1 minute' AND interval '30 minutes');
COMMENT ON COLUMN postern.realm.dpop_nonce IS
    'Whether each proof of possession needs a nonce of the server, or only one whose iat is not of this minute';
COMMENT ON COLUMN postern.realm.dpop_nonce_lifetime IS 'How long a nonce is accepted';

RESET ROLE;
