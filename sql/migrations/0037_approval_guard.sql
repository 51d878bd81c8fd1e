-- What protects the owner of devices from requests for approval, and what a client's requests look like.
SET LOCAL ROLE postern_owner;

ALTER TABLE postern.client ADD COLUMN match_number boolean NOT NULL DEFAULT true;
COMMENT ON COLUMN postern.client.match_number IS
    'Whether the number that the asker shows must be typed to approve; always so for a public client';

CREATE TABLE postern.approval_guard (
    realm_id    uuid NOT NULL,
    user_id     uuid NOT NULL,
    rank        integer NOT NULL DEFAULT 0,
    refused_at  timestamptz,
    quiet_until timestamptz,
    resumed_at  timestamptz NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (realm_id, user_id, rank),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE
);
COMMENT ON TABLE postern.approval_guard IS 'Who is shown no requests for approval for a while';
COMMENT ON COLUMN postern.approval_guard.rank IS 'Of the requests that are not shown (postern.rank_of_asker)';
COMMENT ON COLUMN postern.approval_guard.refused_at IS 'The last denial, wrong number or report';
COMMENT ON COLUMN postern.approval_guard.resumed_at IS 'Denials of before count no more (admin.resume_approvals)';

-- For the requests that a newer one replaces, and for the newest of a hint.
CREATE INDEX transaction_of_hint ON postern.transaction
    (realm_id, client, lower(hint COLLATE "C"), created_at) WHERE kind = 'approval';

-- To its asker a request of a deleted user looks like one that nobody answers. Nothing of the user stays in it.
CREATE FUNCTION postern.user_approvals_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    UPDATE postern.transaction AS t
       SET user_id = NULL, hint = NULL, binding_message = NULL, decided_by = NULL, is_shown = false
     WHERE t.realm_id = OLD.realm_id AND t.user_id = OLD.id AND t.kind = 'approval';
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.user_approvals_deleted() IS
    'Trigger: takes what belongs to a deleted user out of the requests that were addressed to that user';
CREATE TRIGGER user_approvals_deleted AFTER DELETE ON postern.user_account
    FOR EACH ROW EXECUTE FUNCTION postern.user_approvals_deleted();

DO $do$
BEGIN
    PERFORM postern.tenant_table('approval_guard', NULL, 'cascade',
        'greatest(t.refused_at, t.quiet_until, t.resumed_at) < now() - interval ''24 hours''');
END
$do$;

RESET ROLE;
