# SPDX-License-Identifier: Apache-2.0
"""A private Berth server for tests, and the clients that talk to it.

    class Machines(berth_fixture.ServerTestCase):
        def test_created_machines_are_listed(self):
            self.server.kubectl('apply', '-f', '-', input=MACHINE)
            self.assertIn('web', self.server.berth('get', 'machines').stdout)
            self.assertEqual(self.server.client().get('/api/v1/namespaces').status, 200)

Every server has its own folder, its own port and its own clients' home; nothing is shared and nothing is left behind.
BERTH_BINARY names the program under test. BERTH_KEEP=1 keeps the folder of a test.
"""

import base64
import contextlib
import functools
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import unittest
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# A sanitized server on a busy two-core machine starts within seconds; ten times that is a hang.
START_DEADLINE_S = 60
STOP_DEADLINE_S = 60
COMMAND_DEADLINE_S = 60


class Failure(AssertionError):
    """Something outside the test's own assertions went wrong: a command, the server, a deadline."""


def eventually(deadline_s, poll, what='the condition'):
    """Calls poll until it returns something true, and returns that. AssertionErrors of poll count as "not yet".

    The one way to wait for a real process in a test.
    """
    end = time.monotonic() + deadline_s
    pause, last = 0.01, None
    while True:
        try:
            value = poll()
            if value:
                return value
            last = f'last value: {value!r}'
        except (AssertionError, OSError, http.client.HTTPException) as error:
            last = f'last error: {error}'
        if time.monotonic() >= end:
            raise Failure(f'{what} did not come true within {deadline_s} s; {last}')
        time.sleep(pause)
        pause = min(pause * 1.5, 0.25)


def binary():
    """The berth program under test."""
    path = os.environ.get('BERTH_BINARY') or os.path.join(ROOT, 'build/fast/src/app/berth')
    if not os.access(path, os.X_OK):
        raise Failure(f'{path} is not there: set BERTH_BINARY, or build the target berth')
    return os.path.abspath(path)


def run(arguments, *, check=True, input=None, env=None, cwd=None, timeout=COMMAND_DEADLINE_S):
    """A command's CompletedProcess. With check, a non-zero end is a Failure that shows everything."""
    try:
        done = subprocess.run(arguments, input=input, env=env, cwd=cwd, timeout=timeout, text=True, errors='replace',
                              stdin=subprocess.DEVNULL if input is None else None,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except subprocess.TimeoutExpired as error:
        raise Failure(f'{" ".join(map(str, arguments))}: no end within {timeout} s\n'
                      f'{error.stdout or ""}{error.stderr or ""}') from error
    if check and done.returncode != 0:
        raise Failure(f'{" ".join(map(str, arguments))}: ended with {done.returncode}\n{done.stdout}{done.stderr}')
    return done


# ---------------------------------------------------------------------------------------------------------------------
# kubectl


@functools.lru_cache(maxsize=None)
def kubectl_paths():
    """{version: path} of the kubectls to test with: Debian's 1.20 and, if there is another one, the PATH's."""
    found = {}
    debian = run([os.path.join(ROOT, 'scripts/lib/debian_kubectl')], timeout=300).stdout.strip()
    for path in (debian, shutil.which('kubectl')):
        if path:
            version = run([path, 'version', '--client', '-o', 'json'], check=False)
            text = re.search(r'"gitVersion":\s*"v?(\d+\.\d+)', version.stdout)
            if text:
                found.setdefault(text.group(1), path)
    return found


def newest_kubectl():
    return max(kubectl_paths(), key=lambda version: [int(part) for part in version.split('.')])


# ---------------------------------------------------------------------------------------------------------------------
# Credentials and HTTPS


class Kubeconfig:
    """What a kubeconfig of ours holds: one cluster, one user. Enough of a reader to need no YAML library."""

    def __init__(self, path):
        with open(path) as file:
            text = file.read()

        def field(name):
            found = re.search(rf'^[\s"-]*{re.escape(name)}"?:\s*"?([^"\s,]+)', text, re.MULTILINE)
            return found.group(1) if found else None

        self.path = path
        self.url = field('server')
        self.token = field('token')
        self.ca_pem = self._decoded(field('certificate-authority-data'))
        self.certificate_pem = self._decoded(field('client-certificate-data'))
        self.key_pem = self._decoded(field('client-key-data'))

    @staticmethod
    def _decoded(value):
        return base64.b64decode(value).decode() if value else None


class Response:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def text(self):
        return self.body.decode(errors='replace')

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f'<{self.status} {self.text[:400]}>'


class Client:
    """One HTTPS connection, kept alive, opened again when the server was gone. Not for several threads."""

    def __init__(self, url, context, headers=None, timeout=COMMAND_DEADLINE_S):
        parts = urllib.parse.urlsplit(url)
        self._host, self._port = parts.hostname, parts.port
        self._context, self._headers, self._timeout = context, dict(headers or {}), timeout
        self._connection = None

    def close(self):
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def __del__(self):
        self.close()

    @property
    def headers(self):
        return dict(self._headers)

    def connect(self):
        """A connection of its own, for whoever speaks another protocol on it."""
        return self._connect(self._timeout)

    def _connect(self, timeout):
        connection = http.client.HTTPSConnection(self._host, self._port, context=self._context, timeout=timeout)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    @staticmethod
    def _target(path, query):
        query = {key: value for key, value in query.items() if value is not None}
        return path + ('?' + urllib.parse.urlencode(query) if query else '')

    def _prepare(self, body, content_type, headers):
        headers = {**self._headers, **(headers or {})}
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        if body is not None:
            headers.setdefault('Content-Type', content_type)
        return body, headers

    def request(self, method, path, body=None, *, content_type='application/json', headers=None, **query):
        """Sends once: a write whose answer was lost may have happened, and only the caller knows what that means."""
        body, headers = self._prepare(body, content_type, headers)
        try:
            if self._connection is None:
                self._connection = self._connect(self._timeout)
            self._connection.request(method, self._target(path, query), body=body, headers=headers)
            answer = self._connection.getresponse()
            response = Response(answer.status, answer.headers, answer.read())
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if answer.will_close:
            self.close()
        return response

    def get(self, path, **query):
        return self.request('GET', path, **query)

    def post(self, path, body, **more):
        return self.request('POST', path, body, **more)

    def put(self, path, body, **more):
        return self.request('PUT', path, body, **more)

    def patch(self, path, body, content_type='application/merge-patch+json', **more):
        return self.request('PATCH', path, body, content_type=content_type, **more)

    def delete(self, path, body=None, **more):
        return self.request('DELETE', path, body, **more)

    def watch(self, path, *, idle_s=COMMAND_DEADLINE_S, **query):
        """Yields watch events (dicts) on a connection of its own until the server ends the stream.

        Silence for idle_s raises TimeoutError; an answer other than 200 raises Failure.
        """
        connection = self._connect(idle_s)
        try:
            connection.request('GET', self._target(path, {'watch': 'true', **query}), headers=self._headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise Failure(f'watch {path}: {answer.status} {answer.read().decode(errors="replace")}')
            while True:
                line = answer.readline()
                if not line.endswith(b'\n'):
                    return  # the end, or half an event of a server that died
                yield json.loads(line)
        finally:
            connection.close()


# ---------------------------------------------------------------------------------------------------------------------
# The server


class Server:
    """One `berth up` process. kill() and start() again keep folder and port."""

    HOST = 'none'  # it is a server alone

    def __init__(self, *arguments, data_dir=None, env=None, home=None, gateway_listen='127.0.0.1:0'):
        """`arguments` are added to `berth up`. `data_dir` is for a folder that outlives this object."""
        self.binary = binary()
        self.home = home or tempfile.mkdtemp(prefix='berth-test-')
        self._owns_home = home is None
        self.data_dir = data_dir or os.path.join(self.home, 'data')
        self.log_path = os.path.join(self.home, 'server.log')
        self.kubeconfig_path = os.path.join(self.data_dir, 'kubeconfig')
        self.output = None  # where `berth up` speaks, if not in the log
        self.process = None
        self.kubeconfig = None
        self._arguments = arguments
        self._env = env or {}
        self._listen = '127.0.0.1:0'
        self._gateway_listen = gateway_listen

    # Life

    def start(self, wait=True):
        if self.process is not None:
            raise Failure('the server runs already')
        if self.kubeconfig is None and os.path.exists(self.kubeconfig_path):
            os.unlink(self.kubeconfig_path)  # of an earlier server on this folder: its port is not ours
        with open(self.log_path, 'ab') as log:
            self.process = subprocess.Popen(
                [self.binary, 'up', '--data-dir', self.data_dir, '--listen', self._listen,
                 '--gateway-listen', self._gateway_listen, '--host', self.HOST, *self._arguments],
                stdin=subprocess.DEVNULL, stdout=self.output or log, stderr=log, cwd=self.home,
                env={**os.environ, **self._env}, start_new_session=True)
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self, deadline_s=START_DEADLINE_S):
        def ready():
            if self.process.poll() is not None:
                # Not an AssertionError: there is nothing to wait for.
                raise RuntimeError(f'the server ended with {self.process.returncode}:\n{self.log_tail()}')
            if not os.path.exists(self.kubeconfig_path):
                return False
            self.kubeconfig = Kubeconfig(self.kubeconfig_path)
            with self.client(timeout=5) as client:
                return client.get('/readyz').status == 200

        try:
            eventually(deadline_s, ready, 'readiness')
        except Failure as failure:
            raise Failure(f'{failure}\n{self.log_tail()}') from None
        self._listen = f'127.0.0.1:{self.port}'
        gateway = re.findall(r'^poollets\s+(\S+)', self.log(), re.MULTILINE)
        if gateway:
            self._gateway_listen = gateway[-1]

    def stop(self):
        """SIGTERM. The server must end by itself with 0, which under a sanitizer also means: without a report."""
        if self.process is None:
            return
        process, self.process = self.process, None
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise Failure(f'the server did not stop within {STOP_DEADLINE_S} s:\n{self.log_tail()}') from None
        if code != 0:
            raise Failure(f'the server ended with {code} after SIGTERM:\n{self.log_tail()}')

    def kill(self):
        """SIGKILL: nothing is flushed, nothing is said."""
        process, self.process = self.process, None
        process.kill()
        process.wait()

    def restart(self):
        self.stop()
        return self.start()

    def close(self, keep=False):
        """Ends the server, whatever its state, and removes its folder."""
        if self.process is not None:
            self.kill()
        if self._owns_home and not keep and not os.environ.get('BERTH_KEEP'):
            shutil.rmtree(self.home, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *unused):
        try:
            if kind is None:
                self.stop()
        finally:
            self.close()

    # Facts

    @property
    def url(self):
        return self.kubeconfig.url

    @property
    def port(self):
        return urllib.parse.urlsplit(self.url).port

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        with contextlib.suppress(FileNotFoundError), open(self.log_path, errors='replace') as file:
            return file.read()
        return ''

    def log_tail(self, lines=40):
        return '\n'.join(self.log().splitlines()[-lines:])

    # Clients

    def client(self, *, token=None, certificate=None, anonymous=False, kubeconfig=None, timeout=COMMAND_DEADLINE_S,
               headers=None):
        """An HTTPS client that trusts this server: as the administrator, unless told who else.

        certificate: (file with the certificate, file with its key). anonymous: no credentials at all.
        """
        who = kubeconfig or self.kubeconfig
        context = ssl.create_default_context(cadata=self.kubeconfig.ca_pem)
        headers = dict(headers or {})
        if certificate:
            context.load_cert_chain(*certificate)
        elif token:
            headers['Authorization'] = f'Bearer {token}'
        elif not anonymous:
            if who.token:
                headers['Authorization'] = f'Bearer {who.token}'
            if who.certificate_pem:
                with tempfile.NamedTemporaryFile('w', dir=self.home) as file:  # made with mode 0600
                    file.write(who.certificate_pem + '\n' + who.key_pem)
                    file.flush()
                    context.load_cert_chain(file.name)
        return Client(self.kubeconfig.url, context, headers, timeout)

    def environment(self, kubeconfig=None):
        """What a person's shell has after `scripts/up`, with a home of its own (kubectl caches discovery there)."""
        kept = {name: value for name, value in os.environ.items()
                if name not in ('KUBECONFIG', 'KUBERNETES_MASTER') and not name.startswith('BERTH_')}
        return {
            **kept,
            'HOME': self.home,
            'KUBECONFIG': kubeconfig or self.kubeconfig_path,
            'PATH': os.path.dirname(self.binary) + os.pathsep + os.environ.get('PATH', os.defpath),
            'LC_ALL': 'C.UTF-8',
            'TZ': 'UTC',
            'NO_COLOR': '1',
            'COLUMNS': '120',
        }

    def berth(self, *arguments, kubeconfig=None, env=None, **options):
        return run([self.binary, *arguments], env={**self.environment(kubeconfig), **(env or {})}, cwd=self.home,
                   **options)

    def kubectl(self, *arguments, version=None, kubeconfig=None, env=None, **options):
        """Runs kubectl: the newest there is, or the one of `version` (a key of kubectl_paths())."""
        path = kubectl_paths()[version or newest_kubectl()]
        return run([path, *arguments], env={**self.environment(kubeconfig), **(env or {})}, cwd=self.home, **options)

    @contextlib.contextmanager
    def background(self, arguments, **options):
        """A command that runs on (get -w): yields its Popen, with text pipes; ended when the block ends."""
        process = subprocess.Popen(arguments, env=self.environment(), cwd=self.home, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


class ServerTestCase(unittest.TestCase):
    """One server for all tests of a class. On a failure the end of its log is shown."""

    SERVER_ARGUMENTS = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.SERVER_ARGUMENTS)
        cls.addClassCleanup(cls.server.close)
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def run(self, result=None):
        before = (len(result.failures), len(result.errors)) if result is not None else None
        super().run(result)
        if result is not None and (len(result.failures), len(result.errors)) != before:
            print(f'--- end of the log of the server of {self.id()} ---\n{self.server.log_tail()}\n---', flush=True)
            for text in self.more_logs():
                print(text, flush=True)
        return result

    def more_logs(self):
        """What else is shown on a failure."""
        return []


def each_kubectl(test):
    """Decorator: runs a test method once per kubectl version, as subtests; the method gets (self, kubectl)."""

    @functools.wraps(test)
    def wrapped(self):
        for version in kubectl_paths():
            with self.subTest(kubectl=version):
                test(self, functools.partial(self.server.kubectl, version=version))

    return wrapped
