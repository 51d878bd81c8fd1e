"""What `postern.realm_config` hands to servers and what they decode: compared in the sources; no server is needed."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
REALM = ROOT / "Sources" / "Grants" / "Realm"


def functions():
    """The bodies of the functions that make the document, by name."""
    found = {}
    for file in (ROOT / "sql" / "functions").rglob("*.sql"):
        for name, body in re.findall(
                r"CREATE OR REPLACE FUNCTION postern\.(\w+_config|signing_key_document)\((.*?)\nCOMMENT ON", file.read_text(), re.S):
            found[name] = body
    return found


def members(body):
    """Names of the members of the objects that a function builds."""
    return set(re.findall(r"(?<!= )'([a-z][a-z0-9_]*)', ", re.sub(r"encode\([^()]*\)", "encoded", body)))


def decoded():
    """Names that a record of the server has, as JSON names them."""
    names = re.findall(r"\blet (\w+)\s*:", "\n".join(file.read_text() for file in REALM.glob("*.swift")))
    return {re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() for name in names}


def test_servers_decode_each_member_of_the_configuration():
    """A member that is not read is work for the database and says that somebody reads it."""
    found = functions()
    assert len(found) >= 16 and len(members(found["clients_config"])) > 10, sorted(found)
    for name, body in found.items():
        # As names of Swift and of JSON differ: sha256CertFingerprints.
        unread = {member for member in members(body) if member.replace("_", "") not in {other.replace("_", "") for other in decoded()}}
        assert not unread, (name, unread)


def test_each_setting_of_a_client_is_a_member_that_servers_decode():
    """Or a rule of the database reads it by name."""
    text = (ROOT / "sql" / "functions" / "client" / "settings.sql").read_text()
    settings = re.findall(r"^    \('(\w+)', '\w+', ", text, re.M)
    assert len(settings) >= 10
    rules = "\n".join(file.read_text() for file in (ROOT / "sql" / "functions").rglob("*.sql"))
    for setting in settings:
        assert setting in decoded() or f"client_setting_of(c.settings, '{setting}')" in rules, setting
