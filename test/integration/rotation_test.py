#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cluster's authority is changed for another one under running hosts, over kill -9: sessions go on, what the old one has
signed is good until it is retired and not after, and a host that has missed everything is told what to do."""

import os
import shutil
import ssl
import unittest

import berth_fixture
import etcd_test
import fleet_fixture

DEADLINE_S = 60
REVIEW = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
RECORD = '/api/v1/namespaces/berth-system/configmaps/authority'


def phase(server):
    """What the server says of its authorities, to whoever has its newest kubeconfig."""
    server.kubeconfig = berth_fixture.Kubeconfig(server.kubeconfig_path)
    with server.client(timeout=5) as client:
        return client.get(RECORD).json().get('data', {})


def wait_phase(server, wanted):
    berth_fixture.eventually(DEADLINE_S, lambda: phase(server).get('phase') == wanted, f'phase {wanted}')


def keep_kubeconfig(server, name):
    """What a person has who copied it once."""
    path = os.path.join(server.home, name)
    shutil.copy(server.kubeconfig_path, path)
    return berth_fixture.Kubeconfig(path)


def client_of(server, kubeconfig, trusted=None):
    """Shows what that kubeconfig has, not what the server's newest has, and trusts its authorities or those of another."""
    context = ssl.create_default_context(cadata=(trusted or kubeconfig).ca_pem)
    path = kubeconfig.path + '.pem'
    with open(path, 'w', opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(kubeconfig.certificate_pem + '\n' + kubeconfig.key_pem)
    context.load_cert_chain(path)
    return berth_fixture.Client(server.url, context)


def is_refused(client):
    """A certificate that is not trusted ends the handshake, or with TLS 1.3 the first answer."""
    try:
        client.close()
        return client.post(REVIEW, {}).status == 401
    except OSError:
        return True


class Rotation(berth_fixture.ServerTestCase):

    def setUp(self):
        self.hosts = []

    def more_logs(self):
        return [host.logs() for host in self.hosts]

    def host(self, name):
        host = fleet_fixture.Host(self.server, name)
        self.addCleanup(host.close)
        self.hosts.append(host)
        self.start(host)
        return host

    def start(self, host):
        host.start()
        berth_fixture.eventually(DEADLINE_S, host.is_ready, f'host {host.name}\n{host.logs()}')

    def still_old(self):
        return phase(self.server).get('waiting', '')

    def said(self, host):
        with open(host.poollet.log_path, errors='replace') as file:
            return file.read()

    def ca(self, *words, **options):
        return self.server.berth('ca', *words, **options)

    def widened(self, kubeconfig, newer):
        """The kubeconfig with the authorities of another one, as a person adds them."""
        path = kubeconfig.path + '-widened'
        with open(kubeconfig.path) as old, open(newer.path) as new, open(path, 'w') as file:
            wanted = [line for line in new if 'certificate-authority-data' in line]
            file.writelines(wanted[0] if 'certificate-authority-data' in line else line for line in old)
        return path

    def kill_server(self):
        self.server.kill()
        self.server.start()

    def test_an_authority_is_changed_under_running_hosts(self):
        alpha, beta = self.host('alpha'), self.host('beta')
        beta.poollet.kill()
        old = keep_kubeconfig(self.server, 'old')
        self.assertIn('Steady', self.ca('status').stdout)
        refused = self.ca('retire', check=False)
        self.assertIn('none can be retired', refused.stderr)

        # Two are trusted; who is there learns the next one within the session.
        self.assertIn('beta', self.ca('rotate', '--grace', '0s').stdout)
        berth_fixture.eventually(DEADLINE_S, lambda: 'alpha' not in self.still_old(), 'that alpha has renewed')
        self.assertEqual(phase(self.server)['phase'], 'Learning', 'beta does not know it yet')
        self.assertEqual(phase(self.server)['ca.crt'].count('BEGIN CERTIFICATE'), 2)
        refused = self.ca('retire', check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn('host beta', refused.stderr)

        # The file is whole at every moment, and what people have is still good.
        self.kill_server()
        person = client_of(self.server, old)
        self.assertEqual(person.post(REVIEW, {}).status, 201)
        gamma = self.host('gamma')
        self.assertEqual(phase(self.server)['phase'], 'Learning')

        # Nobody is left: the server's own certificate follows.
        beta.poollet.start()
        wait_phase(self.server, 'Switched')
        self.kill_server()
        for host in (alpha, beta, gamma):
            berth_fixture.eventually(DEADLINE_S, host.is_ready, f'host {host.name}')
        newer = keep_kubeconfig(self.server, 'newer')
        person = client_of(self.server, old, trusted=newer)
        self.assertEqual(person.post(REVIEW, {}).status, 201)
        self.assertIn('berth ca retire', self.ca('status').stdout)
        # Whoever was seen with what would stop working is told.
        berth_fixture.eventually(DEADLINE_S, lambda: 'still old    user berth-admin, last seen' in self.ca('status').stdout,
                                 'that the person is listed')
        self.assertIn('is of authority', self.ca('retire', kubeconfig=self.widened(old, newer), check=False).stderr)

        # The end of the old one, on open connections too.
        self.ca('retire')
        self.assertEqual(person.post(REVIEW, {}).status, 401)
        self.assertTrue(is_refused(person))
        self.assertEqual(client_of(self.server, newer).post(REVIEW, {}).status, 201)
        self.assertEqual(self.ca('bundle').stdout.count('BEGIN CERTIFICATE'), 1)
        berth_fixture.eventually(DEADLINE_S, lambda: 'still old' not in self.ca('status').stdout, 'that nobody is left')
        self.assertEqual(os.stat(os.path.join(self.server.data_dir, 'pki', 'ca.pem')).st_mode & 0o777, 0o600)

        # Once more, while a host is away from the beginning to the end.
        gamma.poollet.kill()
        self.ca('rotate', '--grace', '0s')
        self.assertIn('host gamma', self.ca('retire', check=False).stderr)
        berth_fixture.eventually(DEADLINE_S, lambda: self.still_old().startswith('host gamma'), 'that the others have renewed')
        self.ca('retire', '--force', kubeconfig=self.server.kubeconfig_path)
        self.kill_server()
        gamma.poollet.start()
        berth_fixture.eventually(DEADLINE_S, lambda: 'berth pool join-token' in gamma.poollet.log_tail(200), 'what to do')
        gamma.poollet.kill()
        with open(gamma.token_file, 'w') as file:
            file.write(self.server.berth('pool', 'join-token', 'gamma').stdout)
        gamma.poollet.start()
        for host in (alpha, beta, gamma):
            berth_fixture.eventually(DEADLINE_S, host.is_ready, f'host {host.name}\n{host.logs()}')
        self.assertIn('Steady', self.ca('status').stdout)
        for host in (alpha, beta):
            for word in ('retired', 'join-token'):
                self.assertNotIn(word, self.said(host), 'hosts that are there notice nothing')


class SharedRotation(unittest.TestCase):

    def test_every_server_of_a_store_follows(self):
        etcd = etcd_test.Etcd().start()
        self.addCleanup(etcd.close)
        first = berth_fixture.Server('--store', etcd.url)
        self.addCleanup(first.close)
        first.start()
        keys = os.path.join(first.data_dir, 'pki', 'encryption-keys')
        second = berth_fixture.Server('--store', etcd.url, '--encryption-keys', keys)
        self.addCleanup(second.close)
        second.start()

        def authority(server):
            with open(os.path.join(server.data_dir, 'pki', 'ca.pem')) as file:
                return file.read()
        berth_fixture.eventually(DEADLINE_S, lambda: phase(second).get('phase') == 'Steady', 'the record')
        old = [(server, keep_kubeconfig(server, 'old')) for server in (first, second)]
        second.berth('ca', 'rotate', '--grace', '0s')
        wait_phase(second, 'Switched')
        berth_fixture.eventually(DEADLINE_S, lambda: authority(first) == authority(second), 'one authority')
        second.kill()
        first.berth('ca', 'retire')
        # One that was away takes it over before it serves.
        second.start()
        self.assertEqual(authority(first), authority(second))
        for server, kubeconfig in old:
            self.assertTrue(is_refused(client_of(server, kubeconfig)))
            server.kubeconfig = berth_fixture.Kubeconfig(server.kubeconfig_path)
            with server.client() as client:
                self.assertEqual(client.post(REVIEW, {}).status, 201)
        for server in (first, second):
            server.stop()


if __name__ == '__main__':
    unittest.main()
