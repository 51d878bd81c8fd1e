"""The time of day of processes, moved while they run."""

import shutil
import struct
import subprocess
import time
from pathlib import Path

import pytest

SHIM = Path(__file__).parent / "wrongclock.c"


class Shift:
    """One clock for all processes that run with its environment: a server alone, or its PostgreSQL too."""

    def __init__(self, directory, compiler):
        self._library = directory / "wrongclock.so"
        self._file = directory / "offset"
        self.seconds = 0
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", self._library, SHIM, "-ldl"], check=True)
        self._file.write_bytes(struct.pack("i", 0))

    @classmethod
    def made(cls, directory):
        """Compiled into a directory; without a C compiler the test is skipped and says so."""
        compiler = shutil.which("cc") or shutil.which("clang")
        if compiler is None:
            pytest.skip("no C compiler")
        return cls(directory, compiler)

    @property
    def environment(self):
        """For the process."""
        return {"LD_PRELOAD": str(self._library), "POSTERN_TEST_CLOCK": str(self._file)}

    def by(self, seconds):
        """From now on the clock is off by so much."""
        self.seconds = seconds
        with open(self._file, "r+b") as file:
            file.write(struct.pack("i", seconds))

    def pass_by(self, seconds):
        """Lets time pass."""
        self.by(self.seconds + seconds)

    def now(self):
        """What these processes take for the time of day."""
        return time.time() + self.seconds
