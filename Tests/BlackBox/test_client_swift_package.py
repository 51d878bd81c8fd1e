"""The package of the Swift client: what Apple's platforms alone compile, what it depends on, what apps may rely on."""

import platform
import re
import subprocess

from harness import settings
from harness.swift_client import PACKAGE, driver

TARGET = f"{platform.machine()}-unknown-linux-gnu"


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


def test_the_blocks_of_the_readme_compile(tmp_path):
    blocks = re.findall(r"```swift\n(.*?)```", (PACKAGE / "README.md").read_text(), re.S)
    programs = [block for block in blocks if "import PosternClient" in block]
    assert programs
    for number, block in enumerate(programs):
        source = tmp_path / f"block{number}.swift"
        source.write_text(block)
        folders = [argument for folder in (driver().parent / "Modules", PACKAGE / "Sources/CLibCrypto") for argument in ("-I", folder)]
        checked = subprocess.run(["swiftc", "-typecheck", "-swift-version", "6", *folders, source], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr


def test_the_interface_is_the_one_that_apps_rely_on(tmp_path):
    """Nothing of it is missing, renamed or of another type. What is added breaks no app."""
    interface = tmp_path / "interface"
    interface.mkdir()
    compiled = [
        "swiftc", "-frontend", "-compile-module-from-interface", "-module-name", "PosternClient",
        PACKAGE / "Tests/Interface/PosternClient.swiftinterface", "-o", interface / "PosternClient.swiftmodule",
    ]
    subprocess.run(compiled, check=True)
    for name, folders in (("apps", [interface]), ("library", [driver().parent / "Modules", PACKAGE / "Sources/CLibCrypto"])):
        dump = ["swift-api-digester", "-dump-sdk", "-module", "PosternClient", "-o", tmp_path / f"{name}.json"]
        dump += ["-target", TARGET, *(argument for folder in folders for argument in ("-I", folder))]
        subprocess.run(dump, check=True)
    compared = subprocess.run(
        ["swift-api-digester", "-diagnose-sdk", "--input-paths", tmp_path / "apps.json", "-input-paths", tmp_path / "library.json"],
        capture_output=True, text=True, check=True,
    )
    differences = [line for line in (compared.stdout + compared.stderr).splitlines() if line and not line.startswith("/*")]
    assert differences == []
