#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Machines that may be moved live by leases: guests are real processes, and those who watch over them are killed."""

import json
import os
import re
import signal
import unittest

import berth_fixture
import fleet_fixture

MANIFEST = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: MachineClass
metadata: {name: small}
capabilities: {cpu: "1", memory: 1Gi}
---
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {name: keeps, namespace: default}
spec: {machineClassRef: {name: small}}
---
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {name: moves, namespace: default}
spec: {machineClassRef: {name: small}, placement: {onPoolLoss: Move}}
'''


def alive(pid):
    try:
        with open(f'/proc/{pid}/stat') as file:
            return file.read().rsplit(')', 1)[1].split()[0] not in ('Z', 'X')
    except FileNotFoundError:
        return False


class Fencer(berth_fixture.ServerTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.host = fleet_fixture.Host(cls.server, 'alpha', runtime=('--guests', 'processes'))
        cls.addClassCleanup(cls.host.close)
        cls.addClassCleanup(cls.kill_all)
        cls.host.start()

    @classmethod
    def kill_all(cls):
        for pid in [*cls.guests().values(), cls.fencer_pid()]:
            if pid:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def more_logs(self):
        return [self.host.logs()]

    @classmethod
    def fencer_pid(cls):
        """The process that holds the lock of this host's fencer."""
        folder = os.path.join(cls.host.home, 'data', 'fencer')
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                with open(f'/proc/{pid}/cmdline', 'rb') as file:
                    words = file.read().split(b'\0')
            except OSError:
                continue
            if words[1:3] == [b'fencer', b'--folder'] and words[3].decode() == folder and alive(pid):
                return int(pid)
        return None

    @classmethod
    def guests(cls):
        """{machine name: pid}, from the runtime's own journal."""
        found = {}
        try:
            with open(os.path.join(cls.host.home, 'state.json')) as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            return found
        for line in lines:
            name = re.search(r'machinepoollet.ironcore.dev/machine-name":"([^"]+)"', line)
            if name and json.loads(line).get('what') == 'Machine':
                found[name.group(1)] = json.loads(line).get('pid', 0)
        return found

    def state_of(self, machine):
        found = self.server.kubectl('get', 'machine', machine, '-o', 'json').stdout
        return json.loads(found).get('status', {}).get('state')

    def both_run(self):
        return all(self.state_of(name) == 'Running' and alive(self.guests().get(name, 0)) for name in ('keeps', 'moves'))

    def test_r3_3_who_watches_is_killed(self):
        self.server.kubectl('apply', '-f', '-', input=MANIFEST)
        berth_fixture.eventually(60, self.both_run, 'both machines run')
        conditions = json.loads(self.server.kubectl('get', 'machinepool', 'alpha', '-o', 'json').stdout)['status']['conditions']
        self.assertTrue(any(c['type'] == 'FenceReady' and c['status'] == 'True' for c in conditions), conditions)
        pids = self.guests()

        with self.subTest('a killed fencer is there again, and nobody died'):
            fencer = self.fencer_pid()
            self.assertIsNotNone(fencer)
            os.kill(fencer, signal.SIGKILL)
            berth_fixture.eventually(10, lambda: self.fencer_pid() not in (None, fencer), 'a new fencer')
            self.assertTrue(alive(pids['moves']))

        with self.subTest('a killed poollet: what may move dies at its deadline, what is kept lives'):
            self.host.poollet.kill()
            self.assertTrue(alive(pids['moves']), 'not before its deadline')
            berth_fixture.eventually(20, lambda: not alive(pids['moves']), 'the deadline of moves')
            self.assertTrue(alive(pids['keeps']))
            with open(os.path.join(self.host.home, 'data', 'fencer', 'fenced.log')) as file:
                self.assertRegex(file.read(), r'^fenced \S+ \d+ \d+\n')

        with self.subTest('back, and confirmed: it runs again'):
            self.host.poollet.start()
            berth_fixture.eventually(60, lambda: alive(self.guests().get('moves', 0)) and self.both_run(), 'both run again')
            self.assertEqual(self.guests()['keeps'], pids['keeps'])


if __name__ == '__main__':
    unittest.main()
