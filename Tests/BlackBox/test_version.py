"""`postern --version`, and the bill of materials of what was linked."""

import json
import re
import subprocess

from harness.node import run_postern
from harness.settings import BINARY, REPOSITORY


def dependencies():
    """What the product is built from, as Package.swift says it; the tools of benchmarks come later in the file."""
    return (REPOSITORY / "Package.swift").read_text(encoding="utf-8").partition("\n    targets: [")[0]


def pins():
    """Version by name of the direct dependencies."""
    return dict(re.findall(r'url: "https://github\.com/[^/"]+/([^"]+)", exact: "([^"]+)"', dependencies()))


def test_every_direct_dependency_is_pinned_and_says_why_it_is_there():
    """`exact:`, and a comment on the line above."""
    lines = dependencies().splitlines()
    named = [number for number, line in enumerate(lines) if ".package(url:" in line]
    assert len(named) == len(pins()) > 10
    assert all(lines[number - 1].strip().startswith("//") for number in named)


def test_version_names_commit_compiler_libraries_and_packages():
    """What somebody needs who reads an advisory."""
    shown = run_postern("--version")
    assert shown.returncode == 0, shown
    first, commit, swift = shown.stdout.splitlines()[:3]
    assert re.fullmatch(r"postern \d+\.\d+\S*", first) and swift.startswith("Swift"), shown.stdout
    assert re.fullmatch(r"commit ([0-9a-f]{40,64}|unknown)", commit), commit
    for library in ("libpq 1", "libcurl ", "OpenSSL 3"):
        assert f"\n{library}" in shown.stdout, shown.stdout
    for name, version in pins().items():
        assert f"\n{name} {version}" in shown.stdout, name


def test_the_bill_of_materials_is_cyclonedx_and_names_what_is_linked():
    """Each direct dependency at its pinned version, and the Debian packages of the shared libraries."""
    made = subprocess.run([str(REPOSITORY / "scripts/sbom"), str(BINARY)], capture_output=True, text=True, timeout=120, check=False)
    assert made.returncode == 0, made.stderr
    document = json.loads(made.stdout)
    assert document["bomFormat"] == "CycloneDX" and document["specVersion"] == "1.5" and document["version"] == 1
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", document["serialNumber"])
    root = document["metadata"]["component"]
    assert root["type"] == "application" and root["name"] == "postern"
    components = document["components"]
    assert all(component["type"] == "library" and component["name"] and component["version"] != "unknown"
               and component["purl"].startswith("pkg:") for component in components)
    references = [component["bom-ref"] for component in components]
    assert len(set(references)) == len(references)
    assert document["dependencies"] == [{"ref": root["bom-ref"], "dependsOn": references}]
    found = {component["name"]: component["version"] for component in components}
    for name, version in pins().items():
        assert found.get(name) == version, name
    assert {"libpq5", "libcurl4", "libssl3", "libc6"} <= found.keys(), sorted(found)
