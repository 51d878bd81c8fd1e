"""`postern try magic`, and links under `postern dev`."""

from harness.node import run_postern


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
