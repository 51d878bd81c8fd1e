"""The JavaScript client at work: a program of Node with `clients/js` that takes the commands of the Swift client's."""

import shutil

import pytest

from . import report, settings
from .swift_client import SwiftClient


class JavaScriptClient(SwiftClient):
    """A process with one client. It speaks to the origin itself, so that is a server on loopback."""

    @staticmethod
    def program():
        """Node with the program."""
        if shutil.which("node") is None:
            report.say("JavaScript client: node is not installed (apt-get install nodejs)")
            pytest.skip("node is not installed")
        return ["node", settings.REPOSITORY / "Tests/JavaScript/driver.mjs"]
