#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three servers on one etcd, and hosts that follow whoever leads. The leader is killed and paused under creates: nothing
acknowledged is lost, nothing is placed twice, and one that wakes up again does nothing of what leaders do."""

import base64
import json
import os
import re
import shutil
import stat
import threading
import unittest

import berth_fixture
import etcd_test
import fleet_fixture
import fleet_test
import web_socket

DEADLINE_S = 60
MACHINES = '/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines'
SECRETS = '/api/v1/namespaces/default/secrets'
LEADER = '/apis/coordination.k8s.io/v1/namespaces/berth-system/leases/leader'


def machine(name):
    return {'apiVersion': 'compute.ironcore.dev/v1alpha1', 'kind': 'Machine', 'metadata': {'name': name},
            'spec': {'machineClassRef': {'name': 'small'}}}


def keys_of(server):
    return os.path.join(server.data_dir, 'pki', 'encryption-keys')


class Creator(threading.Thread):
    """Creates machines through one server after the other, and remembers which were acknowledged."""

    def __init__(self, servers):
        super().__init__(daemon=True)
        self.servers, self.stopping, self.acknowledged = servers, threading.Event(), []

    def run(self):
        for number in range(1, 10_000):
            name, server = f'm-{number}', self.servers[number % len(self.servers)]
            if self.stopping.wait(0.1):
                return
            try:
                with server.client(timeout=3) as client:
                    if client.post(MACHINES, machine(name)).status == 201:
                        self.acknowledged.append(name)
            except etcd_test.LOST:
                pass  # a server that is killed or paused

    def stop(self):
        self.stopping.set()
        self.join(DEADLINE_S)


class SeveralServersTestCase(unittest.TestCase):
    """Three servers on one etcd for each test."""

    def new_server(self, number, *arguments):
        return berth_fixture.Server('--store', self.etcd.url, *arguments)

    def setUp(self):
        self.etcd = etcd_test.Etcd().start()
        self.addCleanup(self.etcd.close)
        first = self.new_server(1)
        self.addCleanup(first.close)
        first.start()
        self.servers = [first]
        for number in (2, 3):
            server = self.new_server(number, '--encryption-keys', keys_of(first))
            self.addCleanup(server.close)
            self.servers.append(server)
            server.start(wait=False)
        for server in self.servers:
            server.wait_ready()

    def run(self, result=None):
        before = (len(result.failures), len(result.errors))
        super().run(result)
        if (len(result.failures), len(result.errors)) != before:
            for server in getattr(self, 'last_logs', []):
                print(server, flush=True)

    def tearDown(self):
        self.last_logs = [f'--- {server.home} ---\n{server.log_tail(60)}' for server in self.servers]

    def leader(self, asked=None):
        """The server that leads, as `asked` knows it; None while nobody does."""
        answer = (asked or self.servers[0]).client(timeout=5).get(LEADER)
        if answer.status != 200:
            return None
        lease = answer.json()
        url = lease['metadata'].get('annotations', {}).get('berth.dev/url')
        found = [server for server in self.servers if server.url == url]
        return found[0] if found and lease['spec'].get('holderIdentity') else None

    def others(self, leader):
        return [server for server in self.servers if server is not leader]

    def wait_leader(self, asked, *, but=None):
        found = []

        def leads():
            found[:] = [self.leader(asked)]
            return found[0] is not None and found[0] is not but
        berth_fixture.eventually(DEADLINE_S, leads, 'a leader')
        return found[0]

    def start_hosts(self, *names):
        gateways = ','.join(fleet_fixture.gateway_address(server) for server in self.servers)
        hosts = []
        for name in names:
            host = fleet_fixture.Host(self.servers[0], name, cpu=400, memory='400Gi', boot_time='50ms', gateway=gateways)
            self.addCleanup(host.close)
            hosts.append(host.start())
        for host in hosts:
            berth_fixture.eventually(DEADLINE_S, host.is_ready, f'host {host.name}\n{host.logs()}')
        return hosts

    def is_bound(self, server, name):
        answer = server.client(timeout=5).get(f'{MACHINES}/{name}')
        return answer.status == 200 and bool(answer.json().get('status', {}).get('placement', {}).get('pool'))

    def place_one(self, server, name):
        def created():
            return server.client(timeout=5).post(MACHINES, machine(name)).status in (201, 409)
        berth_fixture.eventually(DEADLINE_S, created, f'machine {name}')
        berth_fixture.eventually(DEADLINE_S, lambda: self.is_bound(server, name), f'a place for {name}')


class SeveralServersTest(SeveralServersTestCase):

    def test_the_command_line_goes_on_with_another_server(self):
        first = self.servers[0]
        urls = sorted(server.url for server in self.servers)

        def named():
            config = json.loads(first.berth('config', 'view', '-o', 'json').stdout)
            return sorted(config['clusters'][0]['cluster'].get('extensions', [{'extension': {'servers': []}}])[0]
                          ['extension']['servers']) == urls
        berth_fixture.eventually(DEADLINE_S, named, 'that the kubeconfig names all servers')
        # kubectl reads the file, uses the server that it knows, and keeps the rest when it writes.
        self.assertIn('namespace/default', first.kubectl('get', 'namespaces', '-o', 'name').stdout)
        first.kubectl('config', 'set-context', '--current', '--namespace=shop')
        self.assertTrue(named())
        first.kubectl('config', 'set-context', '--current', '--namespace=default')
        os.kill(first.pid, berth_fixture.signal.SIGSTOP)  # accepts, and says nothing
        try:
            created = first.berth('create', 'namespace', 'paused')
            self.assertEqual((created.returncode, created.stderr), (0, ''))
        finally:
            os.kill(first.pid, berth_fixture.signal.SIGCONT)
        first.kill()
        self.assertIn('paused', first.berth('get', 'namespaces').stdout)
        created = first.berth('create', 'namespace', 'killed')
        self.assertEqual((created.returncode, created.stderr), (0, ''))
        doctor = first.berth('doctor').stdout
        self.assertIn(f'{self.servers[1].url} is ready', doctor)
        self.assertRegex(doctor, f'warn  servers +.*{first.url}')
        # The load of each that answers, by its name: the one that was asked is gone.
        self.assertRegex(doctor, f'loops +{self.servers[1].url}: late by')

    def test_the_leader_is_killed_and_paused_under_creates(self):
        self.servers[0].kubectl('apply', '-f', '-', input=fleet_test.CLASSES)
        hosts = self.start_hosts('alpha', 'beta')
        creator = Creator(self.servers)
        creator.start()
        self.addCleanup(creator.stop)
        for turn in range(2):
            leader = self.wait_leader(self.servers[0])
            leader.kill()
            other = self.others(leader)[0]
            self.wait_leader(other, but=leader)
            self.place_one(other, f'killed-{turn}')
            leader.start()
        paused = self.wait_leader(self.servers[0])
        os.kill(paused.pid, berth_fixture.signal.SIGSTOP)
        other = self.others(paused)[0]
        self.wait_leader(other, but=paused)
        self.place_one(other, 'paused')
        os.kill(paused.pid, berth_fixture.signal.SIGCONT)
        berth_fixture.eventually(DEADLINE_S, lambda: 'beginning anew' in paused.log(), 'that it notices')
        berth_fixture.eventually(DEADLINE_S, lambda: paused.client(timeout=5).get('/readyz').status == 200, 'readiness')
        self.assertIsNot(self.leader(other), paused)
        creator.stop()
        self.check(hosts, creator.acknowledged)
        for server in self.servers:
            server.stop()

    def check(self, hosts, acknowledged):
        listed = []

        def all_run():
            listed[:] = self.servers[1].client().get(MACHINES).json()['items']
            return all(item.get('status', {}).get('state') == 'Running' for item in listed)
        berth_fixture.eventually(DEADLINE_S, all_run, 'that all machines run')
        names = {item['metadata']['name'] for item in listed}
        self.assertLessEqual(set(acknowledged), names, 'an acknowledged machine is lost')
        self.assertGreater(len(acknowledged), 10)
        # Bound once each, and there once each.
        self.assertEqual({item['status']['placement']['epoch'] for item in listed}, {1})
        there = sorted(uid for host in hosts for uid in host.machine_uids())
        self.assertEqual(there, sorted(item['metadata']['uid'] for item in listed))

    def check_passed_on(self, leader, waiting):
        """Hosts are with the leader; whoever asks another server gets the same answers, and no more rights."""
        berth_fixture.eventually(DEADLINE_S, lambda: waiting.client().get(f'{MACHINES}/one').json().get('status', {})
                                 .get('state') == 'Running', 'that it runs')
        usage = '/apis/compute.ironcore.dev/v1alpha1/machinepools/alpha/usage'
        self.assertEqual(waiting.client().get(usage).json()['objects'], leader.client().get(usage).json()['objects'])
        tops = [sorted(line.split()[:3] for line in server.berth('top', 'pools', '--no-headers').stdout.splitlines())
                for server in (leader, waiting)]
        self.assertIn(['alpha', 'MachinePool', 'Connected'], tops[0])
        self.assertEqual(tops[0], tops[1])
        self.assertEqual(waiting.berth('exec', 'one', '--', 'uname', '-a').stdout, 'ran uname -a\n')
        self.assertEqual(waiting.berth('exec', '-i', 'one', '--', 'cat', input='hello').stdout, 'ran cat\nhello')
        self.assertEqual(waiting.berth('exec', 'one', '--', 'false', check=False).returncode, 1)
        self.assertEqual(waiting.berth('logs', 'one').stdout, leader.berth('logs', 'one').stdout)
        self.assertIn('alpha', waiting.berth('why', 'machine/one').stdout)
        missing = waiting.berth('exec', 'nobody', '--', 'id', check=False)
        self.assertEqual(missing.returncode, 3, missing.stderr)
        # In the name of who asks, and of nobody else.
        for command in (('exec', '--as', 'reader', 'one', '--', 'id'), ('logs', '--as', 'reader', 'one')):
            refused = waiting.berth(*command, check=False)
            self.assertIn('reader', refused.stderr)
            self.assertIn('cannot', refused.stderr)
        token = waiting.berth('token', 'create', 'reader').stdout.split()[-1]
        forged = {'Impersonate-User': 'admin', 'Impersonate-Group': 'system:masters', 'Berth-Passed-On': 'x'}

        def forbidden(server, headers):
            return server.client(token=token, headers=headers).get(usage).status == 403
        for server in (waiting, leader):
            for headers in ({}, forged):
                berth_fixture.eventually(DEADLINE_S, lambda s=server, h=headers: forbidden(s, h), 'that it is refused')
        # A request that was passed on is not passed on again.
        refused = waiting.client(headers={'Berth-Passed-On': 'x'}).get(usage)
        self.assertEqual(refused.status, 503)
        self.assertIn(leader.url, refused.json()['message'])

    def check_cut_off(self, leader, waiting):
        """Conversations end with the credentials that they were opened with, at the leader and when they are passed on."""
        first = self.servers[0]
        first.kubectl('create', 'rolebinding', 'talker', '--clusterrole=edit', '--user=talker')
        made = first.berth('token', 'create', 'talker')
        token, number = made.stdout.strip(), made.stderr.split('berth token revoke ')[1].split()[0]
        talks = []
        for server in (leader, waiting):
            client = server.client(token=token, timeout=DEADLINE_S)
            berth_fixture.eventually(DEADLINE_S, lambda c=client: c.get(f'{MACHINES}/one').status == 200, 'that it may')
            for path, word in (('exec?command=cat&stdin=true', b'ran cat'), ('console', b'console of'),
                               ('portforward?ports=80', b'P')):
                with self.subTest(path, server=server.url):
                    talk = web_socket.WebSocket(client, f'{MACHINES}/one/{path}', 'v4.channel.k8s.io')
                    self.addCleanup(talk.close)
                    self.assertEqual(talk.status, 101)
                    self.assertIn(word, talk.receive()[1])
                    talk.send(b'\x00ping')
                    while b'ping' not in talk.receive()[1]:
                        pass
                    talks.append((f'{path} at {server.url}', talk))
        first.berth('token', 'revoke', number)
        for what, talk in talks:
            with self.subTest(what):
                try:
                    for _ in talk.messages():
                        pass
                except (EOFError, ConnectionResetError):
                    pass  # cut off is over too; a timeout is not

    def test_those_who_wait_serve_the_api_and_pass_on_what_needs_hosts(self):
        leader = self.wait_leader(self.servers[0])
        first, second = self.others(leader)
        first.kubectl('apply', '-f', '-', input=fleet_test.CLASSES)
        [host] = self.start_hosts('alpha')
        self.place_one(first, 'one')
        # What one has written the others read at once.
        self.assertEqual(second.client().get(f'{MACHINES}/one').status, 200)
        self.check_passed_on(leader, second)
        self.check_cut_off(leader, second)
        # One authority, kept from others.
        authorities = set()
        for server in self.servers:
            path = os.path.join(server.data_dir, 'pki', 'ca.pem')
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
            with open(path, encoding='ascii') as file:
                authorities.add(file.read())
        self.assertEqual(len(authorities), 1)
        # A leader that stops does not let the others wait, and sends its hosts to them.
        told = r'hosts are told of these servers, too: \S+, \S+'
        berth_fixture.eventually(60, lambda: re.search(told, leader.log()), 'the leader knows the others')
        leader.stop()
        self.wait_leader(first, but=leader)
        self.place_one(first, 'two')
        self.assertIn('redirected: the server stops', host.poollet.log_tail(lines=1000))
        leases = json.loads(first.kubectl('get', 'leases', '-n', 'berth-system', '-o', 'json').stdout)['items']
        servers = [lease for lease in leases if lease['metadata']['name'].startswith('server-')]
        self.assertEqual(len(servers), 2)
        for server in (first, second):
            server.stop()


class HostBehindOneServerTest(SeveralServersTestCase):
    """A host that reaches one server alone, which does not lead: all names that servers give are of nobody, and each
    listens for hosts on an address of its own. So the leader's certificate has to have the address of the other one."""

    def new_server(self, number, *arguments):
        return berth_fixture.Server('--store', self.etcd.url, '--tls-name', f'192.0.2.{number}', *arguments,
                                    gateway_listen=f'127.0.0.{10 + number}:0')

    def gateway(self, server):
        port = fleet_fixture.gateway_address(server).split(':')[1]
        return f'127.0.0.{11 + self.servers.index(server)}:{port}'

    def passed_on(self, server):
        found = re.search(r'^berth_passed_on_connections (\S+)', server.client().get('/metrics').text, re.MULTILINE)
        return float(found.group(1)) if found else 0

    def wait_running(self, server, name):
        berth_fixture.eventually(DEADLINE_S, lambda: server.client(timeout=5).get(f'{MACHINES}/{name}').json()
                                 .get('status', {}).get('state') == 'Running', f'that {name} runs')

    def test_it_joins_works_and_stays_when_the_leader_is_killed(self):
        leader = self.wait_leader(self.servers[0])
        waiting = self.others(leader)[0]
        waiting.kubectl('apply', '-f', '-', input=fleet_test.CLASSES)
        host = fleet_fixture.Host(waiting, 'alpha', cpu=400, memory='400Gi', boot_time='50ms', gateway=self.gateway(waiting))
        self.addCleanup(host.close)
        host.start()
        berth_fixture.eventually(DEADLINE_S, host.is_ready, f'host alpha\n{host.logs()}')
        self.assertIs(self.leader(waiting), leader)
        self.assertGreaterEqual(self.passed_on(waiting), 1)
        self.assertEqual(self.passed_on(leader), 0)
        self.place_one(waiting, 'one')
        self.wait_running(waiting, 'one')
        # Over the connection that is passed on, too.
        self.assertEqual(waiting.berth('exec', 'one', '--', 'uname', '-a').stdout, 'ran uname -a\n')
        self.assertIn('go through it to the server that leads', waiting.berth('doctor', check=False).stdout)
        uids = host.machine_uids()
        leader.kill()
        self.wait_leader(waiting, but=leader)
        self.place_one(waiting, 'two')
        self.wait_running(waiting, 'two')
        one = waiting.client().get(f'{MACHINES}/one').json()
        self.assertEqual((one['status']['state'], one['status']['placement']['epoch']), ('Running', 1))
        self.assertLess(set(uids), set(host.machine_uids()))
        for server in self.others(leader):
            server.stop()


class SecretWriter(threading.Thread):
    """Writes Secrets through one server after the other, and remembers which were acknowledged."""

    def __init__(self, servers):
        super().__init__(daemon=True)
        self.clients, self.stopping, self.acknowledged = [s.client(timeout=10) for s in servers], threading.Event(), []

    def run(self):
        for number in range(1, 10_000):
            if self.stopping.wait(0.02):
                return
            body = {'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': f's-{number}'},
                    'stringData': {'word': f'word-{number}'}}
            if self.clients[number % len(self.clients)].post(SECRETS, body).status == 201:
                self.acknowledged.append(f's-{number}')

    def stop(self):
        self.stopping.set()
        self.join(DEADLINE_S)


class KeysOfSeveralServersTest(unittest.TestCase):

    def rotate(self, server, step):
        return server.berth('store', 'rotate-key', step, '--data-dir', server.data_dir).stdout.split()[1]

    def check(self, servers, names):
        for server in servers:
            found = {item['metadata']['name']: item['data']['word'] for item in server.client().get(SECRETS).json()['items']}
            self.assertLessEqual(set(names), set(found))
            for name, word in found.items():
                self.assertEqual(base64.b64decode(word).decode(), name.replace('s-', 'word-'))

    def test_the_key_of_what_is_stored_changes_under_writes_through_all(self):
        etcd = etcd_test.Etcd().start()
        self.addCleanup(etcd.close)
        first, second = servers = [berth_fixture.Server('--store', etcd.url) for _ in range(2)]
        for server in servers:
            self.addCleanup(server.close)
        first.start()
        os.makedirs(os.path.dirname(keys_of(second)), mode=0o700)
        shutil.copy(keys_of(first), keys_of(second))
        second.start()
        writer = SecretWriter(servers)
        writer.start()
        self.addCleanup(writer.stop)

        def written(count):
            there = len(writer.acknowledged) + count
            berth_fixture.eventually(DEADLINE_S, lambda: len(writer.acknowledged) >= there, f'{count} more Secrets')
        written(20)
        staged = self.rotate(first, '--stage')
        shutil.copy(keys_of(first), keys_of(second))
        # At once: the second one has had no time to look at its file.
        self.assertEqual(self.rotate(first, '--promote'), staged)
        written(20)
        self.assertEqual(self.rotate(second, '--promote'), staged)
        written(20)
        writer.stop()
        self.check(servers, writer.acknowledged)
        for server in servers:
            server.berth('store', 'retire-keys', '--yes', '--data-dir', server.data_dir)
            server.restart()
        self.check(servers, writer.acknowledged)
        for server in servers:
            server.stop()


class ForeignFolderTest(unittest.TestCase):

    def check_refused(self, text, *arguments, data_dir=None):
        server = berth_fixture.Server(*arguments, data_dir=data_dir)
        self.addCleanup(server.close)
        server.start(wait=False)
        self.assertNotEqual(server.process.wait(DEADLINE_S), 0)
        self.assertIn(text, server.log())

    def test_a_server_with_other_keys_or_another_authority_is_refused(self):
        etcd = etcd_test.Etcd().start()
        self.addCleanup(etcd.close)
        other = berth_fixture.Server()
        self.addCleanup(other.close)
        other.start()
        other.stop()
        with berth_fixture.Server('--store', etcd.url) as first:
            self.check_refused('"/guard/encryption" is encrypted with key ', '--store', etcd.url)
            self.check_refused('is not the authority of this store', '--store', etcd.url, '--encryption-keys', keys_of(first),
                               data_dir=other.data_dir)
            # Nobody who reads the etcd has the authority's key.
            self.assertNotIn('PRIVATE KEY', etcd.control('get', '/guard/authority').stdout)


if __name__ == '__main__':
    unittest.main(verbosity=2)
