"""What chaos happens to: PostgreSQL on a disk that can be full, servers with a network and a clock of their own, mail and phones."""

import contextlib
import os
import random
import shutil
import subprocess

from harness.cutter import Cutter
from harness.holder import holder
from harness.node import Node
from harness.phones import Phones, new_number
from harness.shift import Shift
from harness.world import World


class Disk:
    """A file system in memory, mounted on a folder; root may do that."""

    SIZE = "700m"

    def __init__(self, folder):
        self._folder = folder
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.SIZE},mode=0700,uid=postgres,gid=postgres", "tmpfs", str(folder)], check=True)

    @contextlib.contextmanager
    def full(self):
        """Takes all space that is left, and gives it back."""
        filler = self._folder / "filler"
        try:
            with open(filler, "wb") as file:
                size, chunk = 0, 64 << 20
                while chunk >= 4096:
                    try:
                        os.posix_fallocate(file.fileno(), size, chunk)
                        size += chunk
                    except OSError:
                        chunk //= 2
            yield
        finally:
            filler.unlink()

    def remove(self):
        """Unmounts it."""
        subprocess.run(["umount", "-l", str(self._folder)], check=True)


class LoadedWorld(World):
    """A world with servers for the load, `fleet_nodes`, beside the one that provisions and audits."""

    disk = phones = None

    def __init__(self, name, postgres=""):
        super().__init__(name, postgres)
        self.fleet_nodes = []

    @property
    def entrances(self):
        """What the load asks."""
        return self.fleet_nodes

    def populate(self, users):
        """A realm with users, numbers and passkeys: (realm, addresses, numbers, credentials)."""
        realm = self.realm()
        self.phones = Phones(realm, channels=("sms",))
        numbers = [new_number() for _ in range(40)]
        for number in numbers:
            self.admin.call("put_user", realm.slug, phone=number, first_name="Ada")
        credentials = [holder(realm).credential for _ in self.fleet_nodes]
        return realm, realm.users(users), numbers, credentials

    def close(self):
        """Takes everything down."""
        if self.phones:
            self.cluster.ensure_up()
            self.phones.close()
        super().close()


class ChaosWorld(LoadedWorld):
    """One PostgreSQL, and servers that reach it through a network that can be hurt."""

    def __init__(self, seed, nodes=2):
        # Sockets of other runs on this machine do not meet these.
        self.address = f"127.{random.randint(10, 250)}.{random.randint(1, 250)}.{random.randint(1, 250)}"
        super().__init__("chaos", postgres=f"listen_addresses = '{self.address}'\nmax_wal_size = '96MB'\nmin_wal_size = '32MB'\n")
        self._seed, self._count = seed, nodes

    def open(self):
        """Brings everything up."""
        if os.geteuid() == 0:
            self.disk = Disk(self.cluster.data)
        self.shift = self._shift("postgresql")
        self.cluster.environment = self.shift.environment
        super().open()
        # What provisions and audits is not hurt; servers that are hurt come beside it.
        for number in range(self._count):
            cutter = Cutter(self.address, 5432, seed=self._seed + number).start()
            shift = self._shift(f"server-{number}")
            node = Node(cutter.url("bb_serve"), self.key_file, self.mailbox.port, POSTERN_LOG_LEVEL="info", **shift.environment)
            node.cutter, node.shift = cutter, shift
            self.nodes.append(node)
            self.fleet_nodes.append(node.start())
        return self

    def _shift(self, name):
        folder = self.cluster.root / f"clock-{name}"
        folder.mkdir()
        return Shift.made(folder)

    def close(self):
        """Takes everything down."""
        for node in self.fleet_nodes:
            node.cutter.mend()
        super().close()
        for node in self.fleet_nodes:
            node.cutter.stop()
        if self.disk:
            self.disk.remove()
            shutil.rmtree(self.cluster.root, ignore_errors=True)
