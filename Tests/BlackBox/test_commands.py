"""What holds for every command: help, exit codes, and where errors are written."""

import pytest

from harness.node import run_postern

COMMANDS = [
    "", "dev", "serve", "migrate", "doctor", "keys", "keys rotate", "keys reseal", "audit", "audit export",
    "realm", "realm list", "realm move", "realm clear", "export", "export associations",
    "try", "try otp", "try magic", "try passkey", "try refresh", "try hosted", "try approval", "try possession",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_on_stdout_and_a_wrong_option_is_64(command):
    """0 for what was asked for, 64 for what cannot be understood, and then nothing on stdout."""
    asked = run_postern(*command.split(), "--help")
    assert (asked.returncode, asked.stderr) == (0, "") and "OVERVIEW" in asked.stdout and "USAGE" in asked.stdout
    wrong = run_postern(*command.split(), "--no-such-option")
    assert (wrong.returncode, wrong.stdout) == (64, "") and wrong.stderr.startswith("Error: "), wrong


@pytest.mark.parametrize("arguments", [
    "dev --port 0", "dev --port 65536", "dev --port x", "keys rotate --realm r --alg HS256", "keys rotate",
])
def test_a_value_that_cannot_be_is_64(arguments):
    """Before anything is done; the message names the option."""
    run = run_postern(*arguments.split())
    option = next((word for word in reversed(arguments.split()) if word.startswith("--")), "--realm")
    assert (run.returncode, run.stdout) == (64, "") and option in run.stderr, run


@pytest.mark.parametrize("command", ["serve", "migrate", "migrate --check", "keys rotate --realm r", "keys reseal"])
def test_what_cannot_be_done_is_1_with_one_line_on_stderr(command):
    """Here: without a setting."""
    run = run_postern(*command.split())
    assert (run.returncode, run.stdout) == (1, "") and "is not set" in run.stderr and run.stderr.count("\n") == 1, run
