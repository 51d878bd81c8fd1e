#!/usr/bin/env python3
"""Reads the plans that auto_explain wrote (JSON, nested statements, log_analyze, log_buffers), and shows which
statements of which functions read more than so many rows: read_plans.py LOG LIMIT <NAMES. Prints `reads`, function,
rows, pages, node and statement of each, and `called` and the name of each function that ran. NAMES has a line
`function NAME` for each function, and `index NAME COLUMN,...` for each index. Lines of the log begin with an at sign
(log_line_prefix)."""

import json
import re
import sys

# Pages of an index that a look-up may touch: its levels, and those of rows that other tests have left.
PAGES, PAGES_A_ROW = 10, 4
NAMES_A_TABLE = re.compile(r"\b(FROM|JOIN|UPDATE|INTO|USING)\s+(\w+\.)?[a-z_]+\b(?!\s*\()")


def entries(path):
    with open(path, encoding="utf-8", errors="replace") as log:
        entry = []
        for line in log:
            if line.startswith("@") and " CONTEXT:" not in line[:24]:
                if entry:
                    yield "".join(entry)
                entry = []
            entry.append(line)
        if entry:
            yield "".join(entry)


def frames(context):
    """The functions that a statement ran in, the innermost first: (name, whether it is of a test)."""
    for match in re.finditer(r"(?:PL/pgSQL|SQL) function (?:\"([a-z0-9_]+)\"|(?:(\w+)\.)?([a-z0-9_]+)\()", context):
        yield match[1] or match[3], (match[2] or "").startswith("pg_temp")


def scans(node):
    if "Relation Name" in node or "Index Name" in node:
        if node["Node Type"] != "ModifyTable":
            yield node
    for child in node.get("Plans", ()):
        yield from scans(child)


def skips(node, indexes):
    """Whether a scan goes through entries of its index that it does not want, because it names no leading column: such
    entries are not among the removed rows."""
    condition, columns = node.get("Index Cond"), indexes.get(node.get("Index Name"), ())
    if not condition:
        return False
    named = [re.search(rf"\b{re.escape(column)}\b", condition) is not None for column in columns]
    return any(later and not before for before, later in zip(named, named[1:]))


def read(node):
    """The rows and pages that a scan reads."""
    loops = node.get("Actual Loops", 0)
    removed = sum(node.get(f"Rows Removed by {why}", 0) for why in ("Filter", "Index Recheck"))
    pages = node.get("Shared Hit Blocks", 0) + node.get("Shared Read Blocks", 0)
    return (node.get("Actual Rows", 0) + removed) * loops, pages, loops


def names():
    functions, indexes = set(), {}
    for line in sys.stdin:
        kind, name, *columns = line.split()
        if kind == "function":
            functions.add(name)
        else:
            indexes[name] = columns[0].split(",") if columns else ()
    return functions, indexes


def main():
    path, limit = sys.argv[1], int(sys.argv[2])
    functions, indexes = names()
    called, found = set(), {}
    for entry in entries(path):
        start, end = entry.find("{\n"), entry.rfind("\n\t}")
        if start < 0 or end < 0:
            continue
        plan = json.loads(entry[start : end + 3])
        text, stack = plan["Query Text"], list(frames(entry[end:]))
        inside = [name for name, is_tests in stack if name in functions and not is_tests]
        named = [name for name in re.findall(r"postern\.([a-z0-9_]+)\s*\(", text) if name in functions]
        called.update(inside, named)
        # What a test itself asks names its tables; else a scan is of a function that was inlined into the statement.
        is_own = stack and stack[0][0] in functions and not stack[0][1] or 'ONLY "postern"' in text
        for node in scans(plan["Plan"]):
            rows, pages, loops = read(node)
            if rows <= limit and not (pages > PAGES * loops + PAGES_A_ROW * rows and skips(node, indexes)):
                continue
            table = node.get("Relation Name") or node.get("Index Name", "")
            if table.startswith("pg_") or node.get("Schema", "postern") != "postern":
                continue
            if not is_own and (not named or NAMES_A_TABLE.search(text)):
                continue
            where = (inside or named or ["a trigger"])[0]
            key = where, f'{node["Node Type"]} {node.get("Index Name", "")} {node.get("Relation Name", "")}', text
            found[key] = max(found.get(key, (0, 0)), (rows, pages))
    for (where, node, text), (rows, pages) in sorted(found.items()):
        print("reads", where, rows, pages, " ".join(node.split()), " ".join(text.split())[:200], sep="\t")
    for name in sorted(called):
        print("called", name, sep="\t")


if __name__ == "__main__":
    main()
