"""docs/operate.md names every setting, metric, log event, reason and failure that an operator meets. Needs no server: it reads the sources.

A pattern that no longer finds anything fails: then the sources changed, and the pattern has to follow.
"""

import re

from harness.settings import REPOSITORY

PAGE = (REPOSITORY / "docs/operate.md").read_text(encoding="utf-8")
#: What `postern dev` and `postern try` say is not for operators.
LEFT_OUT = ("Sources/postern/Dev/", "Sources/postern/Try/", "Sources/embed-files/", "Sources/SoftwareAuthenticator/")
_TEXT = r'"((?:[^"\\]|\\.)*)"'


def swift(folder="Sources"):
    """The Swift sources below a folder, without comments, in one text."""
    files = [
        re.sub(r"^\s*//.*$", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for file in sorted((REPOSITORY / folder).rglob("*.swift"))
        if not str(file.relative_to(REPOSITORY)).startswith(LEFT_OUT)
    ]
    assert files, f"{folder} has moved"
    return "\n".join(files)


def found(pattern, text, least=1):
    """What the one group of a pattern matches, each once."""
    matches = sorted(set(re.findall(pattern, text, re.DOTALL)))
    assert len(matches) >= least, f"{pattern!r} finds {matches}: the sources say it in another way now"
    return matches


def section(heading):
    """The text below a heading, up to the next one of its rank."""
    match = re.search(rf"^(#+) {re.escape(heading)}\n(.*?)(?=^\1 |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert match, f"docs/operate.md has no section {heading!r}"
    return match.group(2)


def in_first_column(text):
    """What stands in backticks in the first two columns of the tables of a text."""
    return {name for line in text.splitlines() if line.startswith("| ") for cell in line.split("|")[1:3] for name in re.findall(r"`([^`]+)`", cell)}


def shown(text):
    """A text of the sources as the page can hold it: `…` or a letter for what differs, so only what precedes it counts."""
    return text.partition("\\(")[0].rstrip(" :\"'\\")


def test_settings():
    """Every variable is in the table, and the table names no other."""
    variables = set(found(r'"(POSTERN_[A-Z_]+)"', swift("Sources/postern"), least=15))
    assert {name for name in in_first_column(section("Settings")) if re.fullmatch(r"POSTERN_[A-Z_]+", name)} == variables


def test_defaults():
    """The defaults and ranges of whole numbers."""
    table = section("Settings")
    for name, default, low, high in found(r'integer\(\s*"(\w+)", default: ([\d_]+), in: ([\d_]+)\.\.\.([\d_]+)\)', swift("Sources/postern"), least=5):
        default, low, high = (value.replace("_", "") for value in (default, low, high))
        row, = [line for line in table.splitlines() if line.startswith(f"| `{name}`")]
        assert row.split("|")[2].strip() == default, row
        assert f"{low} to {high}" in row, row


def test_metrics():
    """Every metric is in the table, and the table names no other."""
    metrics = {name for name in found(r"\b(postern_[a-z_]+)\b", swift("Sources/TokenEndpoint") + swift("Sources/Telemetry"), least=15) if not name.endswith("_")}
    assert {name for name in in_first_column(section("Metrics and alarms")) if name.startswith("postern_")} == metrics - {"postern_config", "postern_wake"}


def test_log_events():
    """Every event of level notice and above is in the table, and the table names no other."""
    text = swift()
    page = in_first_column(section("Log events"))
    literal = {shown(message) for message in found(rf'logger\.(?:notice|warning|error|critical)\(\s*{_TEXT}', text, least=20)}
    # Errors of a handler: the level goes with the error, the message with the route.
    chosen = {shown(message) for message in found(rf'\.logged\(as: {_TEXT}\)', text, least=10)}
    mail = set(found(rf'log\(\.(?:error|warning), {_TEXT}', text, least=1)) | set(found(rf'of: mail, \.error, {_TEXT}', text, least=1))
    mail |= set(sum(found(rf'(?:forGood|failure\.isFinal) \? {_TEXT} : {_TEXT}', text, least=2), ()))
    mail |= set(found(rf'record\(failure, \.\w+, {_TEXT}', text, least=2))
    told = {shown(name.partition("…")[0]).rstrip() for name in page}
    missing = {message for message in literal | chosen | mail if message not in told}
    assert not missing, f"docs/operate.md, Log events, lacks {sorted(missing)}"
    # Line by line: a quotation mark that stands alone in one line must not pair with that of another.
    everything = {shown(message) for line in text.splitlines() for message in re.findall(_TEXT, line)}
    dead = {name for name in told if " " in name and not any(message.startswith(name) for message in everything)}
    assert not dead, f"docs/operate.md names log events that no source writes: {sorted(dead)}"


def test_reasons_of_unavailability():
    """Why the store did not answer, and why `/readyz` is 503."""
    reasons, = found(r"enum Reason: String, Sendable, CaseIterable \{(.*?)\n    \}", swift("Sources/Persistence"))
    names = found(r"case (\w+)", reasons, least=5) + ["timedOut", "inDoubt", "conflict", "violation", "rejected", "malformedResult"]
    page = section("Log events")
    for name in names:
        assert name == "notRunning" or f"`{name}`" in page, f"docs/operate.md, Log events, lacks the reason {name}"
    readiness = "".join(found(r"func reason\w*\([^)]*\) async -> String\? \{(.*?)\n    \}", swift("Sources/TokenEndpoint")))
    schema, = found(r"func obstacle\(.*?\) -> String\? \{(.*?)\n    \}", swift("Sources/Persistence"))
    for text in found(rf"return\s+{_TEXT}", readiness, least=3) + found(rf"return\s+{_TEXT}", schema, least=2):
        assert shown(text) in section("Health"), f"docs/operate.md, Health, lacks {text!r}"


def test_failures_of_mail():
    """Every class of `last_error`."""
    block, = found(r"public enum DeliveryFailure.*?var description: String \{(.*?)\n    \}", swift("Sources/Delivery"))
    page = in_first_column(section("Mail")) | in_first_column(section("Messages to phones"))
    for name in found(_TEXT, block, least=8):
        assert name in page, f"docs/operate.md, Mail, and Messages to phones, lack {name}"


def test_reasons_not_to_start():
    """What `serve` says when it cannot serve: the table has a part of each text."""
    parts = [part for line in section("Start and stop").splitlines() if line.startswith("| ")
             for part in re.findall(r"`([^`]+)`", line.split("|")[1])]
    files = [REPOSITORY / "Sources/postern/Serve", REPOSITORY / "Sources/postern/Settings"]
    text = "\n".join(re.sub(r'\\\n\s*|"\s*\+\s*"', "", swift(str(folder.relative_to(REPOSITORY)))) for folder in files)
    failures = found(r'CommandFailure\(\s*"+\s*((?:[^"\\]|\\.)*)"', text, least=12)
    internal = ("the database cannot be reached", "the configuration file", "database: ", "\\(variable): \\(problem)", "POSTERN_SMTP_URL: ",
                "POSTERN_SECRET_KEY_FILE: ", "POSTERN_TLS_CERT and", "a process needs", "\\(name) is ", "POSTERN_MAIL_FROM is ")
    for failure in failures:
        told = any(part in failure for part in parts)
        assert told or failure.startswith(internal), f"docs/operate.md, Start and stop, lacks {failure!r}"


def test_audit_events():
    """The events to watch exist."""
    sql = "\n".join(file.read_text(encoding="utf-8") for folder in ("functions", "schema") for file in (REPOSITORY / "sql" / folder).rglob("*.sql"))
    for name in {name for name in in_first_column(section("Audit events")) if re.fullmatch(r"[a-z]+(_[a-z]+)+", name)}:
        assert f"'{name}'" in sql or name in {"link_denied"} and "'link_' ||" in sql, f"docs/operate.md: no SQL writes {name}"


def test_function_sets():
    """CHANGELOG.md has the number of each release's function set, each greater than the one before; the first is this binary's."""
    own, = found(r"static let own = SchemaRange\(functionSet: (\d+)", swift("Sources/Persistence"))
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    sets = [int(number) for number in re.findall(r"^## .*\(function set (\d+)\)$", changelog, re.MULTILINE)]
    assert len(sets) == len(re.findall(r"^## ", changelog, re.MULTILINE)), "a release has no function set"
    assert sets[0] == int(own) and sets == sorted(set(sets), reverse=True), f"{sets} in CHANGELOG.md, {own} in the binary"
