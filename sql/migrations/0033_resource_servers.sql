-- Clients that are resource servers: which resources (RFC 8707) they answer for.
SET LOCAL ROLE postern_owner;

ALTER TABLE postern.client ADD COLUMN resources text[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN postern.client.resources IS
    'Resources that it serves: with ept:introspection it sees the tokens for one of them only; {}: every token';

RESET ROLE;
