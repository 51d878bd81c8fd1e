"""The pairs of the pages: a known and an unknown address at each step of a sign-in."""

import re

from . import driver
from .registry import pair


def _zip(request, xs, ys):
    return [(request(x), request(y)) for x, y in zip(xs, ys)]


def _asked(accounts, client, emails, action=None):
    """The sealed states after each address was typed, and after one more button where there is one."""
    states = _states(accounts, _zip(lambda email: accounts.address_form(client, email), *emails))
    if action:
        states = _states(accounts, _zip(lambda tx: accounts.page_form(client, tx, action), *states))
    return states


def _states(accounts, pairs):
    """Sends pairs of forms; the state that each answer leads to."""
    answers = driver.run(accounts.world.node.port, pairs, connections=6, pause=0).answers
    return [[_state(answer) for answer in side] for side in answers]


def _state(answer):
    found = re.search(rb"(?im)^location: [^\r]*[?&]tx=([\w-]+)", answer)
    assert found, answer
    return found.group(1).decode()


def _both(accounts, count):
    return accounts.users(count), accounts.addresses(count)


def _address(name, client, x, y, **how):
    @pair("page", name, x, y)
    def _make(accounts, count):
        other = accounts.users(count, **how) if how else accounts.addresses(count)
        return _zip(lambda email: accounts.address_form(client, email), accounts.users(count), other)


_address("an address", "app", "known", "unknown")
_address("an address, JitOnOtp", "app-2", "known", "unknown")
_address("an address", "app", "confirmed", "unconfirmed", verified=False)
_address("an address", "app", "confirmed", "disabled", enabled=False)


@pair("page", "a registration", "known", "unknown")
def _registration(accounts, count):
    def form(email):
        return accounts.page_form("jwt", accounts.registration_state("jwt"), "continue", address=email)
    return _zip(form, *_both(accounts, count))


@pair("page", "a code, wrong", "known", "unknown")
def _code(accounts, count):
    states = _asked(accounts, "app", _both(accounts, count))
    return _zip(lambda tx: accounts.page_form("app", tx, "continue", code="12345"), *states)


@pair("page", "a code, wrong, JitOnOtp", "known", "unknown")
def _code_jit(accounts, count):
    states = _asked(accounts, "app-2", _both(accounts, count))
    return _zip(lambda tx: accounts.page_form("app-2", tx, "continue", code="12345"), *states)


@pair("page", "a code, again", "known", "unknown")
def _resend(accounts, count):
    states = _asked(accounts, "app", _both(accounts, count))
    return _zip(lambda tx: accounts.page_form("app", tx, "resend"), *states)


@pair("page", "a code, shown", "known", "unknown", held=False)
def _code_shown(accounts, count):
    return _zip(lambda tx: accounts.page("app", tx), *_asked(accounts, "app", _both(accounts, count)))


@pair("page", "a link, asked for", "known", "unknown")
def _link(accounts, count):
    states = _asked(accounts, "app", _both(accounts, count))
    return _zip(lambda tx: accounts.page_form("app", tx, "link"), *states)


@pair("page", "a link, gone on with", "known", "unknown")
def _link_poll(accounts, count):
    states = _asked(accounts, "app", _both(accounts, count), "link")
    return _zip(lambda tx: accounts.page_form("app", tx, "continue"), *states)


@pair("page", "a link, waiting", "known", "unknown", held=False)
def _link_wait(accounts, count):
    states = _asked(accounts, "app", _both(accounts, count), "link")
    return _zip(lambda tx: accounts.page_form("app", tx, None, "/sign-in/wait"), *states)
