"""A world whose time passes when a test says so, for the server and its PostgreSQL alike."""

import time

from .dpop import DPoPApp
from .shift import Shift
from .world import World


class MovingWorld(World):
    """One clock for the node and the database; `travel` moves it. An app's clock is this one, unless the app has its own."""

    #: What the clock says when the world opens; None: what it says here.
    begins = None

    def open(self):
        """Brings everything up under the clock."""
        self.shift = Shift.made(self.cluster.root)
        if self.begins is not None:
            self.shift.pass_by(self.begins - int(self.shift.now()))
        self.cluster.environment = self.shift.environment
        self._environment.update(self.shift.environment)
        return super().open()

    def travel(self, seconds):
        """Lets time pass, and waits until the node has seen that its database went along."""
        self.shift.pass_by(seconds)
        self.node.wait_ready()
        deadline = time.monotonic() + 10
        while abs(self.node.metric("postern_clock_difference_seconds")) > 1:
            assert time.monotonic() < deadline, "the node does not see that its database went along"
            time.sleep(0.05)

    def app(self, realm, name="app", wrong=0, **how):
        """A client with a key whose clock is wrong by some seconds."""
        return DPoPApp(realm.app(name), clock=lambda: self.shift.now() + wrong, **how)
