"""Sessions in SQLite: a row under the SHA-256 of its cookie, sealed with a key that the cookie alone gives."""
import base64, contextlib, hashlib, json, os, sqlite3, time

from cryptography.fernet import Fernet

from postern import Refused, refresh, revoke

os.umask(0o077)
LIFE = 30 * 86400


def run(sql, *values):
    """One statement: its rows, or how many it changed."""
    with contextlib.closing(sqlite3.connect(os.environ["DATABASE"], timeout=5, isolation_level=None)) as database:
        cursor = database.execute(sql, values)
        return cursor.fetchall() if cursor.description else cursor.rowcount


def fernet(secret, use):
    """Encryption with a key for one use of a secret."""
    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(f"{use} {secret}".encode()).digest()))


run("CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, sid TEXT, sealed BLOB, until REAL, busy REAL)")
run("CREATE TABLE IF NOT EXISTS logout (jti TEXT PRIMARY KEY, until REAL)")


class Session:
    """The row of a cookie, whether there is one or not."""
    def __init__(self, cookie):
        self.id, self._seal = hashlib.sha256(cookie.encode()).hexdigest(), fernet(cookie, "row")

    def begin(self, sid, held):
        """Makes the row, and removes those that are over."""
        run("DELETE FROM session WHERE until < ?", time.time())
        run("INSERT INTO session VALUES (?, ?, ?, ?, 0)", self.id, sid, self._sealed(held), time.time() + LIFE)

    def end(self):
        """Signs out here, whatever Postern says. Any refresh token ends its session, so no refresh is waited for."""
        held = self._read()
        run("DELETE FROM session WHERE id = ?", self.id)
        if held:
            revoke(held["refresh"])

    def token(self, scope):
        """An access token for one audience. One refresh at a time, and it is kept before anything uses it."""
        for lock in (contextlib.nullcontext, self._locked):
            with lock():
                held = self._read()
                if not held:
                    raise Refused(401)
                if scope in held and held[scope][1] > time.time():
                    return held[scope][0]
                if lock == self._locked:
                    return self._refreshed(held, scope)

    def _refreshed(self, held, scope):
        try:
            tokens = refresh(held["refresh"], scope)
        except Refused as problem:
            if problem.document.get("error") != "invalid_grant":
                raise
            run("DELETE FROM session WHERE id = ?", self.id)
            raise Refused(401) from problem
        until = time.time() + tokens["expires_in"] - min(60, tokens["expires_in"] / 3)
        held |= {"refresh": tokens["refresh_token"], scope: (tokens["access_token"], until)}
        if not run("UPDATE session SET sealed = ? WHERE id = ?", self._sealed(held), self.id):
            revoke(tokens["refresh_token"])  # signed out meanwhile
            raise Refused(401)
        return tokens["access_token"]

    def _sealed(self, held):
        return self._seal.encrypt(json.dumps(held).encode())

    def _read(self):
        rows = run("SELECT sealed FROM session WHERE id = ? AND until > ?", self.id, time.time())
        return json.loads(self._seal.decrypt(rows[0][0])) if rows else None

    @contextlib.contextmanager
    def _locked(self):
        """One thread of all processes at a time. A process that died holds the row for a minute."""
        now, take = time.time(), "UPDATE session SET busy = ? WHERE id = ? AND busy < ?"
        while not run(take, now + 60, self.id, time.time()) and self._read():
            if time.time() > now + 10:
                raise Refused
            time.sleep(0.05)
        try:
            yield
        finally:
            run("UPDATE session SET busy = 0 WHERE id = ? AND busy = ?", self.id, now + 60)
