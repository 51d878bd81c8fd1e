"""The published package of the Swift client, in an app that depends on it."""

import json
import subprocess
import time
from pathlib import Path

import pytest

from harness import settings

MANIFEST = """// swift-tools-version: 6.0
import PackageDescription
let package = Package(
    name: "app", platforms: [.macOS(.v13)], dependencies: [{dependencies}],
    targets: [.executableTarget(name: "app", dependencies: [{products}], path: ".", sources: ["main.swift"])])
"""
MAIN = """import Foundation
import PosternClient
var configuration = PosternConfiguration(origin: URL(string: "https://id.example.com")!, clientID: "app")
configuration.store = MemoryStore()
let client = try PosternClient(configuration)
print(await client.state)
"""


def git(*command, **options):
    """Runs git and returns what it printed."""
    return subprocess.run(["git", *command], check=True, capture_output=True, text=True, **options).stdout


def publish(remote, version, repository=settings.REPOSITORY):
    """Runs the script of a repository."""
    return subprocess.run([Path(repository) / "scripts/publish-swift", remote, version], capture_output=True, text=True)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A clone with what is in the working tree committed, so that a developer's changes are tried and kept."""
    clone = tmp_path_factory.mktemp("clone") / "postern"
    git("clone", "--quiet", "--no-checkout", "--shared", settings.REPOSITORY, clone)
    git("-C", clone, "read-tree", "HEAD")
    git("-C", clone, "checkout-index", "LICENSE")
    work = ["--work-tree", str(settings.REPOSITORY), "--git-dir", str(clone / ".git")]
    git(*work, "add", "clients/swift", "scripts/publish-swift")
    git("-C", clone, "-c", "user.name=t", "-c", "user.email=t@mail.example", "commit", "--quiet", "--allow-empty", "-m", "now")
    git("-C", clone, "checkout", "--quiet", "HEAD", "--", "clients/swift", "scripts/publish-swift", "LICENSE")
    git("-C", clone, "config", "user.name", "t")
    git("-C", clone, "config", "user.email", "t@mail.example")
    return clone


@pytest.fixture(scope="module")
def published(repository, tmp_path_factory):
    """A bare repository with version 1.2.0."""
    remote = tmp_path_factory.mktemp("published") / "postern-client.git"
    git("init", "--quiet", "--bare", remote)
    answer = publish(remote, "1.2.0", repository)
    assert answer.returncode == 0, answer.stderr
    return remote


def app(folder, dependencies, products):
    """An app in a folder of its own."""
    folder.mkdir()
    (folder / "Package.swift").write_text(MANIFEST.replace("{dependencies}", dependencies).replace("{products}", products))
    (folder / "main.swift").write_text(MAIN)
    return folder


def swift(folder, *command):
    """Runs a command of SwiftPM on a package."""
    return subprocess.run(["swift", *command, "--package-path", folder], capture_output=True, text=True)


@pytest.mark.slow
def test_an_app_depends_on_one_package_alone(published, tmp_path):
    folder = app(
        tmp_path / "app", f'.package(url: "file://{published}", from: "1.2.0")', '.product(name: "PosternClient", package: "postern-client")'
    )
    began = time.monotonic()
    built = swift(folder, "build", "--ignore-lock")
    assert built.returncode == 0, built.stdout + built.stderr
    assert time.monotonic() - began < (60 if settings.FULL else 600)
    assert [pin["state"]["version"] for pin in json.loads((folder / "Package.resolved").read_text())["pins"]] == ["1.2.0"]
    state = subprocess.run([folder / ".build/debug/app"], capture_output=True, text=True)
    assert state.stdout == "signedOut(PosternClient.SignOutReason.never)\n"


@pytest.mark.full
def test_an_app_may_have_other_versions_of_other_packages(published, tmp_path):
    stored = settings.REPOSITORY / ".build/repositories"
    urls = {name: next(stored.glob(f"{name}-*"), None) for name in ("swift-log", "swift-crypto", "swift-asn1")}
    if not all(urls.values()):
        pytest.skip("the packages of the server are not resolved here")
    folder = app(
        tmp_path / "app",
        f'.package(url: "file://{published}", from: "1.2.0"), .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"), '
        '.package(url: "https://github.com/apple/swift-crypto", exact: "3.12.3")',
        '.product(name: "PosternClient", package: "postern-client"), .product(name: "Logging", package: "swift-log"), '
        '.product(name: "Crypto", package: "swift-crypto")',
    )
    for name, path in urls.items():
        for suffix in ("", ".git"):
            swift(folder, "package", "config", "set-mirror", "--original", f"https://github.com/apple/{name}{suffix}", "--mirror", f"file://{path}")
    built = swift(folder, "build", "--ignore-lock")
    assert built.returncode == 0, built.stdout + built.stderr


def test_a_version_is_published_once(published, repository):
    before = git("ls-remote", published)
    again = publish(published, "1.2.0", repository)
    assert again.returncode == 1 and "published already" in again.stderr
    assert git("ls-remote", published) == before


def test_a_changed_folder_is_not_published(published, repository):
    before = git("ls-remote", published)
    stray = repository / "clients/swift/stray.swift"
    stray.write_text("// not committed")
    try:
        refused = publish(published, "1.3.0", repository)
    finally:
        stray.unlink()
    assert refused.returncode == 1 and "not committed" in refused.stderr
    assert git("ls-remote", published) == before


def test_a_next_version_follows_the_former(published, repository):
    assert publish(published, "1.2.1", repository).returncode == 0
    assert git("-C", published, "log", "--format=%s", "main").split("\n")[:2] == ["postern-client 1.2.1", "postern-client 1.2.0"]
    files = git("-C", published, "ls-tree", "--name-only", "1.2.1").split()
    assert {"LICENSE", "Package.swift", "README.md", "Sources", "Tests"} <= set(files)
    assert git("-C", published, "rev-parse", "1.2.1^{commit}") == git("-C", published, "rev-parse", "main")


@pytest.mark.parametrize("version", ["1", "v1.0.0", "1.0.0 x", "01.0.0", ""])
def test_a_version_is_a_version(version, published, repository):
    assert publish(published, version, repository).returncode == 1
