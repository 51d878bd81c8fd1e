"""`scripts/release` begins nothing that it would have to throw away. What it makes is tried by test_release_files.py."""

import shutil
import subprocess

import pytest

from harness.settings import REPOSITORY

VERSION = "9.9.9-test.1"
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def copy(tmp_path):
    """A repository with the script and the two files that name the version."""
    folder = tmp_path / "copy"
    for name in ("scripts/release", "Sources/postern/Version.swift", "CHANGELOG.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, folder / name)
    source = folder / "Sources/postern/Version.swift"
    number = source.read_text(encoding="utf-8").split('number = "')[1].split('"')[0]
    for name in (source, folder / "CHANGELOG.md"):
        name.write_text(name.read_text(encoding="utf-8").replace(number, VERSION), encoding="utf-8")
    git(folder, "init", "-q")
    commit(folder)
    return folder


def git(folder, *arguments):
    subprocess.run(["git", "-c", "user.name=test", "-c", "user.email=test@localhost", *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder):
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "change")


def release(folder, *arguments):
    """Its exit and its last words."""
    done = subprocess.run([folder / "scripts/release", *arguments], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_a_version_that_the_sources_do_not_have_is_refused(copy):
    """Both places that name it are compared."""
    assert release(copy) == (1, "give the version: scripts/release VERSION\n")
    assert release(copy, "1.2.3") == (1, f"Sources/postern/Version.swift says {VERSION}, not 1.2.3\n")
    log = copy / "CHANGELOG.md"
    log.write_text(log.read_text(encoding="utf-8").replace(VERSION, "8.0.0"), encoding="utf-8")
    commit(copy)
    assert release(copy, VERSION) == (1, f"the first heading of CHANGELOG.md is of 8.0.0, not of {VERSION}\n")
    assert not (copy / ".build-releases").exists()


def test_a_working_copy_with_changes_is_refused(copy):
    """A file that git does not know is a change too: a build would embed it."""
    (copy / "sql").mkdir()
    (copy / "sql" / "mine.sql").write_text("SELECT 1;\n", encoding="ascii")
    status, said = release(copy, VERSION)
    assert status == 1 and said.startswith("the working copy has changes"), said


def test_its_help_names_each_option(copy):
    """And does nothing else."""
    status, said = release(copy, "--help")
    assert status == 0 and all(option in said for option in ("--twice", "--again", "--in=")), said
