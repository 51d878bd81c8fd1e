"""The files of docs/vectors: how they are written, counted and compared."""

import difflib
import hashlib
import json

from harness.settings import REPOSITORY

FOLDER = REPOSITORY / "docs/vectors"
#: What each file has at least.
LEAST = {"proofs": 80, "refresh": 50, "sign-in": 30, "errors": 1, "links": 30, "challenges": 30, "exchanges": 30, "ceremonies": 12}
_WIDTH = 118


def written(value, depth=0, before=0):
    """JSON that people can read: what fits on a line, behind what stands `before` it there, stands on one."""
    flat = json.dumps(value, ensure_ascii=False)
    if depth + before + len(flat) <= _WIDTH or not isinstance(value, (dict, list)) or not value:
        return flat
    inner, outer = "\n" + " " * (depth + 1), "\n" + " " * depth
    if isinstance(value, dict):
        names = [json.dumps(name) + ": " for name in value]
        return "{" + ",".join(inner + name + written(part, depth + 1, len(name)) for name, part in zip(names, value.values())) + outer + "}"
    return "[" + ",".join(inner + written(part, depth + 1) for part in value) + outer + "]"


def text_of(kind, document):
    """The text of a file."""
    return written({"format": 1, "kind": kind, **document}) + "\n"


def index(texts):
    """The text of index.json for the texts of the others, by kind."""
    return written({"format": 1, "files": [
        {"name": f"{kind}.json", "kind": kind, "count": len(json.loads(text)["cases"]), "sha256": hashlib.sha256(text.encode()).hexdigest()}
        for kind, text in texts.items()
    ]}) + "\n"


def by_name(document):
    """The cases of a file by name; there are no two of a name."""
    found = {case["name"]: case for case in document["cases"]}
    assert len(found) == len(document["cases"]), [case["name"] for case in document["cases"]]
    return found


def difference(before, now):
    """Lines that say how a case differs; None: there is none."""
    sides = [[] if case is None else written(case).splitlines() for case in (before, now)]
    return list(difflib.unified_diff(*sides, "in the repository", "made now", n=1, lineterm=""))


def differences(kind, made):
    """Lines that say in which case a file of the repository differs from what was made now, with both texts."""
    path = FOLDER / f"{kind}.json"
    kept = path.read_text(encoding="utf-8") if path.exists() else text_of(kind, {"cases": []})
    if kept == made:
        return []
    before, now = json.loads(kept), json.loads(made)
    old, new = by_name(before), by_name(now)
    lines = []
    for name in [*new, *(name for name in old if name not in new)]:
        if old.get(name) != new.get(name):
            lines += [f"{path.name}: {name}", *difference(old.get(name), new.get(name))]
    if not lines:
        lines = [f"{path.name}: outside the cases, or in another order"]
        lines += list(difflib.unified_diff(kept.splitlines(), made.splitlines(), "in the repository", "made now", n=1, lineterm=""))
    return lines
