#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Encrypted volumes under real guests: what a guest wrote is there for the next one who has the key, also in a snapshot; they
come, grow and go while a guest runs; after a power cut a machine waits for its key; a wrong key opens nothing and is said, and neither key nor content is readable in what the
host keeps."""

import base64
import json
import os
import unittest

import berth_fixture
import guest_fixture
from guest_fixture import DEADLINE_S

MI = 1 << 20
SECOND = 'in-the-clear-on-another-one'
RIGHT, WRONG = 'correct-horse-battery', 'staple-of-somebody-else'
LUKS_DEADLINE_S = 300  # hardening a key is seconds of computing, several times

SECRET = '''
apiVersion: v1
kind: Secret
metadata: {{name: crypt}}
stringData: {{encryptionKey: {key}}}
'''
VOLUME = '''
apiVersion: storage.ironcore.dev/v1alpha1
kind: Volume
metadata: {{name: {name}}}
spec:
  volumeClassRef: {{name: plain}}
  resources: {{storage: 4Mi}}
  encryption: {{secretRef: {{name: crypt}}}}
'''
SNAPSHOT = '''
apiVersion: storage.ironcore.dev/v1alpha1
kind: VolumeSnapshot
metadata: {name: kept}
spec: {volumeRef: {name: late}}
'''
MACHINE = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {{name: {name}}}
spec:
  machineClassRef: {{name: tiny}}
  volumes:
  - {{name: root, device: odx, localDisk: {{sizeLimit: 1Mi, image: demo}}}}
  - {{name: vault, device: oda, volumeRef: {{name: vault}}}}
'''
LATE = '  - {name: late, device: odb, volumeRef: {name: late}}\n'


class Encryption(guest_fixture.RealHostTestCase):
    def get(self, kind, name):
        found = self.server.kubectl('get', kind, name, '--ignore-not-found', '-o', 'json').stdout
        return json.loads(found) if found else {}

    def condition(self, kind, name, word):
        conditions = self.get(kind, name).get('status', {}).get('conditions', [])
        return next((each for each in conditions if each['type'] == word), {})

    def apply(self, text):
        self.server.kubectl('apply', '-f', '-', input=text)

    def until(self, what, look):
        berth_fixture.eventually(LUKS_DEADLINE_S, look, what)

    def says(self, name, text):
        self.until(f'{name} says {text!r}; {self.get("machine", name).get("status")}',
                   lambda: text in self.server.berth('logs', name, check=False).stdout)

    def ask(self, name, line, answer):
        with guest_fixture.Terminal(self.server, name) as terminal:
            return terminal.ask(line, answer)

    def delete(self, kind, *names):
        self.server.kubectl('delete', kind, *names, '--timeout=100s', timeout=120)

    def test_1_a_volume_waits_for_its_key(self):
        self.apply(VOLUME.format(name='vault'))
        self.until('the volume says what is missing',
                   lambda: 'crypt' in self.condition('volume', 'vault', 'PrerequisitesMet').get('message', ''))
        self.assertEqual([], [path for path in self.disk_files() if 'disk' in os.path.basename(path)])
        self.apply(SECRET.format(key=RIGHT))
        self.is_available('vault')

    def is_available(self, name):
        self.until(f'the volume {name} is there', lambda: self.get('volume', name).get('status', {}).get('state') == 'Available')

    def test_2_a_guest_reads_what_another_wrote(self):
        self.apply(MACHINE.format(name='first'))
        self.says('first', 'hello from the guest')
        self.ask('first', 'put in-the-clear-for-guests-only', 'written')
        self.delete('machine', 'first')
        self.apply(MACHINE.format(name='second'))
        self.says('second', 'hello from the guest')
        self.ask('second', 'get', 'read in-the-clear-for-guests-only end')

    def test_2_then_one_comes_grows_and_goes_while_the_guest_runs(self):
        pids = self.host.libvirt.guests()
        self.apply(VOLUME.format(name='late'))
        self.apply(MACHINE.format(name='second') + LATE)
        self.until('the guest has it', lambda: f' {4 * MI // 512} late' in self.ask('second', 'disks', 'that is all'))
        self.ask('second', f'write late {SECOND}', 'written')
        self.server.kubectl('patch', 'volume', 'late', '--type=merge', '-p', '{"spec": {"resources": {"storage": "6Mi"}}}')
        self.until('the guest sees that it grew', lambda: f' {6 * MI // 512} late' in self.ask('second', 'disks', 'that is all'))
        self.ask('second', 'content late', f'content {SECOND} end')
        self.apply(MACHINE.format(name='second'))
        self.until('the guest lets it go', lambda: 'late' not in self.ask('second', 'disks', 'that is all'))
        self.until('and it is said so', lambda: 'late' not in json.dumps(self.get('machine', 'second')['status']['volumes']))
        self.assertEqual(self.host.libvirt.guests(), pids)

    def test_2_then_what_a_snapshot_kept_is_read_with_the_key(self):
        self.apply(MACHINE.format(name='second') + LATE)
        self.until('the guest has it again', lambda: ' late' in self.ask('second', 'disks', 'that is all'))
        self.apply(SNAPSHOT)
        self.until(f'it waits for the end of the guest; {self.get("volumesnapshot", "kept")}',
                   lambda: 'so stop the machine' in json.dumps(self.get('volumesnapshot', 'kept')))
        self.assertEqual('Pending', self.get('volumesnapshot', 'kept')['status']['state'])
        self.delete('machine', 'second')
        self.until(f'it is taken; {self.get("volumesnapshot", "kept")}',
                   lambda: self.get('volumesnapshot', 'kept').get('status', {}).get('state') == 'Ready')
        self.apply(VOLUME.format(name='restored').replace('4Mi', '6Mi') + '  dataSource: {volumeSnapshotRef: {name: kept}}\n')
        self.is_available('restored')
        self.apply(MACHINE.format(name='reader').replace('volumeRef: {name: vault}', 'volumeRef: {name: restored}'))
        self.says('reader', 'hello from the guest')
        self.ask('reader', 'get', f'read {SECOND} end')
        self.delete('machine', 'reader')

    def test_3_P9_neither_key_nor_content_is_in_what_the_host_keeps(self):
        paths = [os.path.join(folder, name) for folder, _, names in os.walk(self.host.home) for name in names
                 if name != 'berth']
        self.assertEqual(4, len([path for path in paths if path.endswith('.luks')]), paths)
        encoded = base64.b64encode(RIGHT.encode())
        for path in paths:
            if not os.path.isfile(path) or os.path.islink(path):
                continue
            content = guest_fixture.read(path)
            for word in (RIGHT.encode(), encoded, b'in-the-clear-for-guests-only', SECOND.encode()):
                # A guest's console repeats what it was asked for; it went with its machine.
                self.assertNotIn(word, content, path)

    def test_4_a_wrong_key_is_refused_and_the_right_one_opens_it(self):
        self.apply(SECRET.format(key=WRONG))
        self.apply(MACHINE.format(name='third'))
        self.until(f'the machine says why; {self.get("machine", "third").get("status")}',
                   lambda: 'the key does not open the disk' in self.condition('machine', 'third', 'Ready').get('message', ''))
        said = self.condition('machine', 'third', 'Ready')
        self.assertEqual('False', said['status'])
        self.assertIn('volume "vault"', said['message'])
        self.assertEqual([], self.host.libvirt.guests())
        self.apply(SECRET.format(key=RIGHT))
        self.says('third', 'hello from the guest')
        self.ask('third', 'get', 'read in-the-clear-for-guests-only end')
        berth_fixture.eventually(DEADLINE_S, lambda: self.condition('machine', 'third', 'Ready').get('status') == 'True',
                                 'the machine is ready')

    def test_4_then_after_a_power_cut_it_waits_for_the_server_which_has_the_key(self):
        behind = self.server.berth('logs', 'third').stdout.count('hello from the guest')
        self.server.kill()
        self.host.cut_power()
        self.host.start()
        self.until('its host has no key any more',
                   lambda: 'its key is not known on this host any more' in self.host.iri('machines').stdout)
        self.assertEqual([], self.host.libvirt.guests())
        self.server.start()
        self.until(f'it is back; {self.get("machine", "third").get("status")}\n{self.host.logs()}',
                   lambda: self.server.berth('logs', 'third', check=False).stdout.count('hello from the guest') > behind)
        self.ask('third', 'get', 'read in-the-clear-for-guests-only end')
        berth_fixture.eventually(DEADLINE_S, lambda: self.condition('machine', 'third', 'Ready').get('status') == 'True',
                                 'the machine is ready')

    def test_5_nothing_is_left(self):
        self.delete('machine', 'third')
        self.delete('volumesnapshot', 'kept')
        self.delete('volume', 'vault', 'late', 'restored')
        berth_fixture.eventually(DEADLINE_S, lambda: not self.host.leftovers(), f'{self.host.leftovers()} are left')

    def disk_files(self):
        return [os.path.join(folder, name) for folder, _, names in os.walk(self.host.path('disks')) for name in names]


if __name__ == '__main__':
    unittest.main(verbosity=2)
