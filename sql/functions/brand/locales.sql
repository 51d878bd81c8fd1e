-- The languages that pages and messages have. Written by scripts/text-keys from Sources/Texts/Templates.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION postern.locales() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN '{ar,de,en,es,fr,it,ja,nl,pl,pt-BR,tr}'::text[];
COMMENT ON FUNCTION postern.locales IS 'Tags of the languages that pages and messages have';

RESET ROLE;
