"""The README and the pages for administrators, operators and app teams do what they say: every block is run, and what it prints compared."""

import os
import re
import shutil

import pytest

from harness import settings
from harness.helpers import Helpers
from harness.pages import Block, Psql, Shell, check, to_run
from harness.postgres import clean_environment
from harness.realm import Admin
from harness.world import World

ROOT = settings.REPOSITORY
DOCS = ROOT / "docs"
README, PROVISION, INTEGRATE, OPERATE = ROOT / "README.md", DOCS / "provision.md", DOCS / "integrate.md", DOCS / "operate.md"
RESOURCE_SERVERS = DOCS / "resource-servers.md"
DEVICES, POSSESSION = DOCS / "integrate-devices.md", DOCS / "possession.md"
needs_jq = pytest.mark.skipif(shutil.which("jq") is None, reason="no jq")


@pytest.fixture(scope="module")
def world():
    """A world without realms, so that the pages may name theirs."""
    made = World("docs")
    try:
        yield made.open()
    finally:
        made.close()


@pytest.fixture
def psql(world):
    """psql as a member of postern_admin; the realm `acme` is gone before and after."""
    _delete_acme(world)
    yield Psql(world.cluster, Admin.role)
    _delete_acme(world)


def _delete_acme(world):
    # At once: the slug is needed again.
    world.cluster.sql("DELETE FROM postern.realm WHERE slug = 'acme'")


def run(chosen, settle=None, **runners):
    """Runs the blocks of the languages given, in order; `settle` waits until a change of configuration is known."""
    ran = 0
    for block in chosen:
        if block.language in runners:
            check(block, runners[block.language].run(block))
            ran += 1
            if settle and block.language == "sql":
                settle()
    assert ran > 0, "nothing to run"


def test_provision(psql):
    """Every statement of the cookbook works for a member of postern_admin."""
    run(to_run(PROVISION), sql=psql)


def test_readme_for_everybody(dev, tmp_path):
    """The README's commands, against `postern dev`."""
    os.symlink(dev.data, tmp_path / ".postern")
    shell = Shell(tmp_path, clean_environment(), [
        ("localhost:8080", f"localhost:{dev.port}"), (".build/release/postern", str(settings.BINARY)),
    ])
    run(to_run(README), sh=shell)


def test_readme_for_administrators(psql):
    """The README's statements work for a member of postern_admin."""
    run(to_run(README), sql=psql)


@pytest.mark.parametrize("page", [DEVICES, POSSESSION], ids=lambda page: page.name)
def test_devices_and_possession(page, dev, tmp_path):
    """The commands of the pages for devices and phone numbers, against `postern dev`."""
    os.symlink(dev.data, tmp_path / ".postern")
    shell = Shell(tmp_path, clean_environment(), [
        ("localhost:8080", f"localhost:{dev.port}"), (".build/release/postern", str(settings.BINARY)),
    ])
    run(to_run(page), sh=shell)


@needs_jq
def test_integrate(world, psql, tmp_path):
    """Every request of the page for app teams gets the answer that it shows."""
    with Helpers(world, tmp_path) as helpers:
        shell = Shell(tmp_path, {**clean_environment(), **helpers.environment})
        run(to_run(INTEGRATE), world.settle, sql=psql, sh=shell)


@needs_jq
@pytest.mark.skipif(not (settings.CLIENTS / "joserfc").exists(), reason="no joserfc")
def test_resource_servers(world, psql, tmp_path):
    """Every check of the page for people who run an API says what it shows."""
    with Helpers(world, tmp_path) as helpers:
        shell = Shell(tmp_path, {**clean_environment(), **helpers.environment, "PYTHONPATH": str(settings.CLIENTS)})
        run(to_run(RESOURCE_SERVERS), world.settle, sql=psql, sh=shell)


def test_operate(world, psql, tmp_path):
    """The operator's questions to a running server and its database get the answers that the page shows."""
    shell = Shell(tmp_path, {**clean_environment(), **world.node.environment}, [
        ("127.0.0.1:9090", f"127.0.0.1:{world.node.ops_port}"),
        ("postern realm list", f"{settings.BINARY} realm list"),
        ("postern doctor --config /etc/postern/postern.env", f"{settings.BINARY} doctor"),
    ])
    run(to_run(OPERATE), sql=psql, sh=shell)


def pages():
    """Every page of the repository but the decisions."""
    return [README, ROOT / "CONTRIBUTING.md", ROOT / "deploy/README.md", ROOT / "examples/ios/README.md", *sorted(DOCS.glob("*.md"))]


def prose(page):
    """A page without its blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(page):
    """What links to the headings of a page end in, as GitHub makes it."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    """Files and headings that a page links to are there."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        path, _, anchor = target.partition("#")
        if "://" in path:
            continue
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(file), f"{page.name}: {target}"


def test_an_output_that_differs_is_found():
    """The comparison can fail: texts, members, types."""
    for language, shown, printed in (
        ("text", "a | b\n", "a | c\n"), ("json", '{"a": "…"}', '{"a": 1, "b": 2}'), ("json", '{"a": 1}', '{"a": true}'),
        ("json", '{"a": "x_…"}', '{"a": "y_1"}'), ("text", "(1 row)\n", "(1 row)\n(1 row)\n"),
    ):
        block = Block("page", 1, "sh", "", "", Block("page", 2, language, "", shown))
        with pytest.raises(AssertionError):
            check(block, printed)


def test_a_block_that_is_not_run_says_why(tmp_path):
    """`no-run` wants a reason, and no other remark passes."""
    page = tmp_path / "page.md"
    for remark in ("no-run", "no-run:", "skip"):
        page.write_text(f"```sh {remark}\ntrue\n```\n")
        with pytest.raises(AssertionError):
            to_run(page)
    page.write_text("```sh no-run: breaks things\nfalse\n```\n")
    assert not to_run(page)
