"""docs/conformance.md lists every module that has a test here, with the result that the test stands for, and no other. Needs no server."""

import re

import pytest

from harness.settings import REPOSITORY
from test_oidf_basic import BASIC, FORM_POST
from test_oidf_fapi import FAPI
from test_oidf_logout import BACK_CHANNEL, CONFIG, LOGOUT

PAGE = (REPOSITORY / "docs/conformance.md").read_text(encoding="utf-8")
PLANS = {BASIC.name: BASIC, FORM_POST: BASIC, CONFIG.name: CONFIG, LOGOUT.name: LOGOUT, BACK_CHANNEL.name: BACK_CHANNEL, FAPI.name: FAPI}
SECTIONS = dict(re.findall(r"^## .*?`([a-z0-9-]+)`\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def test_the_page_has_every_plan():
    """And no other."""
    assert set(SECTIONS) == set(PLANS) - {FORM_POST}
    assert f"`{FORM_POST}`" in PAGE, "it is the basic plan once more"


@pytest.mark.parametrize("plan", [name for name in PLANS if name != FORM_POST])
def test_the_page_has_every_module_with_its_result(plan):
    """In the order of the tests."""
    rows = re.findall(r"^\| `([\w-]+)` \| ([a-z ]+?) \|", SECTIONS[plan], re.MULTILINE)
    assert rows == [(name, result) for name, (result, _) in PLANS[plan].items()]
