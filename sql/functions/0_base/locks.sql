-- Every advisory lock of this schema, one function per class: the key to pass to pg_advisory_xact_lock or its try form.
-- One more lock stands in the trigger message_admission: mail_queue_full, per realm.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION postern.lock_of_requests(p_realm uuid, p_address_key text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtextextended(p_address_key, uuid_hash_extended(p_realm, 1));
COMMENT ON FUNCTION postern.lock_of_requests IS 'Workers decide the requests of one address one after another';
GRANT EXECUTE ON FUNCTION postern.lock_of_requests TO postern_app;

CREATE OR REPLACE FUNCTION postern.lock_of_codes(p_realm uuid, p_address_key text, p_device uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_device IS NULL THEN hashtextextended(p_address_key, uuid_hash_extended(p_realm, 2))
            ELSE hashtextextended(p_device::text, uuid_hash_extended(p_realm, 16)) END;
COMMENT ON FUNCTION postern.lock_of_codes IS
    'Codes of one address are tried one after another; a known device has a lock of its own';
GRANT EXECUTE ON FUNCTION postern.lock_of_codes TO postern_app;

CREATE OR REPLACE FUNCTION postern.lock_of_links(p_realm uuid, p_user uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtextextended(p_user::text, uuid_hash_extended(p_realm, 4));
COMMENT ON FUNCTION postern.lock_of_links IS 'Links of one user, known or not, end one after another';
GRANT EXECUTE ON FUNCTION postern.lock_of_links TO postern_app;

CREATE OR REPLACE FUNCTION postern.lock_links(p_realm uuid, p_user uuid) RETURNS void
LANGUAGE sql
AS $$ SELECT pg_advisory_xact_lock(postern.lock_of_links(p_realm, p_user)) $$;
COMMENT ON FUNCTION postern.lock_links IS
    'Waits for the lock under which links of this user end; for administrators and owners who end all access';
GRANT EXECUTE ON FUNCTION postern.lock_links TO postern_app;

CREATE OR REPLACE FUNCTION postern.try_lock_links(p_realm uuid, p_user uuid) RETURNS boolean
LANGUAGE sql
AS $$ SELECT pg_try_advisory_xact_lock(postern.lock_of_links(p_realm, p_user)) $$;
COMMENT ON FUNCTION postern.try_lock_links IS
    'Takes the lock under which links of this user end, known or not; false when another transaction has it';
GRANT EXECUTE ON FUNCTION postern.try_lock_links TO postern_app;

CREATE OR REPLACE FUNCTION postern.lock_of_registrations(p_realm uuid, p_source text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtextextended(coalesce(p_source, ''), uuid_hash_extended(p_realm, 17));
COMMENT ON FUNCTION postern.lock_of_registrations IS
    'Workers decide the registrations of one source one after another, so that none waits for its permits';
GRANT EXECUTE ON FUNCTION postern.lock_of_registrations TO postern_app;

CREATE OR REPLACE FUNCTION postern.lock_of_pushed_requests(p_realm uuid, p_client uuid, p_source text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtextextended(p_client || p_source, uuid_hash_extended(p_realm, 53));
COMMENT ON FUNCTION postern.lock_of_pushed_requests IS
    'Requests that one source pushes for one client are stored one after another, so that they can be counted';
GRANT EXECUTE ON FUNCTION postern.lock_of_pushed_requests TO postern_app;

-- Taken before any budget of messages to phones that many share. A worker only tries: it has requests of all realms.
CREATE OR REPLACE FUNCTION postern.lock_of_message_permits(p_realm uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtextextended('phone-otp', uuid_hash_extended(p_realm, 54));
COMMENT ON FUNCTION postern.lock_of_message_permits IS
    'Messages to phones of one realm are counted one after another';
GRANT EXECUTE ON FUNCTION postern.lock_of_message_permits TO postern_app;

CREATE OR REPLACE FUNCTION postern.lock_of_signing_keys(p_realm uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtextextended('postern.signing_key:' || p_realm, 0);
COMMENT ON FUNCTION postern.lock_of_signing_keys IS 'Of the servers that make a realm''s next key, one stores it';
GRANT EXECUTE ON FUNCTION postern.lock_of_signing_keys TO postern_app;

CREATE OR REPLACE FUNCTION postern.lock_of_realms() RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtextextended('postern.put_realm', 0);
COMMENT ON FUNCTION postern.lock_of_realms IS
    'Realms are put one after another, so that none takes the host of another';

CREATE OR REPLACE FUNCTION postern.lock_of_writers(p_realm uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtextextended('postern.realm_move', uuid_hash_extended(p_realm, 0));
COMMENT ON FUNCTION postern.lock_of_writers IS
    'Shared: each transaction that writes to a realm that leaves; exclusive: the move, which waits for them';

-- Held by the session of a command as long as it lasts: a statement of a command that was killed may still run.
CREATE OR REPLACE FUNCTION postern.lock_of_move(p_realm uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtextextended('move', uuid_hash_extended(p_realm, 24));
COMMENT ON FUNCTION postern.lock_of_move IS 'One command at a time moves a realm or removes its rows';

CREATE OR REPLACE FUNCTION postern.lock_of_sweep() RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtextextended('postern.sweep', 0);
COMMENT ON FUNCTION postern.lock_of_sweep IS 'One sweeper runs at a time';

RESET ROLE;
