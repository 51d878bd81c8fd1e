"""Whether our pgbench scripts still run what the server sends: the same columns of the same functions with as many arguments."""

import re

from paths import REPOSITORY

_CALL = re.compile(r"select\s+([\w\s,]+?)\s+from\s+postern\.(\w+)\((.*?)\)(?:\s*;|\s*\"\"\")", re.I | re.S)


def _count(arguments):
    """Arguments at the top level: commas inside brackets and literals do not count."""
    depth, count, quoted = 0, 1, False
    for character in arguments:
        if character == "'":
            quoted = not quoted
        elif not quoted:
            depth += character in "([{"
            depth -= character in ")]}"
            count += character == "," and depth == 0
    return count


def _calls(text):
    return {name: (" ".join(columns.split()), _count(arguments)) for columns, name, arguments in _CALL.findall(text)}


def check(script):
    """Raises RuntimeError when the script and Sources/Persistence disagree."""
    sent = {}
    for path in (REPOSITORY / "Sources" / "Persistence").rglob("*.swift"):
        sent.update(_calls(path.read_text(encoding="utf-8")))
    for name, call in _calls(script.read_text(encoding="utf-8")).items():
        if sent.get(name) != call:
            raise RuntimeError(f"{script.name} is not what the server sends: {name} {call}, the server {sent.get(name)}")
