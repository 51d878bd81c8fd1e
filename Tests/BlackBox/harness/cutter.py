"""The network between a server and PostgreSQL: a TCP forwarder that can cut every connection, refuse new ones, or stand still."""

import asyncio
import threading


class Cutter:
    """Forwards from a port of its own to a target; runs an event loop in a thread."""

    def __init__(self, host, port):
        self._target = (host, port)
        self._loop = asyncio.new_event_loop()
        self._writers = set()
        self._flowing = None
        self._accepts = True
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

    def mend(self):
        """Forwards again."""
        self._accepts = True
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
        self._flowing = asyncio.Event()
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
            if not self._accepts:
                return
            other_reader, other = await asyncio.open_connection(*self._target)
            self._writers.add(other)
            await asyncio.gather(self._pump(reader, other), self._pump(other_reader, writer))
        except OSError:
            pass
        finally:
            for one in (writer, other):
                if one is not None:
                    self._writers.discard(one)
                    one.transport.abort()

    async def _pump(self, reader, writer):
        while data := await reader.read(65536):
            await self._flowing.wait()
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError("the other side has closed")
