#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""VolumeSnapshots of the API with two real hosts: they are taken where their volume is, outlive it and every process, and
volumes that begin with them are placed there and hold what was kept. The same of volumes that are copies of others."""

import glob
import json
import os
import subprocess
import unittest

import berth_fixture
import guest_fixture
import volume_runtime_test
from guest_fixture import DEADLINE_S

VOLUME = '''
apiVersion: storage.ironcore.dev/v1alpha1
kind: Volume
metadata: {{name: {name}}}
spec:
  volumeClassRef: {{name: plain}}
  resources: {{storage: {size}}}
  {more}
'''

SNAPSHOT = '''
apiVersion: storage.ironcore.dev/v1alpha1
kind: VolumeSnapshot
metadata: {{name: {name}}}
spec: {{volumeRef: {{name: {volume}}}}}
'''


class Snapshots(berth_fixture.ServerTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.kubectl('apply', '-f', '-', input=guest_fixture.API_CLASSES)
        cls.hosts = {}
        for name in ('alpha', 'beta'):
            host = guest_fixture.RealHost(cls.server, name, has=('volumes',))
            cls.addClassCleanup(host.close)
            cls.hosts[f'{name}-disks'] = host.start()
        for host in cls.hosts.values():
            berth_fixture.eventually(DEADLINE_S, host.is_ready, f'the pool is ready\n{host.logs()}')

    def more_logs(self):
        return [host.logs() for host in self.hosts.values()]

    def volume(self, name, size='4Mi', more=''):
        self.server.kubectl('apply', '-f', '-', input=VOLUME.format(name=name, size=size, more=more))

    def restore(self, name, snapshot, size='4Mi', more=''):
        self.volume(name, size, f'dataSource: {{volumeSnapshotRef: {{name: {snapshot}}}}}\n  {more}')

    def copy(self, name, source, size='4Mi', more=''):
        self.volume(name, size, f'dataSource: {{volumeRef: {{name: {source}}}}}\n  {more}')

    def snapshot(self, name, volume):
        self.server.kubectl('apply', '-f', '-', input=SNAPSHOT.format(name=name, volume=volume))

    def get(self, kind, name):
        return json.loads(self.server.kubectl('get', kind, name, '-o', 'json').stdout)

    def becomes(self, kind, name, state):
        def is_so():
            status = self.get(kind, name).get('status', {})
            return status if status.get('state') == state else None
        return berth_fixture.eventually(DEADLINE_S, is_so, f'{kind} {name} {state}')

    def says(self, kind, name, text):
        """Some condition of the object has this message."""
        def conditions():
            return [c.get('message', '') for c in self.get(kind, name).get('status', {}).get('conditions', [])]
        berth_fixture.eventually(DEADLINE_S, lambda: any(text in message for message in conditions()),
                                 f'{kind} {name} says {text!r}')

    def delete(self, *names):
        self.server.kubectl('delete', *names, '--timeout=60s', timeout=90)

    def disk(self, name):
        return self.get('volume', name)['status']['access']['volumeAttributes']['path']

    def host_of(self, kind, name):
        return self.hosts[self.get(kind, name)['spec']['volumePoolRef']['name']]

    def files(self, folder):
        return [path for host in self.hosts.values() for path in glob.glob(host.path('disks', folder, '*'))
                if os.path.basename(path) != 'lock']

    def test_1_content_is_kept_and_restored_where_it_is(self):
        self.volume('data')
        self.becomes('volume', 'data', 'Available')
        volume_runtime_test.qemu_io(self.disk('data'), 'write -P 0x11 0 4096')
        self.restore('early', 'one')
        self.says('volume', 'early', 'there is no VolumeSnapshot one')
        self.snapshot('one', 'data')
        status = self.becomes('volumesnapshot', 'one', 'Ready')
        self.assertEqual(status['size'], '4Mi')
        self.assertRegex(status['snapshotID'], '^[a-z-]+://s-')
        volume_runtime_test.qemu_io(self.disk('data'), 'write -P 0x22 0 4096')
        self.becomes('volume', 'early', 'Available')
        self.assertIs(self.host_of('volumesnapshot', 'one'), self.host_of('volume', 'data'))
        self.assertIs(self.host_of('volume', 'early'), self.host_of('volume', 'data'))
        volume_runtime_test.qemu_io(self.disk('early'), 'read -P 0x11 0 4096')
        volume_runtime_test.qemu_io(self.disk('data'), 'read -P 0x22 0 4096')
        shown = self.server.kubectl('get', 'volumesnapshot', 'one').stdout
        self.assertRegex(shown, r'one +data +[a-z]+-disks +4Mi +Ready')

    def test_2_what_cannot_be_says_why(self):
        here = self.get('volumesnapshot', 'one')['spec']['volumePoolRef']['name']
        (elsewhere,) = set(self.hosts) - {here}
        self.restore('small', 'one', size='1Mi')
        self.says('volume', 'small', 'spec.resources[storage] is 1048576 bytes, VolumeSnapshot one needs 4194304')
        self.restore('away', 'one', more=f'volumePoolRef: {{name: {elsewhere}}}')
        self.says('volume', 'away', f'spec.volumePoolRef is {elsewhere}, but VolumeSnapshot one is on pool {here}')
        self.snapshot('none', 'nothing')
        self.says('volumesnapshot', 'none', 'there is no Volume nothing')
        self.restore('waits', 'none')
        self.says('volume', 'waits', 'VolumeSnapshot none is not ready yet')
        why = self.server.berth('why', 'volume/small').stdout
        self.assertIn('VolumeSnapshot one needs 4194304', why)
        self.delete('volume/small', 'volume/away', 'volume/waits', 'volumesnapshot/none')

    def test_3_it_outlives_its_volume_and_every_process(self):
        host = self.host_of('volumesnapshot', 'one')
        self.delete('volume/data', 'volume/early')
        self.assertEqual(self.files('volumes'), [])
        for process in (host.poollet, host.volume_runtime):
            process.kill()
        self.server.kill()
        self.server.start()
        host.volume_runtime.start()
        host.poollet.start()
        self.restore('late', 'one')
        self.becomes('volume', 'late', 'Available')
        volume_runtime_test.qemu_io(self.disk('late'), 'read -P 0x11 0 4096')
        self.assertEqual(self.get('volumesnapshot', 'one')['status']['state'], 'Ready')
        self.assertEqual(len(self.files('snapshots')), 1)

    def test_4_taken_once_whoever_is_killed_meanwhile(self):
        host = self.host_of('volume', 'late')
        for number, killed in enumerate(((host.poollet,), (host.volume_runtime,), (host.volume_runtime, host.poollet))):
            with self.subTest(number):
                self.snapshot(f'kill-{number}', 'late')
                for process in killed:
                    process.kill()
                for process in reversed(killed):
                    process.start()
                self.becomes('volumesnapshot', f'kill-{number}', 'Ready')
                self.assertEqual(len(self.files('snapshots')), 2 + number)

    def test_5_deletion_is_complete(self):
        host = self.host_of('volumesnapshot', 'one')
        host.poollet.kill()
        self.server.kubectl('delete', 'volumesnapshot', 'one', '--wait=false')
        self.assertIn('deletionTimestamp', self.get('volumesnapshot', 'one')['metadata'])
        host.poollet.start()
        self.server.kubectl('wait', '--for=delete', 'volumesnapshot/one', '--timeout=60s', timeout=90)
        self.delete('volumesnapshot/kill-0', 'volumesnapshot/kill-1', 'volumesnapshot/kill-2', 'volume/late')
        self.assertEqual(self.files('snapshots') + self.files('volumes'), [])

    def test_6_a_copy_is_made_where_its_source_is_and_says_what_it_waits_for(self):
        self.copy('copy', 'golden', size='8Mi')
        self.says('volume', 'copy', 'there is no Volume golden')
        self.volume('golden')
        self.becomes('volume', 'copy', 'Available')
        volume_runtime_test.qemu_io(self.disk('golden'), 'write -P 0x33 0 4096')
        self.copy('same', 'golden')
        self.becomes('volume', 'same', 'Available')
        volume_runtime_test.qemu_io(self.disk('same'), 'read -P 0x33 0 4096')
        volume_runtime_test.qemu_io(self.disk('copy'), 'read -P 0 0 4096')
        self.assertIs(self.host_of('volume', 'same'), self.host_of('volume', 'golden'))
        # Each is its own.
        volume_runtime_test.qemu_io(self.disk('same'), 'write -P 0x44 0 4096')
        volume_runtime_test.qemu_io(self.disk('golden'), 'read -P 0x33 0 4096')
        self.copy('small', 'golden', size='1Mi')
        self.says('volume', 'small', 'spec.resources[storage] is 1048576 bytes, Volume golden needs 4194304')
        self.assertIn('Volume golden needs 4194304', self.server.berth('why', 'volume/small').stdout)
        (elsewhere,) = set(self.hosts) - {self.get('volume', 'golden')['spec']['volumePoolRef']['name']}
        self.copy('away', 'golden', more=f'volumePoolRef: {{name: {elsewhere}}}')
        self.says('volume', 'away', f'spec.volumePoolRef is {elsewhere}, but Volume golden is on pool')
        itself = self.server.kubectl('apply', '-f', '-', check=False, input=VOLUME.format(
            name='itself', size='4Mi', more='dataSource: {volumeRef: {name: itself}}'))
        self.assertIn('spec.dataSource.volumeRef.name', itself.stderr)
        self.assertRegex(self.server.kubectl('get', 'volumes', '-o', 'wide').stdout, r'same .* volume/golden')
        self.delete('volume/small', 'volume/away', 'volume/copy', 'volume/same')

    def test_7_a_copy_is_made_once_whoever_is_killed_and_its_source_goes_after_it(self):
        host = self.host_of('volume', 'golden')
        for number, killed in enumerate(((host.poollet,), (host.volume_runtime,), (host.volume_runtime, host.poollet))):
            with self.subTest(number):
                self.copy(f'kill-{number}', 'golden')
                for process in killed:
                    process.kill()
                for process in reversed(killed):
                    process.start()
                self.becomes('volume', f'kill-{number}', 'Available')
                volume_runtime_test.qemu_io(self.disk(f'kill-{number}'), 'read -P 0x33 0 4096')
                self.assertEqual(len(self.files('volumes')), 2 + number)
        # Nobody can read the source while a program has it that is no guest: the copy waits, and the source for the copy.
        with subprocess.Popen(['/usr/bin/qemu-io', '-f', 'qcow2', self.disk('golden')], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as program:
            program.stdin.write('length\n')
            program.stdin.flush()
            self.assertIn('4 MiB', program.stdout.readline(), 'it has the disk')
            self.copy('last', 'golden')
            berth_fixture.eventually(DEADLINE_S, lambda: 'volumePoolRef' in self.get('volume', 'last')['spec'],
                                     'last is placed')
            self.server.kubectl('delete', 'volume', 'golden', '--wait=false')
            metadata = self.get('volume', 'golden')['metadata']
            self.assertEqual(metadata['annotations']['berth.dev/used-by'], 'volume last')
            self.assertNotEqual(self.get('volume', 'last')['status'].get('state'), 'Available')
            program.communicate('quit\n')
        self.becomes('volume', 'last', 'Available')
        volume_runtime_test.qemu_io(self.disk('last'), 'read -P 0x33 0 4096')
        self.server.kubectl('wait', '--for=delete', 'volume/golden', '--timeout=60s', timeout=90)
        self.delete('volume/kill-0', 'volume/kill-1', 'volume/kill-2', 'volume/last')
        self.assertEqual(self.files('volumes'), [])


if __name__ == '__main__':
    unittest.main(verbosity=2)
