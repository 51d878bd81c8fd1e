"""What docs/security.md says about guessing is what scripts/residual-risk computes from the rules and the default limits."""

import subprocess

from harness.settings import REPOSITORY


def test_the_documentation_says_what_the_rules_amount_to():
    """The table, line by line."""
    table = subprocess.run([REPOSITORY / "scripts" / "residual-risk"], capture_output=True, text=True, check=True).stdout
    assert table.strip() in (REPOSITORY / "docs" / "security.md").read_text(encoding="utf-8")
