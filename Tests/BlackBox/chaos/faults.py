"""Ways to hurt PostgreSQL, the network before it, the servers, the disk, the clocks and the providers of messages. Each heals what it did."""

import os
import signal
import time

from harness.postgres import SQLError, alive, children_of

TERMINATE = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'bb_serve';"


class Faults:
    """Each public method without parameters that `names` lists is one fault: it hurts, waits a moment, and heals."""

    #: What is hurt → names. Two faults at once are of different groups.
    GROUPS = {
        "postgresql": [
            "restart", "immediate_restart", "kill", "kill_the_postmaster", "terminate_backends", "kill_a_backend", "full_disk", "full_disk_of_wal",
        ],
        "network": ["cut_the_network", "stall_the_network", "black_hole", "delay", "one_byte_a_second", "lost_answers", "one_node_cut_off"],
        "servers": ["kill_a_server", "restart_a_server", "freeze_a_server", "wrong_clock_of_a_server"],
        "clock": ["wrong_clock_of_postgresql"],
        "messages": ["mail_refused", "mail_server_down", "mail_lost_answer", "slow_mail", "channel_refuses", "channel_hangs", "channel_resets"],
    }

    def __init__(self, world, nodes, load, dice):
        self._world, self._cluster, self._nodes, self._load, self._dice = world, world.cluster, nodes, load, dice
        self._cutters = [node.cutter for node in nodes]

    @classmethod
    def names(cls):
        """All of them."""
        return [name for group in cls.GROUPS.values() for name in group]

    @classmethod
    def group(cls, name):
        """What a fault hurts."""
        return next(group for group, names in cls.GROUPS.items() if name in names)

    def usable(self):
        """Those that this machine allows: a full disk needs a file system of its own."""
        return [name for name in self.names() if self._world.disk or not name.startswith("full_disk")]

    def wait_until_up(self):
        """Waits until PostgreSQL takes sessions."""
        deadline = time.monotonic() + 60
        self._cluster.ensure_up()
        while self._cluster.psql_is_down():
            assert time.monotonic() < deadline, "PostgreSQL does not come back"
            self._cluster.ensure_up()
            time.sleep(0.01)

    # -- PostgreSQL --------------------------------------------------------------------------------

    def restart(self):
        """What an administrator does."""
        self._cluster.stop("fast")
        time.sleep(0.4)
        self._cluster.start()

    def immediate_restart(self):
        """No shutdown checkpoint; crash recovery follows."""
        self._cluster.stop("immediate")
        time.sleep(0.2)
        self._cluster.start()

    def kill(self):
        """SIGKILL for all of PostgreSQL."""
        self._cluster.kill()
        time.sleep(0.4)
        self._cluster.start()

    def kill_the_postmaster(self):
        """SIGKILL for the postmaster alone; the backends notice and end."""
        postmaster = self._cluster.postmaster
        backends = children_of(postmaster)
        os.kill(postmaster, signal.SIGKILL)
        deadline = time.monotonic() + 30
        while any(alive(pid) for pid in [postmaster, *backends]):
            assert time.monotonic() < deadline, "backends outlive their postmaster"
            time.sleep(0.01)
            self._cluster.reap()
        self._cluster.ensure_up()

    def terminate_backends(self):
        """Three times every connection of the servers is terminated."""
        for _ in range(3):
            self._try(TERMINATE)
            time.sleep(0.15)

    def kill_a_backend(self):
        """SIGKILL for one backend; PostgreSQL resets them all."""
        rows = self._try("SELECT pid FROM pg_stat_activity WHERE usename = 'bb_serve' LIMIT 1;")
        if rows:
            os.kill(int(rows[0][0]), signal.SIGKILL)
        time.sleep(0.2)  # for the postmaster to notice

    def full_disk(self):
        """No space for tables and indexes."""
        with self._world.disk.full():
            time.sleep(1)

    def full_disk_of_wal(self):
        """No space for WAL either: PostgreSQL stops."""
        with self._world.disk.full():
            for _ in range(8):
                if self._try("SELECT pg_switch_wal();") is None:
                    break
                time.sleep(0.1)
            time.sleep(0.5)
        self.wait_until_up()

    def _try(self, text):
        """SQL while another fault may be under way; None when it failed."""
        try:
            return self._cluster.sql(text)
        except SQLError:
            return None

    # -- the network -------------------------------------------------------------------------------

    def _network(self, hurt, seconds, cutters=None):
        cutters = cutters or self._cutters
        for cutter in cutters:
            hurt(cutter)
        time.sleep(seconds)
        for cutter in cutters:
            cutter.mend()

    def cut_the_network(self):
        """Every connection is reset and none can be made."""
        self._network(lambda cutter: cutter.cut(), 0.5)

    def one_node_cut_off(self):
        """The same for one server."""
        self._network(lambda cutter: cutter.cut(), 0.7, [self._dice.choice(self._cutters)])

    def stall_the_network(self):
        """No byte moves for a while, then all at once."""
        self._network(lambda cutter: cutter.stall(), 1.0)

    def black_hole(self):
        """No byte moves, and then every connection is reset."""
        self._network(lambda cutter: cutter.black_hole(), 1.0)

    def delay(self):
        """Everything takes longer."""
        seconds = self._dice.choice([0.02, 0.1, 0.3])
        self._network(lambda cutter: cutter.delay(seconds), 1.0)

    def one_byte_a_second(self):
        """A network that hardly moves."""
        self._network(lambda cutter: cutter.trickle(), 1.5)

    def lost_answers(self):
        """Statements and COMMITs are executed, and a part of the answers never comes."""
        share = self._dice.choice([0.02, 0.1, 0.5])
        self._network(lambda cutter: cutter.lose(share), 1.0)

    # -- servers -----------------------------------------------------------------------------------

    def _away(self, end):
        node = self._dice.choice(self._nodes)
        self._load.fleet.absent(node.port)
        end(node)
        node.start_until_ready()
        self._load.fleet.present(node.port)

    def kill_a_server(self):
        """SIGKILL; it starts again at once."""
        self._away(lambda node: node.kill())

    def restart_a_server(self):
        """SIGTERM, as in a rolling restart; it must end with 0."""
        def end(node):
            code = node.terminate(30)
            assert code == 0, f"a server ended with {code}"
        self._away(end)

    def freeze_a_server(self):
        """SIGSTOP and SIGCONT."""
        node = self._dice.choice(self._nodes)
        node.process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        node.process.send_signal(signal.SIGCONT)

    def wrong_clock_of_a_server(self):
        """Its clock is wrong for a moment; it must issue nothing meanwhile."""
        node = self._dice.choice(self._nodes)
        node.shift.by(self._dice.choice([90, -90, 86_400, -86_400]))
        time.sleep(1)
        node.shift.by(0)

    def wrong_clock_of_postgresql(self):
        """The database's clock is wrong by more than the servers accept."""
        self._world.shift.by(self._dice.choice([90, -90]))
        time.sleep(1)
        self._world.shift.by(0)

    # -- messages ----------------------------------------------------------------------------------

    def _mail(self, mode):
        self._world.mailbox.mode = mode
        time.sleep(1)
        self._world.mailbox.mode = "accept"

    def mail_refused(self):
        """451 for every recipient."""
        self._mail("refuse")

    def mail_lost_answer(self):
        """The mail server takes the mail and closes without an answer."""
        self._mail("die after data")

    def slow_mail(self):
        """Half a second for each mail."""
        self._world.mailbox.slowness = 0.5
        self._mail("slow")

    def mail_server_down(self):
        """It refuses connections."""
        self._world.mailbox.down()
        time.sleep(1)
        self._world.mailbox.up()

    def _channel(self, mode):
        self._world.phones.mode = mode
        time.sleep(1)
        self._world.phones.mode = "accept"

    def channel_refuses(self):
        """The provider of SMS answers 503."""
        self._channel("refuse")

    def channel_hangs(self):
        """It answers late and 503."""
        self._channel("hang")

    def channel_resets(self):
        """It closes without an answer."""
        self._channel("reset")
