"""The Swift of the pages and of examples/ios fits the library; the example's model signs in at a server."""

import json
import re
import shutil
import subprocess
import time

import pytest
import yaml

from harness import settings, swift_pages
from harness.pages import blocks
from harness.postgres import clean_environment

pytestmark = pytest.mark.skipif(shutil.which("swiftc") is None, reason="no swiftc")
DOCS, EXAMPLE = settings.REPOSITORY / "docs", settings.REPOSITORY / "examples/ios"
SOURCES = EXAMPLE / "Sources"


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """The library beside declarations of Apple's frameworks."""
    return swift_pages.apple_modules(tmp_path_factory.mktemp("apple") / "modules")


def swift(page):
    """The blocks of a page that are Swift, but those that say why they are not."""
    chosen = [block for block in blocks(page) if block.language == "swift" and not block.remark]
    assert chosen
    return chosen


def written(folder, chosen):
    """A file for each block. On Linux URLSession is in a module of its own."""
    files = []
    for block in chosen:
        files.append(folder / f"{block.page}-line-{block.line}.swift")
        files[-1].write_text("import FoundationNetworking\n" + block.text, encoding="utf-8")
    return files


def test_the_blocks_of_the_ios_page_are_one_app(modules, tmp_path):
    swift_pages.check(modules, "Page", written(tmp_path, swift(DOCS / "integrate-ios.md")))


def test_the_view_of_the_quick_start_fits_the_library(modules, tmp_path):
    views = [block for block in swift(DOCS / "quickstart.md") if "import SwiftUI" in block.text]
    swift_pages.check(modules, "Views", written(tmp_path, views))


def test_the_first_lines_of_the_readme_fit_the_library(modules, tmp_path):
    block, = swift(settings.REPOSITORY / "README.md")
    body = "".join(f"    {line}\n" for line in block.text.splitlines() if not line.startswith("import "))
    file = tmp_path / "readme.swift"
    file.write_text(f"import Foundation\nimport FoundationNetworking\nimport PosternClient\nfunc readme(typed: String) async throws {{\n{body}    _ = orders\n}}\n")
    swift_pages.check(modules, "Readme", [file])


@pytest.mark.parametrize("target", [("Shared", "Model", "App"), ("Shared", "Widget")], ids="-".join)
def test_the_example_fits_the_library(modules, target):
    swift_pages.check(modules, target[-1], [file for folder in target for file in sorted((SOURCES / folder).glob("*.swift"))])


def test_a_block_that_does_not_fit_is_found(modules, tmp_path):
    """A wrong name, and what is shared between threads."""
    for text in (
        "import PosternClient\nfunc wrong(_ client: PosternClient) async throws { try await client.signOn() }\n",
        "final class Box { var value = 0 }\nfunc shared() { let box = Box(); Task { box.value = 1 }; box.value = 2 }\n",
    ):
        file = tmp_path / "wrong.swift"
        file.write_text(text)
        with pytest.raises(AssertionError):
            swift_pages.check(modules, "Wrong", [file])


def test_what_the_devices_page_shows_is_swift(tmp_path):
    """It works without the library, and is parsed alone."""
    for file in written(tmp_path, swift(DOCS / "integrate-devices.md")):
        done = subprocess.run(["swiftc", "-parse", file], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_the_project_has_every_source_and_one_access_group():
    project = yaml.safe_load((EXAMPLE / "project.yml").read_text())
    targets = project["targets"]
    assert {EXAMPLE / folder for target in targets.values() for folder in target["sources"]} == set(SOURCES.iterdir())
    assert (EXAMPLE / project["packages"]["PosternClient"]["path"] / "Package.swift").exists()
    groups = [target["entitlements"]["properties"]["keychain-access-groups"] for target in targets.values()]
    assert len(groups) == 2 and groups[0] == groups[1]
    assert all(target["info"]["properties"]["KeychainGroup"] == groups[0][0] for target in targets.values())


def test_the_example_is_small():
    lines = [line for file in SOURCES.rglob("*.swift") for line in file.read_text().splitlines() if line.strip()]
    assert len(lines) <= 400


class Garden:
    """The model of the example in a process of its own."""

    def __init__(self, program, dev):
        self._process = subprocess.Popen(
            [program, dev.origin, dev.client_id], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def call(self, name, argument=""):
        """What the screens show after a call."""
        self.begin(name, argument)
        return self.shown()

    def begin(self, name, argument=""):
        """Begins a call; `shown` waits for its end."""
        self._process.stdin.write(f"{name} {argument}\n")

    def shown(self):
        """What the screens show after the oldest call that was begun."""
        line = self._process.stdout.readline()
        assert line, f"the model ended with {self._process.wait(5)}"
        return json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The model, with what calls it."""
    sources = [*sorted((SOURCES / "Model").glob("*.swift")), settings.REPOSITORY / "Tests/BlackBox/harness/GardenDriver.swift"]
    return swift_pages.program(tmp_path_factory.mktemp("garden") / "garden", sources, "-parse-as-library")


@pytest.fixture
def user(dev):
    """A user of the demo realm, whom a test may delete."""
    email = f"garden{time.monotonic_ns()}@example.com"
    sql(dev, f"SELECT admin.put_user('demo', '{email}', 'Gar', 'Den', email_verified => true)")
    return email


def sql(dev, statement):
    """As the psql command that `postern dev` prints."""
    folder = re.search(r"psql .*-h (\S+) -U postgres postern", dev.text()).group(1)
    subprocess.run(
        ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", folder, "-U", "postgres", "-d", "postern", "-c", statement],
        check=True, capture_output=True, env=clean_environment())


def mailed(dev, email, member, former=None):
    """The newest code or link of the outbox for an address, once it is not the former one."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found = [mail[member] for mail in dev.get("/dev/outbox.json").json() if mail["to"] == email and mail.get(member)]
        if found and found[0] != former:
            return found[0]
        time.sleep(0.05)
    raise AssertionError(f"no {member} for {email}")


def test_the_model_signs_in_by_code_and_link_and_approves(program, dev, user):
    with Garden(program, dev) as phone, Garden(program, dev) as tablet:
        assert phone.call("requestCode", user)["isWaiting"]
        code = mailed(dev, user, "code")
        wrong = phone.call("signIn", f"{(int(code) + 1) % 1_000_000:06}")
        assert "user" not in wrong and wrong["message"].startswith("This code") and wrong["isWaiting"]
        signed_in = phone.call("signIn", code)
        assert signed_in["user"] and not signed_in["isWaiting"] and not signed_in["isBusy"] and "message" not in signed_in

        assert len(tablet.call("requestLink", user)["number"]) == 2
        link = mailed(dev, user, "link")
        assert phone.call("open", link)["message"].startswith("Open this link on the device")
        assert tablet.call("open", link)["user"] == signed_in["user"]
        assert tablet.call("signOut").get("user") is None

        loaded = phone.call("load")
        assert (loaded["email"], loaded["sessions"], loaded["trusted"]) == (user, 1, False)
        assert phone.call("trustThisDevice")["trusted"]
        asked = tablet.call("requestApproval", user)
        tablet.begin("wait")
        assert phone.call("followApprovals")["approvals"] == 1
        assert "message" not in phone.call("approve", asked["number"])
        assert tablet.shown()["user"] == signed_in["user"]


def test_an_old_sign_in_is_confirmed_before_the_account_is_deleted(program, dev, user):
    with Garden(program, dev) as phone:
        phone.call("requestCode", user)
        first = mailed(dev, user, "code")
        assert phone.call("signIn", first)["user"]
        sql(dev, f"""UPDATE postern.session SET auth_time = auth_time - interval '1 hour'
                      WHERE user_id = (SELECT user_id FROM postern.session ORDER BY auth_time DESC LIMIT 1)""")
        phone.call("load")
        asked = phone.call("deleteAccount")
        assert asked["wantsStepUp"] and asked["user"]
        phone.call("requestStepUpCode")
        done = phone.call("confirm", mailed(dev, user, "code", former=first))
        assert not done["wantsStepUp"] and "user" not in done
