# SPDX-License-Identifier: Apache-2.0
"""A WebSocket client in a screenful, so that ours are not the only ones that the server is tried with."""

import base64
import hashlib
import os
import struct

GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
BINARY, CLOSE = 2, 8


class WebSocket:
    """Upgrades a connection of berth_fixture.Client; `status` and `headers` are of the answer."""

    def __init__(self, client, path, protocols='', headers=None):
        key = base64.b64encode(os.urandom(16)).decode()
        self._connection = client.connect()
        sent = {**client.headers, 'Upgrade': 'websocket', 'Connection': 'Upgrade', 'Sec-WebSocket-Version': '13',
                'Sec-WebSocket-Key': key, **(headers or {})}
        if protocols:
            sent['Sec-WebSocket-Protocol'] = protocols
        self._connection.request('GET', path, headers=sent)
        self._socket = self._connection.sock
        self._inbox = b''
        head = self._read_until(b'\r\n\r\n').decode()
        self.status = int(head.split()[1])
        self.headers = {name.lower(): value.strip() for name, _, value in
                        (line.partition(':') for line in head.splitlines()[1:] if line)}
        accept = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()
        if self.status == 101 and self.headers['sec-websocket-accept'] != accept:
            raise AssertionError('Sec-WebSocket-Accept does not match')

    def _read_until(self, mark):
        while mark not in self._inbox:
            self._inbox += self._receive()
        head, _, self._inbox = self._inbox.partition(mark)
        return head

    def _receive(self):
        data = self._socket.recv(65536)
        if not data:
            raise EOFError
        return data

    def _read(self, count):
        while len(self._inbox) < count:
            self._inbox += self._receive()
        data, self._inbox = self._inbox[:count], self._inbox[count:]
        return data

    def send(self, data, opcode=BINARY):
        mask = os.urandom(4)
        size = bytes([0x80 | len(data)]) if len(data) < 126 else b'\xfe' + struct.pack('>H', len(data))
        self._socket.sendall(bytes([0x80 | opcode]) + size + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def receive(self):
        """(opcode, payload) of the next frame."""
        first, size = self._read(2)
        if size == 126:
            size, = struct.unpack('>H', self._read(2))
        elif size == 127:
            size, = struct.unpack('>Q', self._read(8))
        return first & 0xf, self._read(size)

    def messages(self):
        """Everything until the server closes."""
        while True:
            opcode, payload = self.receive()
            if opcode == CLOSE:
                self.close_code = struct.unpack('>H', payload[:2])[0] if payload else None
                return
            if opcode == BINARY:
                yield payload

    def close(self):
        self._connection.close()
