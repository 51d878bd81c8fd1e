"""Rows as a realm has them after years, written by SQL: people with their addresses, sessions, the audit log, used proofs."""

from .postgres import literal

#: A person in so many has a session, and each session a row of the audit log.
SQL = """
    SET session_replication_role = replica;  -- references hold by construction
    CREATE TEMPORARY TABLE person AS
        SELECT gen_random_uuid() AS id, gen_random_uuid() AS stamp, n FROM generate_series(1, {users}) AS n;
    INSERT INTO postern.user_account (realm_id, id, email, security_stamp, first_name)
        SELECT {realm}, p.id, 'p' || p.n || {domain}, p.stamp, 'Person ' || p.n FROM person AS p;
    INSERT INTO postern.user_identifier (realm_id, user_id, kind, value, is_primary, proved_at)
        SELECT {realm}, p.id, 'email', 'p' || p.n || {domain}, true, now() FROM person AS p;
    INSERT INTO postern.session (realm_id, id, user_id, client, client_id, security_stamp, auth_time, expires_at,
                                 refresh_expires_at, token_salt, current_hash, scope, resource, amr)
        SELECT {realm}, gen_random_uuid(), p.id, c.id, c.client_id, p.stamp, date_trunc('second', now()),
               now() + interval '365 days', now() + interval '14 days', uuid_send(gen_random_uuid()),
               sha256(uuid_send(p.id)), '{{openid,profile,offline_access}}', '{{}}', '{{otp}}'
          FROM person AS p CROSS JOIN (SELECT * FROM postern.client WHERE realm_id = {realm} AND client_id = {client}) AS c
         WHERE p.n <= {sessions};
    INSERT INTO postern.audit_event (realm_id, at, user_id, event)
        SELECT {realm}, now(), p.id, 'session.opened' FROM person AS p WHERE p.n <= {sessions};
    INSERT INTO postern.used_proof (realm_id, slot, key, used_by)
        SELECT {realm}, floor(date_part('epoch', now()) / 300)::bigint % 10, hashint8extended(n, 0), n
          FROM generate_series(1, {proofs}) AS n;
    RESET session_replication_role;
"""


def populate(cluster, realm, client, users, sessions, proofs):
    """Adds so many of each to a realm; returns a function from a number (from 1) to the person's address."""
    domain = f".{realm.slug}@mail.example"
    key = f"(SELECT id FROM postern.realm WHERE slug = {literal(realm.slug)})"
    cluster.run_long(SQL.format(
        realm=key, client=literal(client), domain=literal(domain), users=users, sessions=sessions, proofs=proofs))
    cluster.run_long("VACUUM ANALYZE")
    return lambda number: f"p{number}{domain}"
