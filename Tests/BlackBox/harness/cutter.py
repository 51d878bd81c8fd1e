"""The network between a server and PostgreSQL: a TCP forwarder that cuts connections, stands still, is slow, or loses answers."""

import asyncio
import random
import threading


class Cutter:
    """Forwards from a port of its own to a target; runs an event loop in a thread."""

    def __init__(self, host, port, seed=0):
        self._target = (host, port)
        self._loop = asyncio.new_event_loop()
        self._writers = set()
        self._flowing = None
        self._accepts = True
        self._delay = 0.0
        self._losing = 0.0
        self._trickling = None
        self._dice = random.Random(seed)
        self.lost = 0
        self.port = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        """Listens."""
        self._thread.start()
        self._call(self._listen)
        return self

    def stop(self):
        """Closes everything."""
        self._call(self._cut)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def url(self, role, database="postern"):
        """The libpq URI of a role through this forwarder."""
        return f"postgresql://{role}@127.0.0.1:{self.port}/{database}"

    def cut(self):
        """Resets every connection and refuses new ones until `mend`."""
        self._accepts = False
        self._call(self._cut)

    def stall(self):
        """Keeps the connections and moves no byte until `mend`."""
        self._call(self._set_flowing, False)

    def delay(self, seconds):
        """Every part of a stream takes this long, until `mend`."""
        self._delay = seconds

    def trickle(self):
        """One byte a second for each connection and direction, until `mend`."""
        self._call(self._trickling.set)

    def lose(self, share):
        """Statements reach PostgreSQL. This share of the answers does not come back, and their connections are cut, until `mend`."""
        self._losing = share

    def black_hole(self):
        """No byte moves and no connection is made, until `mend` resets them all: as a firewall that forgot its table."""
        self._accepts = None
        self._call(self._set_flowing, False)

    def mend(self):
        """Forwards again."""
        forgotten, self._accepts = self._accepts is None, True
        self._delay, self._losing = 0.0, 0.0
        if forgotten:
            self._call(self._cut)
        self._call(self._trickling.clear)
        self._call(self._set_flowing, True)

    def _run(self):
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _call(self, function, *arguments):
        async def call():
            result = function(*arguments)
            return await result if asyncio.iscoroutine(result) else result

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(10)

    async def _listen(self):
        self._flowing, self._trickling = asyncio.Event(), asyncio.Event()
        self._flowing.set()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=256)
        self.port = server.sockets[0].getsockname()[1]

    def _set_flowing(self, flowing):
        if flowing:
            self._flowing.set()
        else:
            self._flowing.clear()

    def _cut(self):
        for writer in list(self._writers):
            writer.transport.abort()
        self._flowing.set()

    async def _serve(self, reader, writer):
        self._writers.add(writer)
        other = None
        try:
            await self._flowing.wait()
            if not self._accepts:
                return
            other_reader, other = await asyncio.open_connection(*self._target)
            self._writers.add(other)
            doomed = asyncio.Event()
            await asyncio.gather(self._ask(reader, other, doomed), self._answer(other_reader, writer, doomed))
        except OSError:
            pass
        finally:
            for one in (writer, other):
                if one is not None:
                    self._writers.discard(one)
                    one.transport.abort()

    async def _ask(self, reader, writer, doomed):
        while data := await reader.read(65536):
            if self._losing and self._dice.random() < self._losing:
                doomed.set()
            await self._forward(data, writer)
        raise ConnectionResetError("the server has closed")

    async def _answer(self, reader, writer, doomed):
        while data := await reader.read(65536):
            if doomed.is_set():
                self.lost += 1
                raise ConnectionResetError("the answer is lost")
            await self._forward(data, writer)
        raise ConnectionResetError("PostgreSQL has closed")

    async def _forward(self, data, writer):
        await self._flowing.wait()
        if self._delay:
            await asyncio.sleep(self._delay)
        while data and self._trickling.is_set():
            writer.write(data[:1])
            data = data[1:]
            await asyncio.sleep(1)
        writer.write(data)
        await writer.drain()
