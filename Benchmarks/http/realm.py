"""The bench realm as an administrator would set it up, and the material requests are made of."""

import base64
import hashlib
import http.client
import json
import subprocess

from harness.dpop import ProofKey

from paths import BINARIES, SQL
from server import HOST

#: Limits far above any rate here; permits are taken all the same.
LIMITS = [
    (policy, dimension) for policy in ("native-otp", "magic-link", "passkey-begin", "token")
    for dimension in (("target", "target-total") if policy in ("native-otp", "magic-link") else ()) + ("source", "client", "app")
] + [("authorize", "source"), ("par", "source"), ("par", "client")]
#: Where the codes of the client bench-web go, and the verifier of all of them.
REDIRECT, VERIFIER = "https://app.example.com/cb", "x" * 64

_PROVISION = f"""
SELECT admin.put_realm('bench', primary_domain => '{HOST}');
SELECT admin.set_code_policy('bench', resend_cooldown => '0');
SELECT admin.put_scope('bench', s) FROM unnest(ARRAY['openid', 'offline_access', 'profile', 'email']) AS s;
SELECT admin.put_client('bench', 'bench-app', 'public', 'App', rp_id => '{HOST}');
SELECT admin.put_client('bench', 'bench-jwt', 'public', 'App', access_token_type => 'jwt', rp_id => '{HOST}');
SELECT admin.grant_permission('bench', c, 'gt:urn:cocoar:otp', 'gt:urn:cocoar:passkey', 'gt:refresh_token', 'scp:profile', 'scp:email')
  FROM unnest(ARRAY['bench-app', 'bench-jwt']) AS c;
SELECT admin.put_client('bench', 'bench-api', 'confidential', 'API');
SELECT admin.grant_permission('bench', 'bench-api', 'ept:introspection');
SELECT admin.set_hosted('bench', true);
SELECT admin.put_client('bench', 'bench-web', 'public', 'Web');
SELECT admin.grant_permission('bench', 'bench-web', 'gt:authorization_code', 'gt:refresh_token', 'scp:profile', 'scp:email');
SELECT admin.put_redirect_uri('bench', 'bench-web', '{REDIRECT}');
"""


class Realm:
    """The realm `bench` of sql/bench/seed.sql, ready to be served."""

    def __init__(self, database, directory, key_file):
        self.database, self.directory, self.key_file = database, directory, key_file
        database.sql(_PROVISION)
        for policy, dimension in LIMITS:
            database.sql(f"SELECT admin.set_rate_limit('bench', '{policy}', '{dimension}', 1000000, '1 minute', 1000000, 'enforce')")
        self.id = database.sql("SELECT bench.uid('realm', 1)")[0][0]
        secret = database.sql("SELECT admin.rotate_client_secret('bench', 'bench-api')")[0][0]
        self.basic = base64.b64encode(f"bench-api:{secret}".encode()).decode()
        self._user = 0
        self._authorization_code = 1
        self.key, self._bound, self.port = ProofKey(), [], None
        database.script(SQL / "hosted.sql")

    def seed(self, what, count, *arguments):
        """Runs BenchSeed; returns the path of the values and loads the rows into bench.material."""
        command = [BINARIES / "BenchSeed", self.key_file, self.id, self.directory, what, count, *arguments]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise RuntimeError(f"BenchSeed {what}: {done.stderr[-1000:]}")
        rows = self.directory / f"{what}.rows"
        if rows.exists():
            self.database.copy("bench.material", rows)
            rows.unlink()
        return self.directory / f"{what}.values"

    def client(self, client_id):
        """The client's row key."""
        return self.database.sql(f"SELECT id FROM postern.client WHERE client_id = '{client_id}'")[0][0]

    def refresh_tokens(self, count, client_id, scope):
        """One live family per value."""
        values = self.seed("refresh", count)
        self.database.sql(f"""
            INSERT INTO postern.session (realm_id, id, user_id, client, client_id, security_stamp, auth_time, expires_at, refresh_expires_at,
                                         token_salt, current_hash, scope, resource, amr)
            SELECT u.realm_id, m.c1::uuid, u.id, k.id, k.client_id, u.security_stamp, now(), now() + interval '365 days',
                   now() + interval '14 days', decode(m.c2, 'hex'), decode(m.c3, 'hex'), '{scope}', ARRAY[k.client_id], '{{otp}}'
              FROM (SELECT *, row_number() OVER () AS n FROM bench.material) AS m
              JOIN postern.user_account AS u ON u.realm_id = bench.uid('realm', 1) AND u.id = bench.uid('user', 1 + (m.n * 7919) % bench.users())
              JOIN postern.client AS k ON k.realm_id = u.realm_id AND k.client_id = '{client_id}'""")
        return values

    def access_tokens(self, count):
        """Opaque access tokens of sessions all over the table."""
        auth_time = self.database.sql("SELECT extract(epoch FROM auth_time)::bigint FROM postern.session WHERE id = bench.uid('session', 1)")[0][0]
        return self.seed("access", count, self.database.sessions, auth_time, "bench-app")

    def codes(self, count, by):
        """One live code each for `count` users; form parameters that redeem it by `auth_session` or by `username`."""
        if count > self.database.users:
            raise RuntimeError(f"{count} codes want as many users")
        if self._user + count > self.database.users:
            self._user = 0
        values = self.seed("codes", count, self._user + 1)
        self._user += count
        self.database.sql("""
            TRUNCATE postern.login_code, postern.sign_in_request;
            WITH one AS (SELECT 'user' || c1 || '@example.org' AS email, c1::bigint AS n, decode(c2, 'hex') AS handle, decode(c3, 'hex') AS salt,
                                decode(c4, 'hex') AS mac, gen_random_uuid() AS code FROM bench.material),
            codes AS (INSERT INTO postern.login_code (realm_id, address_key, id, user_id, expires_at, salt, mac)
                      SELECT bench.uid('realm', 1), email, code, bench.uid('user', n), now() + interval '1 hour', salt, mac FROM one)
            INSERT INTO postern.sign_in_request (realm_id, id, kind, email, address_key, expires_at, pending, code_ids)
            SELECT bench.uid('realm', 1), handle, 'otp', email, email, now() + interval '1 hour', false, ARRAY[code] FROM one;
            ANALYZE postern.login_code, postern.sign_in_request""")
        path = self.directory / f"codes-{by}.values"
        with open(values, encoding="ascii") as source, open(path, "w", encoding="ascii") as target:
            for line in source:
                username, handle = line.rstrip("\n").split("\t")
                target.write(f"auth_session={handle}\n" if by == "auth_session" else f"username={username.replace('@', '%40')}\n")
        return path

    def assertions(self, count, users=10_000):
        """Signed assertions of fresh ceremonies, in turn by the passkeys of `users` people."""
        values = self.seed("passkeys", count, self.client("bench-app"), HOST, users)
        self.database.sql(f"""
            UPDATE postern.user_account AS u SET user_handle = decode(m.c4, 'hex')
              FROM bench.material AS m WHERE u.realm_id = bench.uid('realm', 1) AND u.id = bench.uid('user', m.c1::bigint);
            DELETE FROM postern.passkey WHERE display_name = 'material';
            INSERT INTO postern.passkey (realm_id, user_id, rp_id, credential_id, public_key, backup_eligible, backup_state, display_name)
            SELECT bench.uid('realm', 1), bench.uid('user', c1::bigint), '{HOST}', decode(c2, 'hex'), decode(c3, 'hex'), true, true, 'material'
              FROM bench.material;
            VACUUM ANALYZE postern.passkey, postern.user_account""")
        return values

    def addresses(self, count, known):
        """Distinct addresses, of people or of nobody."""
        path = self.directory / "addresses.values"
        if known and self._user + count > self.database.users:
            self._user = 0
        with open(path, "w", encoding="ascii") as target:
            for n in range(self._user + 1, self._user + count + 1):
                target.write(f"user{n}@example.org\n" if known else f"stranger{n}@example.net\n")
        self._user += count
        return path

    @staticmethod
    def _random_text(prefix, number):
        """As bench.random_text."""
        return prefix + base64.urlsafe_b64encode(hashlib.sha256(number.to_bytes(8, "big")).digest()).decode().rstrip("=")

    def browsers(self):
        """The session cookies of the signed-in browsers of sql/bench/hosted.sql."""
        path = self.directory / "browsers.values"
        path.write_text("".join(f"{self._random_text('pss_', n)}\n" for n in range(1, 50_001)), encoding="ascii")
        return path

    def authorization_codes(self, count):
        """Live codes of the client bench-web."""
        first, self._authorization_code = self._authorization_code, self._authorization_code + count
        self.database.sql(
            f"TRUNCATE postern.authorization_code; SELECT bench.seed_authorization_codes({first}, {count}); ANALYZE postern.authorization_code")
        path = self.directory / "authorization-codes.values"
        path.write_text("".join(f"{self._random_text('pac_', n)}\n" for n in range(first, first + count)), encoding="ascii")
        return path

    def proofs(self, path, tokens, count):
        """Proofs of one key for requests of now (RFC 9449): each serves once. `tokens`: the file of the tokens that they go with."""
        target = self.directory / "proofs.values"
        texts = tokens.read_text(encoding="ascii").split("\n") if tokens else [None] * count
        method = "GET" if tokens else "POST"
        with open(target, "w", encoding="ascii") as file:
            for token in texts:
                if token != "":
                    file.write(self.key.proof(method, f"https://{HOST}{path}", token=token) + "\n")
        return target

    def bound_tokens(self, count):
        """A few hundred tokens that are bound to the key, in turn."""
        path = self.directory / "bound.values"
        if not self._bound:
            for token in self.refresh_tokens(200, "bench-app", "{openid,profile,offline_access}").read_text(encoding="ascii").split():
                form = f"grant_type=refresh_token&client_id=bench-app&refresh_token={token}"
                proof = self.key.proof("POST", f"https://{HOST}/connect/token")
                self._bound.append(self.ask("POST", "/connect/token", form, {"DPoP": proof})["access_token"])
        path.write_text("".join(f"{self._bound[n % len(self._bound)]}\n" for n in range(int(count))), encoding="ascii")
        return path

    def ask(self, method, path, form, headers):
        """One request to the server that is measured."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request(method, path, form, {"Host": HOST, "Content-Type": "application/x-www-form-urlencoded", **headers})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {body}")
        return json.loads(body)

    def nothing(self):
        """For requests that are all alike."""
        path = self.directory / "nothing.values"
        path.write_text("-\n")
        return path
