#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server and a host with nothing fake: machines are placed, booted, talked with, changed while they run, broken and
deleted, with volumes that keep what the guests wrote."""

import contextlib
import glob
import json
import os
import re
import signal
import time
import unittest

import berth_fixture
import guest_fixture
import web_socket
from guest_fixture import DEADLINE_S

MI = 1 << 20
EVENTS = '/api/v1/namespaces/default/events'
# Of a single telling: told_test.py shows that most take a second at most.
TOLD_MAX_S = 10

VOLUME = '''
apiVersion: storage.ironcore.dev/v1alpha1
kind: Volume
metadata: {{name: {name}}}
spec:
  volumeClassRef: {{name: plain}}
  resources: {{storage: {size}}}
'''

MACHINE = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {{name: {name}}}
spec:
  machineClassRef: {{name: tiny}}
  {more}
  volumes:
  - {{name: root, device: odx, localDisk: {{sizeLimit: 1Mi, image: demo}}}}
  - {{name: data, device: oda, volumeRef: {{name: data}}}}
'''
CONFIGURATION = '''
apiVersion: v1
kind: Secret
metadata: {name: config}
stringData: {ignition.yaml: "#cloud-config\\nmotd: it is configured\\n"}
'''
SNAPSHOT = '''
apiVersion: storage.ironcore.dev/v1alpha1
kind: VolumeSnapshot
metadata: {{name: {name}}}
spec: {{volumeRef: {{name: data}}}}
'''
# A machine that needs nothing but its host.
ALONE = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {{name: {name}}}
spec:
  machineClassRef: {{name: tiny}}
  volumes:
  - {{name: root, device: odx, localDisk: {{sizeLimit: 1Mi, image: demo}}}}
'''
IGNITION = '''
apiVersion: v1
kind: Secret
metadata: {name: ignition}
stringData: {ignition.yaml: '{"ignition": {"version": "3.4.0"}}'}
'''
SCRATCH = '''\
  - {name: scratch, device: odb, volumeRef: {name: scratch}}
  - {name: flat, device: odc, volumeRef: {name: flat}}
'''
# Volumes that are raw files, for the runtime and for the server.
FLAT = '''
- name: flat
  capabilities: {tps: 100Mi, iops: 5k}
  format: raw
'''
FLAT_CLASS = '''
apiVersion: storage.ironcore.dev/v1alpha1
kind: VolumeClass
metadata: {name: flat}
capabilities: {tps: 100Mi, iops: 5k}
resizePolicy: ExpandOnly
'''
VOLUMES = '/apis/storage.ironcore.dev/v1alpha1/namespaces/default/volumes'
MACHINES = '/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines'


class RealGuests(guest_fixture.RealHostTestCase):
    HOST = {'volume_classes': guest_fixture.VOLUME_CLASSES.rstrip('\n') + FLAT}

    # What the API says

    def get(self, kind, name):
        return json.loads(self.server.kubectl('get', kind, name, '-o', 'json').stdout)

    def apply(self, text):
        self.server.kubectl('apply', '-f', '-', input=text)

    def machine(self, name, more='', extra=''):
        self.apply(MACHINE.format(name=name, more=more) + extra)

    def patch(self, kind, name, spec):
        self.server.kubectl('patch', kind, name, '--type=merge', '-p', json.dumps({'spec': spec}))

    def becomes(self, name, state):
        berth_fixture.eventually(DEADLINE_S, lambda: self.get('machine', name).get('status', {}).get('state') == state,
                                 f'{name} {state}; {self.get("machine", name).get("status")}')

    def delete(self, kind, *names):
        self.server.kubectl('delete', kind, *names, '--timeout=60s', timeout=90)

    def events(self, name):
        return self.server.kubectl('get', 'events', '--field-selector', f'involvedObject.name={name}').stdout

    # What the guest says

    def console(self, name):
        return self.server.berth('logs', name, check=False).stdout

    def says(self, name, text, behind=0):
        berth_fixture.eventually(DEADLINE_S, lambda: text in self.console(name)[behind:],
                                 f'{name} says {text!r}: {self.console(name)[-300:]!r}')

    def ask(self, name, line, answer):
        """Types a line into `berth console` and waits for the answer; gives back what the guest said meanwhile."""
        with guest_fixture.Terminal(self.server, name) as terminal:
            return terminal.ask(line, answer)

    def sees(self, name, text):
        berth_fixture.eventually(DEADLINE_S, lambda: text in self.ask(name, 'disks', 'that is all'), f'{name} sees {text}')

    def test_1_a_guest_boots_and_its_volume_outlives_it(self):
        self.apply(VOLUME.format(name='data', size='8Mi'))
        self.machine('first')
        self.becomes('first', 'Running')
        self.assertEqual(self.get('machine', 'first')['spec']['machinePoolRef'], {'name': 'alpha'})
        facts = self.get('machinepool', 'alpha')['status']['facts']
        self.assertEqual((facts['machine-acceleration'], facts['machine-acceleration-reason']), ('tcg', 'tcg was asked for'))
        self.says('first', 'hello from the guest')
        self.assertEqual(self.server.berth('logs', 'first', '--tail', '1').stdout.strip(), 'hello from the guest')
        self.ask('first', 'put something-to-keep', 'written')
        self.delete('machine', 'first')

        self.machine('second')
        self.says('second', 'hello from the guest')
        self.ask('second', 'get', 'read something-to-keep end')
        seed = self.ask('second', 'seed', 'that is the seed')
        self.assertIn('local-hostname: "second"', seed)

    def test_2_a_disk_comes_grows_and_goes_while_the_guest_runs(self):
        self.apply(FLAT_CLASS)
        self.apply(VOLUME.format(name='scratch', size='4Mi'))
        self.apply(VOLUME.format(name='flat', size='4Mi').replace('plain', 'flat'))
        pids = self.host.libvirt.guests()
        self.machine('second', extra=SCRATCH)
        self.sees('second', f' {4 * MI // 512} scratch')
        self.sees('second', f' {4 * MI // 512} flat')
        self.assertEqual(self.formats(), ['qcow2', 'qcow2', 'raw'])
        berth_fixture.eventually(DEADLINE_S, lambda: {v['name']: v['state'] for v in self.get('machine', 'second')['status'][
            'volumes']} == {
                name: 'Attached' for name in ('root', 'data', 'scratch', 'flat')}, 'all volumes are attached')
        (domain,) = self.host.libvirt.virsh('list', '--name').split()
        # One that it was started with, and one that came later: the host's class has more operations than the server's.
        for target in ('vda', 'vdb'):
            limits = dict(line.split(':') for line in self.host.libvirt.virsh(
                'blkdeviotune', domain, target).replace(' ', '').splitlines() if line)
            self.assertEqual((limits['total_bytes_sec'], limits['total_iops_sec']), (str(100 * MI), '4000'), target)
        for name in ('scratch', 'flat'):
            self.patch('volume', name, {'resources': {'storage': '6Mi'}})
            self.sees('second', f' {6 * MI // 512} {name}')
        self.machine('second')

        def lets_go():
            disks = self.ask('second', 'disks', 'that is all')
            return 'scratch' not in disks and 'flat' not in disks
        berth_fixture.eventually(DEADLINE_S, lets_go, 'the guest lets them go')
        self.delete('volume', 'scratch', 'flat')
        self.assertEqual(self.host.libvirt.guests(), pids)

    def formats(self):
        """Of the volumes that are there."""
        found = glob.glob(self.host.path('disks', 'volumes', '*', 'disk.*'))
        return sorted(os.path.splitext(path)[1].removeprefix('.') for path in found)

    def test_3_D13_a_volume_that_is_not_ready_for_a_while_is_not_torn_from_its_guest(self):
        pids = self.host.libvirt.guests()

        def say(state):
            with self.server.client() as client:
                answer = client.patch(f'{VOLUMES}/data/status', {'status': {'state': state}})
                self.assertEqual(answer.status, 200, answer)
            berth_fixture.eventually(DEADLINE_S, lambda: self.condition('second', 'VolumesReady')['status'] == (
                'True' if state == 'Available' else 'False'), f'the machine hears of it; {self.get("machine", "second")}')
        say('Pending')
        self.assertIn('volume data is not available', self.condition('second', 'VolumesReady')['message'])
        disks = self.ask('second', 'disks', 'that is all')
        self.assertIn(f' {8 * MI // 512} data', disks)
        self.assertEqual(self.get('machine', 'second')['status']['state'], 'Running')
        say('Available')
        self.ask('second', 'get', 'read something-to-keep end')
        self.assertEqual(self.host.libvirt.guests(), pids)
        self.assertEqual(self.console('second').count('hello from the guest'), 1)

    def test_3_a_console_is_for_many_and_who_may(self):
        with guest_fixture.Terminal(self.server, 'second') as one, guest_fixture.Terminal(self.server, 'second') as two:
            two.ask('disks', 'that is all')  # it is there, and hears what comes from now on
            self.assertIn('read something-to-keep end', one.ask('get', 'end'))
            two.expect('read something-to-keep end')
            two.leave()
            one.said = ''
            one.ask('disks', 'that is all')
            one.leave()
        with self.subTest('the subresource exec without a command is the console, for remotecommand clients'):
            path = '/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines/second/exec'
            with self.server.client() as client:
                talk = web_socket.WebSocket(client, path, 'v4.channel.k8s.io')
                self.assertEqual(talk.status, 101)
                talk.send(b'\x00get\n')
                said = b''
                while b'end' not in said:
                    said += talk.receive()[1].removeprefix(b'\x01')
                self.assertIn(b'read something-to-keep end', said)
                talk.close()
        with self.subTest('a command needs somebody inside'):
            refused = self.server.berth('exec', 'second', '--', 'id', check=False)
            self.assertIn('no guest agent answers', refused.stderr)
            self.assertIn('install qemu-guest-agent in the guest and start it', refused.stderr)
            self.assertIn('next: look at its console: berth console second', refused.stderr)
        with self.subTest('a stranger'):
            refused = self.server.berth('console', '--as', 'stranger', 'second', check=False, input='')
            self.assertIn('forbidden', refused.stderr)

    def test_3_a_console_at_a_terminal_outlives_poollet_and_server(self):
        pids = self.host.libvirt.guests()
        with guest_fixture.Terminal(self.server, 'second', '--reconnect', is_tty=True) as terminal:
            terminal.ask('get', 'read something-to-keep end')
            for killed in (self.host.poollet, self.server):
                terminal.said = ''
                killed.kill()
                terminal.expect('waiting for it; Ctrl-] leaves')
                killed.start()

                def answers():
                    terminal.type('get\n')  # what is typed before the console is there goes nowhere
                    terminal.hear()
                    # An answer from before it was lost may still come.
                    return 'read something-to-keep end' in terminal.said.partition('it is there again')[2]
                berth_fixture.eventually(DEADLINE_S, answers, f'the console is there again; {terminal.said!r}')
            terminal.leave()
        self.assertEqual(self.host.libvirt.guests(), pids)

    def test_3_power_goes_off_and_on(self):
        behind = len(self.console('second'))
        self.patch('machine', 'second', {'power': 'Off'})
        self.becomes('second', 'Shutdown')
        self.assertEqual(self.host.libvirt.guests(), [])
        self.patch('machine', 'second', {'power': 'On'})
        self.becomes('second', 'Running')
        self.says('second', 'hello from the guest', behind)

    def libvirt_says(self):
        """{field: number} of the only domain."""
        said = dict(line.strip().split('=') for line in self.host.libvirt.virsh('domstats').splitlines() if '=' in line)
        return {field: int(value) for field, value in said.items() if value.isdigit()}

    def test_3_what_a_guest_uses_is_what_libvirt_says(self):
        before = self.libvirt_says()['cpu.time']
        (instance,) = json.loads(self.host.iri('capacity').stdout)['instances']
        told = int(instance['cpuNanos'])
        self.assertGreater(told, 0)
        self.assertLessEqual(before // 1000, told // 1000)
        self.assertLessEqual(told // 1000, self.libvirt_says()['cpu.time'] // 1000)

        def is_the_same():
            used, said = self.used('second'), self.libvirt_says()
            self.assertGreater(used.get('cpu', 0), 0, 'it comes with the second measurement')
            self.assertLess(used['cpu'], os.cpu_count())
            self.assertGreater(used['disk'], 0)
            self.assertEqual(used['disk'], sum(number for field, number in said.items() if re.fullmatch(
                r'block\.\d+\.physical', field)))
            self.assertGreater(used['memory'], 8 * MI)
            self.assertAlmostEqual(used['memory'], said['balloon.rss'] * 1024, delta=8 * MI)
            return True
        berth_fixture.eventually(DEADLINE_S, is_the_same, 'its host tells all of them')
        self.assertRegex(self.server.berth('top', 'machines', '--no-headers').stdout, r'second +alpha +Running +\d')

    def test_4_a_guest_that_is_killed_is_reported_and_starts_again(self):
        behind = len(self.console('second'))
        (killed,) = self.host.libvirt.guests()
        client = self.server.client()
        before = client.get(EVENTS).json()['metadata']['resourceVersion']
        begin = time.monotonic()
        os.kill(killed, signal.SIGKILL)
        told_s = self.told_after(begin, client.watch(EVENTS, resourceVersion=before, idle_s=DEADLINE_S,
                                                     fieldSelector='involvedObject.name=second'))
        print(f'from the kill of QEMU to its event in the API: {told_s:.3f} s', flush=True)
        self.assertLess(told_s, TOLD_MAX_S)
        self.says('second', 'hello from the guest', behind)
        self.becomes('second', 'Running')
        self.ask('second', 'get', 'read something-to-keep end')

    def told_after(self, begin, events):
        """Seconds until a watch of events brings the one of a crash."""
        with contextlib.closing(events):
            for event in events:
                if 'the guest crashed or was killed' in event['object'].get('message', ''):
                    return time.monotonic() - begin
        self.fail('the watch ended without it')

    def test_5_a_guest_that_shuts_itself_down_stays_off(self):
        self.ask('second', 'off', None)
        self.becomes('second', 'Shutdown')
        self.assertEqual(self.host.libvirt.guests(), [])
        berth_fixture.eventually(DEADLINE_S, lambda: 'the guest shut itself down' in self.events('second'), 'it is told')

    def test_6_a_guest_with_a_configuration_that_always_runs_starts_again(self):
        self.delete('machine', 'second')
        self.apply(CONFIGURATION)
        self.machine('third', more='restartPolicy: Always\n  ignitionRef: {name: config}\n  guestConfig: {hostname: other}')
        self.says('third', 'hello from the guest')
        seed = self.ask('third', 'seed', 'that is the seed')
        for part in ('file meta-data', 'local-hostname: "other"', 'file user-data', '#cloud-config', 'motd: it is configured'):
            self.assertIn(part, seed)
        behind = len(self.console('third'))
        self.ask('third', 'off', None)
        self.says('third', 'hello from the guest', behind)
        self.patch('machine', 'third', {'restartPolicy': 'Never'})
        self.becomes('third', 'Running')
        (killed,) = self.host.libvirt.guests()
        client = self.server.client()
        before = client.get(MACHINES).json()['metadata']['resourceVersion']
        begin = time.monotonic()
        os.kill(killed, signal.SIGKILL)
        with contextlib.closing(client.watch(MACHINES, resourceVersion=before, idle_s=DEADLINE_S,
                                             fieldSelector='metadata.name=third')) as changes:
            status = next(e['object']['status'] for e in changes if e['object']['status'].get('state') == 'Terminated')
        told_s = time.monotonic() - begin
        print(f'from the kill of QEMU to the state of its machine in the API: {told_s:.3f} s', flush=True)
        self.assertLess(told_s, TOLD_MAX_S)
        (ready,) = (c for c in status['conditions'] if c['type'] == 'Ready')
        self.assertEqual((ready['status'], ready['reason'], ready['message']),
                         ('False', 'Terminated', 'the guest crashed or was killed'))
        berth_fixture.eventually(DEADLINE_S, lambda: 'the guest crashed or was killed' in self.events('third'), 'and an event')
        self.assertEqual(self.host.libvirt.guests(), [])

    def snapshot(self, name):
        self.apply(SNAPSHOT.format(name=name))

    def is_taken(self, name):
        berth_fixture.eventually(DEADLINE_S, lambda: self.get('volumesnapshot', name).get('status', {}).get(
            'state') == 'Ready', f'the snapshot {name} is taken; {self.get("volumesnapshot", name)}')

    def test_7_another_guest_reads_what_a_snapshot_of_a_running_one_kept(self):
        self.delete('machine', 'third')
        self.apply(IGNITION)
        self.machine('writer', more='ignitionRef: {name: ignition}')
        self.says('writer', 'hello from the guest')
        self.assertIn('{"ignition": {"version": "3.4.0"}}', self.ask('writer', 'ignition', 'that is it'))
        self.snapshot('kept')
        self.is_taken('kept')
        self.ask('writer', 'put something-newer', 'written')
        # Whoever takes one is killed, wherever it is.
        self.snapshot('newer')
        self.host.volume_runtime.kill()
        self.host.volume_runtime.start()
        self.is_taken('newer')
        self.assertEqual(len(os.listdir(self.host.path('disks', 'snapshots'))), 2)
        self.delete('volumesnapshot', 'newer')
        self.delete('machine', 'writer')
        self.apply(VOLUME.format(name='restored', size='8Mi') + '  dataSource: {volumeSnapshotRef: {name: kept}}\n')
        self.apply(MACHINE.format(name='reader', more='').replace('volumeRef: {name: data}', 'volumeRef: {name: restored}'))
        self.says('reader', 'hello from the guest')
        self.ask('reader', 'get', 'read something-to-keep end')

    def pool_ready(self):
        (found,) = (c for c in self.get('machinepool', 'alpha')['status']['conditions'] if c['type'] == 'Ready')
        return found['status'], found.get('reason'), 'libvirt' in found.get('message', '')

    def test_8_a_host_that_boots_while_libvirtd_hangs_serves_its_volumes(self):
        """It does not know what runs, and makes nothing twice. A snapshot of a disk in use says what it waits for."""
        pids = self.host.libvirt.guests()
        self.assertEqual(len(pids), 1)
        self.host.libvirt.hang()
        try:
            for process in self.host.processes:
                process.kill()
            for process in reversed(self.host.processes):
                process.start()
            self.apply(VOLUME.format(name='early', size='4Mi'))
            self.apply(SNAPSHOT.format(name='late').replace('{name: data}', '{name: restored}'))
            berth_fixture.eventually(DEADLINE_S, lambda: self.get('volume', 'early').get('status', {}).get(
                'state') == 'Available', f'volumes are made\n{self.host.logs()}')
            berth_fixture.eventually(DEADLINE_S, lambda: self.pool_ready() == ('False', 'Runtime', True),
                                     f'it is told; {self.pool_ready()}')
            listed = berth_fixture.run([*self.host.berth, 'iri', 'machines', '--endpoint', f'unix:{self.host.machine_socket}'],
                                       check=False)
            self.assertIn('which machines this host has is not known yet', listed.stderr)
            berth_fixture.eventually(DEADLINE_S, lambda: self.snapshot_waits('late'),
                                     f'it says what it waits for; {self.get("volumesnapshot", "late")}')
            berth_fixture.eventually(DEADLINE_S, lambda: 'says nothing' in self.events('late'), 'and an event')
        finally:
            self.host.libvirt.go_on()
        self.is_taken('late')
        berth_fixture.eventually(DEADLINE_S, lambda: self.pool_ready()[0] == 'True', f'it goes on; {self.pool_ready()}')
        self.becomes('reader', 'Running')
        self.assertEqual(self.host.libvirt.guests(), pids)
        self.ask('reader', 'get', 'read something-to-keep end')
        self.assertTrue(self.host.volume_runtime.runs and self.host.machine_runtime.runs)
        self.delete('volumesnapshot', 'late')
        self.delete('volume', 'early')

    def snapshot_waits(self, name):
        status = self.get('volumesnapshot', name).get('status', {})
        words = [c.get('message', '') for c in status.get('conditions', [])]
        return status.get('state') != 'Ready' and any('says nothing; it is tried again' in each for each in words)

    def test_8_a_libvirtd_that_hangs_is_told_and_stops_nothing_else(self):
        self.host.libvirt.hang()
        try:
            self.apply(VOLUME.format(name='meanwhile', size='4Mi'))
            berth_fixture.eventually(DEADLINE_S, lambda: self.get('volume', 'meanwhile').get('status', {}).get(
                'state') == 'Available', 'volumes are made')
            self.ask('reader', 'get', 'read something-to-keep end')
            berth_fixture.eventually(DEADLINE_S, lambda: self.pool_ready() == ('False', 'Runtime', True),
                                     f'it is told; {self.pool_ready()}')
        finally:
            self.host.libvirt.go_on()
        berth_fixture.eventually(DEADLINE_S, lambda: self.pool_ready()[0] == 'True', f'it goes on; {self.pool_ready()}')
        self.apply(ALONE.format(name='alone'))
        self.says('alone', 'hello from the guest')

    def test_8_after_a_power_cut_guests_come_back_without_the_server(self):
        self.patch('machine', 'alone', {'power': 'Off'})
        self.becomes('alone', 'Shutdown')
        # A power cut is no end of the guest's own.
        self.apply(ALONE.format(name='beside') + '  restartPolicy: Never\n')
        self.says('beside', 'hello from the guest')
        self.apply(ALONE.format(name='told') + '  ignitionRef: {name: config}\n')
        self.says('told', 'hello from the guest')
        behind = {name: len(self.console(name)) for name in ('reader', 'beside', 'alone', 'told')}
        self.server.kill()
        self.host.cut_power()
        self.assertEqual(self.host.libvirt.guests(), [])
        self.host.start()
        berth_fixture.eventually(DEADLINE_S, lambda: len(self.host.libvirt.guests()) == 2,
                                 f'those with power are back\n{self.host.logs()}')
        # One has a secret that was in the host's memory, and waits for who has it.
        self.assertIn('SecretsMissing', self.host.iri('machines').stdout)
        self.server.start()
        for name in ('reader', 'beside', 'told'):
            self.becomes(name, 'Running')
            self.says(name, 'hello from the guest', behind[name])
        seed = self.ask('told', 'seed', 'that is the seed')
        for part in ('file user-data', '#cloud-config', 'motd: it is configured'):
            self.assertIn(part, seed)
        self.assertEqual(self.console('told')[behind['told']:].count('hello from the guest'), 1)
        self.assertEqual(self.condition('told', 'SecretsReady')['status'], 'True')
        self.ask('reader', 'get', 'read something-to-keep end')
        berth_fixture.eventually(DEADLINE_S, lambda: 'the host was switched off or rebooted' in self.events('reader'),
                                 f'it is told; {self.events("reader")}')
        self.assertEqual(len(self.console('alone')), behind['alone'])

    def condition(self, name, of_type):
        (found,) = (c for c in self.get('machine', name)['status']['conditions'] if c['type'] == of_type)
        return found

    def test_8_then_a_guest_waits_for_a_secret_that_is_gone(self):
        """And says which; it goes on when the secret is there."""
        behind = len(self.console('told'))
        self.server.kubectl('replace', '-f', '-', input=CONFIGURATION.replace('ignition.yaml', 'other.yaml'))
        self.host.cut_power()
        self.host.start()

        def waits():
            found = self.condition('told', 'SecretsReady')
            return (found['status'], found['reason'], found['message']) == (
                'False', 'SecretsMissing', 'secret config has no entry ignition.yaml')
        berth_fixture.eventually(DEADLINE_S, waits, f'it says so; {self.get("machine", "told")["status"]}')
        self.becomes('beside', 'Running')
        self.assertNotEqual(self.get('machine', 'told')['status']['state'], 'Running')
        self.assertEqual(self.console('told')[behind:], '')
        self.apply(CONFIGURATION)
        self.says('told', 'hello from the guest', behind)
        self.assertIn('motd: it is configured', self.ask('told', 'seed', 'that is the seed'))

    def test_9_nothing_is_left(self):
        self.delete('machine', 'reader', 'beside', 'alone', 'told')
        self.delete('volumesnapshot', 'kept')
        self.delete('volume', 'restored', 'meanwhile')
        self.delete('volume', 'data')
        try:
            berth_fixture.eventually(DEADLINE_S, lambda: not self.host.leftovers(), 'nothing is left')
        except berth_fixture.Failure as failure:
            raise berth_fixture.Failure(f'{failure}: {self.host.leftovers()}') from None
        self.host.poollet.stop()
        self.host.machine_runtime.stop()
        self.host.volume_runtime.stop()


if __name__ == '__main__':
    unittest.main(verbosity=2)
