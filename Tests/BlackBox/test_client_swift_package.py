"""The package of the Swift client: what Apple's platforms alone compile, what it depends on, how it is published."""

import re
import subprocess

from harness import settings
from harness.swift_client import PACKAGE


def test_what_is_for_apple_alone_fits_the_frameworks_declarations(tmp_path):
    """On a machine without Apple's SDK nothing more can be said of it."""
    checked = subprocess.run([PACKAGE / "Tests/AppleStubs/typecheck", tmp_path], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_package_depends_on_no_other():
    manifest = (PACKAGE / "Package.swift").read_text()
    assert ".package(" not in manifest
    assert ".package(path:" not in (settings.REPOSITORY / "Package.swift").read_text()


def test_the_library_names_no_host_and_prints_nothing():
    for source in (PACKAGE / "Sources").rglob("*.swift"):
        code = re.sub(r"//.*", "", source.read_text())
        assert not re.search(r"\b(print|NSLog|debugPrint|fatalError|precondition|preconditionFailure|assert|assertionFailure)\(|try!|as!", code), source
        hosts = set(re.findall(r"https?://[\w.]+", code))
        assert hosts <= {"https://id.example.com", "http://127.0.0.1"}, (source, hosts)
