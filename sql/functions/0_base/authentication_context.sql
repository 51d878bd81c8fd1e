-- acr: how strong a sign-in was (docs/decisions/0039). AuthenticationContext in Swift holds the same table.
SET LOCAL ROLE postern_owner;

-- 3: a passkey (phr); 2: two factors (urn:postern:acr:2); 1: one (urn:postern:acr:1).
CREATE OR REPLACE FUNCTION postern.acr_level(p_amr text[]) RETURNS integer
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN p_amr && '{hwk,swk}' THEN 3 WHEN 'mfa' = ANY (p_amr) THEN 2 ELSE 1 END;
COMMENT ON FUNCTION postern.acr_level IS 'How strong a sign-in was, by its authentication methods: 1 to 3';
GRANT EXECUTE ON FUNCTION postern.acr_level TO postern_app, postern_admin;

-- A session meets its level and every lower one. NULL: no value of ours.
CREATE OR REPLACE FUNCTION postern.level_of_acr(p_acr text) RETURNS integer
LANGUAGE sql IMMUTABLE
RETURN array_position('{urn:postern:acr:1,urn:postern:acr:2,phr}', p_acr);
COMMENT ON FUNCTION postern.level_of_acr IS 'The level that an authentication context class stands for; NULL: unknown';
GRANT EXECUTE ON FUNCTION postern.level_of_acr TO postern_app;

CREATE OR REPLACE FUNCTION postern.acr_of(p_amr text[]) RETURNS text
LANGUAGE sql IMMUTABLE
RETURN ('{urn:postern:acr:1,urn:postern:acr:2,phr}'::text[])[postern.acr_level(p_amr)];
COMMENT ON FUNCTION postern.acr_of IS 'The highest authentication context class that these methods meet';
GRANT EXECUTE ON FUNCTION postern.acr_of TO postern_app, postern_admin;

RESET ROLE;
