"""Lines for the end of the test run."""

LINES = []


def say(line):
    """Adds a line to the summary."""
    LINES.append(line)
