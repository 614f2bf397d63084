#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server whose store is a real etcd (Debian's): what kubectl does every day, and what is left after either of the two
was killed. Nothing acknowledged is lost, and no watch has a gap."""

import contextlib
import http.client
import os
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import unittest

import berth_fixture
import fleet_fixture
import fleet_test
import guest_fixture
import registry_test

DEADLINE_S = 60
MAPS = '/api/v1/namespaces/default/configmaps'
POOLS = '/apis/compute.ironcore.dev/v1alpha1/machinepools'
MACHINES = '/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines'
LOST = (OSError, http.client.HTTPException)

SPARE = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: MachineClass
metadata: {name: spare}
capabilities: {cpu: 1, memory: 1Gi}
'''

RANGE = '''
apiVersion: ipam.ironcore.dev/v1alpha1
kind: Prefix
metadata: {{name: range, namespace: {space}}}
spec: {{prefix: 10.1.0.0/24}}
'''

INTERFACE = '''
apiVersion: networking.ironcore.dev/v1alpha1
kind: NetworkInterface
metadata: {{name: {name}, namespace: {space}}}
spec:
  networkRef: {{name: net}}
  ipFamilies: [IPv4]
  ips:
  - ephemeral: {{prefixTemplate: {{spec: {{ipFamily: IPv4, prefixLength: 32, parentRef: {{name: range}}}}}}}}
'''


def free_port():
    """Below the ports that the kernel gives to others: etcd comes back on the same one, while a server dials it."""
    for _ in range(1000):
        port = random.randrange(14000, 32000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(('127.0.0.1', port))
            return port
    raise berth_fixture.Failure('no free port')


class Etcd:
    """One member with everything in a folder."""

    def __init__(self, *arguments, scheme='http'):
        self.home = tempfile.mkdtemp(prefix='berth-etcd-')
        self.process = None
        self.port, peer = free_port(), free_port()
        self.url = f'etcd://127.0.0.1:{self.port}'
        self._client = f'{scheme}://127.0.0.1:{self.port}'
        self._peer = f'http://127.0.0.1:{peer}'
        self._arguments = arguments

    def start(self):
        with open(os.path.join(self.home, 'log'), 'ab') as log:
            self.process = subprocess.Popen(
                ['/usr/bin/etcd', '--name=m', f'--data-dir={self.home}/data', f'--listen-client-urls={self._client}',
                 f'--advertise-client-urls={self._client}', f'--listen-peer-urls={self._peer}',
                 f'--initial-advertise-peer-urls={self._peer}', f'--initial-cluster=m={self._peer}',
                 '--logger=zap', '--log-level=warn', *self._arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def close(self):
        self.kill()
        shutil.rmtree(self.home, ignore_errors=True)

    def control(self, *arguments):
        environment = {**os.environ, 'ETCDCTL_API': '3'}
        return berth_fixture.run(['/usr/bin/etcdctl', f'--endpoints={self._client}', *arguments], env=environment)


def config_map(name, value):
    return {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': name}, 'data': {'value': str(value)}}


class Writer(threading.Thread):
    """Creates config maps one after another and remembers which were acknowledged."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.stopping = server, threading.Event()
        self.acknowledged, self.refused = [], []

    def run(self):
        number = 0
        client = self.server.client(timeout=20)
        while not self.stopping.is_set():
            number += 1
            name = f'w-{number}'
            try:
                answer = client.post(MAPS, config_map(name, number))
            except LOST:
                self.stopping.wait(0.05)
                continue
            if answer.status == 201:
                self.acknowledged.append(name)
            else:
                self.refused.append(answer)
                self.stopping.wait(0.05)

    def wait_for(self, more):
        goal = len(self.acknowledged) + more
        berth_fixture.eventually(DEADLINE_S, lambda: len(self.acknowledged) >= goal, 'writes that are acknowledged')

    def stop(self):
        self.stopping.set()
        self.join(DEADLINE_S)


class Watcher(threading.Thread):
    """Watches config maps from a revision on, resuming at the last one that it saw, and remembers what was added."""

    def __init__(self, server, revision):
        super().__init__(daemon=True)
        self.server, self.revision, self.stopping = server, revision, threading.Event()
        self.added, self.failure = [], None

    def run(self):
        while not self.stopping.is_set():
            try:
                for event in self.server.client().watch(MAPS, resourceVersion=self.revision, idle_s=2):
                    if event['type'] == 'ERROR':
                        self.failure = event
                        return
                    metadata = event['object']['metadata']
                    self.revision = metadata['resourceVersion']
                    if event['type'] == 'ADDED':
                        self.added.append(metadata['name'])
            except (berth_fixture.Failure, *LOST):
                self.stopping.wait(0.05)

    def stop(self):
        self.stopping.set()
        self.join(DEADLINE_S)


class EtcdTestCase(unittest.TestCase):

    def start(self, *, etcd_arguments=(), scheme='http', server=berth_fixture.Server, server_arguments=()):
        self.etcd = Etcd(*etcd_arguments, scheme=scheme).start()
        self.addCleanup(self.etcd.close)
        self.server = server('--store', self.etcd.url, *server_arguments)
        self.addCleanup(self.server.close)
        return self.server


class EverydayTest(EtcdTestCase):

    def test_kubectl_creates_reads_changes_watches_and_deletes(self):
        server = self.start().start()
        server.kubectl('create', 'configmap', 'one', '--from-literal=a=1')
        self.assertEqual(server.kubectl('get', 'configmap', 'one', '-o', 'jsonpath={.data.a}').stdout, '1')
        client = server.client()
        first = client.get(f'{MAPS}/one').json()
        with server.background([berth_fixture.kubectl_paths()[berth_fixture.newest_kubectl()],
                                'get', 'configmaps', '-w', '-o', 'name']) as watching:
            self.assertIn('configmap/one', watching.stdout.readline())
            server.kubectl('patch', 'configmap', 'one', '-p', '{"data":{"a":"2"}}')
            self.assertIn('configmap/one', watching.stdout.readline())
            server.kubectl('create', 'configmap', 'two')
            self.assertIn('configmap/two', watching.stdout.readline())
        first['data']['a'] = 'stale'
        self.assertEqual(client.put(f'{MAPS}/one', first).status, 409)
        listed = client.get(MAPS, limit=1).json()
        self.assertEqual(len(listed['items']), 1)
        rest = client.get(MAPS, limit=5, **{'continue': listed['metadata']['continue']}).json()
        self.assertEqual([item['metadata']['name'] for item in listed['items'] + rest['items']], ['one', 'two'])
        server.kubectl('delete', 'configmap', 'one')
        self.assertEqual(client.get(f'{MAPS}/one').status, 404)
        server.stop()
        # Everything is in etcd; the folder has no store.
        self.assertFalse(os.path.exists(os.path.join(server.data_dir, 'store')))
        server.start()
        self.assertEqual(server.client().get(f'{MAPS}/two').status, 200)
        server.stop()


class PlacingTest(EtcdTestCase):

    def setUp(self):
        self.start().start()
        self.server.kubectl('apply', '-f', '-', input=fleet_test.CLASSES)
        self.host = fleet_fixture.Host(self.server, 'alpha').start()
        self.addCleanup(self.host.close)
        berth_fixture.eventually(DEADLINE_S, self.host.is_ready, 'the host')

    def create(self, name):
        """A machine that runs."""
        manifest = fleet_test.MACHINE.format(name=name)

        def applied():
            return self.server.kubectl('apply', '-f', '-', input=manifest, check=False).returncode == 0

        def runs():
            listed = self.server.kubectl('get', 'machine', name, '-o', 'jsonpath={.status.state}', check=False)
            return listed.stdout == 'Running'

        berth_fixture.eventually(DEADLINE_S, applied, f'machine {name} in the store')
        berth_fixture.eventually(DEADLINE_S, runs, f'machine {name}\n{self.host.logs()}')

    def test_machines_are_placed_while_etcd_and_the_server_are_killed(self):
        self.create('before')
        self.etcd.kill()
        self.etcd.start()
        self.create('after-etcd')
        self.server.kill()
        self.server.start()
        self.create('after-server')
        self.assertEqual(len(self.host.machine_uids()), 3)
        self.server.stop()

    def address(self, name, space):
        return self.server.kubectl('get', 'networkinterface', name, '-n', space, '-o', 'jsonpath={.status.ips[0]}').stdout

    def give_address(self, name, space):
        """An interface that gets its address."""
        self.server.kubectl('apply', '-f', '-', input=INTERFACE.format(name=name, space=space))
        berth_fixture.eventually(DEADLINE_S, lambda: self.address(name, space), f'an address of {space}/{name}')

    def test_what_somebody_else_wrote_stops_nothing(self):
        self.create('before')
        self.server.kubectl('create', 'namespace', 'team')
        for space in ('default', 'team'):
            self.server.kubectl('apply', '-f', '-', input=RANGE.format(space=space))
            self.give_address('first', space)
        self.server.kubectl('apply', '-f', '-', input=SPARE)
        keys = self.etcd.control('get', '--prefix', '--keys-only', '/registry/').stdout.split()
        # Nothing of namespace team is touched: it goes on.
        folders = {key.rpartition('/')[0] for key in keys if not key.rpartition('/')[0].endswith('/team')}
        self.assertGreater(len(folders), 10)
        for folder in folders:
            self.etcd.control('put', f'{folder}/noise', 'no object')
        self.create('beside-it')
        self.server.kill()
        self.server.start()
        self.create('after-server')
        self.assertEqual(len(self.host.machine_uids()), 3)
        self.give_address('second', 'team')
        self.server.kubectl('delete', 'machineclass', 'spare', f'--timeout={DEADLINE_S}s')
        self.server.kubectl('apply', '-f', '-', input=INTERFACE.format(name='second', space='default'))
        said = 'jsonpath={.status.conditions[0].message}'
        berth_fixture.eventually(
            DEADLINE_S, lambda: 'cannot be read' in self.server.kubectl(
                'get', 'networkinterface', 'second', '-o', said).stdout, 'the reason why it has no address')
        self.assertEqual(self.address('second', 'default'), '')
        for kind in ('prefix', 'prefixallocation', 'networkinterface'):
            self.server.berth('delete', kind, 'noise', '--force')
        berth_fixture.eventually(DEADLINE_S, lambda: self.address('second', 'default'), 'an address beside no noise')
        self.assertNotEqual(self.address('second', 'default'), self.address('first', 'default'))
        listed = self.server.kubectl('get', 'machines')
        self.assertIn('machines "default/noise" cannot be read', listed.stderr)
        self.assertEqual(len(listed.stdout.splitlines()), 4)
        self.assertNotEqual(self.server.kubectl('delete', 'machine', 'noise', check=False).returncode, 0)
        self.server.berth('delete', 'machine', 'noise', '--force')
        self.assertNotIn('noise', self.server.kubectl('get', 'machines').stderr)
        self.server.stop()


class UpTest(EtcdTestCase):
    """`berth up` as people use it: this machine is a host, and `berth down` ends it."""

    def down(self):
        shown = self.server.berth('down', '--data-dir', self.server.data_dir).stdout
        self.assertRegex(shown, r'Berth +stopped')
        self.assertRegex(shown, r'guests +1 run on')
        process, self.server.process = self.server.process, None
        self.assertEqual(process.wait(berth_fixture.STOP_DEADLINE_S), 0, self.server.log_tail())

    def pool(self):
        """(UID, whether it is ready) of the host's pool of machines."""
        found = self.server.client().get(f'{POOLS}/alpha').json()
        conditions = found['status'].get('conditions', [])
        return found['metadata']['uid'], any(c['type'] == 'Ready' and c['status'] == 'True' for c in conditions)

    def machine(self):
        """(UID, where it is placed, state) of the guest, as the API has them, and its process."""
        found = self.server.client().get(f'{MACHINES}/hello').json()
        place = found['status'].get('placement', {})
        return (found['metadata']['uid'], place.get('poolUID'), place.get('epoch'), found['status'].get('state'),
                self.server.guests())

    def test_down_and_up_again_find_everything_in_etcd(self):
        server = self.start(server=guest_fixture.HostedServer).start()  # and its host is ready
        server.kubectl('apply', '-f', os.path.join(berth_fixture.ROOT, 'examples', 'hello.yaml'))
        server.berth('start', 'hello', '--wait', '--timeout=100s', timeout=guest_fixture.DEADLINE_S)
        running = self.machine()
        self.assertEqual((running[3], len(running[4])), ('Running', 1), server.logs())
        made = server.client().post(MAPS, config_map('kept', 1))
        self.assertEqual(made.status, 201, made)
        uid, is_ready = self.pool()
        self.assertTrue(is_ready)
        self.down()
        self.assertFalse(os.path.exists(os.path.join(server.data_dir, 'store')))
        self.assertIn('kept', self.etcd.control('get', '--prefix', '', '--keys-only').stdout)
        server.start()
        found = server.client().get(f'{MAPS}/kept').json()
        self.assertEqual((found['metadata']['uid'], found['data']), (made.json()['metadata']['uid'], {'value': '1'}))
        self.assertEqual(self.pool(), (uid, True), server.logs())

        def is_the_same():
            self.assertEqual(self.machine(), running)  # neither started anew nor placed a second time
            return True

        berth_fixture.eventually(DEADLINE_S, is_the_same, 'the guest')
        self.assertEqual(server.client().post(MAPS, config_map('more', 2)).status, 201)
        self.assertEqual(server.berth('stop', 'hello', '--wait', timeout=guest_fixture.DEADLINE_S).returncode, 0)
        self.assertEqual(server.guests(), [])
        server.berth('start', 'hello', '--wait', '--timeout=100s', timeout=guest_fixture.DEADLINE_S)
        self.assertEqual(self.machine()[:4], running[:4])
        self.down()


class KillTest(EtcdTestCase):

    def check(self, writer, watcher):
        writer.stop()
        names = {item['metadata']['name'] for item in self.server.client().get(MAPS).json()['items']}
        self.assertLessEqual(set(writer.acknowledged), names, 'an acknowledged write is lost')
        berth_fixture.eventually(DEADLINE_S, lambda: set(watcher.added) == names, 'the watch')
        watcher.stop()
        self.assertIsNone(watcher.failure)
        self.assertEqual(len(watcher.added), len(set(watcher.added)), 'an event came twice')

    def begin(self):
        server = self.start().start()
        revision = server.client().get(MAPS).json()['metadata']['resourceVersion']
        writer, watcher = Writer(server), Watcher(server, revision)
        writer.start()
        watcher.start()
        self.addCleanup(writer.stop)
        self.addCleanup(watcher.stop)
        writer.wait_for(10)
        return server, writer, watcher

    def test_the_server_is_killed(self):
        server, writer, watcher = self.begin()
        for _ in range(3):
            server.kill()
            server.start()
            writer.wait_for(10)
        self.check(writer, watcher)
        server.stop()

    def test_etcd_is_killed(self):
        server, writer, watcher = self.begin()
        for _ in range(3):
            self.etcd.kill()
            berth_fixture.eventually(DEADLINE_S, lambda: server.client().get('/readyz').status != 200, 'unreadiness')
            self.etcd.start()
            berth_fixture.eventually(DEADLINE_S, lambda: server.client().get('/readyz').status == 200, 'readiness')
            writer.wait_for(10)
        self.check(writer, watcher)
        for answer in writer.refused:
            self.assertIn(answer.status, (503, 504, 429), answer)
        server.stop()

    def test_both_are_killed(self):
        server, writer, watcher = self.begin()
        self.etcd.kill()
        server.kill()
        server.start(wait=False)
        self.etcd.start()
        server.wait_ready()
        writer.wait_for(10)
        self.check(writer, watcher)
        server.stop()


class AuthorityTest(EtcdTestCase):

    def test_nothing_is_written_into_an_etcd_where_no_authority_may_be_made(self):
        server = self.start(server_arguments=('--no-new-authority',))
        server.start(wait=False)
        self.assertNotEqual(server.process.wait(DEADLINE_S), 0)
        server.process = None
        self.assertIn('the store has no certificate authority', server.log())
        self.assertIn('pki/ca.pem is missing, and no new certificate authority may be made', server.log())
        self.assertEqual(self.etcd.control('get', '--prefix', '--keys-only', '').stdout.split(), [])
        self.assertFalse(os.path.exists(os.path.join(server.data_dir, 'pki')))


class FlagsTest(unittest.TestCase):

    def test_mistakes_are_named(self):
        home = tempfile.mkdtemp(prefix='berth-test-')
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        known = os.path.join(home, 'known')
        with open(known, 'w', encoding='utf-8') as file:
            file.write('secret\n')
        os.chmod(known, 0o644)
        etcd = ('--store', 'etcd://127.0.0.1:1')
        for arguments, text in [
                (('--store', 'redis://a:1'), 'begins with etcd://'),
                (('--store', 'etcd://a'), 'port'),
                (('--etcd-user', 'berth'), '--etcd-user is for a store like etcd://'),
                ((*etcd, '--etcd-user', 'berth'), '--etcd-user needs --etcd-password-file'),
                ((*etcd, '--etcd-cert', known), '--etcd-cert needs --etcd-key'),
                ((*etcd, '--etcd-ca', os.path.join(home, 'absent')), '--etcd-ca'),
                ((*etcd, '--etcd-cert', known, '--etcd-key', known), '--etcd-cert needs --etcd-ca'),
                ((*etcd, '--etcd-user', 'berth', '--etcd-password-file', known), known),
                (('--store', 'etcd://127.0.0.1:1,192.0.2.1:1', '--etcd-user', 'berth', '--etcd-password-file', known),
                 'the password would be sent in clear to "192.0.2.1:1"'),
                (etcd, 'no member of etcd can be reached at 127.0.0.1:1'),
        ]:
            with self.subTest(arguments=arguments):
                ended = berth_fixture.run(
                    [berth_fixture.binary(), 'server', '--data-dir', os.path.join(home, 'data'), '--listen', '127.0.0.1:0',
                     *arguments], check=False)
                self.assertNotEqual(ended.returncode, 0)
                self.assertIn(text, ended.stdout + ended.stderr)


class IdentityTest(EtcdTestCase):

    def test_tls_with_a_user(self):
        home = tempfile.mkdtemp(prefix='berth-test-')
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        registry_test.make_certificate(home)
        ca, password = os.path.join(home, 'ca.pem'), os.path.join(home, 'password')
        with open(password, 'w', encoding='utf-8') as file:
            file.write('secret\n')
        os.chmod(password, 0o600)
        server = self.start(scheme='https', etcd_arguments=(f'--cert-file={home}/server.pem', f'--key-file={home}/server.key'),
                            server_arguments=('--etcd-ca', ca, '--etcd-user', 'root', '--etcd-password-file', password))
        berth_fixture.eventually(DEADLINE_S, lambda: self.etcd.control(f'--cacert={ca}', 'endpoint', 'health'), 'etcd')
        for command in (('user', 'add', 'root:secret'), ('user', 'grant-role', 'root', 'root'), ('auth', 'enable')):
            self.etcd.control(f'--cacert={ca}', *command)
        server.start()
        self.assertEqual(server.client().post(MAPS, config_map('a', 1)).status, 201)
        server.stop()


if __name__ == '__main__':
    unittest.main(verbosity=2)
