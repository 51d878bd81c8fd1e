"""docs/security.md shows the table of what becomes of each credential as SQL has it. Needs no server."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def table():
    """The rows of postern.credential_life: the thing, an outcome per event, and who is told."""
    text = (ROOT / "sql/functions/0_base/credential_life.sql").read_text()
    body = text[text.index("VALUES"):text.index("COMMENT ON FUNCTION postern.credential_life")]
    rows = re.findall(r"\('([^']+)', '\{[^']*\}'(?:::text\[\])?,\s+((?:'[^']*',?\s*)+)\)", body)
    return [[thing, *re.findall(r"'([^']*)'", rest)] for thing, rest in rows]


def test_the_document_shows_the_table():
    """Row by row, in the same order."""
    document = (ROOT / "docs/security.md").read_text()
    section = document[document.index("## The life of each credential"):]
    section = section[:section.index("\n## ", 3)]
    shown = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in section.splitlines() if line.startswith("| ") and line.count("|") == 13]
    rows = table()
    assert len(rows) > 15 and all(len(row) == 12 for row in rows), rows
    assert shown[1:] == rows


def test_everything_that_the_key_file_seals_is_in_the_document():
    """Under its label of the source; what it is worth is a row of the table above, or nothing, and why."""
    labels = []
    for name in ("SealPurpose", "ServerKey"):
        source = (ROOT / f"Sources/Persistence/Keys/{name}.swift").read_text()
        labels += re.findall(r'case \.\w+: "([^"]+)"', source)
    document = (ROOT / "docs/security.md").read_text()
    section = document[document.index("\n| sealed | is worth |"):]
    shown = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", section[:section.index("\n## ")], re.M)
    shown = [pair for pair in shown if pair != ("sealed", "is worth")]
    assert len(labels) > 15 and sorted(label for label, _ in shown) == sorted(labels)
    rows = {row[0] for row in table()}
    for label, worth in shown:
        assert worth.startswith("nothing: ") or set(worth.split(", ")) <= rows, label
