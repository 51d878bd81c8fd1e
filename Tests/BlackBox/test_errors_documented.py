"""docs/errors.md names every error that the sources can answer with, and no other. Needs no server: it reads the Swift sources.

Each pattern below describes one way in which the sources make an error. A use of that way that its pattern cannot read fails
the test, and so does a pattern that no longer finds anything: then the sources make errors in another way, and the patterns have
to follow.
"""

import json
import re
from dataclasses import dataclass

import pytest

from harness.settings import REPOSITORY

PAGE = REPOSITORY / "docs/errors.md"
FOLDERS = ("Sources/Grants", "Sources/TokenEndpoint", "Sources/HostedPages")
#: The operators' listener does not answer apps.
LEFT_OUT = ("/Operations/",)

STATUS = {
    "badRequest": 400, "unauthorized": 401, "forbidden": 403, "notFound": 404, "methodNotAllowed": 405, "conflict": 409,
    "requestTimeout": 408, "contentTooLarge": 413, "uriTooLong": 414, "unsupportedMediaType": 415, "expectationFailed": 417, "tooManyRequests": 429,
    "requestHeaderFieldsTooLarge": 431, "internalServerError": 500, "serviceUnavailable": 503,
}
NO_ERROR = {"ok", "created", "accepted", "noContent", "notModified", "seeOther", "found"}
#: A TokenError is answered with 400, except these codes.
STATUS_OF_CODE = {"invalid_client": 401}
#: Answered with the code alone: the description of these never reaches an app.
UNDESCRIBED = {"temporarily_unavailable": 503, "rate_limited": 429}

_TEXT = r'"((?:[^"\\]|\\.)*)"'


@dataclass(frozen=True, order=True)
class Entry:
    """One error as a row of the page: `—` stands for nothing."""

    status: int
    answer: str = "—"
    text: str = "—"

    def __str__(self):
        return f"{self.status} | {self.answer} | {self.text}"


def read_sources():
    """The Swift files that make answers, without comments, by path."""
    files = {}
    for folder in FOLDERS:
        for file in sorted((REPOSITORY / folder).rglob("*.swift")):
            path = str(file.relative_to(REPOSITORY))
            if not any(part in path for part in LEFT_OUT):
                files[path] = re.sub(r"^\s*//.*$", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(files) > 50, "the sources have moved: adapt FOLDERS"
    return files


SOURCES = read_sources()


def found(pattern):
    """The groups of all matches in all sources; there must be one."""
    matches = [match.groups() for text in SOURCES.values() for match in re.finditer(pattern, text, re.DOTALL)]
    assert matches, f"nothing in the sources matches {pattern!r}: errors are made in another way now"
    return matches


def all_of(use, pattern):
    """As `found`; moreover `pattern` must read every place where `use` occurs."""
    for path, text in SOURCES.items():
        read = {match.start() for match in re.finditer(pattern, text, re.DOTALL)}
        for match in re.finditer(use, text, re.DOTALL):
            line = text.count("\n", 0, match.start()) + 1
            excerpt = " ".join(text[match.start():match.start() + 100].split())
            assert match.start() in read, f"{path}:{line}: {excerpt!r} is not read by {pattern!r}"
    return found(pattern)


def number(name):
    """The status that Swift names so."""
    assert name in STATUS, f"add the status .{name} to this test"
    return STATUS[name]


def expanded(text):
    """A text of the sources with what may stand in the place of its interpolation."""
    interpolated = re.findall(r"\\\((\w+)\)", text)
    if not interpolated:
        assert "\\" not in text, f"{text!r}: this test does not know that escape"
        return [text]
    assert len(interpolated) == 1, text
    values = {
        # A member of a JSON body that is no text: the names that endpoints read.
        "name": lambda: {name for name, in found(rf'\.string\({_TEXT}\)') + found(rf'\(body, {_TEXT},')},
        # A person's name that is no good.
        "label": lambda: set(sum(found(rf'let label = [^\n]*\? {_TEXT} : {_TEXT}'), ())),
        # What an app that polls waits for.
        "subject": lambda: {name for name, in found(rf'Polling\(\.\w+, of: {_TEXT}\)')},
        # A parameter of a form.
        "parameter": lambda: {name for name, in found(rf'\.missing\({_TEXT}\)')},
    }
    assert interpolated[0] in values, f"{text!r}: add what \\({interpolated[0]}) may be to this test"
    return [text.replace(f"\\({interpolated[0]})", value) for value in sorted(values[interpolated[0]]())]


def codes():
    """The codes of TokenError by the name of their case."""
    (block,), = found(r"enum Code: String, Sendable, CaseIterable \{(.*?)\n    \}")
    cases = re.findall(r'case (\w+)(?: = "(\w+)")?', block)
    assert len(cases) > 5, "the cases of TokenError.Code cannot be read"
    return {name: raw or name for name, raw in cases}


def oauth_errors():
    """`TokenError(.code, "description")`: RFC 6749 §5.2."""
    names = codes()
    all_of(r"\.missing\((?!_ )", rf"\.missing\({_TEXT}\)")
    entries = {Entry(status, f"error: {code}") for code, status in UNDESCRIBED.items()}
    used = set()
    for case, description in all_of(r"TokenError\(\s*(?=\.)", rf"TokenError\(\s*\.(\w+),\s*{_TEXT}\s*[,)]"):
        code = names[case]
        used.add(code)
        if code not in UNDESCRIBED:
            entries |= {Entry(STATUS_OF_CODE.get(code, 400), f"error: {code}", text) for text in expanded(description)}
    assert used == set(names.values()), f"never made: {set(names.values()) - used}"
    return entries


def plain_errors():
    """`.error(.status, "text")`: a JSON object with one member."""
    entries = set()
    for name, text in all_of(r"\.error\(\s*(?=\.)", rf"\.error\(\s*\.(\w+),\s*{_TEXT}\s*\)"):
        entries |= {Entry(number(name), f"error: {each}") for each in expanded(text)}
    return entries


def messages():
    """`.message(.status, "text")`: enrolments."""
    return {
        Entry(number(name), f"Message: {each}")
        for name, text in all_of(r"\.message\(\s*(?=\.)", rf"\.message\(\s*\.(\w+),\s*{_TEXT}\s*\)") for each in expanded(text)
    }


def cotter_errors():
    """`.cotter(.status, "text")`: what clients of Cotter read."""
    pattern = rf"\.cotter\(\s*\.(\w+),\s*{_TEXT}\s*\)"
    return {Entry(number(name), f"msg: {text}") for name, text in all_of(r"\.cotter\(\s*(?=\.)", pattern)}


def possession_errors():
    """`.possession(.status, "error", "message")`, and on Prove's wire `answer(.status, code, "error", "message")`."""
    app = all_of(r"\.possession\(\s*(?=\.)", rf"\.possession\(\s*\.(\w+),\s*{_TEXT},\s*{_TEXT}\s*\)")
    backend = found(rf"\banswer\(\s*\.(\w+),\s*\d{{4}},\s*{_TEXT},\s*{_TEXT}\s*\)")
    return {Entry(number(name), f"error: {error}", text) for name, error, text in app + backend}


def problems():
    """`.problem(.status, title: "…", detail: "…")`: RFC 9457."""
    pattern = rf"\.problem\(\s*\.(\w+),\s*title: {_TEXT},\s*detail: {_TEXT}\s*\)"
    return {Entry(number(name), f"title: {title}", detail) for name, title, detail in all_of(r"\.problem\(\s*(?=\.)", pattern)}


def bare_answers():
    """`Answer(.status)` without a body, and what a connection refuses by itself."""
    uses = all_of(r"\bAnswer\(\s*(?=\.)", r"\bAnswer\(\s*\.(\w+)\s*([),][^\n]*)")
    names = {name for name, rest in uses if "json:" not in rest}
    call = r"(?<!\.)(?<!case )(?<!func )\brefuse\((?!\s*request, )"
    for argument, in all_of(call, call + r"([^()]*)\)"):
        statuses = {name for name in re.findall(r"\.(\w+)", argument) if name in STATUS}
        assert statuses, f"refuse({argument}) names no status that this test knows"
        names |= statuses
    # An answer with a challenge is told by it.
    return {Entry(number(name)) for name in names - NO_ERROR - {"unauthorized"}}


def challenges():
    """The `error` and `error_description` of `WWW-Authenticate: Bearer`."""
    pairs = {(error, text or "") for error, text in found(r'(?<!hasPrefix\("Bearer )error=\\"(\w+)\\"(?:, error_description=\\"([^"\\]*)\\")?')}
    uses = sum(len(re.findall(r'\berror=\\"(?!\\\()', text)) for text in SOURCES.values())
    assert uses == sum(len(re.findall(r'error=\\"\w+\\"', text)) for text in SOURCES.values()), "a challenge cannot be read"
    return pairs


def proof_challenges():
    """The answers 401 of scheme DPoP, which are those of refused proofs, and one about the token."""
    about_token = {Entry(401, f"error: {error}", text) for error, text in found(r'dpopChallenge\("(\w+)", "([^"]*)"\)')}
    assert about_token
    return about_token | {Entry(401, entry.answer, entry.text) for entry in oauth_errors() if "dpop" in entry.answer}


def pages():
    """The headings of `/magic-login` and `/undo/{id}` by their status, and what is said about a mistyped number."""
    texts = json.loads((REPOSITORY / "Sources/Texts/Templates/en.json").read_text(encoding="utf-8"))
    blocks = found(r"enum (?:Link|Undo)Result: .*?var status: [\w.]+ \{(.*?)\n    \}")
    assert len(blocks) == 2
    statuses = {
        name: result for (block,) in blocks for listed, result in re.findall(r"case ([.\w, ]+):\s*\.(\w+)", block)
        for name in re.findall(r"\.(\w+)", listed)
    }
    assert {f"done-{case}-title" for case in statuses} == {key for key in texts if re.fullmatch(r"done-\w+-title", key)}
    entries = {Entry(number(name), f"page: {texts[f'done-{case}-title']}") for case, name in statuses.items() if name not in NO_ERROR}
    return entries | {Entry(400, f"page: {texts['fault-wrong_number']}")}


def authorization_errors():
    """Answers at a redirect URI, and the codes of the pages in their place."""
    (block,), = found(r"enum AuthorizationError: String, Sendable \{(.*?)\n    static let")
    names = {name: raw or name for name, raw in re.findall(r'case (\w+)(?: = "(\w+)")?', block)}
    made = all_of(r"\brefused\(\s*\.\w+,", rf"\brefused\(\s*\.(\w+),\s*{_TEXT}\s*\)")
    made += all_of(r"\brefuse\(\s*(?:context\.)?request, \.", rf"\brefuse\(\s*(?:context\.)?request, \.(\w+),\s*{_TEXT}")
    made += found(rf"case \.\w+: \(\.(\w+), {_TEXT}\)")
    made += all_of(r"\.failure\(\s*\.(?!init)", rf"\.failure\(\s*\.(\w+),\s*{_TEXT}")
    entries = {Entry(303, f"error: {names[case]}", text) for case, text in made}
    parameters = found(r'\("(\w+)", \.(\w+NotSupported)\)')
    entries |= {Entry(303, f"error: {names[case]}", f"The parameter {name} is not supported.") for name, case in parameters}
    (pages_block,), = found(r"enum AuthorizationPageError: String[^{]*\{(.*?)\n\}")
    return entries | {Entry(400, f"page: {code}") for code in re.findall(r'case \w+ = "(\w+)"', pages_block)}


def rows():
    """The rows of the page's tables that begin with a status."""
    cells = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines() if re.match(r"\| \d{3} \|", line)
    ]
    assert cells, "docs/errors.md has no rows"
    assert all(len(row) == 5 and all(row) for row in cells), [row for row in cells if len(row) != 5 or not all(row)]
    return [(int(status), answer.strip("`"), text.strip("`")) for status, answer, text, _, _ in cells]


def documented():
    """The rows as entries; a challenge is compared by itself."""
    return {Entry(status, answer, "—" if text.startswith("WWW-Authenticate") else text) for status, answer, text in rows()}


@pytest.fixture(scope="module", name="made")
def fixture_made():
    """Every error that the sources make."""
    return (
        oauth_errors() | plain_errors() | messages() | cotter_errors() | possession_errors() | problems() | bare_answers() | proof_challenges()
        | pages() | authorization_errors())


def listed(entries):
    """For a message."""
    return "\n".join(f"  {entry}" for entry in sorted(entries))


def test_every_error_is_documented(made):
    """An app that gets an error finds it on the page."""
    missing = made - documented()
    assert not missing, f"docs/errors.md lacks:\n{listed(missing)}"


def test_every_documented_error_exists(made):
    """Nothing on the page has died."""
    dead = {entry for entry in documented() - made if entry != Entry(401)}
    assert not dead, f"docs/errors.md names what no source makes:\n{listed(dead)}"


def test_challenges():
    """The Bearer challenges of the page are those of the sources."""
    told = {
        re.match(r'WWW-Authenticate: Bearer(?: error="(\w+)"(?:, error_description="([^"]*)")?)?$', text).groups("")
        for _, _, text in rows() if text.startswith("WWW-Authenticate")
    }
    assert told - {("", "")} == challenges()


def test_limits():
    """Every policy and every dimension of a limit is explained."""
    page = PAGE.read_text(encoding="utf-8")
    blocks = [block for block, in found(r"(?:struct Policy: |extension RateLimit\.Policy )[^{]*\{(.*?)\n(?:    )?\}")]
    policies = [name for block in blocks for name in re.findall(r'static let \w+ = Self\(rawValue: "([\w-]+)"\)', block)]
    (block,), = found(r"enum Dimension: String, Sendable, Hashable, CaseIterable \{(.*?)\n    \}")
    dimensions = [raw or name for name, raw in re.findall(r'case (\w+)(?: = "([\w-]+)")?', block)]
    assert len(policies) >= 5 and len(dimensions) > 3, "policies or dimensions cannot be read"
    for name in policies + dimensions:
        assert f"`{name}`" in page, f"docs/errors.md does not explain {name}"
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    twice = {line for line in rows if rows.count(line) > 1 and line.count("|") == 3}
    assert not twice, f"docs/errors.md says it twice: {twice}"


def test_a_new_way_to_fail_is_noticed(monkeypatch):
    """A text put together, an unknown status and an undocumented text fail."""
    for path, line, check in (
        ("a.swift", 'throw TokenError(.invalidGrant, "a" + "b")', oauth_errors), ("b.swift", ".error(.badRequest, text())", plain_errors),
        ("c.swift", '.error(.teapot, "x")', plain_errors), ("d.swift", "return Answer(.teapot)", bare_answers),
        ("e.swift", '.error(.badRequest, "\\(who) is wrong.")', plain_errors),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(SOURCES, path, line)
            with pytest.raises(AssertionError):
                check()
    with monkeypatch.context() as patch:
        patch.setitem(SOURCES, "f.swift", '.error(.badRequest, "Nobody wrote this down.")')
        assert plain_errors() - documented() == {Entry(400, "error: Nobody wrote this down.")}
