"""docs/openapi.yaml is what it says it is: OpenAPI 3.1, by two validators, and a client is generated from it. Needs no server."""

import ast
import os
import subprocess
import sys

import pytest

from harness import report, settings

DOCUMENT = settings.REPOSITORY / "docs" / "openapi.yaml"


def run(*arguments, **options):
    """A Python program of the folder of the validators."""
    packages = settings.OPENAPI
    if not (packages / "openapi_spec_validator").is_dir():
        missing = "the validators of OpenAPI are absent: scripts/test installs them to .build/openapi, or set POSTERN_OPENAPI"
        report.say("openapi: " + missing)
        pytest.skip(missing)
    environment = {**os.environ, "PYTHONPATH": str(packages), "PATH": f"{packages / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=300, **options)


def test_the_document_is_openapi_by_its_own_schema():
    done = run("-m", "openapi_spec_validator", str(DOCUMENT))
    assert done.returncode == 0 and done.stdout.rstrip().endswith("OK"), done.stdout + done.stderr


def test_the_document_is_read_by_a_strict_client():
    """aiopenapi3 takes no member that OpenAPI does not have, and no YAML merge keys, which YAML 1.2 does not have either."""
    done = run("-c", "import sys, aiopenapi3; aiopenapi3.OpenAPI.loads('http://localhost/', open(sys.argv[1]).read())", str(DOCUMENT))
    assert done.returncode == 0, done.stderr[-3000:]


def test_a_client_is_generated_from_it(tmp_path):
    """Each operation but the pictures has a function, and all that is generated is Python."""
    client = tmp_path / "client"
    done = run("-m", "openapi_python_client", "generate", "--path", str(DOCUMENT), "--output-path", str(client), "--meta", "none")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "will not be generated" not in done.stdout and "Unable to process" not in done.stdout, done.stdout
    for source in client.rglob("*.py"):
        ast.parse(source.read_text(encoding="utf-8"))
    assert (client / "api" / "token" / "token.py").exists()
