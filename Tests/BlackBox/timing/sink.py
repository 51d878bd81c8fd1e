"""An SMTP server that takes every mail and keeps none, in a process of its own and with as little work as possible."""

import selectors
import socket
import subprocess
import sys


def start():
    """Starts one; returns the process and its port."""
    process = subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    return process, int(process.stdout.readline())


class _Conversation:
    def __init__(self, connection):
        self.connection = connection
        self.buffer = b""
        self.in_data = False
        connection.sendall(b"220 sink\r\n")

    def feed(self, data):
        """Answers what has come; False when it is over."""
        self.buffer += data
        while True:
            if self.in_data:
                end = self.buffer.find(b"\r\n.\r\n")
                if end < 0:
                    self.buffer = self.buffer[-4:]
                    return True
                self.buffer, self.in_data = self.buffer[end + 5:], False
                self.connection.sendall(b"250 kept nowhere\r\n")
                continue
            line, mark, rest = self.buffer.partition(b"\r\n")
            if not mark:
                return True
            self.buffer = rest
            verb = line[:4].upper()
            self.in_data = verb == b"DATA"
            self.connection.sendall({b"DATA": b"354 go on\r\n", b"QUIT": b"221 bye\r\n"}.get(verb, b"250 fine\r\n"))
            if verb == b"QUIT":
                return False


def _serve():
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    waiting = selectors.DefaultSelector()
    waiting.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.data is None:
                connection, _ = listener.accept()
                waiting.register(connection, selectors.EVENT_READ, _Conversation(connection))
                continue
            try:
                data = key.fileobj.recv(65536)
                going_on = bool(data) and key.data.feed(data)
            except ConnectionError:
                going_on = False
            if not going_on:
                waiting.unregister(key.fileobj)
                key.fileobj.close()


if __name__ == "__main__":
    try:
        _serve()
    except KeyboardInterrupt:
        pass
