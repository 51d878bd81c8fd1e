"""Fixtures shared by all black-box tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness import report, settings  # noqa: E402
from harness.dev import DevServer  # noqa: E402
from harness.world import World  # noqa: E402


def pytest_collection_modifyitems(items):
    """Leaves out what only the full run wants."""
    for item in items:
        if "full" in item.keywords and not settings.FULL:
            item.add_marker(pytest.mark.skip(reason="only with POSTERN_FULL=1"))


def pytest_sessionfinish(session):
    """A process that runs a part of the tests hands over what they counted."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["lines"] = report.LINES


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Takes what such a process counted."""
    report.LINES.extend(getattr(node, "workeroutput", {}).get("lines", []))


def pytest_terminal_summary(terminalreporter):
    """Prints what the tests counted."""
    for line in report.LINES:
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def world():
    """The world most tests share; nothing in it is killed."""
    made = World("main", lasting=True)
    try:
        yield made.open()
        made.assert_no_secret_at_rest()
    finally:
        made.close()


@pytest.fixture(scope="module")
def browser_world(request):
    """A world of one module's own where `localhost` is a realm's domain: browsers take no other host without TLS, and elsewhere it must be
    unknown."""
    made = World(request.module.__name__.removeprefix("test_"), lasting=True)
    try:
        yield made.open()
    finally:
        made.close()


@pytest.fixture(scope="module")
def fragile_world(request):
    """A world of one module's own, to be killed and revived."""
    made = World(request.module.__name__.removeprefix("test_"))
    try:
        yield made.open()
    finally:
        made.close()


@pytest.fixture(scope="module")
def second_node(world):
    """Another process on the same database: what must be exact cannot live in memory."""
    node = world.start_node()
    yield node
    node.stop()


@pytest.fixture(scope="module")
def proxied_node(world):
    """A node that takes 127.0.0.1 for its proxy, so that a test can come from anywhere."""
    node = world.start_node(POSTERN_TRUSTED_PROXIES="127.0.0.0/8")
    yield node
    node.stop()


@pytest.fixture(scope="session")
def dev():
    """`postern dev`, for what only exists there."""
    made = DevServer()
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture(scope="module")
def realm(world):
    """One realm per module: native grants on, no cooldown, high limits."""
    return world.realm()


@pytest.fixture
def app(realm):
    """A public client with all grants and reference access tokens."""
    return realm.app()


@pytest.fixture
def api(realm):
    """The confidential client that may introspect any token of the realm."""
    return realm.app("api")


@pytest.fixture
def email(realm):
    """A confirmed user of this test's own."""
    return realm.user()
