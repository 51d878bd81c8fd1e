-- Provisioning: approvals of clients and users. admin.set_approvals is in ../device_key.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.put_approval_client(realm text, client_id text, match_number boolean DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
    v_type text;
BEGIN
    SELECT c.client_type INTO v_type FROM postern.client AS c WHERE c.realm_id = v_realm AND c.id = v_client;
    IF NOT match_number AND v_type <> 'confidential' THEN
        PERFORM postern.refuse(format('match_number false needs a confidential client, and client_id "%s" is public',
                                      client_id),
            'Anybody can ask in the name of a public client: there the number stays.');
    END IF;
    UPDATE postern.client AS c SET match_number = match_number
     WHERE c.realm_id = v_realm AND c.id = v_client AND c.match_number <> match_number;
    IF FOUND THEN
        PERFORM postern.admin_audit(v_realm, 'approval_client_put', client => v_client,
                                    detail => jsonb_build_object('match_number', match_number));
    END IF;
END
$$;
COMMENT ON FUNCTION admin.put_approval_client IS
'Sets how a client''s requests for approval (CIBA) are answered. NULL leaves a setting as it is.
match_number: whether the person types on the trusted device the two digits that the client shows (default true).
Without them a careless tap approves a stranger''s request. Public clients always have them.
Example: SELECT admin.put_approval_client(''acme'', ''acme-backend'', match_number => true);';

CREATE OR REPLACE FUNCTION admin.resume_approvals(realm text, user_id uuid)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    PERFORM postern.admin_user_id(v_realm, user_id);
    INSERT INTO postern.approval_guard AS g (realm_id, user_id, rank, resumed_at)
    SELECT v_realm, user_id, r, now() FROM generate_series(0, 2) AS r
        ON CONFLICT ON CONSTRAINT approval_guard_pkey DO UPDATE
       SET refused_at = NULL, quiet_until = NULL, resumed_at = now();
    DELETE FROM postern.rate_bucket AS b
     WHERE b.realm_id = v_realm AND b.key = 'approval|target-total|account|' || user_id;
    PERFORM postern.admin_audit(v_realm, 'approvals_resumed', user_id => user_id);
END
$$;
COMMENT ON FUNCTION admin.resume_approvals IS
'Shows a user''s devices requests for approval again, at once, after the user denied or reported some. Requests that
were hidden stay hidden: ask again.
Example: SELECT admin.resume_approvals(''acme'', id) FROM admin.users
    WHERE realm = ''acme'' AND email = ''ada@example.com'';';

-- hint is left out: it may be an address of somebody without an account.
CREATE OR REPLACE VIEW admin.approvals AS
SELECT r.slug AS realm, t.id, c.client_id, t.user_id, t.event, postern.state_of(t)::text AS state, t.reason, t.is_shown,
       t.decision, t.source, t.created_at, t.expires_at, t.resolved_at, t.decided_at, t.decided_by
  FROM postern.device_request AS t JOIN postern.realm AS r ON r.id = t.realm_id
  LEFT JOIN postern.client AS c ON c.realm_id = t.realm_id AND c.id = t.client
 WHERE t.kind = 'approval';
COMMENT ON VIEW admin.approvals IS 'Requests for approval of the last day, and what came of them';

RESET ROLE;
