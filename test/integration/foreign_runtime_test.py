#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A host whose runtime knows the upstream interface alone: no watch, no capacity, a create that makes another one each time.

Its poollet asks again and again instead, and counts what fits by the shares that classes have of the host (protocol 5.6, 6.4).
"""

import json
import unittest

import berth_fixture
import fleet_fixture

CLASSES = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: MachineClass
metadata: {name: small}
capabilities: {cpu: 1, memory: 1Gi}
---
apiVersion: compute.ironcore.dev/v1alpha1
kind: MachineClass
metadata: {name: large}
capabilities: {cpu: 4, memory: 4Gi}
'''

MACHINE = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {{name: {name}, namespace: default}}
spec:
  machineClassRef: {{name: {size}}}
'''


class ForeignRuntime(berth_fixture.ServerTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.kubectl('apply', '-f', '-', input=CLASSES)
        # Eight small ones, or two large ones.
        cls.host = fleet_fixture.Host(cls.server, 'outer', cpu=8, memory='8Gi',
                                      runtime=('--foreign', '--classes', 'small:1:1Gi', '--classes', 'large:4:4Gi'))
        cls.addClassCleanup(cls.host.close)
        cls.host.start()
        berth_fixture.eventually(60, cls.host.is_ready, 'the pool is ready')

    def more_logs(self):
        return [self.host.logs()]

    def create(self, name, size='small'):
        self.server.kubectl('apply', '-f', '-', input=MACHINE.format(name=name, size=size))

    def get(self, name):
        return json.loads(self.server.kubectl('get', 'machine', name, '-o', 'json').stdout)

    def await_running(self, *names):
        for name in names:
            berth_fixture.eventually(60, lambda name=name: self.get(name).get('status', {}).get('state') == 'Running',
                                     f'{name} runs')

    def scheduled(self, name):
        conditions = self.get(name).get('status', {}).get('conditions', [])
        return next((c for c in conditions if c['type'] == 'Scheduled'), {})

    def delete(self, *names):
        self.server.kubectl('delete', 'machine', *names, '--timeout=60s', timeout=90)

    def test_1_r5_6_classes_share_the_host_by_their_fractions(self):
        smalls = [f'small-{i}' for i in range(4)]
        self.create('large', 'large')
        for name in smalls:
            self.create(name)
        self.await_running('large', *smalls)
        self.create('one-more')
        berth_fixture.eventually(30, lambda: self.scheduled('one-more').get('status') == 'False', 'the host is full')
        self.assertIn('room for one more of class small', self.scheduled('one-more')['message'])
        self.assertEqual(len(self.host.guests()), 5)
        self.delete('large')
        self.await_running('one-more')
        self.delete('one-more', *smalls)
        berth_fixture.eventually(30, lambda: not self.host.guests(), 'the runtime has none left')

    def test_2_r6_4_killed_processes_make_no_second_copy(self):
        names = [f'survivor-{i}' for i in range(4)]
        for name in names[:2]:
            self.create(name)
        self.await_running(*names[:2])
        # In the middle of two more.
        for name in names[2:]:
            self.create(name)
        self.host.poollet.kill()
        self.host.runtime.kill()
        self.host.runtime.start()
        self.host.poollet.start()
        self.await_running(*names)
        uids = sorted(self.get(name)['metadata']['uid'] for name in names)
        self.assertEqual(sorted(self.host.machine_uids()), uids)
        self.delete(*names)
        berth_fixture.eventually(30, lambda: not self.host.guests(), 'the runtime has none left')

    def test_3_what_ends_by_itself_is_noticed_without_a_watch(self):
        self.create('gone')
        self.await_running('gone')
        (runtime_id, _), = self.host.guests()
        berth_fixture.run([berth_fixture.binary(), 'iri', 'delete', runtime_id, '--endpoint', f'unix:{self.host.socket}'])
        self.await_new_copy('gone', runtime_id)
        self.delete('gone')

    def await_new_copy(self, name, former):
        def is_there():
            guests = self.host.guests()
            return len(guests) == 1 and guests[0][0] != former
        berth_fixture.eventually(60, is_there, f'{name} is made anew')
        self.await_running(name)


if __name__ == '__main__':
    unittest.main(verbosity=2)
