#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A machine that may be moved, on two hosts with real guests and a disk that both reach: its host's poollet dies for good,
the fencer ends the guest, and only then it starts on the other host."""

import json
import threading
import unittest

import berth_fixture
import guest_fixture
from guest_fixture import DEADLINE_S

MANIFEST = '''
apiVersion: storage.ironcore.dev/v1alpha1
kind: Volume
metadata: {name: root}
spec:
  volumeClassRef: {name: plain}
  resources: {storage: 1Mi}
  dataSource: {osImage: {image: tiny.raw}}
---
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {name: mover}
spec:
  machineClassRef: {name: tiny}
  placement: {onPoolLoss: Move}
  volumes:
  - {name: root, device: oda, volumeRef: {name: root}}
'''


class Move(berth_fixture.ServerTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.kubectl('apply', '-f', '-', input=guest_fixture.API_CLASSES)
        cls.hosts = {}
        for name, has in (('alpha', 'machines'), ('beta', 'machines'), ('gamma', 'volumes')):
            cls.hosts[name] = guest_fixture.RealHost(cls.server, name, has=(has,))
            cls.addClassCleanup(cls.hosts[name].close)
            cls.hosts[name].start()
        for name, host in cls.hosts.items():
            berth_fixture.eventually(DEADLINE_S, host.is_ready, f'{name} is ready\n{host.logs()}')

    def more_logs(self):
        return [host.logs() for host in self.hosts.values()]

    def machine(self):
        return json.loads(self.server.kubectl('get', 'machine', 'mover', '-o', 'json').stdout)

    def runs_on(self, pool):
        machine = self.machine()
        return (machine.get('status', {}).get('state') == 'Running'
                and machine['spec'].get('machinePoolRef', {}).get('name') == pool)

    def says(self, text):
        berth_fixture.eventually(DEADLINE_S, lambda: text in self.server.berth('logs', 'mover', check=False).stdout,
                                 f'the guest says {text!r}')

    def test_r3_3_a_guest_is_moved_only_when_it_is_dead(self):
        with self.subTest('a pool on local disks is for its host, until somebody knows better'):
            pool = json.loads(self.server.kubectl('get', 'volumepool', 'gamma-disks', '-o', 'json').stdout)
            self.assertEqual(pool['spec']['reach'], 'Host')
            self.server.kubectl('patch', 'volumepool', 'gamma-disks', '--type=merge', '-p', '{"spec":{"reach":"Any"}}')
        self.server.kubectl('apply', '-f', '-', input=MANIFEST)
        berth_fixture.eventually(DEADLINE_S, lambda: self.runs_on('alpha') or self.runs_on('beta'), 'it runs')
        self.says('boot 1 of this disk')
        first, second = ('alpha', 'beta') if self.runs_on('alpha') else ('beta', 'alpha')
        first, second = self.hosts[first], self.hosts[second]
        self.assertEqual((len(first.libvirt.guests()), len(second.libvirt.guests())), (1, 0))

        both, stop = [], threading.Event()

        def watch():
            while not stop.wait(0.02):
                alive = [*first.libvirt.guests(), *second.libvirt.guests()]
                if len(alive) > 1:
                    both.append(alive)
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            first.poollet.kill()
            berth_fixture.eventually(DEADLINE_S, lambda: not first.libvirt.guests(), 'the fencer ends the guest')
            with open(first.path('data', 'fencer', 'fenced.log'), encoding='utf-8') as file:
                self.assertRegex(file.read(), r'^fenced \S+ \d+ \d+\n')
            berth_fixture.eventually(DEADLINE_S, lambda: self.runs_on(second.name), 'it runs on the other host')
            self.says('boot 2 of this disk')
        finally:
            stop.set()
            watcher.join()
        self.assertEqual(both, [])

        with self.subTest('the first host comes back and gives up what it had'):
            first.poollet.start()
            berth_fixture.eventually(DEADLINE_S, lambda: not first.domains(), 'its domain goes')
            self.assertEqual(len(second.libvirt.guests()), 1)
        self.server.kubectl('delete', 'machine', 'mover', '--timeout=60s', timeout=90)
        self.server.kubectl('delete', 'volume', 'root', '--timeout=60s', timeout=90)
        for host in self.hosts.values():
            berth_fixture.eventually(DEADLINE_S, lambda host=host: not host.leftovers(), f'nothing is left on {host.name}')


if __name__ == '__main__':
    unittest.main(verbosity=2)
