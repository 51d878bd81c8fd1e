"""What `scripts/release` made, named by POSTERN_RELEASE: its files are whole, and README.md's commands work with each of them."""

import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from harness import report
from harness.bare import BareDebian, unattended
from harness.compose import Composition
from harness.dev import DevServer
from harness.pages import Shell, blocks, to_run
from harness.postgres import clean_environment
from harness.settings import FULL, REPOSITORY

RELEASE = Path(os.environ["POSTERN_RELEASE"]).resolve() if os.environ.get("POSTERN_RELEASE") else None
pytestmark = pytest.mark.skipif(RELEASE is None, reason="POSTERN_RELEASE names no release")
README = REPOSITORY / "README.md"
#: Runs the image's binary ($3 …) on the image's files ($1), in a folder ($2) of them, as the image's user.
IN_THE_IMAGE = """mount -t proc proc "$1/proc"
exec /usr/bin/python3 -c 'import os, sys
os.chroot(sys.argv[1]); os.chdir(sys.argv[2]); os.setgroups([]); os.setgid(10001); os.setuid(10001)
os.execv("/usr/bin/postern", ["postern", *sys.argv[3:]])' "$@"
"""


def one(pattern):
    """The file of the release."""
    file, = RELEASE.glob(pattern)
    return file


def commands():
    """README's first block that is run: from a code by mail to a revoked token."""
    return next(block for block in to_run(README) if block.language == "sh")


@pytest.fixture(scope="module")
def tarball(tmp_path_factory):
    """The folder that the tarball has."""
    folder = tmp_path_factory.mktemp("tarball")
    subprocess.run(["tar", "-xzf", one("*-linux-*[!g].tar.gz")], cwd=folder, check=True)
    made, = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The files of the package."""
    folder = tmp_path_factory.mktemp("package")
    subprocess.run(["dpkg-deb", "-x", one("postern_*.deb"), folder], check=True)
    return folder


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """The files of the image."""
    folder = tmp_path_factory.mktemp("image")
    with tarfile.open(one("*-image-*.tar")) as archive:
        def document(descriptor):
            return archive.extractfile("blobs/sha256/" + descriptor["digest"].removeprefix("sha256:"))

        entry, = json.load(archive.extractfile("index.json"))["manifests"]
        assert entry["digest"] == one("image-digest.txt").read_text(encoding="ascii").strip()
        layer, = json.load(document(entry))["layers"]
        with tarfile.open(fileobj=document(layer)) as files:
            files.extractall(folder)
    folder.chmod(0o755)
    return folder


def signs_in(folder, port):
    """README's commands, with this port, and what README says that they print."""
    block = commands()
    printed = Shell(folder, clean_environment(), [("localhost:8080", f"localhost:{port}")]).run(block).splitlines()
    assert '"email":"ada@example.com"' in printed[1] and '"refresh_token"' in printed[2] and printed[-1] == '{"active":false}', printed


@pytest.mark.parametrize("form, path", [("tarball", "bin/postern"), ("package", "usr/bin/postern")])
def test_the_commands_of_the_readme_work_with(form, path, request):
    """`postern dev` of the binary in it."""
    server = DevServer(binary=request.getfixturevalue(form) / path)
    try:
        server.start()
        signs_in(server.data.parent, server.port)
    finally:
        server.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a file system of its own")
def test_the_commands_of_the_readme_work_with_the_image(image, tmp_path):
    """As compose.dev.yaml runs it: on the image's files alone, as its user."""
    for place in ("proc", "dev-data"):
        (image / place).mkdir(exist_ok=True)
    os.chown(image / "dev-data", 10001, 10001)
    composition = Composition(
        REPOSITORY / "deploy/container/compose.dev.yaml", tmp_path,
        program=["unshare", "-m", "sh", "-ec", IN_THE_IMAGE, "sh", str(image), "/dev-data"])
    try:
        composition.up()
        os.symlink(image / "dev-data" / ".postern", tmp_path / ".postern")
        signs_in(tmp_path, composition.port)
    finally:
        composition.down()


def test_every_file_has_its_sum_and_names_the_version(tarball):
    """The binary, the SBOM in the tarball and the name of the folder agree; links of its documents lead somewhere."""
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=RELEASE, check=True)
    listed = {line.split()[1].lstrip("*") for line in (RELEASE / "SHA256SUMS").read_text(encoding="ascii").splitlines()}
    assert listed == {path.name for path in RELEASE.iterdir()} - {"SHA256SUMS"}
    version = tarball.name.removeprefix("postern-")
    told = subprocess.run([tarball / "bin/postern", "--version"], capture_output=True, text=True, check=True).stdout
    assert told.startswith(f"postern {version}\n")
    bill = json.loads((tarball / "sbom.cdx.json").read_text(encoding="utf-8"))["metadata"]["component"]
    assert bill["version"] == version and any(entry["value"] in told for entry in bill["properties"] if entry["name"] == "postern:commit")
    assert {"README.md", "LICENSE", "CHANGELOG.md", "docs", "deploy"} <= {path.name for path in tarball.iterdir()}
    for page in tarball.rglob("*.md"):
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text):
            assert "://" in target or "mailto:" in target or (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_debug_information_is_of_the_binary(tarball, package, tmp_path):
    """The build id says so; the binary itself has none of it, and no folder of the machine that built it."""
    subprocess.run(["tar", "-xzf", one("*-debug.tar.gz")], cwd=tmp_path, check=True)

    def identity(file):
        return re.search(r"Build ID: (\w+)", subprocess.run(["readelf", "-n", file], capture_output=True, text=True, check=True).stdout)[1]

    binary = tarball / "bin/postern"
    assert identity(tmp_path / "postern.debug") == identity(binary) == identity(package / "usr/bin/postern")
    sections = subprocess.run(["readelf", "-SW", binary], capture_output=True, text=True, check=True).stdout
    assert ".debug_info" not in sections and ".gnu_debuglink" in sections
    folders = set(re.findall(rb"/[\w./-]+(?=/\.build-release/)", binary.read_bytes()))
    assert folders == {b"/usr/src/postern"}, folders
    report.say(f"release: binary of {binary.stat().st_size >> 20} MiB, image {one('*-image-*.tar').stat().st_size >> 20} MiB")


@pytest.mark.skipif(not FULL or shutil.which("debootstrap") is None, reason="POSTERN_FULL, with debootstrap and an archive of Debian")
@pytest.mark.parametrize("form, pattern", [("tarball", "*-linux-*[!g].tar.gz"), ("package", "postern_*.deb")])
def test_a_newcomer_on_a_bare_debian_signs_in_as_the_readme_says(form, pattern):
    """Nothing but what README.md names is installed; the seconds are told."""
    install = next(block.text for block in blocks(README) if block.text.startswith(f"# The {form},"))
    install, last = install.rstrip("\n").rsplit("\n", 1)
    debian = BareDebian()
    try:
        for file in RELEASE.glob(pattern):
            shutil.copy(file, debian.root / "srv")
        _, seconds = debian.run(f"cd /srv\n{unattended(install)}\npwd > /srv/folder")
        script = f"""cd "$(cat /srv/folder)"
{last} > /srv/dev.log 2>&1 & server=$!
until grep -q Ctrl-C /srv/dev.log; do kill -0 $server || {{ cat /srv/dev.log; exit 1; }}; sleep 0.1; done
{commands().text}
kill -INT $server; wait $server"""
        printed, more = debian.run(script, alone=True)
        assert printed.endswith('{"active":false}\n'), printed
        report.say(f"newcomer with the {form}: {seconds:.0f} s to install, {more:.0f} s to the last answer of README's commands")
    finally:
        debian.remove()
