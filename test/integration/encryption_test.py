#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Encrypted volumes under real guests: what a guest wrote is there for the next one who has the key, a wrong key opens
nothing and is said, and neither key nor content is readable in what the host keeps."""

import base64
import json
import os
import unittest

import berth_fixture
import guest_fixture
from guest_fixture import DEADLINE_S

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
metadata: {name: vault}
spec:
  volumeClassRef: {name: plain}
  resources: {storage: 4Mi}
  encryption: {secretRef: {name: crypt}}
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

    def delete(self, kind, name):
        self.server.kubectl('delete', kind, name, '--timeout=100s', timeout=120)

    def test_1_a_volume_waits_for_its_key(self):
        self.apply(VOLUME)
        self.until('the volume says what is missing',
                   lambda: 'crypt' in self.condition('volume', 'vault', 'PrerequisitesMet').get('message', ''))
        self.assertEqual([], [path for path in self.disk_files() if 'disk' in os.path.basename(path)])
        self.apply(SECRET.format(key=RIGHT))
        self.until('the volume is there', lambda: self.get('volume', 'vault').get('status', {}).get('state') == 'Available')

    def test_2_a_guest_reads_what_another_wrote(self):
        self.apply(MACHINE.format(name='first'))
        self.says('first', 'hello from the guest')
        self.ask('first', 'put in-the-clear-for-guests-only', 'written')
        self.delete('machine', 'first')
        self.apply(MACHINE.format(name='second'))
        self.says('second', 'hello from the guest')
        self.ask('second', 'get', 'read in-the-clear-for-guests-only end')
        self.delete('machine', 'second')

    def test_3_P9_neither_key_nor_content_is_in_what_the_host_keeps(self):
        paths = [os.path.join(folder, name) for folder, _, names in os.walk(self.host.home) for name in names
                 if name != 'berth']
        self.assertTrue(any(path.endswith('.luks') for path in paths), paths)
        encoded = base64.b64encode(RIGHT.encode())
        for path in paths:
            if not os.path.isfile(path) or os.path.islink(path):
                continue
            content = guest_fixture.read(path)
            for word in (RIGHT.encode(), encoded, b'in-the-clear-for-guests-only'):
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

    def test_5_nothing_is_left(self):
        self.delete('machine', 'third')
        self.delete('volume', 'vault')
        berth_fixture.eventually(DEADLINE_S, lambda: not self.host.leftovers(), f'{self.host.leftovers()} are left')

    def disk_files(self):
        return [os.path.join(folder, name) for folder, _, names in os.walk(self.host.path('disks')) for name in names]


if __name__ == '__main__':
    unittest.main(verbosity=2)
