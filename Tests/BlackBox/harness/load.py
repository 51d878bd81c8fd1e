"""Traffic during a fault, and the audit afterwards."""

import threading
import time

from . import wire

#: What an app may be told when the fault is ours.
UNAVAILABLE = {"error": "temporarily_unavailable"}


def is_unavailable(answer):
    """503 exactly as docs/wire.md has it."""
    return (
        answer.status == 503
        and (answer.header("retry-after") or "").isdigit()
        and answer.json() == UNAVAILABLE
        and "no-store" in (answer.header("cache-control") or "")
    )


class Workers:
    """Threads that work until `_stop` is set."""

    def __init__(self, work):
        """`work`: a function and its arguments for each."""
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=function, args=arguments, daemon=True) for function, *arguments in work]

    def start(self):
        """Begins."""
        for thread in self._threads:
            thread.start()
        return self

    def stop(self):
        """Ends and waits."""
        self._stop.set()
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive(), "a request never came back"


class Load(Workers):
    """Threads that refresh their own families, redeem prepared codes and introspect, and write down what they are told."""

    def __init__(self, app, api, families, codes):
        super().__init__([(self._refresh, index) for index in range(len(families))]
                         + [(self._redeem, index) for index in range(4)] + [(self._introspect, 0)])
        self._app, self._api = app, api
        self._lock = threading.Lock()
        self.families = [dict(family, in_doubt=False) for family in families]
        self.access_tokens = [family["access_token"] for family in families]
        self.redeemed = {}
        self.doubtful = set()
        self.codes = list(codes)
        self.violations = []
        self.unavailable = 0
        self.successes = []
        self.slowest = 0.0

    def first_success_after(self, moment, timeout=10.0):
        """Waits for the first success that was asked for after a moment; returns how long after it came."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            with self._lock:
                later = [ended - moment for began, ended in self.successes if began >= moment]
            if later:
                return min(later)
            time.sleep(0.01)
        raise AssertionError(f"no success within {timeout} s; violations: {self.violations[:5]}")

    def _ask(self, what, request):
        """One request. None means 503, to be tried again."""
        began = time.monotonic()
        try:
            answer = request()
        except (OSError, wire.WireError) as problem:
            self._violation(f"{what}: {problem!r}")
            return None
        ended = time.monotonic()
        with self._lock:
            self.slowest = max(self.slowest, ended - began)
        if answer.status == 503:
            with self._lock:
                self.unavailable += 1
            if not is_unavailable(answer):
                self._violation(f"{what}: a 503 not as docs/wire.md has it: {answer}")
            time.sleep(0.02)
            return None
        if answer.status == 200:
            with self._lock:
                self.successes.append((began, ended))
        return answer

    def _violation(self, text):
        with self._lock:
            self.violations.append(text)
        time.sleep(0.05)

    def _refresh(self, index):
        family = self.families[index]
        while not self._stop.is_set():
            answer = self._ask("refresh", lambda: self._app.refresh(family["refresh_token"], timeout=15))
            if answer is None:
                continue
            if answer.status != 200:
                self._violation(f"refresh of a healthy family: {answer}")
                return
            family.update(answer.json())
            with self._lock:
                self.access_tokens.append(answer.json()["access_token"])
            time.sleep(0.01)

    def _redeem(self, index):
        for asked in self.codes[index::4]:
            while not self._stop.is_set():
                form = self._app.redeem_form(asked.code, handle=asked.handle)
                answer = self._ask("redeem", lambda form=form: self._app.token(form, timeout=15))
                if answer is None:
                    with self._lock:
                        self.doubtful.add(asked.email)
                    continue
                with self._lock:
                    if answer.status == 200:
                        self.redeemed.setdefault(asked.email, []).append(answer.json()["refresh_token"])
                        self.access_tokens.append(answer.json()["access_token"])
                    elif asked.email not in self.doubtful:
                        self.violations.append(f"redeem of a fresh code: {answer}")
                break
            if self._stop.is_set():
                return
            time.sleep(0.03)

    def _introspect(self, _):
        while not self._stop.is_set():
            token = self.access_tokens[0]
            answer = self._ask("introspect", lambda: self._api.introspect(token))
            if answer is not None and (answer.status != 200 or answer.json().get("active") is not True):
                self._violation(f"introspect of a live token: {answer}")
            time.sleep(0.02)

    def audit(self):
        """After healing: every acknowledged token works, no code opened or can open two sessions."""
        assert not self.violations, f"{len(self.violations)} violations, first: {self.violations[:5]}"
        for family in self.families:
            assert self._app.refresh(family["refresh_token"]).status == 200, "an acknowledged refresh token was lost"
        sample = self.access_tokens if len(self.access_tokens) <= 400 else self.access_tokens[-300:] + self.access_tokens[:100]
        lost = [token for token in sample if not self._api.active(token)]
        assert not lost, f"{len(lost)} of {len(sample)} acknowledged access tokens were lost"
        assert all(len(tokens) == 1 for tokens in self.redeemed.values()), self.redeemed
        for asked in self.codes:
            if asked.email in self.redeemed:
                answer = self._app.redeem(asked.code, handle=asked.handle)
                if answer.status == 200:
                    assert [answer.json()["refresh_token"]] == self.redeemed[asked.email], "a code opened two sessions"
                else:
                    assert (answer.status, answer.error) == (400, "invalid_grant"), answer
