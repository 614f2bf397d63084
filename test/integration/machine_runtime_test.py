#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`berth runtime machine` as a real process, on a libvirtd of the test's own, with real guests: Debian's kernel and
busybox, without KVM. Everything that is not root here runs as the user of libvirt's guests, as QEMU does on a host."""

import contextlib
import json
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import unittest

import berth_fixture
import fleet_fixture
import guest_fixture
from guest_fixture import DEADLINE_S

UID_LABEL = 'machinepoollet.ironcore.dev/machine-uid'
VOLUME_UID_LABEL = 'volumepoollet.ironcore.dev/volume-uid'
MI = 1 << 20

CLASSES = '''
classes:
- name: tiny
  capabilities: {cpu: 1, memory: 96Mi}
'''


class RuntimeTest(unittest.TestCase):
    """One libvirtd for all tests: it takes its time to learn what QEMU can do."""

    OWNS_LIBVIRT = True
    # In the home of the test.
    MACHINES, GUESTS, SOCKET = 'machines', 'guests', 'sockets/machine.sock'

    @classmethod
    def make_libvirt(cls):
        """Who runs the guests, and the words that run berth as somebody who may ask for it. Its socket is for that user
        alone."""
        libvirt = guest_fixture.Libvirt(cls.home)
        guest_fixture.give_to_guest_user(cls.home)
        return libvirt, guest_fixture.berth_of_guest_user(cls.home)

    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp(prefix='berth-vm-')
        cls.addClassCleanup(shutil.rmtree, cls.home, ignore_errors=True)
        guest_fixture.make_image(os.path.join(cls.home, 'images', 'demo'))
        with open(os.path.join(cls.home, 'classes.yaml'), 'w', encoding='utf-8') as file:
            file.write(CLASSES)
        cls.libvirt, cls.berth = cls.make_libvirt()
        cls.libvirt.start()
        cls.addClassCleanup(cls.libvirt.end)
        cls.socket = os.path.join(cls.home, cls.SOCKET)
        cls.runtime = fleet_fixture.Process(
            'machine-runtime', cls.home, 'runtime', 'machine', '--socket', cls.socket, '--libvirt', cls.libvirt.uri,
            *(('--libvirt-logs', cls.libvirt_logs()) if cls.OWNS_LIBVIRT else ()),
            '--dir', os.path.join(cls.home, cls.MACHINES), '--run-dir', os.path.join(cls.home, cls.GUESTS), '--secrets-on-disk',
            '--classes', os.path.join(cls.home, 'classes.yaml'), '--images', os.path.join(cls.home, 'images'),
            '--local-disk', '64Mi', '--reserve-memory', '64Mi', '--overcommit-cpu', '4', '--acceleration', 'tcg', '--shutdown-grace', '2s',
            '--qemu', '/usr/bin/qemu-system-x86_64', command=cls.berth)
        cls.addClassCleanup(cls.runtime.kill)
        cls.start()

    @classmethod
    def libvirt_logs(cls):
        return os.path.join(cls.home, guest_fixture.LIBVIRT_LOGS)

    @classmethod
    def start(cls):
        cls.runtime.start()
        berth_fixture.eventually(DEADLINE_S, lambda: cls.iri('version', check=False).returncode == 0,
                                 f'the machine runtime; {cls.runtime.log_tail()}')

    @classmethod
    def iri(cls, *words, check=True, input=None):
        return berth_fixture.run([*cls.berth, 'iri', *words, '--endpoint', f'unix:{cls.socket}'],
                                 check=check, input=input)

    def machine(self, uid):
        machines = json.loads(self.iri('machines', '-o', 'json').stdout).get('machines', [])
        return next((one for one in machines if one['metadata']['labels'][UID_LABEL] == uid), None)

    def create(self, uid, volumes=(), **spec):
        root = {'name': 'root', 'device': 'odx', 'localDisk': {'sizeBytes': str(MI), 'image': {'image': 'demo'}}}
        body = {'kind': 'Machine', 'metadata': {'labels': {UID_LABEL: uid}, 'annotations': {'note': '<&"\u001b'}},
                'spec': {'class': 'tiny', 'volumes': [root, *volumes], **spec}}
        self.iri('create', '-f', '-', input=json.dumps(body))
        return self.machine(uid)['metadata']['id']

    def becomes(self, uid, state):
        def look():
            found = self.machine(uid)
            return found is not None and found['status'].get('state', 'MACHINE_PENDING') == state
        berth_fixture.eventually(DEADLINE_S, look, f'{uid} {state}; {self.runtime.log_tail()}')

    def console(self, machine_id):
        try:
            path = os.path.join(self.home, self.MACHINES, machine_id, 'console.log')
            return guest_fixture.read(path).decode(errors='replace')
        except FileNotFoundError:
            return ''

    def says(self, machine_id, text, behind=0):
        berth_fixture.eventually(DEADLINE_S, lambda: text in self.console(machine_id)[behind:],
                                 f'the console of {machine_id} says {text!r}: {self.console(machine_id)[-300:]!r}')

    def ask(self, machine_id, line, answer):
        """Types a line and waits for the answer; gives back what was said since."""
        behind = len(self.console(machine_id))
        with guest_fixture.typed(os.path.join(self.home, self.GUESTS, machine_id, 'console.sock'), line):
            self.says(machine_id, answer, behind)
        return self.console(machine_id)[behind:]

    def delete(self, uid):
        machine_id = self.machine(uid)['metadata']['id']
        self.iri('delete', machine_id)
        berth_fixture.eventually(DEADLINE_S, lambda: self.machine(uid) is None, f'{uid} is gone')
        for folder in (self.MACHINES, self.GUESTS):
            self.assertFalse(os.path.exists(os.path.join(self.home, folder, machine_id)))
        self.assertFalse(os.path.exists(os.path.join(self.libvirt_logs(), f'berth-{machine_id}.log')))
        berth_fixture.eventually(DEADLINE_S, lambda: not self.libvirt.guests(), 'no guest is left')

    def data_volume(self, name='data.qcow2'):
        path = os.path.join(self.home, name)
        if not os.path.exists(path):
            as_berth = self.berth[:-1]
            subprocess.run([*as_berth, 'qemu-img', 'create', '-q', '-f', 'qcow2', path, '8M'], check=True, timeout=60)
        return {'name': 'data', 'device': 'oda',
                'connection': {'driver': 'file', 'handle': 'v-1', 'effectiveStorageBytes': str(8 * MI),
                               'attributes': {'path': path, 'format': 'qcow2', 'tps': str(100 * MI), 'iops': '5000'}}}


class AccelerationTest(RuntimeTest):
    def probed(self, choice, script):
        """Starts it with a program that stands for QEMU and its probe guest."""
        program = os.path.join(self.home, 'probe-qemu')
        with open(program, 'w', encoding='utf-8') as file:
            file.write(f'#!/bin/sh\n{script}\n')
        os.chmod(program, 0o755)
        self.runtime.kill()
        before = self.runtime.replace(acceleration=choice, qemu=program)
        self.addCleanup(self.runtime.replace, **before)

    def facts(self):
        self.start()
        facts = json.loads(self.iri('capacity', '-o', 'json').stdout)['facts']
        return facts['machine-acceleration'], facts['machine-acceleration-reason']

    def test_auto_is_kvm_only_if_a_probe_guest_runs_with_it(self):
        self.probed('auto', 'case "$*" in *"-accel kvm"*) exit 33;; esac; exit 1')
        self.assertEqual(self.facts(), ('kvm', 'a probe guest ran'))
        no_kvm = 'Could not access KVM kernel module: No such file or directory'
        self.probed('auto', f'echo "{no_kvm}" >&2; exit 1')
        self.assertEqual(self.facts(), ('tcg', f'a probe guest does not run: {no_kvm}'))
        # Who asked for it gets nothing else.
        self.probed('kvm', f'echo "{no_kvm}" >&2; exit 1')
        self.runtime.start()
        self.assertNotEqual(self.runtime.process.wait(DEADLINE_S), 0)
        self.assertIn(f'--acceleration kvm: a probe guest does not run: {no_kvm}', self.runtime.log_tail())


class MachineRuntimeTest(RuntimeTest):
    def test_a_guest_keeps_what_it_wrote_gets_a_disk_and_survives_its_runtime(self):
        first = self.create('u-1', [self.data_volume()])
        self.becomes('u-1', 'MACHINE_RUNNING')
        self.says(first, 'hello from the guest')
        self.ask(first, 'put something-to-keep', 'written')

        # A disk comes and goes while it runs.
        self.iri('attach', first, '--volume', 'scratch', '--device', 'odb', '--size', '4Mi')
        berth_fixture.eventually(
            DEADLINE_S, lambda: f' {4 * MI // 512} scratch' in self.ask(first, 'disks', 'that is all'), 'the guest has it')
        self.iri('detach', first, '--volume', 'scratch')
        berth_fixture.eventually(
            DEADLINE_S, lambda: 'scratch' not in self.ask(first, 'disks', 'that is all'), 'the guest lets it go')

        # The runtime dies, and finds everything again; the guest does not notice.
        before = self.machine('u-1')
        guests = self.libvirt.guests()
        self.assertEqual(len(guests), 1)
        self.assertTrue(os.path.exists(os.path.join(self.libvirt_logs(), f'berth-{first}.log')))
        self.runtime.kill()
        self.start()
        self.assertEqual(self.machine('u-1'), before)
        self.assertEqual(self.libvirt.guests(), guests)
        capacity = json.loads(self.iri('capacity', '-o', 'json').stdout)
        self.assertEqual(capacity['facts']['machine-acceleration'], 'tcg')
        self.delete('u-1')

        # Another machine on the same volume reads it.
        second = self.create('u-2', [self.data_volume()])
        self.says(second, 'hello from the guest')
        self.ask(second, 'get', 'read something-to-keep end')

        # It shuts itself down: it stays off until it is switched on.
        self.ask(second, 'off', '')
        self.becomes('u-2', 'MACHINE_STOPPED')
        behind = len(self.console(second))
        self.iri('power', second, 'on')
        self.becomes('u-2', 'MACHINE_RUNNING')

        # It is killed: that is said, and it is started again when somebody asks for it.
        self.says(second, 'hello from the guest', behind)
        os.kill(self.libvirt.guests()[0], signal.SIGKILL)
        self.becomes('u-2', 'MACHINE_TERMINATED')
        self.assertEqual(self.machine('u-2')['status']['machineConditions'][0]['reason'], 'Crashed')
        self.iri('power', second, 'on')
        self.becomes('u-2', 'MACHINE_RUNNING')
        self.iri('power', second, 'off')
        self.becomes('u-2', 'MACHINE_STOPPED')
        self.assertEqual(self.libvirt.guests(), [])
        self.delete('u-2')

    def test_devices_that_differ_from_the_record_are_put_right(self):
        first = self.create('u-1')
        self.says(first, 'hello from the guest')
        self.iri('attach', first, '--volume', 'scratch', '--device', 'odb', '--size', '4Mi')
        berth_fixture.eventually(
            DEADLINE_S, lambda: f' {4 * MI // 512} scratch' in self.ask(first, 'disks', 'that is all'), 'the guest has it')

        # The guest loses one, and gets one that the runtime might have attached and one of a person's own.
        domain = f'berth-{first}'
        self.runtime.kill()
        self.libvirt.virsh('detach-disk', domain, 'vdb', '--live')
        berth_fixture.eventually(DEADLINE_S, lambda: 'vdb' not in self.targets(domain), 'the guest lets it go')
        self.virsh_attach(domain, 'vdc', '<serial>late</serial>')
        self.virsh_attach(domain, 'vdd', '')
        self.start()
        berth_fixture.eventually(DEADLINE_S, lambda: self.targets(domain) == {'vdb', 'vdd', 'vdx', 'vdz'},
                                 f'it has its own again: {self.targets(domain)}; {self.runtime.log_tail()}')
        berth_fixture.eventually(
            DEADLINE_S, lambda: f' {4 * MI // 512} scratch' in self.ask(first, 'disks', 'that is all'), 'the guest has it')
        volumes = self.machine('u-1')['status']['volumes']
        self.assertEqual(['VOLUME_ATTACHED'] * 2, [volume.get('state') for volume in volumes], volumes)
        self.delete('u-1')

    def targets(self, domain):
        return set(re.findall(r"<target dev='(vd.)'", self.libvirt.virsh('dumpxml', domain)))

    def virsh_attach(self, domain, target, more):
        path = os.path.join(self.home, f'{target}.raw')
        subprocess.run([*self.berth[:-1], 'qemu-img', 'create', '-q', '-f', 'raw', path, '1M'], check=True, timeout=60)
        device = os.path.join(self.home, f'{target}.xml')
        with open(device, 'w', encoding='utf-8') as file:
            file.write(f"<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='{path}'/>"
                       f"<target dev='{target}' bus='virtio'/>{more}</disk>")
        self.libvirt.virsh('attach-device', domain, device, '--live')

    @unittest.skipUnless(os.geteuid() == 0, 'mounting a small disk needs root')
    def test_a_guest_whose_disk_is_full_goes_on_when_there_is_room(self):
        folder = os.path.join(self.home, 'small')
        os.makedirs(folder)
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=2m,mode=777', 'berth-test', folder], check=True)
        self.addCleanup(subprocess.run, ['umount', '-l', folder], check=False)
        volume = self.data_volume('small/data.qcow2')
        first = self.create('u-1', [volume])
        self.says(first, 'hello from the guest')
        filler = os.path.join(folder, 'filler')
        with open(filler, 'wb', buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        with guest_fixture.typed(os.path.join(self.home, self.GUESTS, first, 'console.sock'), 'put something-to-keep'):
            self.becomes('u-1', 'MACHINE_SUSPENDED')
            conditions = {each['type']: each for each in self.machine('u-1')['status']['machineConditions']}
            condition = conditions['Running']
            self.assertEqual(('False', 'Paused'), (condition['status'], condition['reason']))
            self.assertIn('its disk cannot be written; it goes on when there is room again', condition['message'])
            os.unlink(filler)
            self.says(first, 'written')
        self.becomes('u-1', 'MACHINE_RUNNING')
        self.ask(first, 'get', 'read something-to-keep end')
        self.delete('u-1')

    def test_D7_what_is_off_never_boots_and_nonsense_is_refused_by_name(self):
        off = self.create('u-off', power='POWER_OFF')
        self.becomes('u-off', 'MACHINE_STOPPED')
        self.assertEqual((self.libvirt.guests(), self.console(off)), ([], ''))
        self.delete('u-off')
        for change, says in [({'class': 'huge'}, 'machine class "huge" is not offered'),
                             ({'networkInterfaces': [{'name': 'primary', 'networkId': 'n'}]},
                              'no networks are configured on this host')]:
            body = {'kind': 'Machine', 'metadata': {'labels': {UID_LABEL: 'u-bad'}}, 'spec': {'class': 'tiny', **change}}
            answer = self.iri('create', '-f', '-', check=False, input=json.dumps(body))
            self.assertNotEqual(answer.returncode, 0)
            self.assertIn(says, answer.stderr)
        self.assertIsNone(self.machine('u-bad'))

    def test_usage_errors_say_what_to_do(self):
        for words, says in [((), 'name a folder with --dir'),
                            (('--dir', self.home), 'name a file with --classes'),
                            (('--dir', self.home, '--classes', '/no/such/file'), '/no/such/file')]:
            answer = berth_fixture.run([berth_fixture.binary(), 'runtime', 'machine', '--socket',
                                        os.path.join(self.home, 's.sock'), *words], check=False)
            self.assertNotEqual(answer.returncode, 0)
            self.assertIn(says, answer.stderr)


@unittest.skipUnless(os.geteuid() == 0, 'a libvirtd of a system is root')
class SystemLibvirtTest(RuntimeTest):
    """qemu:///system, which is what the runtime takes if not told, on a fresh host: of the folders that the guide names
    there are only /run and /."""

    OWNS_LIBVIRT = False
    MACHINES, GUESTS, SOCKET = 'var/lib/berth/machines', 'run/berth/machines', 'run/berth/machine.sock'
    DISKS, VOLUME_SOCKET = 'var/lib/berth/disks', 'run/berth/volume.sock'

    @classmethod
    def make_libvirt(cls):
        libvirt = guest_fixture.SystemLibvirt(cls.home)
        run = os.path.join(cls.home, 'run')
        os.mkdir(run)
        os.chmod(run, 0o755)
        classes = os.path.join(cls.home, 'volume-classes.yaml')
        with open(classes, 'w', encoding='utf-8') as file:
            file.write(guest_fixture.VOLUME_CLASSES)
        cls.volumes = fleet_fixture.Process(
            'volume-runtime', cls.home, 'runtime', 'volume', '--socket', os.path.join(cls.home, cls.VOLUME_SOCKET), '--dir',
            os.path.join(cls.home, cls.DISKS), '--classes', classes, '--capacity', '64Mi')
        cls.addClassCleanup(cls.volumes.kill)
        cls.volumes.start()
        berth_fixture.eventually(DEADLINE_S, lambda: cls.volume_iri('version', check=False).returncode == 0,
                                 f'the volume runtime; {cls.volumes.log_tail()}')
        return libvirt, [berth_fixture.binary()]

    @classmethod
    def volume_iri(cls, *words, check=True, input=None):
        endpoint = f'unix:{os.path.join(cls.home, cls.VOLUME_SOCKET)}'
        return berth_fixture.run([berth_fixture.binary(), 'iri', *words, '--endpoint', endpoint], check=check, input=input)

    def data_volume(self, name='data'):
        """The one of that name, of a real volume runtime."""
        body = {'kind': 'Volume', 'metadata': {'labels': {VOLUME_UID_LABEL: name}},
                'spec': {'class': 'plain', 'resources': {'storageBytes': str(8 * MI)}}}
        self.volume_iri('create', '-f', '-', input=json.dumps(body))

        def access():
            (volume,) = json.loads(self.volume_iri('volumes', '-o', 'json').stdout)['volumes']
            status = volume.get('status', {})
            return status['access'] if status.get('state') == 'VOLUME_AVAILABLE' else None
        found = berth_fixture.eventually(DEADLINE_S, access, f'the volume; {self.volumes.log_tail()}')
        return {'name': 'data', 'device': 'oda',
                'connection': {'driver': found['driver'], 'handle': found['handle'],
                               'effectiveStorageBytes': str(8 * MI), 'attributes': found['attributes']}}

    def test_a_guest_of_the_systems_libvirtd_is_not_root_and_survives_its_runtime(self):
        first = self.create('u-1', [self.data_volume()])
        self.becomes('u-1', 'MACHINE_RUNNING')
        self.says(first, 'hello from the guest')
        for folder in ('var', 'var/lib', 'var/lib/berth', 'run/berth'):
            self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.home, folder)).st_mode), 0o711, folder)
        (guest,) = self.libvirt.guests()
        self.assertEqual(pwd.getpwuid(os.stat(f'/proc/{guest}').st_uid).pw_name, guest_fixture.GUEST_USER)
        self.ask(first, 'put something-to-keep', 'written')
        self.iri('attach', first, '--volume', 'scratch', '--device', 'odb', '--size', '4Mi')
        berth_fixture.eventually(
            DEADLINE_S, lambda: f' {4 * MI // 512} scratch' in self.ask(first, 'disks', 'that is all'), 'the guest has it')
        before = self.machine('u-1')
        self.runtime.kill()
        self.libvirt.kill()
        self.libvirt.start()
        self.start()
        self.assertEqual((self.machine('u-1'), self.libvirt.guests()), (before, [guest]))
        self.delete('u-1')

        second = self.create('u-2', [self.data_volume()])
        self.says(second, 'hello from the guest')
        self.ask(second, 'get', 'read something-to-keep end')
        self.delete('u-2')


class HungLibvirtTest(unittest.TestCase):
    def test_a_runtime_whose_libvirt_says_nothing_says_so_lists_nothing_and_ends_when_told(self):
        """Whoever waits for it serves everything else meanwhile. A list without what runs would have it made twice."""
        home = tempfile.mkdtemp(prefix='berth-vm-')
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        os.chmod(home, 0o711)  # the guests' user comes through
        with open(os.path.join(home, 'classes.yaml'), 'w', encoding='utf-8') as file:
            file.write(CLASSES)
        # As a libvirtd that was stopped: the kernel takes connections for it.
        silent = socket.socket(socket.AF_UNIX)
        self.addCleanup(silent.close)
        silent.bind(os.path.join(home, 'libvirt-sock'))
        silent.listen(8)
        endpoint = os.path.join(home, 'machine.sock')
        runtime = fleet_fixture.Process(
            'machine-runtime', home, 'runtime', 'machine', '--socket', endpoint,
            '--libvirt', f'qemu+unix:///session?socket={home}/libvirt-sock', '--dir', os.path.join(home, 'machines'),
            '--run-dir', os.path.join(home, 'guests'), '--secrets-on-disk', '--classes', os.path.join(home, 'classes.yaml'),
            '--networks', 'none', '--acceleration', 'tcg')
        self.addCleanup(runtime.kill)
        runtime.start()

        def iri(*words, **options):
            return berth_fixture.run([berth_fixture.binary(), 'iri', *words, '--endpoint', f'unix:{endpoint}'], check=False,
                                     **options)
        berth_fixture.eventually(DEADLINE_S, lambda: iri('version').returncode == 0, 'the machine runtime serves')
        capacity = json.loads(iri('capacity', '-o', 'json').stdout)
        self.assertIn('is not connected: it took the connection and says nothing', capacity['trouble'])
        self.assertEqual(capacity['facts']['machine-acceleration'], 'tcg')
        body = {'kind': 'Machine', 'metadata': {'labels': {UID_LABEL: 'u-1'}}, 'spec': {'class': 'tiny'}}
        for refused in (iri('machines'), iri('create', '-f', '-', input=json.dumps(body))):
            self.assertNotEqual(refused.returncode, 0, refused)
            self.assertIn('which machines this host has is not known yet', refused.stderr)
        runtime.stop()


if __name__ == '__main__':
    unittest.main(verbosity=2)
