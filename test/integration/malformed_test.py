#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every malformed request gets its own answer, nothing comes of it, and the server goes on as before."""

import collections
import http.client
import json
import os
import socket
import ssl
import sys
import time
import unittest

try:
    import grpc
except ImportError:  # Debian's package belongs to Debian's interpreter
    if sys.executable == '/usr/bin/python3':
        raise
    os.execv('/usr/bin/python3', ['/usr/bin/python3', *sys.argv])

import berth_fixture
import fleet_fixture
import malformed
from malformed import frames, slow_calls

# The smallest number that is worth a suite.
CASES_MIN = 500
# What may be left of all of them: caches, pools of memory, connections about to end.
OPEN_FILES_MORE = 16
RSS_MORE_MB = 160
ANSWER_S = 20
# The server's patience with a head and with a body, and some for a busy machine.
HEAD_S = 10
BODY_S = 60
MORE_S = 30

MACHINE = {'metadata': {'name': 'kept'}, 'spec': {'machineClassRef': {'name': 'small'}, 'power': 'Off', 'volumes': [
    {'name': 'root', 'device': 'oda', 'localDisk': {'sizeLimit': '1Mi'}}]}}


class Answer:
    def __init__(self, status, body, is_last):
        self.status, self.body, self.is_last = status, body, is_last

    @property
    def reason(self):
        if not self.body.startswith(b'{'):
            return ''
        return json.loads(self.body).get('reason', '')

    @property
    def text(self):
        return self.body.decode(errors='replace')


class Sender:
    """Bytes out, one answer back, over TLS. The connection is kept for as long as the server keeps it."""

    def __init__(self, server, anonymous=False, token=''):
        client = server.client(anonymous=anonymous)
        self._good = f'Bearer {token}'
        self._context = client._context
        self._context.set_alpn_protocols(['http/1.1'])
        self._headers = [(name.encode(), value.encode()) for name, value in client.headers.items()]
        self._port = server.port
        self._socket = None

    def close(self):
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def open(self):
        if self._socket is None:
            plain = socket.create_connection(('127.0.0.1', self._port), timeout=ANSWER_S)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = self._context.wrap_socket(plain, server_hostname='localhost')
        return self._socket

    def compose(self, case):
        def raw(text):
            text = self._good if text == malformed.GOOD else text
            return text if isinstance(text, bytes) else text.encode()

        fields = [(b'Host', b'x'), *self._headers] + [(raw(name), raw(value)) for name, value in case.headers]
        if case.body is not None:
            fields.append((b'Content-Length', str(len(case.body)).encode()))
        head = raw(case.method) + b' ' + raw(case.path) + b' HTTP/1.1\r\n'
        return head + b''.join(name + b': ' + value + b'\r\n' for name, value in fields) + b'\r\n' + (case.body or b'')

    def send(self, case):
        """The Answer. What was sent as it is ends the connection, and nothing else may come before that end."""
        if case.raw is not None:
            self.close()
        connection = self.open()
        message = case.raw if case.raw is not None else self.compose(case)
        try:
            connection.sendall(message)
        except OSError:
            pass  # it may answer and hang up before it has read everything
        response = http.client.HTTPResponse(connection, method=case.method if case.raw is None else 'POST')
        try:
            response.begin()
            answer = Answer(response.status, response.read(), response.will_close)
            if case.raw is not None:
                if not answer.is_last:
                    raise AssertionError(f'{answer.status}, and the connection goes on')
                rest = response.fp.read() if response.fp else b''
                if rest:
                    raise AssertionError(f'a second answer: {rest[:200]!r}')
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if answer.is_last:
            self.close()
        return answer


def wrong(case, answer):
    """What is not as the case says, or None."""
    if (answer.status, answer.reason) != (case.status, case.reason):
        return f'expected {case.status} {case.reason}, got {answer.status} {answer.reason}: {answer.text[:300]}'
    if case.says not in answer.text:
        return f'expected the words {case.says!r}: {answer.text[:300]}'
    return None


class Slow:
    """A peer that begins something, and never ends it. Begun before the other cases and looked at behind them."""

    def __init__(self, name, server, sent, expected, is_tls=True, patience=HEAD_S):
        self.name, self._expected = name, expected
        self._socket = socket.create_connection(('127.0.0.1', server.port), timeout=patience + MORE_S)
        if is_tls:
            self._socket = server.client(anonymous=True)._context.wrap_socket(self._socket, server_hostname='localhost')
        self._socket.sendall(sent)
        self._began = time.monotonic()

    def failure(self):
        """What is not as expected, or None. Waits for the server's patience to end."""
        answer = b''
        try:
            while True:
                more = self._socket.recv(4096)
                if not more:
                    break
                answer += more
        except (ConnectionError, ssl.SSLError):
            pass
        except TimeoutError:
            return f'slow/{self.name}: no end after {time.monotonic() - self._began:.0f} s'
        finally:
            self._socket.close()
        if not answer.startswith(self._expected):
            return f'slow/{self.name}: expected {self._expected!r}, got {answer[:200]!r}'
        return None


def slow_senders(server):
    line = b'GET /livez HTTP/1.1\r\n'
    post = b'POST ' + malformed.CONFIGMAPS.encode() + b' HTTP/1.1\r\nHost: x\r\n'
    return [
        Slow('nothing of TLS', server, b'', b'', is_tls=False),
        Slow('half a hello of TLS', server, b'\x16\x03\x01\x02\x00\x01\x00', b'', is_tls=False),
        Slow('one letter', server, b'G', b'HTTP/1.1 408'),
        Slow('half a first line', server, b'GET /live', b'HTTP/1.1 408'),
        Slow('a first line', server, line, b'HTTP/1.1 408'),
        Slow('half a field', server, line + b'Host: x\r\nAcc', b'HTTP/1.1 408'),
        Slow('no empty line', server, line + b'Host: x\r\n', b'HTTP/1.1 408'),
        Slow('half an empty line', server, line + b'Host: x\r\n\r', b'HTTP/1.1 408'),
        Slow('a first line that is none, cut short', server, b'\x00\x01\x02\r\n', b'HTTP/1.1 400'),
        Slow('half a body', server, post + b'Content-Length: 9\r\n\r\n{', b'HTTP/1.1 408', patience=BODY_S),
        Slow('half a chunk', server, post + b'Transfer-Encoding: chunked\r\n\r\n9\r\n{', b'HTTP/1.1 408', patience=BODY_S),
        Slow('no last chunk', server, post + b'Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n', b'HTTP/1.1 408',
             patience=BODY_S),
    ]


def grpc_ports(server):
    """Where gRPC is spoken: the port of the hosts and that of the API."""
    return {'hosts': fleet_fixture.gateway_address(server), 'api': server.url.removeprefix('https://')}


def ending(server, address, sent):
    """How the port ends what follows the preface: ('goaway', code), ('reset', code) or ('answer',)."""
    host, port = address.rsplit(':', 1)
    context = ssl.create_default_context(cadata=server.kubeconfig.ca_pem)
    context.set_alpn_protocols(['h2'])
    plain = socket.create_connection((host, int(port)), timeout=ANSWER_S)
    with context.wrap_socket(plain, server_hostname='localhost') as connection, connection.makefile('rb') as stream:
        connection.sendall(frames.PREFACE + sent)
        while True:
            head = stream.read(9)
            if len(head) < 9:
                return ('end',)
            payload = stream.read(int.from_bytes(head[:3], 'big'))
            ended = frames.ended_by(head[3], head[4], payload)
            if ended:
                return ended


class Malformed(berth_fixture.ServerTestCase):

    @classmethod
    def setUpClass(cls):
        # Without ASan's own store of freed memory there would be nothing to see of ours.
        options = os.environ.get('ASAN_OPTIONS', '')
        cls.server = berth_fixture.Server(env={'ASAN_OPTIONS': f'{options}:quarantine_size_mb=8'})
        cls.addClassCleanup(cls.server.close)
        cls.server.start()
        cls.client = cls.server.client()
        cls.token = cls.server.berth('token', 'create', 'good').stdout.strip()
        for path, body in ((malformed.CONFIGMAPS, {'metadata': {
                'name': 'kept', 'annotations': {'a': 'b'}, 'finalizers': ['example.org/kept']}, 'data': {'k': 'v'}}),
                           (malformed.CLASSES, {'metadata': {'name': 'small'},
                                                'capabilities': {'cpu': '1', 'memory': '1Gi'}}),
                           (malformed.MACHINES, MACHINE)):
            answer = cls.client.post(path, body)
            assert answer.status == 201, answer

    def state(self):
        """Everything that clients have made."""
        found = {}
        for path in (malformed.CONFIGMAPS, malformed.SECRETS, malformed.LEASES, malformed.MACHINES, malformed.CLASSES,
                     malformed.VOLUMES, malformed.SETS):
            for item in self.client.get(path).json()['items']:
                metadata = item['metadata']
                found[path, metadata['name']] = metadata['uid'], metadata['generation'], item.get('data'), item.get('spec')
        return {key: value for key, value in found.items() if key[0] != malformed.LEASES or key[1] in ('bad', 'kept')}

    def open_files(self):
        return len(os.listdir(f'/proc/{self.server.pid}/fd'))

    def rss_mb(self):
        with open(f'/proc/{self.server.pid}/statm') as file:
            return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE') >> 20

    def run_all(self, cases):
        """What went wrong, as texts."""
        senders = {anonymous: Sender(self.server, anonymous, self.token) for anonymous in (False, True)}
        failures = []
        for case in cases:
            try:
                failure = wrong(case, senders[case.anonymous].send(case))
            except (AssertionError, OSError, ssl.SSLError, http.client.HTTPException) as error:
                failure = f'expected {case.status} {case.reason}, got no answer: {type(error).__name__} {error}'
            if failure:
                failures.append(f'{case.id}: {failure}')
        for sender in senders.values():
            sender.close()
        return failures

    def run_frames(self):
        failures = []
        for port, address in grpc_ports(self.server).items():
            for name, expected, sent in frames.FRAME_CASES:
                try:
                    seen = ending(self.server, address, sent)
                except OSError as error:
                    seen = error
                if seen != expected:
                    failures.append(f'frames/{port}/{name}: expected {expected}, got {seen}')
        return failures

    def run_grpc(self):
        failures = []
        for port, address in grpc_ports(self.server).items():
            failures += self.run_grpc_at(port, address)
        return failures

    def run_grpc_at(self, port, address):
        kubeconfig = self.server.kubeconfig
        credentials = grpc.ssl_channel_credentials(
            kubeconfig.ca_pem.encode(), kubeconfig.key_pem and kubeconfig.key_pem.encode(),
            kubeconfig.certificate_pem and kubeconfig.certificate_pem.encode())
        metadata = (('authorization', f'Bearer {kubeconfig.token}'),) if kubeconfig.token else ()
        failures = []
        with grpc.secure_channel(address, credentials) as channel:
            for name, expected, method, message in frames.GRPC_CASES:
                if port == 'api' and method.startswith(frames.AGENT):
                    expected = 'UNIMPLEMENTED'  # hosts have a port of their own
                try:
                    answers = list(channel.unary_stream(method)(message, timeout=ANSWER_S, metadata=metadata))
                    seen = f'{len(answers)} answers'
                except grpc.RpcError as error:
                    seen = f'{error.code().name}: {error.details()}'
                if seen.split(':')[0] != expected:
                    failures.append(f'grpc/{port}/{name}: expected {expected}, got {seen}')
        return failures

    def test_a_chunked_body_in_single_bytes_is_a_body(self):
        for body, status in ((b'0\r\n\r\n', 400), (b'0\r\nA: b\r\n\r\n', 400), (b'0;a=b\r\n\r\n', 400),
                             (b'1\r\n{\r\n0\r\n\r\n', 400)):
            sender = Sender(self.server)
            connection = sender.open()
            case = malformed.Case('chunks', 'bytewise', status, 'BadRequest', headers=(('Transfer-Encoding', 'chunked'),))
            connection.sendall(sender.compose(case))
            for at in range(len(body)):
                connection.sendall(body[at:at + 1])
                time.sleep(0.005)  # so that the server sees each by itself, most of the time
            response = http.client.HTTPResponse(connection, method='POST')
            response.begin()
            self.assertEqual(response.status, status, body)
            sender.close()

    def test_each_gets_its_answer_and_leaves_nothing(self):
        cases = list(malformed.all_cases())
        self.assertEqual(len({case.id for case in cases}), len(cases), 'two cases have one name')
        self.assertEqual(len({(case.method, case.path, case.headers, case.body, case.raw, case.anonymous)
                              for case in cases}), len(cases), 'two cases are the same')
        self.assertGreaterEqual(len(cases), CASES_MIN)
        before, files, memory = self.state(), self.open_files(), self.rss_mb()
        slow = slow_senders(self.server)
        slow += [call for address in grpc_ports(self.server).values()
                 for call in slow_calls.slow_calls(self.server, address)]
        failures = self.run_all(cases) + self.run_frames() + self.run_grpc()
        failures += list(filter(None, (sender.failure() for sender in slow)))
        counts = collections.Counter(case.kind for case in cases)
        ports = len(grpc_ports(self.server))
        counts.update({'slow': len(slow), 'frames': ports * len(frames.FRAME_CASES), 'grpc': ports * len(frames.GRPC_CASES)})
        print(f'{counts.total()} malformed requests: ' + ', '.join(f'{kind} {n}' for kind, n in sorted(counts.items())))
        self.assertFalse(failures, f'{len(failures)} wrong answers:\n' + '\n'.join(failures))
        self.assertEqual(self.state(), before)
        self.assertEqual(self.client.get('/readyz').status, 200)
        berth_fixture.eventually(30, lambda: self.open_files() <= files + OPEN_FILES_MORE, 'closed connections')
        self.assertLessEqual(self.rss_mb(), memory + RSS_MORE_MB)


if __name__ == '__main__':
    unittest.main()
