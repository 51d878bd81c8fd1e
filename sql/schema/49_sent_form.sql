-- Forms that may be sent again, and what they led to.
SET LOCAL ROLE postern_owner;

-- One row per requester: of what one browser does for one authorization request, the last form is remembered.
CREATE TABLE postern.sent_form (
    realm_id    uuid NOT NULL,
    requester   postern.bytes_32 NOT NULL,
    mark        uuid NOT NULL,
    begun_at    timestamptz NOT NULL DEFAULT now(),
    answered_at timestamptz,
    is_kept     boolean NOT NULL DEFAULT false,
    form        postern.bytes_32 NOT NULL,
    cookie_hash postern.bytes_32,
    code_hash   postern.bytes_32,
    host        postern.text_to_253 NOT NULL,
    sealed      postern.bytes_to_65536,
    PRIMARY KEY (realm_id, requester)
) WITH (fillfactor = 80);
COMMENT ON TABLE postern.sent_form IS
    'Forms that were sent, for a minute: the same form sent again is answered as the first was';
COMMENT ON COLUMN postern.sent_form.requester IS
    'SHA-256 of what only the requester has: the browser cookie, a token, a session';
COMMENT ON COLUMN postern.sent_form.mark IS 'The request that does what the form asks for';
COMMENT ON COLUMN postern.sent_form.is_kept IS
    'Answers each repetition of the form; false: only requests that waited for this answer';
COMMENT ON COLUMN postern.sent_form.cookie_hash IS
    'The browser session that the answer goes with: the answer is given while it lives. NULL: none';
COMMENT ON COLUMN postern.sent_form.code_hash IS 'The code in the answer, for the client; NULL: none';
COMMENT ON COLUMN postern.sent_form.sealed IS
    'The answer, under the key file and a key that only the form itself yields; NULL: it is under way';
CALL postern.tenant_table('sent_form', 'SELECT, INSERT, UPDATE, DELETE', 'delete',
    't.begun_at < now() - interval ''2 minutes''');

RESET ROLE;
