#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`berth runtime machine` as a real process, on a libvirtd of the test's own, with real guests: Debian's kernel and
busybox, without KVM. Everything that is not root here runs as the user of libvirt's guests, as QEMU does on a host."""

import glob
import json
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import unittest

import berth_fixture
import fleet_fixture

UID_LABEL = 'machinepoollet.ironcore.dev/machine-uid'
MI = 1 << 20
GUEST_USER = 'libvirt-qemu'
DEADLINE_S = 120  # nothing is fast without KVM

CLASSES = '''
classes:
- name: tiny
  capabilities: {cpu: 1, memory: 96Mi}
'''

INIT = '''#!/bin/busybox sh
b=/bin/busybox
$b mount -t devtmpfs dev /dev; $b mount -t proc proc /proc; $b mount -t sysfs sys /sys
for m in virtio virtio_ring virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk; do $b insmod /$m.ko; done
$b stty -F /dev/ttyS0 -echo
echo hello from the guest
while read word rest; do case $word in
off) $b poweroff -f;;
put) echo $rest | $b dd of=/dev/vda conv=fsync 2>/dev/null; echo written;;
get) echo read $($b head -n 1 /dev/vda) end;;
disks) for d in /sys/block/vd*; do [ -e $d ] && echo disk ${d##*/} $($b cat $d/size) $($b cat $d/serial); done
echo that is all;;
esac; done </dev/ttyS0
'''


class Archive:
    """What a kernel unpacks into its memory: cpio's format newc."""

    def __init__(self):
        self.parts, self.count = [], 0

    def add(self, name, mode, content=b''):
        self.count += 1
        fields = [self.count, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0]
        head = b'070701' + b''.join(b'%08X' % field for field in fields) + name.encode() + b'\0'
        for part in (head, content):
            self.parts.append(part + b'\0' * (-len(part) % 4))

    def bytes(self):
        self.add('TRAILER!!!', 0)
        return b''.join(self.parts)


def read(path):
    with open(path, 'rb') as file:
        return file.read()


def make_image(folder):
    """A kernel and a memory disk, of nothing but Debian's packages."""
    kernels = sorted(glob.glob('/boot/vmlinuz-*-cloud-amd64'))
    if not kernels:
        raise berth_fixture.Failure('no cloud kernel: install the packages of scripts/packages.txt')
    version = os.path.basename(kernels[-1]).removeprefix('vmlinuz-')
    drivers = f'/lib/modules/{version}/kernel/drivers'
    archive = Archive()
    for name in ('bin', 'dev', 'proc', 'sys'):
        archive.add(name, stat.S_IFDIR | 0o755)
    archive.add('bin/busybox', stat.S_IFREG | 0o755, read('/bin/busybox'))
    for name in ('virtio/virtio', 'virtio/virtio_ring', 'virtio/virtio_pci_modern_dev',
                 'virtio/virtio_pci_legacy_dev', 'virtio/virtio_pci', 'block/virtio_blk'):
        archive.add(os.path.basename(name) + '.ko', stat.S_IFREG | 0o644, read(f'{drivers}/{name}.ko'))
    archive.add('init', stat.S_IFREG | 0o755, INIT.encode())
    os.makedirs(folder)
    shutil.copy(kernels[-1], os.path.join(folder, 'vmlinuz'))
    with open(os.path.join(folder, 'initramfs'), 'wb') as file:
        file.write(archive.bytes())
    with open(os.path.join(folder, 'cmdline'), 'w', encoding='utf-8') as file:
        file.write('console=ttyS0 quiet tsc=unstable\n')


def as_guest_user():
    """The words before a command that make it the guests' user; none if we are not root."""
    if os.geteuid() != 0:
        return []
    user = pwd.getpwnam(GUEST_USER)
    return ['setpriv', f'--reuid={user.pw_uid}', f'--regid={user.pw_gid}', '--clear-groups']


class Libvirt:
    """A libvirtd of our own, not root, with all of its folders in one of ours."""

    def __init__(self, home):
        self.home = home
        self.socket = os.path.join(home, 'run/libvirt/libvirt-sock')
        for name in ('run', 'config/libvirt', 'cache'):
            os.makedirs(os.path.join(home, name))
        with open(os.path.join(home, 'config/libvirt/qemu.conf'), 'w', encoding='utf-8') as file:
            file.write('stdio_handler = "file"\nseccomp_sandbox = 1\nmax_core = 0\n')
        self.uri = f'qemu+unix:///session?socket={self.socket}'
        self.process = None

    def start(self):
        environment = {'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'HOME': self.home,
                       'XDG_RUNTIME_DIR': os.path.join(self.home, 'run'),
                       'XDG_CONFIG_HOME': os.path.join(self.home, 'config'),
                       'XDG_CACHE_HOME': os.path.join(self.home, 'cache')}
        with open(os.path.join(self.home, 'libvirtd.log'), 'ab') as log:
            self.process = subprocess.Popen([*as_guest_user(), '/usr/sbin/libvirtd'], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, cwd='/', env=environment)

        def listens():
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(self.socket)
            return True
        berth_fixture.eventually(berth_fixture.START_DEADLINE_S, listens, 'libvirtd')

    def kill(self):
        self.process.kill()
        self.process.wait()

    def guests(self):
        """Processes of QEMU with a file of ours."""
        found = []
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                words = read(f'/proc/{pid}/cmdline')
            except OSError:
                continue
            if b'qemu-system' in words and self.home.encode() in words:
                found.append(int(pid))
        return found


class MachineRuntimeTest(unittest.TestCase):
    """One libvirtd for all tests: it takes its time to learn what QEMU can do."""

    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp(prefix='berth-vm-')
        cls.addClassCleanup(shutil.rmtree, cls.home, ignore_errors=True)
        make_image(os.path.join(cls.home, 'images', 'demo'))
        with open(os.path.join(cls.home, 'classes.yaml'), 'w', encoding='utf-8') as file:
            file.write(CLASSES)
        cls.libvirt = Libvirt(cls.home)
        if os.geteuid() == 0:
            user = pwd.getpwnam(GUEST_USER)
            for folder, _, names in os.walk(cls.home):
                for path in [folder, *(os.path.join(folder, name) for name in names)]:
                    os.chown(path, user.pw_uid, user.pw_gid)
        cls.libvirt.start()
        cls.addClassCleanup(cls.libvirt.kill)
        cls.addClassCleanup(lambda: [os.kill(pid, signal.SIGKILL) for pid in cls.libvirt.guests()])
        cls.socket = os.path.join(cls.home, 'sockets', 'machine.sock')
        # Its socket is for its own user alone.
        cls.berth = [*as_guest_user(), cls.binary_for_guest_user()]
        cls.runtime = fleet_fixture.Process(
            'machine-runtime', cls.home, 'runtime', 'machine', '--socket', cls.socket, '--libvirt', cls.libvirt.uri,
            '--dir', os.path.join(cls.home, 'machines'), '--run-dir', os.path.join(cls.home, 'guests'), '--classes',
            os.path.join(cls.home, 'classes.yaml'), '--images', os.path.join(cls.home, 'images'), '--local-disk', '64Mi',
            '--reserve-memory', '64Mi', '--overcommit-cpu', '4', '--acceleration', 'tcg', '--shutdown-grace', '2s',
            command=cls.berth)
        cls.addClassCleanup(cls.runtime.kill)
        cls.start()

    @classmethod
    def binary_for_guest_user(cls):
        """A copy where that user may come, wherever the repository is."""
        if os.geteuid() != 0:
            return berth_fixture.binary()
        os.chmod(cls.home, 0o755)
        return shutil.copy(berth_fixture.binary(), os.path.join(cls.home, 'berth'))

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
            return read(os.path.join(self.home, 'machines', machine_id, 'console.log')).decode(errors='replace')
        except FileNotFoundError:
            return ''

    def says(self, machine_id, text, behind=0):
        berth_fixture.eventually(DEADLINE_S, lambda: text in self.console(machine_id)[behind:],
                                 f'the console of {machine_id} says {text!r}: {self.console(machine_id)[-300:]!r}')

    def ask(self, machine_id, line, answer):
        """Types a line and waits for the answer; gives back what was said since."""
        behind = len(self.console(machine_id))
        with socket.socket(socket.AF_UNIX) as console:
            console.connect(os.path.join(self.home, 'guests', machine_id, 'console.sock'))
            console.sendall(line.encode() + b'\n')
            # Whoever hangs up takes along what the guest has not read yet: its port holds 16 bytes.
            self.says(machine_id, answer, behind)
        return self.console(machine_id)[behind:]

    def delete(self, uid):
        machine_id = self.machine(uid)['metadata']['id']
        self.iri('delete', machine_id)
        berth_fixture.eventually(DEADLINE_S, lambda: self.machine(uid) is None, f'{uid} is gone')
        for folder in ('machines', 'guests'):
            self.assertFalse(os.path.exists(os.path.join(self.home, folder, machine_id)))
        berth_fixture.eventually(DEADLINE_S, lambda: not self.libvirt.guests(), 'no guest is left')

    def data_volume(self):
        path = os.path.join(self.home, 'data.qcow2')
        if not os.path.exists(path):
            subprocess.run([*as_guest_user(), 'qemu-img', 'create', '-q', '-f', 'qcow2', path, '8M'], check=True,
                           timeout=60)
        return {'name': 'data', 'device': 'oda',
                'connection': {'driver': 'file', 'handle': 'v-1', 'effectiveStorageBytes': str(8 * MI),
                               'attributes': {'path': path, 'format': 'qcow2', 'tps': str(100 * MI), 'iops': '5000'}}}

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


if __name__ == '__main__':
    unittest.main(verbosity=2)
