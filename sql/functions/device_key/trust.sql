-- Which keys are trusted devices, and what a trusted device may do.
SET LOCAL ROLE postern_owner;

-- SECURITY DEFINER here and below: the app role reads and changes keys by functions alone.
CREATE OR REPLACE FUNCTION postern.device_by_key(p_realm uuid, p_thumbprint bytea)
RETURNS SETOF postern.device_key
LANGUAGE sql STABLE ROWS 1 SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT d.* FROM postern.device_key AS d
     WHERE d.realm_id = p_realm AND d.thumbprint = p_thumbprint
       AND (SELECT u.enabled FROM postern.user_account AS u WHERE u.realm_id = d.realm_id AND u.id = d.user_id)
$$;
COMMENT ON FUNCTION postern.device_by_key IS
    'The trusted device that holds a key; no row for other keys and while its user is disabled';

-- For statements that look at all devices of a user; whether the user is enabled, they have to ask themselves.
CREATE OR REPLACE FUNCTION postern.device_may_approve(d postern.device_key) RETURNS boolean
LANGUAGE sql STABLE
RETURN d.user_id IS NOT NULL AND coalesce(d.probation_until <= now(), true);
COMMENT ON FUNCTION postern.device_may_approve IS
    'Whether a key is a trusted device off probation, which may approve, adopt and sign in';

RESET ROLE;
