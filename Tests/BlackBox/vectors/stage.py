"""Where the cases of refresh.json and sign-in.json are played: virtual time, a store, a network that does what the steps say.

A client is coroutines that wait for nothing but this stage: `send`, `sleep`, `read`, `write`, `lock`. So after each step everything that
can happen has happened, and a request too many is noticed at once.
"""

import json

from .matching import ABSENT, matches


ANY = {"$": "any"}


class Lost(Exception):
    """No answer came."""


class StoreLocked(Exception):
    """The store cannot be read or written now."""


class Cancelled(Exception):
    """The caller does not want it any more."""


class Signal:
    """Something that will have a value or an error."""

    def __init__(self):
        self.done, self.value, self.error = False, None, None

    def set(self, value=None, error=None):
        """Once."""
        if not self.done:
            self.done, self.value, self.error = True, value, error

    def __await__(self):
        while not self.done:
            yield self
        if self.error is not None:
            raise self.error
        return self.value


class Task:
    """A coroutine on the stage; its end is a signal."""

    def __init__(self, coroutine):
        self.coroutine, self.end, self.blocked, self.cancelled = coroutine, Signal(), None, False

    def step(self):
        """Runs until it waits; whether it could."""
        if self.end.done or self.blocked is not None and not self.blocked.done and not self.cancelled:
            return False
        try:
            if self.cancelled:
                self.cancelled = False
                self.blocked = self.coroutine.throw(Cancelled())
            else:
                self.blocked = self.coroutine.send(None)
        except StopIteration as result:
            self.end.set(result.value)
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.end.set(error=error)
        return True


class Stage:
    """Plays the steps of one case with clients that `make` makes."""

    def __init__(self, file, case, make):
        self.file, self.case, self.make = file, case, make
        self.now, self.shift = 0.0, 0.0
        self.document = make.document(self.named(case.get("store", {})))
        self.is_locked = self.write_fails = self.is_offline = False
        self.tasks, self.calls, self.sleepers, self.requests, self.revoked, self.states = [], {}, [], [], [], []
        self.turn = None
        self.checked = 0
        self.client = make(self, case.get("client", {}))

    # -- what a client may do ---------------------------------------------------------------------

    @property
    def wall(self):
        """The device's time of day."""
        return self.file["epoch"] + self.now + self.shift

    def spawn(self, coroutine):
        """Runs beside what runs."""
        self.tasks.append(Task(coroutine))
        return self.tasks[-1].end

    async def send(self, request):
        """The answer, or Lost."""
        if request["url"].endswith("/connect/revoke"):
            if self.is_offline:
                raise Lost
            self.revoked.append(request["form"]["token"])
            return {"status": 200}
        entry = {"request": request, "signal": Signal()}
        self.requests.append(entry)
        return await entry["signal"]

    async def sleep(self, seconds):
        """Until that much has passed."""
        signal = Signal()
        self.sleepers.append((self.now + seconds, signal))
        await signal

    async def read(self):
        """The store's document, or None."""
        if self.is_locked:
            raise StoreLocked
        return json.loads(json.dumps(self.document))

    async def write(self, document):
        """All of it."""
        if self.is_locked:
            raise StoreLocked
        if self.write_fails:
            raise OSError
        self.document = json.loads(json.dumps(document))

    async def lock(self):
        """Waits for its turn; to be released by setting what this returns."""
        mine, before = Signal(), self.turn
        self.turn = mine
        if before is not None:
            await before
        return mine

    # -- the steps ---------------------------------------------------------------------------------

    def play(self):
        """Every step, and that nothing else happened."""
        self.settle()
        for number, step in enumerate(self.case["steps"], 1):
            step = self.named(step)
            kind = next(name for name in step if hasattr(self, f"do_{name}"))
            try:
                getattr(self, f"do_{kind}")(step[kind], **{name: value for name, value in step.items() if name != kind})
                self.settle()
            except AssertionError as problem:
                raise AssertionError(f"{self.case['name']}: step {number}, {json.dumps(self.case['steps'][number - 1])}: {problem}") from problem
        assert self.checked == len(self.requests), f"{self.case['name']}: a request too many: {self.requests[self.checked]['request']}"
        untold = [name for name, (task, told) in self.calls.items() if task.end.done and not told]
        assert not untold, f"{self.case['name']}: no step says how these ended: {untold}"

    def settle(self):
        """Lets everything happen that can."""
        while any([task.step() for task in self.tasks]):
            pass

    def named(self, value):
        """The value with ID tokens in the place of their names."""
        if isinstance(value, dict):
            return {name: self.named(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self.named(part) for part in value]
        return self.file["id_tokens"][value]["jwt"] if isinstance(value, str) and value in self.file["id_tokens"] else value

    def do_call(self, name, do, **arguments):
        """A call begins."""
        assert name not in self.calls
        task = Task(getattr(self.client, do)(name, **arguments))
        self.tasks.append(task)
        self.calls[name] = [task, False]

    def do_cancel(self, name):
        """The caller gives up."""
        self.calls[name][0].cancelled = True

    def do_request(self, expected):
        """The next request that the client sent."""
        assert self.checked < len(self.requests), "no such request was sent"
        sent = self.requests[self.checked]["request"]
        self.checked += 1
        self.has_proof(expected.get("proof"), sent)
        matches({**expected, "proof": ANY}, sent, "request")

    def has_proof(self, expected, sent):
        """None is expected, or a new one for this request; of `nonce` and `iat` what the step says."""
        made = sent.get("proof")
        assert (made is None) == (expected is None), f"the proof is {made}"
        if expected is not None:
            scheme, _, token = sent.get("authorization", "").partition(" ")
            assert made.get("ath") == (token if scheme == "DPoP" else None), f"ath is of {made.get('ath')}"
            low, high = expected.get("iat", (-1e12, 1e12))
            assert low <= made["iat"] <= high, f"iat is {made['iat']}"
            matches(expected.get("nonce", ANY), made.get("nonce", ABSENT), "nonce")

    def do_answer(self, answer, to=None, after=0):
        """To the oldest request without one, or to a request by its number."""
        self.elapse(after)
        open_ones = [entry for entry in self.requests if not entry["signal"].done]
        assert open_ones, "no request waits for an answer"
        signal = (self.requests[to - 1] if to else open_ones[0])["signal"]
        if answer == "lost":
            signal.set(error=Lost())
        else:
            signal.set(answer)

    def do_pause(self, bounds, maybe=False, passes=None):
        """The client waits that long before it goes on; `passes`: the device sleeps meanwhile, and so much passes."""
        if not self.sleepers and maybe:
            return
        assert self.sleepers, "the client does not wait for a time"
        left = self.sleepers[0][0] - self.now
        assert bounds[0] <= left <= bounds[1], f"it waits {left} s"
        self.elapse(left if passes is None else passes)

    def elapse(self, seconds):
        """Time passes, and who waited for it goes on."""
        self.now += seconds
        due = [one for one in self.sleepers if one[0] <= self.now + 1e-6]
        self.sleepers = [one for one in self.sleepers if one not in due]
        for _, signal in due:
            signal.set()

    do_pass = elapse

    def do_wall(self, seconds):
        """Somebody moves the time of day."""
        self.shift += seconds

    def do_result(self, name, **expected):
        """How a call ended."""
        task = self.calls[name][0]
        assert task.end.done, "the call has not ended"
        self.calls[name][1] = True
        matches(expected, self.client.told(task.end), "result")

    def do_store(self, facts):
        """What is in the store now."""
        matches(facts, self.make.facts(self.document, self.client), "store", partly=True)

    def do_state(self, state):
        """The client's state now."""
        assert self.client.state() == state, f"the state is {self.client.state()}"

    def do_states(self, states):
        """All changes of the state so far."""
        assert self.states == states, f"the states were {self.states}"

    def do_other(self, facts):
        """Another process writes."""
        self.document = self.make.changed(self.document, facts)

    def do_locked(self, is_locked):
        """The device is locked, or unlocked."""
        self.is_locked = is_locked

    def do_writeFails(self, fails):  # pylint: disable=invalid-name
        """The disk is full, or not any more."""
        self.write_fails = fails

    def do_offline(self, is_offline):
        """Revocations do not get through, or do again."""
        self.is_offline = is_offline

    def do_revoked(self, tokens):
        """The refresh tokens that were revoked so far, in any order."""
        assert sorted(self.revoked) == sorted(tokens), f"revoked: {self.revoked}"

    def do_restart(self, _):
        """The app is ended and started: what is under way is gone, and so is all memory."""
        self.tasks, self.sleepers, self.turn = [], [], None
        for call in self.calls.values():
            call[1] = True
        for entry in self.requests:
            entry["signal"].set(error=Lost())
        self.client = self.make(self, self.case.get("client", {}))
