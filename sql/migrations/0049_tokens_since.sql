-- A form of migration 19 was in use whose trigger lacked the second statement. Databases that began with it get it here;
-- for all others this changes no behaviour.
SET LOCAL ROLE postern_owner;

-- iat is rounded down. The next whole second keeps a token of the present second from living on, and each change a token
-- of the change before it. An administrator who changes a client many times in a second moves it a minute at most.
CREATE OR REPLACE FUNCTION postern.service_account_since() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    NEW.tokens_since := date_trunc('second', clock_timestamp()) + interval '1 second';
    IF OLD.tokens_since BETWEEN NEW.tokens_since AND NEW.tokens_since + interval '1 minute' THEN
        NEW.tokens_since := OLD.tokens_since + interval '1 second';
    END IF;
    RETURN NEW;
END
$$;

RESET ROLE;
