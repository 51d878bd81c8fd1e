"""`postern try magic`, and links under `postern dev`."""

import re
import subprocess

from harness.node import run_postern
from harness.settings import REPOSITORY


def test_the_headless_app_signs_in_by_link(dev):
    """Every request and answer is printed: the request, a pending poll, the page, the confirmation, the tokens."""
    run = run_postern("try", "magic", "--url", f"{dev.origin}/", "--client", dev.client_id, "--email", dev.email)
    assert run.returncode == 0, run.stdout + run.stderr
    lines = [
        "> POST /api/account/magic-link/request", "> POST /connect/token", '"error":"authorization_pending"',
        "the dev outbox has the link http://localhost:", "> GET /magic-login?userId=", "< the page says: App ", "> POST /magic-login",
        "< 200 Confirmed", "> POST /connect/token", '"token_type":"Bearer"', "> GET /connect/userinfo", '"sub":"',
    ]
    rest = run.stdout
    for line in lines:
        assert line in rest, f"{line}\n{run.stdout}"
        rest = rest.partition(line)[2]
    said = run.stdout.partition("< the page says: ")[2].partition("\n")[0]
    facts = dict(fact.split(" ", 1) for fact in said.split("; "))
    assert facts["App"] and facts["Time"] and "127.0." in said, f"names without values: {said}"


def test_the_dev_outbox_shows_the_link(dev):
    """On the dev server's own origin, beside the text that has it."""
    asked = dev.post_json("/api/account/magic-link/request", {"Email": dev.email})
    assert asked.status == 200, asked
    mails = [mail for mail in dev.get("/dev/outbox.json").json() if mail.get("link")]
    assert mails and mails[0]["link"].startswith(f"{dev.origin}/magic-login?userId=") and mails[0]["link"] in mails[0]["text"]
    assert mails[0].get("code") is None


def test_a_wrong_client_is_said(dev):
    """One line on stderr, exit code 1."""
    run = run_postern("try", "magic", "--url", dev.origin, "--client", "nobody", "--email", dev.email)
    assert run.returncode == 1 and "invalid_client" in run.stdout and "the server answered 400" in run.stderr


def test_the_commands_of_the_page_for_apps_work_against_dev(dev, tmp_path):
    """docs/integrate.md can be pasted: the code and the link of a mail, and a TOTP code."""
    page = (REPOSITORY / "docs" / "integrate.md").read_text(encoding="utf-8")
    block = re.search(r"^```sh no-run: against scripts/dev\n(.*?)^```", page, re.M | re.S)[1].replace("http://localhost:8080", dev.origin)
    script = block + (
        "ask() { curl -s $POSTERN$1 -H 'Content-Type: application/json' -d \"$2\" >/dev/null; }\n"
        f"ask /api/account/native/otp/request '{{\"Email\":\"{dev.email}\"}}'; code_from_mail {dev.email}\n"
        "totp_of JBSWY3DPEHPK3PXP\n")
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.fullmatch(r"\d{6}\n\d{6}\n", done.stdout), done
