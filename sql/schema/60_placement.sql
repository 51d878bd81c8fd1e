-- Realms that move between PostgreSQL clusters.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.realm_move (
    realm_id    uuid PRIMARY KEY,
    state       text NOT NULL CHECK (state IN ('leaving', 'left', 'arriving')),
    peer        text NOT NULL CHECK (peer ~ '\A[a-z][a-z0-9_]{0,30}\Z'),
    started_at  timestamptz NOT NULL DEFAULT now(),
    left_at     timestamptz,
    verified_at timestamptz
);
COMMENT ON TABLE postern.realm_move IS
    'leaving: copied to the cluster peer while it is served here; left: served there, the rows here are not written '
    'any more; arriving: its rows come from peer, and it is not served here yet';
COMMENT ON COLUMN postern.realm_move.verified_at IS 'When the rows of both clusters were found to be equal';
CALL postern.tenant_table('realm_move', NULL, 'delete');

-- Copied as every table of a realm: a row of it that has arrived says that all before it has.
CREATE TABLE postern.realm_move_mark (
    realm_id uuid NOT NULL,
    id       uuid NOT NULL DEFAULT gen_random_uuid(),
    PRIMARY KEY (realm_id, id)
);
COMMENT ON TABLE postern.realm_move_mark IS
    'Written in the cluster that a realm leaves, as its last row: when it is in the other, all rows are';
CALL postern.tenant_table('realm_move_mark', NULL, 'delete');

RESET ROLE;
