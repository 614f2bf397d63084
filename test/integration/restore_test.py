#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A backup of the running server is put back under running machines: none of them stops, and what it does not know is shown.
The same on the embedded store and on a real etcd."""

import json
import os
import re
import unittest

import berth_fixture
import etcd_test
import fleet_fixture
from fleet_crash_test import CLASS, PATH

KNOWN = 30  # when the copy is taken
LATER = 23
DELETED = 3  # of the known ones, after the copy


class Drill:
    """The drill itself. Whoever has it says where the store is, and what is done to it before a restore."""

    STORE = ()  # the flags of the store, of server, backup and restore alike

    def make_room(self, restore):
        """Between the server's end and the restore: what an operator does to the store that is to be replaced."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.kubectl('apply', '-f', '-', input=CLASS)
        cls.hosts = []
        for name in ('alpha', 'beta'):
            host = fleet_fixture.Host(cls.server, name, cpu=60, memory='400Gi', boot_time='50ms')
            cls.addClassCleanup(host.close)
            cls.hosts.append(host.start())
        for host in cls.hosts:
            berth_fixture.eventually(60, host.is_ready, f'pool {host.name} is ready')

    def create(self, names):
        with self.server.client() as client:
            for name in names:
                answer = client.post(PATH, {
                    'apiVersion': 'compute.ironcore.dev/v1alpha1', 'kind': 'Machine', 'metadata': {'name': name},
                    'spec': {'machineClassRef': {'name': 'small'}, 'power': 'On'}})
                self.assertEqual(answer.status, 201, answer)

    def machines(self):
        with self.server.client() as client:
            return {item['metadata']['name']: item for item in client.get(PATH).json()['items']}

    def wait_for(self, count):
        def all_run():
            found = self.machines()
            self.assertEqual(len(found), count)
            self.assertEqual({item.get('status', {}).get('state') for item in found.values()}, {'Running'})
            return True

        berth_fixture.eventually(120, all_run, f'{count} machines run')

    def orphans(self):
        for host in self.hosts:
            for condition in host.pool()['status'].get('conditions', []):
                if condition['type'] == 'Orphans' and condition['status'] == 'True':
                    yield condition

    def guests(self):
        return {(host.name, guest) for host in self.hosts for guest in host.guests()}

    def test_seq20_no_machine_stops_under_an_older_store(self):
        self.create(f'known-{i}' for i in range(KNOWN))
        self.wait_for(KNOWN)
        copy, passphrase = os.path.join(self.server.home, 'copy'), os.path.join(self.server.home, 'passphrase')
        with open(passphrase, 'w', encoding='utf-8') as file:
            file.write('correct horse battery staple\n')
        os.chmod(passphrase, 0o600)
        folder = ('--data-dir', self.server.data_dir, '--passphrase-file', passphrase, *self.STORE)
        self.server.berth('backup', copy, *folder)
        self.server.restart()
        self.server.restart()  # hosts see a term that the copy will not reach at once
        self.create(f'later-{i}' for i in range(LATER))
        self.server.kubectl('delete', 'machine', *(f'known-{i}' for i in range(DELETED)), '--timeout=60s', timeout=90)
        self.wait_for(KNOWN + LATER - DELETED)
        moved = f'known-{KNOWN - 1}'
        was_on = self.machines()[moved]['spec']['machinePoolRef']['name']
        self.server.berth('move', f'machine/{moved}')
        berth_fixture.eventually(
            60, lambda: self.machines()[moved]['spec'].get('machinePoolRef', {}).get('name') not in (None, was_on),
            'it is on the other host')
        self.wait_for(KNOWN + LATER - DELETED)
        before = self.guests()
        self.assertEqual(len(before), KNOWN + LATER - DELETED)

        refused = self.server.berth('restore', copy, *folder, '--yes', check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn('stop it first', refused.stderr)
        self.server.kill()
        asked = self.server.berth('restore', copy, *folder, check=False)
        self.assertNotEqual(asked.returncode, 0)
        self.assertIn('--yes', asked.stderr)
        self.make_room(lambda: self.server.berth('restore', copy, *folder, '--yes', check=False))
        told = self.server.berth('restore', copy, *folder, '--yes').stdout
        self.assertIn('incarnation 2', told)
        self.server.start()

        # The copy knows those that were deleted since: they come back, like everything that it knows.
        self.wait_for(KNOWN)
        berth_fixture.eventually(60, lambda: list(self.orphans()), 'pools tell what the store does not know')
        self.assertLessEqual(before, self.guests(), 'what ran then runs now, the very same guests')
        # The copy has the moved one where it was before; it runs where it went, and there alone.
        self.assertNotEqual(self.machines()[moved]['spec']['machinePoolRef']['name'], was_on)
        uids = [uid for _, (_, uid) in self.guests()]
        self.assertEqual(len(uids), len(set(uids)), 'nothing runs twice')
        # Hosts take offers of the restored scheduler, whose terms begin again.
        self.create(['afterwards'])
        self.wait_for(KNOWN + 1)
        self.assertLessEqual(before, self.guests())

        # What the store lost is described again, and becomes what it was. Which host got it was the scheduler's choice.
        lost = re.compile(r'(?m)^Machine +default +later-\d+ +\S+ +\S+$')
        listed = berth_fixture.eventually(
            60, lambda: [host.name for host in self.hosts
                         if lost.search(self.server.berth('pool', 'adopt', host.name).stdout)],
            'a host lists what the store does not know')
        manifest = json.dumps({'apiVersion': 'v1', 'kind': 'List', 'items': [
            {'apiVersion': 'compute.ironcore.dev/v1alpha1', 'kind': 'Machine',
             'metadata': {'name': f'later-{i}', 'namespace': 'default'},
             'spec': {'machineClassRef': {'name': 'small'}, 'power': 'On'}} for i in range(LATER)]})
        tried = self.server.berth('pool', 'adopt', listed[0], '-f', '-', '--dry-run', input=manifest).stdout
        self.assertIn('adopted (server dry run)', tried)
        self.assertEqual(len(self.machines()), KNOWN + 1)
        for host in self.hosts:
            self.server.berth('pool', 'adopt', host.name, '-f', '-', input=manifest, timeout=180)
        self.wait_for(KNOWN + 1 + LATER)
        berth_fixture.eventually(60, lambda: not list(self.orphans()), 'nothing is unknown any more')
        self.assertLessEqual(before, self.guests(), 'the very same guests')
        uids = {uid for _, (_, uid) in before}
        adopted = {item['metadata']['uid'] for name, item in self.machines().items() if name.startswith('later-')}
        self.assertLessEqual(adopted, uids)
        self.server.kubectl('delete', 'machine', 'later-0', '--timeout=60s', timeout=90)


class Restore(Drill, berth_fixture.ServerTestCase):
    """The embedded store, which a restore sets aside."""


class RestoreOnEtcd(Drill, berth_fixture.ServerTestCase):
    """A store that outlives the server's folder, and that only its operator may empty."""

    @classmethod
    def setUpClass(cls):
        cls.etcd = etcd_test.Etcd().start()
        cls.addClassCleanup(cls.etcd.close)
        cls.STORE = cls.SERVER_ARGUMENTS = ('--store', cls.etcd.url)
        super().setUpClass()

    def make_room(self, restore):
        refused = restore()
        self.assertNotEqual(refused.returncode, 0)
        self.assertRegex(refused.stderr, 'not empty|a server serves from this store')
        self.etcd.control('del', '', '--from-key=true')


if __name__ == '__main__':
    unittest.main(verbosity=2)
