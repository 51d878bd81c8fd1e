"""The compose files: without an engine each service runs as a process, in order, with the commands and the environment of the file; and the image."""

import json
import os
import re
import subprocess
import tarfile

import pytest
import yaml

from harness.compose import Composition
from harness.pages import Block, Shell, to_run
from harness.postgres import clean_environment
from harness.settings import BINARY, REPOSITORY

CONTAINER = REPOSITORY / "deploy" / "container"
FILES = ("compose.yaml", "compose.dev.yaml")


def read(name):
    return (CONTAINER / name).read_text(encoding="utf-8")


def commands_of_the_head(name):
    """The commands that the comment at the top of a file gives."""
    head = re.match(r"(?:#.*\n)+", read(name))[0]
    return "".join(line.removeprefix("#   ") + "\n" for line in head.splitlines() if line.startswith("#   "))


def shell(folder, composition, *replacements):
    """Runs commands with this machine's ports."""
    return Shell(folder, clean_environment(), [(f"localhost:{old}", f"localhost:{new}") for old, new in (
        ("8080", composition.port), ("8025", composition.mail_port))] + list(replacements))


def block(text):
    return Block("compose", 1, "sh", "", text)


def test_the_head_of_the_compose_file_leads_from_nothing_to_a_signed_in_curl(tmp_path):
    """Its commands make the secrets; the services run with them, and PostgreSQL asks for passwords."""
    build, make, rest = re.fullmatch(
        r"(\S*scripts/build-image; docker load --input \S+\n)(\(umask.*?\)\n)sudo chown 10001 \S+ \S+\ndocker compose up --detach\n(.*)",
        commands_of_the_head("compose.yaml"), re.DOTALL).groups()
    assert "postern-1.0.0-rc.1-image" in build
    subprocess.run(["bash", "-ec", make], cwd=tmp_path, check=True)
    secrets = tmp_path / "secrets"
    assert {path.stat().st_mode & 0o777 for path in secrets.iterdir()} == {0o600}
    composition = Composition(CONTAINER / "compose.yaml", tmp_path, secrets)
    assert {os.path.basename(secret["file"]) for secret in composition.secrets.values()} == {path.name for path in secrets.iterdir()}
    try:
        composition.up()
        # The catcher of mails waits for the mail instead.
        printed = shell(tmp_path, composition, ("sleep 2", ":")).run(block(rest))
        person = json.loads(printed.splitlines()[-1])
        assert person["email"] == "ada@example.com" and person["name"] == "Ada Lovelace"
        for name in ("role", "realm"):  # a second `up` runs them again
            composition.run_again(name)
    finally:
        composition.down()


def test_the_demo_server_of_the_compose_file_serves_the_curl_block_of_the_readme(tmp_path):
    """Signed in, refreshed, introspected and revoked, with the secret that lies in .postern/."""
    first = next(block for block in to_run(REPOSITORY / "README.md") if block.language == "sh")
    assert "/dev/outbox.json" in first.text
    composition = Composition(CONTAINER / "compose.dev.yaml", tmp_path)
    try:
        composition.up()
        printed = shell(tmp_path, composition).run(first).splitlines()
        assert '"email":"ada@example.com"' in printed[1] and '"refresh_token"' in printed[2] and printed[-1] == '{"active":false}', printed
    finally:
        composition.down()


@pytest.mark.parametrize("name", FILES)
def test_services_name_what_the_file_and_the_repository_have(name):
    """The image is that of this version; secrets and folders exist."""
    document = yaml.safe_load(read(name))
    version = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0].split()[1]
    for service in document["services"].values():
        if "postern" in service["image"]:
            assert service["image"] == f"localhost/postern:{version}"
        assert set(service.get("secrets", [])) <= set(document.get("secrets", {}))
        assert set(service.get("depends_on", {})) <= set(document["services"])
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), port
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in document["volumes"] or source == "../../.postern" or (CONTAINER / source).is_dir(), volume


def test_no_password_stands_in_the_compose_file():
    """Neither in a URL nor in a setting: files that the commands made have them."""
    for service in yaml.safe_load(read("compose.yaml"))["services"].values():
        for name, value in service.get("environment", {}).items():
            assert not re.search(r"://[^/@]*:[^/@]+@|trust", value) and not name.endswith("PASSWORD"), (name, value)


def test_an_archive_of_the_same_files_has_the_same_bytes(tmp_path):
    """Whenever they were written, and in whatever order."""
    made = []
    for number, names in enumerate((("first", "second"), ("second", "first"))):
        folder = tmp_path / str(number)
        (folder / "usr").mkdir(parents=True)
        for name in names:
            (folder / "usr" / name).write_text(name, encoding="ascii")
            os.utime(folder / "usr" / name, (number, number))
        file = tmp_path / f"{number}.tar"
        done = subprocess.run(
            [REPOSITORY / "scripts" / "oci-archive", folder, file, "localhost/postern:1", "{}"],
            env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}, capture_output=True, text=True, check=True)
        made.append((done.stdout, file.read_bytes()))
    assert made[0] == made[1]


def test_the_image_has_what_it_needs_and_runs_as_a_user(tmp_path):
    """An OCI layout; for older engines the document of `docker save` too. Its ports are open to other containers."""
    done = subprocess.run(
        [REPOSITORY / "scripts" / "build-image", tmp_path], env={**os.environ, "POSTERN_BIN": str(BINARY), "SOURCE_DATE_EPOCH": "1700000000"},
        capture_output=True, text=True, check=True)
    file, = tmp_path.iterdir()
    with tarfile.open(file) as archive:
        def document(path):
            return json.load(archive.extractfile(path))

        def blob(descriptor):
            return "blobs/sha256/" + descriptor["digest"].removeprefix("sha256:")

        entry, = document("index.json")["manifests"]
        assert entry["digest"] == done.stdout.strip()
        manifest = document(blob(entry))
        assert document("manifest.json") == [{
            "Config": blob(manifest["config"]), "Layers": [blob(manifest["layers"][0])],
            "RepoTags": [entry["annotations"]["org.opencontainers.image.ref.name"]]}]
        settings = document(blob(manifest["config"]))["config"]
        assert settings["User"] == "10001:10001" and "POSTERN_LISTEN=0.0.0.0:8080" in settings["Env"]
        with tarfile.open(fileobj=archive.extractfile(blob(manifest["layers"][0]))) as files:
            members = {member.name: member for member in files.getmembers()}
    assert {"usr/bin/postern", "etc/ssl/certs/ca-certificates.crt", "etc/passwd"} <= members.keys()
    assert [name for name in members if name.startswith("usr/bin/")] == ["usr/bin/postern"]
    assert {(member.uid, member.gid, int(member.mtime)) for member in members.values()} == {(0, 0, 1700000000)}
