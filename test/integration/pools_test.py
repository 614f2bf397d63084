#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an operator does with hosts: looks at their use, fences, isolates and removes them."""

import json
import unittest

import berth_fixture
import fleet_fixture

CLASS = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: MachineClass
metadata: {name: small}
capabilities: {cpu: 1, memory: 1Gi}
'''

MACHINE = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {{name: {name}, namespace: default}}
spec:
  machineClassRef: {{name: small}}
  ignitionRef: {{name: boot}}
'''

LEGACY_POOL = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: MachinePool
metadata: {name: old-rack}
spec: {providerID: "old://rack"}
'''


class Pools(berth_fixture.ServerTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.kubectl('apply', '-f', '-', input=CLASS)
        cls.server.kubectl('create', 'secret', 'generic', 'boot', '--type=compute.ironcore.dev/ignition',
                           '--from-literal=ignition.yaml=variant: fcos')
        cls.hosts = {}
        for name in ('gamma', 'delta'):
            host = fleet_fixture.Host(cls.server, name)
            cls.addClassCleanup(host.close)
            cls.hosts[name] = host.start()
        for name in cls.hosts:
            cls.await_ready(name, 'True')

    def more_logs(self):
        return [host.logs() for host in self.hosts.values()]

    @classmethod
    def ready(cls, pool):
        found = cls.server.kubectl('get', 'machinepool', pool, '--ignore-not-found', '-o', 'json').stdout
        if not found:
            return None
        conditions = json.loads(found).get('status', {}).get('conditions', [])
        return next((c['status'] for c in conditions if c['type'] == 'Ready'), None)

    @classmethod
    def await_ready(cls, pool, *wanted):
        berth_fixture.eventually(60, lambda: cls.ready(pool) in wanted, f'pool {pool} is {wanted}')

    def machine(self, name):
        return json.loads(self.server.kubectl('get', 'machine', name, '-o', 'json').stdout)

    def runs_on(self, name, pool):
        def looks():
            machine = self.machine(name)
            return (machine['spec'].get('machinePoolRef', {}).get('name'), machine['status'].get('state')) == \
                (pool, 'Running')
        return looks

    def place(self, name, pool):
        """A machine on that pool, and on no other."""
        others = [other for other in self.hosts if other != pool]
        self.server.berth('cordon', *others)
        self.server.kubectl('apply', '-f', '-', input=MACHINE.format(name=name))
        berth_fixture.eventually(60, self.runs_on(name, pool), f'{name} runs on {pool}')
        self.server.berth('uncordon', *others)

    def test_1_top_shows_what_is_promised_and_used(self):
        self.place('busy', 'gamma')
        usage = json.loads(self.server.berth('top', 'pools', '-o', 'json').stdout)['items']
        gamma = next(u for u in usage if u['metadata']['name'] == 'gamma')
        self.assertEqual((gamma['capacity']['cpu'], gamma['allocated']['cpu'], gamma['free']['cpu']), ('8', '1', '7'))
        self.assertEqual((gamma['contact'], gamma['objects'], gamma['host']), ('Connected', 1, 'gamma'))
        self.assertLess(gamma['heartbeatAgeMs'], 30000)
        self.assertTrue(gamma['hardware'], 'the host says what it is')
        (busy,) = json.loads(self.server.berth('top', 'machines', '-o', 'json').stdout)['items']
        self.assertEqual((busy['metadata']['name'], busy['pool'], busy['state']), ('busy', 'gamma', 'Running'))
        # Who may list pools may not see of all what is on them.
        self.server.kubectl('create', 'clusterrole', 'lister', '--verb=list',
                            '--resource=machinepools,volumepools,bucketpools')
        self.server.kubectl('create', 'clusterrolebinding', 'lister', '--clusterrole=lister', '--user=lister')
        berth_fixture.eventually(60, lambda: self.server.berth('get', 'machinepools', '--as', 'lister', check=False)
                                 .returncode == 0, 'they are listed')
        refused = self.server.berth('top', 'pools', '--as', 'lister', check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn('machinepools/usage', refused.stderr)
        rows = [line.split() for line in self.server.berth('top', 'pools', '--sort-by', 'cpu').stdout.splitlines()]
        self.assertEqual(rows[0][:3], ['NAME', 'KIND', 'CONTACT'])
        self.assertEqual(rows[1][0], 'gamma', 'the fullest comes first')
        self.assertIn('volumepool', self.server.kubectl('get', 'volumepools', '-o', 'name').stdout)
        self.assertTrue(any(row[0] == 'gamma-disks' for row in rows))

        # What is allocatable is written some seconds after a placement, once.
        berth_fixture.eventually(60, lambda: self.hosts['gamma'].pool()['status']['allocatable']['cpu'] == '7',
                                 'the pool says what is left')
        revision = self.hosts['gamma'].pool()
        berth_fixture.eventually(60, lambda: 'used' in json.loads(
            self.server.berth('top', 'machines', '-o', 'json').stdout)['items'][0], 'the host has measured')
        again = self.hosts['gamma'].pool()
        self.assertEqual(revision['metadata']['resourceVersion'], again['metadata']['resourceVersion'],
                         'figures are not written')
        machine = self.server.berth('top', 'machines').stdout.splitlines()
        self.assertEqual(machine[0].split()[:5], ['NAME', 'POOL', 'STATE', 'CPU', 'MEMORY'])
        self.assertEqual(machine[1].split()[:3], ['busy', 'gamma', 'Running'])
        self.server.kubectl('delete', 'machine', 'busy', '--timeout=60s', timeout=90)

    def test_2_a_host_that_is_off_is_fenced_and_gives_up_what_moved(self):
        self.place('kept', 'gamma')
        refused = self.server.berth('pool', 'fence', 'gamma', '--yes', check=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn('is ready', refused.stderr)
        gamma = self.hosts['gamma']
        gamma.poollet.kill()
        gamma.runtime.kill()
        self.await_ready('gamma', 'Unknown', 'False')
        asked = self.server.berth('pool', 'fence', 'gamma', check=False)
        self.assertEqual(asked.returncode, 2)
        self.assertIn('1 machine on it will be started elsewhere', asked.stderr)
        self.assertIn('1 would be let go', self.server.berth('pool', 'fence', 'gamma', '--dry-run').stdout)
        fenced = self.server.berth('pool', 'fence', 'gamma', '--yes').stdout
        self.assertIn('machine.compute.ironcore.dev/kept let go', fenced)
        berth_fixture.eventually(60, self.runs_on('kept', 'delta'), 'kept runs on the other host')
        uid = self.machine('kept')['metadata']['uid']
        gamma.start()
        self.await_ready('gamma', 'True')
        berth_fixture.eventually(60, lambda: uid not in gamma.machines(), 'the old copy is gone')
        self.server.berth('uncordon', 'gamma')
        self.server.kubectl('delete', 'machine', 'kept', '--timeout=60s', timeout=90)

    def test_3_an_isolated_host_is_cut_off_and_keeps_what_it_had(self):
        self.place('bound', 'gamma')
        isolated = self.server.berth('pool', 'isolate', 'gamma', '--yes', timeout=90).stdout
        self.assertIn('host gamma: its certificate is revoked', isolated)
        self.assertRegex(isolated, r'default +boot +machine.compute.ironcore.dev/bound')
        self.assertNotEqual(self.ready('gamma'), 'True')
        self.assertEqual(self.machine('bound')['status']['placement']['pool'], 'gamma')
        berth_fixture.eventually(30, lambda: 'evoked' in self.hosts['gamma'].poollet.log_tail(200),
                                 'the host is told why')

    def test_4_a_host_is_removed_as_a_whole(self):
        half = self.server.berth('pool', 'remove', 'gamma', '--fence', '--yes', check=False)
        self.assertEqual(half.returncode, 2)
        self.assertIn('also runs volumepool.storage.ironcore.dev/gamma-disks', half.stderr)
        pools = ('gamma', 'volumepool/gamma-disks')
        removed = self.server.berth('pool', 'remove', *pools, '--fence', '--yes', '--timeout=60s', timeout=90).stdout
        self.assertIn('machinepool.compute.ironcore.dev/gamma removed', removed)
        left = self.server.kubectl('get', 'machinepools,volumepools', '-o', 'name').stdout
        self.assertNotIn('gamma', left)
        berth_fixture.eventually(60, self.runs_on('bound', 'delta'), 'its machine runs elsewhere')
        self.server.kubectl('delete', 'machine', 'bound', '--timeout=60s', timeout=90)
        self.server.berth('pool', 'remove', 'delta', 'volumepool/delta-disks', '--yes', '--timeout=60s', timeout=90)
        self.assertEqual(self.server.kubectl('get', 'machinepools', '-o', 'name').stdout, '')

    def test_5_legacy_rights_are_given_shown_and_taken_back(self):
        self.server.kubectl('apply', '-f', '-', input=LEGACY_POOL)
        pool = ('--as', 'compute.ironcore.dev:system:machinepool:old-rack',
                '--as-group', 'compute.ironcore.dev:system:machinepools', '--as-group', 'system:authenticated')

        def lists_secrets():
            return self.server.kubectl('get', 'secrets', '-A', *pool, check=False).returncode == 0

        self.assertFalse(lists_secrets())
        asked = self.server.berth('pool', 'allow-legacy', 'old-rack', check=False)
        self.assertEqual(asked.returncode, 2)
        self.assertIn('SECRETS of every namespace', asked.stderr)
        self.server.berth('pool', 'allow-legacy', 'old-rack', '--yes')
        berth_fixture.eventually(10, lists_secrets, 'the rights count')
        self.assertIn('legacy rights', self.server.kubectl('get', 'machinepools', '-o', 'wide').stdout)
        doctor = self.server.berth('doctor', check=False).stdout
        self.assertRegex(doctor, r'warn +legacy poollets +may read every secret: .*machinepool:old-rack')
        self.server.berth('pool', 'allow-legacy', 'old-rack', '--withdraw')
        berth_fixture.eventually(10, lambda: not lists_secrets(), 'the rights are gone')
        self.assertNotIn('legacy rights', self.server.kubectl('get', 'machinepools', '-o', 'wide').stdout)

        with self.subTest('they go with their pool, and so do its certificates'):
            self.server.berth('pool', 'allow-legacy', 'old-rack', '--yes')
            removed = self.server.berth('pool', 'remove', 'old-rack', '--yes', '--timeout=60s', timeout=90).stdout
            self.assertIn('old-rack: its wide rights are taken back', removed)
            self.assertIn('machinepool.compute.ironcore.dev/old-rack removed', removed)
            berth_fixture.eventually(10, lambda: not lists_secrets(), 'the rights are gone again')
            user = 'compute.ironcore.dev:system:machinepool:old-rack'.encode().hex()
            self.assertIn(f'userhex {user} ', self.server.berth('certificate', 'revocations').stdout)


if __name__ == '__main__':
    unittest.main(verbosity=2)
