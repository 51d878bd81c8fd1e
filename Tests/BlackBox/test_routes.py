"""The route tables of the source, docs/openapi.yaml and docs/wire.md name the same endpoints. Needs no binary and no package."""

import re

from harness.settings import REPOSITORY

SOURCES = [REPOSITORY / "Sources" / module for module in ("TokenEndpoint", "HostedPages")]
#: `Route("/path", [.get: …])`, `Route(prefix: "/path/", [.delete: …])`: the literal, and the table of handlers behind it.
_ROUTE = re.compile(r'\bRoute\(\s*(prefix:\s*)?"([^"]+)",\s*\[')
#: The association files have a function of their own, which makes a route of GET alone.
_ASSOCIATION = re.compile(r'\broute\("(/\.well-known/[^"]+)",')
_METHOD = re.compile(r"(?<![\w\])])\.(get|post|put|patch|delete):")
#: Who may call it: the function of `Endpoint` behind the method.
_DECLARED = re.compile(r"(?<![\w\])])\.(get|post|put|patch|delete):\s*\.(\w+)")
#: The operators' listener has no table: a switch over the path, and GET before it.
_OPERATIONS = re.compile(r'case "(/[a-z]+)":')


def table(text, start):
    """The handlers of a route: from its bracket to the one that closes it."""
    depth = 1
    for index in range(start, len(text)):
        depth += {"[": 1, "]": -1}.get(text[index], 0)
        if depth == 0:
            return text[start:index]
    raise AssertionError("a table of handlers has no end")


def routes_of_source():
    """Every method and path that the server answers; the pages of `postern dev` are elsewhere, and no part of the wire."""
    found = set()
    for file in (file for module in SOURCES for file in module.rglob("*.swift")):
        text = file.read_text(encoding="utf-8")
        for match in _ROUTE.finditer(text):
            methods = _METHOD.findall(table(text, match.end()))
            assert methods, f"{file.name}: no method of {match[2]} was found"
            found |= {(method, match[2] + ("{id}" if match[1] else "")) for method in methods}
        found |= {("get", path) for path in _ASSOCIATION.findall(text)}
        if file.name == "OperationsResponder.swift":
            found |= {("get", path) for path in _OPERATIONS.findall(text)}
    return found


def declared_callers():
    """Who may call each method of each path, as the source declares it: `.get: .account(…)`."""
    found = {}
    for file in (file for module in SOURCES for file in module.rglob("*.swift")):
        text = file.read_text(encoding="utf-8")
        for match in _ROUTE.finditer(text):
            handlers = table(text, match.end())
            declared = dict(_DECLARED.findall(handlers))
            assert declared.keys() == set(_METHOD.findall(handlers)), f"{file.name}: {match[2]} does not say who may call it"
            found |= {(method, match[2] + ("{id}" if match[1] else "")): caller for method, caller in declared.items()}
        found |= {("get", path): "anonymous" for path in _ASSOCIATION.findall(text)}
        if file.name == "OperationsResponder.swift":
            found |= {("get", path): "operations" for path in _OPERATIONS.findall(text)}
    return found


def documented_callers():
    """The same, as docs/openapi.yaml says it: `x-caller` of each operation."""
    found, path, method = {}, None, None
    text = (REPOSITORY / "docs" / "openapi.yaml").read_text(encoding="utf-8")
    for line in text[text.index("\npaths:\n"):text.index("\ncomponents:\n")].splitlines():
        if re.fullmatch(r"  /\S+:", line):
            path = line.strip()[:-1]
        elif match := re.fullmatch(r"    (get|post|put|patch|delete):", line):
            method = match[1]
        elif match := re.fullmatch(r"      x-caller: (\w+)", line):
            found[method, path] = match[1]
    return found


def routes_of_document():
    """Every method and path of the document: keys at the second and third level of `paths`."""
    found, path = set(), None
    text = (REPOSITORY / "docs" / "openapi.yaml").read_text(encoding="utf-8")
    for line in text[text.index("\npaths:\n"):text.index("\ncomponents:\n")].splitlines():
        if re.fullmatch(r"  /\S+:", line):
            path = line.strip()[:-1]
        elif match := re.fullmatch(r"    (get|post|put|patch|delete):", line):
            found.add((match[1], path))
    return found


def routes_of_page():
    """Every method and path that a heading of docs/wire.md names, such as "### `GET`, `DELETE /connect/sessions`"."""
    found = set()
    text = (REPOSITORY / "docs" / "wire.md").read_text(encoding="utf-8")
    for heading in re.findall(r"^#{2,4} (.*)$", text, re.MULTILINE):
        for methods, path in re.findall(r"`((?:GET|POST|PATCH|DELETE)(?:, (?:GET|POST|PATCH|DELETE))*) (/[^`]+)`", heading):
            found |= {(method.lower(), path) for method in methods.split(", ")}
    return found


def test_the_source_is_read():
    """Every path literal in a file of routes is found by the expressions above."""
    found = {path.replace("{id}", "") for _, path in routes_of_source()}
    literals = {
        literal for module in SOURCES for file in module.rglob("*Routes.swift")
        for literal in re.findall(r'"(/[a-z.][^"\s]*)"', file.read_text(encoding="utf-8"))
    }
    assert literals and literals <= found, sorted(literals - found)


def test_the_document_has_every_route_and_no_other():
    """docs/openapi.yaml."""
    assert routes_of_document() == routes_of_source()


def test_the_page_has_every_route_and_no_other():
    """docs/wire.md."""
    assert routes_of_page() == routes_of_source()
