"""What stands in place of a value: `{"$": …}` (docs/vectors/README.md)."""

import re


def matches(expected, value, where, partly=False, bound=None):  # pylint: disable=too-many-branches
    """Compares; `partly`: members that are not named may be anything. `bound`: values by name, for "bind" and "use"."""
    if isinstance(expected, dict) and "$" in expected:
        return _special(expected, value, where, {} if bound is None else bound)
    if isinstance(expected, dict):
        assert isinstance(value, dict), f"{where}: {value!r} instead of {expected}"
        for name in {**expected, **({} if partly else value)}:
            wanted = expected.get(name, {"$": "absent"})
            matches(wanted, value.get(name, ABSENT), f"{where}.{name}", False, bound)
    elif isinstance(expected, list):
        assert isinstance(value, list) and len(value) == len(expected), f"{where}: {value!r} instead of {expected!r}"
        for number, (one, other) in enumerate(zip(expected, value)):
            matches(one, other, f"{where}[{number}]", partly, bound)
    else:
        assert value == expected, f"{where}: {value!r} instead of {expected!r}"
    return None


class _Absent:
    def __repr__(self):
        return "nothing"


ABSENT = _Absent()


def _special(expected, value, where, bound):
    kind = expected["$"]
    if kind == "any":
        return
    if kind == "absent":
        assert value is ABSENT, f"{where}: {value!r} should not be there"
        return
    assert value is not ABSENT, f"{where} is missing"
    if kind == "number":
        assert isinstance(value, (int, float)) and expected["min"] <= value <= expected["max"], f"{where}: {value!r}, not {expected}"
    elif kind == "use":
        assert value == bound[expected["name"]], f"{where}: {value!r} instead of {bound[expected['name']]!r}"
    else:
        assert isinstance(value, str), f"{where}: {value!r} is no text"
        if kind == "match":
            assert re.fullmatch(expected["pattern"], value), f"{where}: {value!r} does not match {expected['pattern']}"
        elif kind == "bind":
            bound[expected["name"]] = value
        else:
            assert kind == "string", kind
