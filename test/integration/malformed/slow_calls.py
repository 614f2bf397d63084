# SPDX-License-Identifier: Apache-2.0
"""Calls of gRPC that begin and never end, from peers that go on to say something: the server's patience has to end."""

import socket
import ssl
import struct
import threading
import time

from malformed import frames

# The server's patience with a request, and some for a busy machine.
REQUEST_S = 30
MORE_S = 60
# Often enough that no silence is noticed.
DRIBBLE_S = 1


class SlowCall:
    """Sends `begun`, then `more` now and then, and answers pings until the server has had enough."""

    def __init__(self, name, server, address, expected, begun, more, *, anonymous=True):
        self.name, self._expected, self._more = f'{name} at {address}', expected, more
        client = server.client(anonymous=anonymous)
        client._context.set_alpn_protocols(['h2'])
        host, port = address.rsplit(':', 1)
        plain = socket.create_connection((host, int(port)), timeout=MORE_S)
        self._socket = client._context.wrap_socket(plain, server_hostname='localhost')
        self._socket.sendall(frames.PREFACE + frames.HELLO + begun)
        self._socket.settimeout(DRIBBLE_S)
        self._began = time.monotonic()
        self._seen = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        buffer = b''
        while self._seen is None and time.monotonic() < self._began + REQUEST_S + MORE_S:
            try:
                read = self._socket.recv(4096)
                if not read:
                    self._seen = ('end',)
                buffer = self._take(buffer + read)
            except TimeoutError:
                self._send(self._more)
            except (ConnectionError, ssl.SSLError):
                self._seen = ('end',)
        self._socket.close()

    def _take(self, buffer):
        """What is left of the bytes after the whole frames in them."""
        while len(buffer) >= 9 and len(buffer) >= 9 + int.from_bytes(buffer[:3], 'big'):
            size = int.from_bytes(buffer[:3], 'big')
            kind, flags, payload = buffer[3], buffer[4], buffer[9:9 + size]
            if kind == frames.PING and not flags:
                self._send(frames.frame(frames.PING, 1, 0, payload))
            self._seen = self._seen or frames.ended_by(kind, flags, payload)
            buffer = buffer[9 + size:]
        return buffer

    def _send(self, sent):
        try:
            self._socket.sendall(sent)
        except OSError:
            pass  # what the server has said of it comes yet

    def failure(self):
        """What is not as expected, or None. Waits for the server's patience to end."""
        self._thread.join()
        if self._seen != self._expected:
            return f'slow/{self.name}: expected {self._expected}, got {self._seen}'
        return None


def slow_calls(server, address):
    """Of everybody, and of somebody whose credentials are good."""
    update = (b':path', (frames.SCHEDULING + 'Update').encode())
    known = [(name.lower().encode(), value.encode()) for name, value in server.client().headers.items()
             if name.lower() == 'authorization']
    # 1,000 bytes are promised, and come one by one.
    half_message = frames.frame(frames.DATA, 0, 1, struct.pack('>BI', 0, 1000))
    byte = frames.frame(frames.DATA, 0, 1, b'x')
    half_head = frames.call(behind=((b'x', b'x' * 9000),))[:500]
    answer, calm = frames.ANSWER, frames.goaway(frames.ENHANCE_YOUR_CALM)
    return [
        SlowCall('half a head', server, address, calm, half_head, b'x'),
        SlowCall('no request', server, address, answer, frames.call(update, behind=known), b'', anonymous=False),
        SlowCall('half a request', server, address, answer, frames.call(update, behind=known) + half_message, byte,
                 anonymous=False),
        SlowCall('half a request of nobody', server, address, answer, frames.call() + half_message, byte),
    ]
