-- What statements take: who calls, with which proof of possession, and within which limits.
SET LOCAL ROLE postern_owner;

-- A proof of possession of a key (RFC 9449) that a statement uses up: see use_proof.
CREATE TYPE postern.proof_use AS (
    key     bytea,
    binds   boolean,
    slot    integer,
    before  bigint,
    id      bigint,
    used_by bigint
);
COMMENT ON TYPE postern.proof_use IS
    'A proof of possession: thumbprint of its key, whether what the statement opens is bound to the key, and the'
    ' arguments of use_up_proof';

-- Who calls, under which permission, from where, and with which proof.
CREATE TYPE postern.caller AS (
    realm      uuid,
    client     uuid,
    permission text,
    source     text,
    user_agent text,
    app        text,
    proof      postern.proof_use
);
COMMENT ON TYPE postern.caller IS
    'Who calls a statement; app: on whose host, NULL: on the realm''s; proof: all NULL without one; see admit';

CREATE TYPE postern.permits AS (
    keys    text[],
    wanted  integer[],
    permits integer[],
    per     double precision[],
    burst   integer[]
);
COMMENT ON TYPE postern.permits IS 'Permits that a statement takes first: parallel arrays; see take_permits';

CREATE TYPE postern.budget AS (
    permits integer,
    per     double precision,
    burst   integer
);
COMMENT ON TYPE postern.budget IS 'A limit that a statement reads for itself: permits in per seconds, burst at once';

RESET ROLE;
