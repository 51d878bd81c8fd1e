-- Requests that are held wait on no connection: a notification tells each node what has changed.
SET LOCAL ROLE postern_owner;

-- p_kind: user (approvals, devices) or transaction; p_id: its id. Sent when the transaction commits.
CREATE OR REPLACE FUNCTION postern.wake(p_realm uuid, p_kind text, p_id uuid) RETURNS void
LANGUAGE sql
AS $$ SELECT pg_notify('postern_wake', p_realm || ' ' || p_kind || ' ' || p_id) $$;
COMMENT ON FUNCTION postern.wake IS 
    'Wakes the requests on all nodes that wait for a change of this user or transaction';
GRANT EXECUTE ON FUNCTION postern.wake TO postern_app;

RESET ROLE;
