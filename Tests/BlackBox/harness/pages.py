"""Documentation as a program: the blocks of a page, run in order, and what they print compared with what the page says they print."""

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

RUNNABLE = ("sh", "sql", "swift")
OUTPUT = ("text", "json")
_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
#: Stands for what differs from run to run: ids, secrets, times.
PLACEHOLDER = "…"


@dataclass
class Block:
    """One fenced block; `expected` is the output block that follows it, if any."""

    page: str
    line: int
    language: str
    remark: str
    text: str
    expected: "Block" = None

    def __str__(self):
        return f"{self.page}:{self.line}"


def blocks(path):
    """The fenced blocks of a page, each with its output; bare ones and other languages are left as they are."""
    source = Path(path).read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(source):
        language, _, remark = match["info"].strip().partition(" ")
        block = Block(Path(path).name, source.count("\n", 0, match.start()) + 1, language, remark.strip(), match["text"])
        if language in OUTPUT and found and found[-1].language in RUNNABLE and not found[-1].remark:
            found[-1].expected = block
        else:
            found.append(block)
    return found


def to_run(path):
    """The blocks to run. One that is not run says `no-run: why` beside its language."""
    chosen = []
    for block in blocks(path):
        if block.language not in RUNNABLE:
            continue
        assert not block.remark or re.fullmatch(r"no-run: \S.*", block.remark), f"{block}: {block.remark!r} is not `no-run: why`"
        if not block.remark:
            chosen.append(block)
    return chosen


def check(block, printed):
    """Compares what a block printed with its output block."""
    if block.expected is None:
        return
    if block.expected.language == "json":
        expected, actual = json.loads(block.expected.text), json.loads(printed)
        assert _agrees(expected, actual), f"{block}: printed {json.dumps(actual, indent=2)}"
    else:
        pattern = re.escape(_squeezed(block.expected.text)).replace(re.escape(PLACEHOLDER), ".*")
        if block.language == "sql":
            pattern = r"(.*\n)?" + pattern  # of the last statement
        assert re.fullmatch(pattern, _squeezed(printed), re.DOTALL), f"{block}: printed\n{printed}"


def _squeezed(text):
    """Without what only lays out: runs of blanks, rules of tables, empty lines."""
    lines = (re.sub(r"-{3,}", "--", re.sub(r"[ \t\r]+", " ", line)).strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def _agrees(expected, actual):
    """Whether two JSON values agree; a text that is only the placeholder stands for any value."""
    if expected == PLACEHOLDER:
        return True
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(_agrees(value, actual[name]) for name, value in expected.items())
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(_agrees, expected, actual))
    if isinstance(expected, str) and isinstance(actual, str):
        return re.fullmatch(re.escape(expected).replace(re.escape(PLACEHOLDER), ".*"), actual, re.DOTALL) is not None
    return type(expected) is type(actual) and expected == actual


class Shell:
    """Runs blocks with bash, each in the directory and with the variables the former left."""

    def __init__(self, directory, environment, replacements=()):
        self._directory = directory
        self._environment = environment
        self._replacements = replacements
        self._state = Path(directory) / "variables"
        self._state.write_text("")

    def run(self, block):
        """Runs one block; returns what it printed on stdout."""
        text = block.text
        for old, new in self._replacements:
            text = text.replace(old, new)
        script = f"set -eua -o pipefail\n. {self._state}\n{text}\nexport -p > {self._state}\n"
        done = subprocess.run(
            ["bash", "-c", script], cwd=self._directory, env=self._environment, capture_output=True, text=True, timeout=60,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"{block}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout


class Psql:
    """Runs blocks with psql as one role, each in a session of its own."""

    def __init__(self, cluster, role):
        self._command = [
            "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-P", "pager=off", "-h", str(cluster.root), "-U", role, "-d", cluster.database,
        ]

    def run(self, block):
        """Runs one block; returns the tables as psql draws them."""
        done = subprocess.run(self._command, input=block.text, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{block}: {done.stderr}"
        return done.stdout
