# SPDX-License-Identifier: Apache-2.0
"""Clients in another language: Python's gRPC as it comes, with the messages of our .proto files."""

import importlib
import os
import queue
import subprocess
import sys
import tempfile
import threading

try:
    import grpc
except ImportError:  # Debian's package belongs to Debian's interpreter
    if sys.executable == '/usr/bin/python3':
        raise
    os.execv('/usr/bin/python3', ['/usr/bin/python3', *sys.argv])

import berth_fixture

DEADLINE_S = 60


def load_messages(path):
    """The module of proto/PATH.proto."""
    folder = tempfile.mkdtemp(prefix='berth-proto-')
    subprocess.run(['protoc', f'-I{berth_fixture.ROOT}/proto', f'--python_out={folder}', f'{path}.proto'], check=True)
    sys.path.insert(0, folder)
    return importlib.import_module(path.replace('/', '.') + '_pb2')


class Reader:
    """A server stream, read by a thread of its own."""

    def __init__(self, call):
        self.call, self._queue = call, queue.Queue()
        self.end = None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        try:
            for message in self.call:
                self._queue.put(message)
            self.end = grpc.StatusCode.OK
        except grpc.RpcError as error:
            self.end = error.code()
            self.details = error.details()
        self._queue.put(None)

    def until(self, matches, deadline_s=DEADLINE_S):
        """The first message from here on that matches."""
        while True:
            message = self._queue.get(timeout=deadline_s)
            if message is None:
                raise AssertionError(f'the stream has ended with {self.end}')
            if matches(message):
                return message

    def code(self, deadline_s=DEADLINE_S):
        while self._queue.get(timeout=deadline_s) is not None:
            pass
        return self.end
