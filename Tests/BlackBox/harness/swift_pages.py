"""The Swift of pages and examples: checked with the library and hand-written declarations of Apple's frameworks, or run on Linux."""

import subprocess

from . import settings
from .swift_client import PACKAGE, driver

CRYPTO = PACKAGE / "Sources/CLibCrypto"
#: In the order in which they import each other.
STUBS = [PACKAGE / "Tests/AppleStubs" / f"{name}.swift" for name in ("Security", "CryptoKit", "AuthenticationServices")] + [
    settings.REPOSITORY / "Tests/BlackBox/apple" / f"{name}.swift" for name in ("UIKit", "SwiftUI", "WidgetKit")
]


def _swiftc(*arguments, what="", timeout=300):
    done = subprocess.run(["swiftc", *map(str, arguments)], capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, f"{what}\n{done.stderr}"


def apple_modules(folder):
    """Makes modules with the names of Apple's frameworks, and the library as it is where they exist."""
    folder.mkdir(exist_ok=True)
    for stub in STUBS:
        _swiftc(
            "-emit-module", "-parse-as-library", "-swift-version", "5", "-suppress-warnings", "-module-name", stub.stem, "-I", folder,
            "-emit-module-path", folder / f"{stub.stem}.swiftmodule", stub,
        )
    _swiftc(
        "-emit-module", "-parse-as-library", "-swift-version", "6", "-enable-upcoming-feature", "ExistentialAny", "-suppress-warnings",
        "-package-name", "postern-client", "-module-name", "PosternClient", "-I", folder, "-I", CRYPTO,
        "-Xfrontend", "-experimental-skip-all-function-bodies", "-emit-module-path", folder / "PosternClient.swiftmodule",
        *sorted((PACKAGE / "Sources/PosternClient").rglob("*.swift")),
    )
    return folder


def check(modules, name, sources):
    """Checks sources as one module, as far as without generating code: types, and what is shared between threads."""
    _swiftc(
        "-emit-sil", "-o", "/dev/null", "-wmo", "-parse-as-library", "-swift-version", "6", "-warnings-as-errors", "-module-name", name,
        "-I", modules, "-I", CRYPTO, *sources, what=name,
    )


def program(output, sources, *options):
    """Compiles sources with the library for this machine."""
    built = driver().parent
    _swiftc(
        "-swift-version", "6", "-I", built / "Modules", "-I", CRYPTO, *options, "-o", output, *sources,
        *sorted((built / "PosternClient.build").glob("*.o")), "-lcrypto", what=output.name,
    )
    return output
