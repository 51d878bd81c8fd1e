"""The runner of docs/vectors in Node compares: an altered case of any file is red, and named."""

import json
import shutil

import pytest

from harness.settings import REPOSITORY
from test_client_modules import node

#: By kind: the name of a case (of challenges, the first one that has an error), and the path of what is altered in it.
ALTERED = {
    "refresh": ("59 of 900 s are left: refreshed", ["steps", "token"]),
    "sign-in": ("a code", ["steps", "user"]),
    "proofs": ("a token request", ["expect", "payload", "htm"]),
    "errors": ("Refresh: refresh_token: 400 invalid_grant: The refresh token is invalid.", ["class"]),
    "links": ("the return of a page", ["is", "page", "code"]),
    "challenges": (None, ["is", "error"]),
    "ceremonies": ("get: ES256", ["credential", "rawId"]),
}


@pytest.fixture(scope="module", name="copy")
def _copy(tmp_path_factory):
    """The client, the runner and the vectors, in a place of their own."""
    folder = tmp_path_factory.mktemp("vectors")
    for name in ("clients/js", "docs/vectors", "Tests/JavaScript"):
        shutil.copytree(REPOSITORY / name, folder / name)
    return folder


def spoil(value, path):
    """Another text at a path of members; in a list, in the first element that has the member."""
    name, *rest = path
    if isinstance(value, list):
        value = next(one for one in value if name in one)
    if rest:
        spoil(value[name], rest)
    else:
        assert isinstance(value[name], str), value
        value[name] = "retry_after" if name == "class" else "vector-other"


@pytest.mark.parametrize("kind", ALTERED)
def test_an_altered_case_is_red_and_named(copy, kind):
    name, path = ALTERED[kind]
    file = copy / f"docs/vectors/{kind}.json"
    text = file.read_text(encoding="utf-8")
    document = json.loads(text)
    case = next(case for case in document["cases"] if case["name"] == name or name is None and case["is"]["error"])
    spoil(case, path)
    file.write_text(json.dumps(document), encoding="utf-8")
    try:
        run = node(copy / "Tests/JavaScript/vectors.mjs", case["name"])
    finally:
        file.write_text(text, encoding="utf-8")
    assert run.returncode == 1 and f"{kind}.json: {case['name']}: " in run.stdout, run.stdout + run.stderr
