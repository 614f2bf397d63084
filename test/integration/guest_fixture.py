# SPDX-License-Identifier: Apache-2.0
"""Real guests for tests: a libvirtd of the test's own, an image of Debian's kernel and busybox, and whole hosts with
real runtimes. No KVM. Everything that is not root here runs as the user of libvirt's guests, as QEMU does on a host."""

import base64
import contextlib
import glob
import json
import os
import pty
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import uuid

import berth_fixture
import fleet_fixture

GUEST_USER = 'libvirt-qemu'
# What a machine runtime needs beside its user's rights to make bridges, for setpriv.
NETWORK_RIGHTS = ['--inh-caps=+net_admin,+net_raw', '--ambient-caps=+net_admin,+net_raw'] if os.geteuid() == 0 else []
DEADLINE_S = 120  # nothing is fast without KVM
LIBVIRT_LOGS = 'cache/libvirt/qemu/log'  # of a libvirtd of our own

INIT = '''#!/bin/busybox sh
b=/bin/busybox
$b mount -t devtmpfs dev /dev; $b mount -t proc proc /proc; $b mount -t sysfs sys /sys
# Which of the first two needs the other depends on the kernel.
for m in virtio virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk cdrom isofs; do
$b insmod /$m.ko 2>/dev/null; done
$b stty -F /dev/ttyS0 -echo
disk() { for d in /sys/block/vd*; do [ "$($b cat $d/serial)" = "$1" ] && echo /dev/${d##*/}; done; }
echo hello from the guest
while read word rest; do case $word in
off) $b poweroff -f;;
put) echo $rest | $b dd of=/dev/vda conv=fsync 2>/dev/null; echo written;;
get) echo read $($b head -n 1 /dev/vda) end;;
write) echo ${rest#* } | $b dd of=$(disk ${rest%% *}) conv=fsync 2>/dev/null; echo written;;
content) echo content $($b head -n 1 $(disk $rest)) end;;
disks) for d in /sys/block/vd*; do [ -e $d ] && echo disk ${d##*/} $($b cat $d/size) $($b cat $d/serial); done
echo that is all;;
seed) for d in /sys/block/vd*; do [ "$($b cat $d/serial)" = cidata ] && $b mount -t iso9660 -o ro /dev/${d##*/} /seed; done
for f in /seed/*; do echo file ${f##*/}; $b cat $f; done; $b umount /seed; echo that is the seed;;
ignition) $b insmod /qemu_fw_cfg.ko; $b cat /sys/firmware/qemu_fw_cfg/by_name/opt/com.coreos/config/raw; echo that is it;;
efi) [ -d /sys/firmware/efi ] || echo there is no firmware
$b insmod /efivarfs.ko; $b mount -t efivarfs v /sys/firmware/efi/efivars
for v in /sys/firmware/efi/efivars/Spec-*; do echo spec ${v##*/} $($b tail -c +5 $v) end; done
v=/sys/firmware/efi/efivars/Berth-6f0c0e52-0d4f-4d8f-9f0a-2b1c3d4e5f60
if [ -e $v ]; then echo kept $($b tail -c +5 $v) end; else printf '\\007\\000\\000\\000%s' "$rest" >$v; echo set; fi;;
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


def amount(text):
    """The number of a Quantity as programs write it."""
    number, unit = re.fullmatch(r'(-?[\d.]+)(\w*)', str(text)).groups()
    return float(number) * {'': 1, 'm': 1e-3, 'k': 1e3, 'M': 1e6, 'Ki': 1 << 10, 'Mi': 1 << 20, 'Gi': 1 << 30}[unit]


def processes():
    """(pid, words) of all that run; of a dead one that nobody has waited for there are no words."""
    for pid in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError):
            yield int(pid), read(f'/proc/{pid}/cmdline').split(b'\0')


def make_image(folder, init=INIT, add=lambda archive, modules: None):
    """A kernel and a memory disk, of nothing but Debian's packages. `add` puts more into the disk's archive; it is given the
    folder of the kernel's modules, too."""
    kernels = sorted(glob.glob('/boot/vmlinuz-*-cloud-amd64'))
    if not kernels:
        raise berth_fixture.Failure('no cloud kernel: install the packages of scripts/packages.txt')
    version = os.path.basename(kernels[-1]).removeprefix('vmlinuz-')
    modules = f'/lib/modules/{version}/kernel'
    archive = Archive()
    for name in ('bin', 'dev', 'proc', 'seed', 'sys'):
        archive.add(name, stat.S_IFDIR | 0o755)
    archive.add('bin/busybox', stat.S_IFREG | 0o755, read('/bin/busybox'))
    for name in ('drivers/virtio/virtio', 'drivers/virtio/virtio_ring', 'drivers/virtio/virtio_pci_modern_dev',
                 'drivers/virtio/virtio_pci_legacy_dev', 'drivers/virtio/virtio_pci', 'drivers/block/virtio_blk',
                 'drivers/cdrom/cdrom', 'fs/isofs/isofs', 'fs/efivarfs/efivarfs', 'drivers/firmware/qemu_fw_cfg'):
        archive.add(os.path.basename(name) + '.ko', stat.S_IFREG | 0o644, read(f'{modules}/{name}.ko'))
    archive.add('init', stat.S_IFREG | 0o755, init.encode())
    add(archive, modules)
    os.makedirs(folder)
    shutil.copy(kernels[-1], os.path.join(folder, 'vmlinuz'))
    with open(os.path.join(folder, 'initramfs'), 'wb') as file:
        file.write(archive.bytes())
    with open(os.path.join(folder, 'cmdline'), 'w', encoding='utf-8') as file:
        file.write('console=ttyS0 quiet tsc=unstable no_timer_check\n')


def boot_sector():
    """A disk that boots without an operating system: it counts its boots in its second sector, says how many there were
    on the serial line, and rests."""
    text = b'boot 0 of this disk\r\n\0'
    code = bytes.fromhex('fc 31c0 8ed8 8ec0 8ed0 bc007c'      # cld; segments and stack
                         'bb007e b80102 b90200 b600 cd13'     # read the second sector to 7e00
                         'fe06007e b80103 b90200 b600 cd13'   # count, and write it back
                         'a0007e 0430 a2{digit:04x} be{text:04x}'  # the count as a digit
                         'ac 84c0 7411 88c4'                  # next: the next byte; behind the last, rest
                         'bafd03 ec a820 74fb'                # until the line has room
                         'b2f8 88e0 ee ebea'                  # say it; next
                         'fa f4 ebfd'                         # rest
                         .replace('{digit:04x}', '0000').replace('{text:04x}', '0000'))
    at = 0x7c00 + len(code)
    code = code.replace(b'\xa2\0\0', b'\xa2' + (at + text.index(b'0')).to_bytes(2, 'little'))
    code = code.replace(b'\xbe\0\0', b'\xbe' + at.to_bytes(2, 'little'))
    return (code + text).ljust(510, b'\0') + b'\x55\xaa' + bytes(512)


def as_guest_user():
    """The words before a command that make it the guests' user; none if we are not root."""
    if os.geteuid() != 0:
        return []
    user = pwd.getpwnam(GUEST_USER)
    return ['setpriv', f'--reuid={user.pw_uid}', f'--regid={user.pw_gid}', '--clear-groups']


def give_to_guest_user(folder):
    if os.geteuid() != 0:
        return
    user = pwd.getpwnam(GUEST_USER)
    for path, _, names in os.walk(folder):
        for each in [path, *(os.path.join(path, name) for name in names)]:
            os.chown(each, user.pw_uid, user.pw_gid)


def berth_of_guest_user(home):
    """The words that run berth as that user: a copy where it may come, wherever the repository is."""
    if os.geteuid() != 0:
        return [berth_fixture.binary()]
    os.chmod(home, 0o755)
    return [*as_guest_user(), shutil.copy(berth_fixture.binary(), os.path.join(home, 'berth'))]


@contextlib.contextmanager
def typed(console_socket, line):
    """Types a line. Whoever hangs up takes along what the guest has not read yet: its port holds 16 bytes. The guest waits
    for whoever does not read what it says."""
    with socket.socket(socket.AF_UNIX) as console:
        console.connect(console_socket)
        console.sendall(line.encode() + b'\n')
        yield console


class Terminal:
    """Somebody at `berth console NAME`: with pipes, or at a real terminal."""

    def __init__(self, server, name, *words, command='console', is_tty=False):
        self.name, self.said = name, ''
        self._ours, its = pty.openpty() if is_tty else (None, None)
        ends = (its, its, its) if is_tty else (subprocess.PIPE, subprocess.PIPE, subprocess.STDOUT)
        self.process = subprocess.Popen([server.binary, command, name, *words], **dict(zip(('stdin', 'stdout', 'stderr'), ends)),
                                        env=server.environment(), cwd=server.home)
        self._keys, self._screen = (self._ours, self._ours) if is_tty else (
            self.process.stdin.fileno(), self.process.stdout.fileno())
        if is_tty:
            os.close(its)
        os.set_blocking(self._screen, False)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.communicate()
        if self._ours is not None:
            os.close(self._ours)

    def hear(self):
        with contextlib.suppress(OSError):  # nothing now, or no more
            self.said += os.read(self._screen, 65536).decode(errors='replace')

    def type(self, text):
        os.write(self._keys, text.encode())

    def expect(self, text):
        def heard():
            self.hear()
            return text in self.said
        berth_fixture.eventually(DEADLINE_S, heard, f'the console of {self.name} says {text!r}')
        return self.said

    def ask(self, line, answer):
        """Types a line and waits for the answer, or for the end of the guest if there is none."""
        self.type(f'{line}\n')
        if answer is not None:
            return self.expect(answer)
        self.end()
        return self.said

    def leave(self):
        """Presses Ctrl-]."""
        self.type('\x1d')
        self.end()

    def end(self):
        code = berth_fixture.eventually(DEADLINE_S, lambda: self._over(), f'the end of the console of {self.name}')
        if code != 'ended with 0':
            raise berth_fixture.Failure(f'berth console {self.name} {code}: {self.said}')

    def _over(self):
        self.hear()
        code = self.process.poll()
        return None if code is None else f'ended with {code}'


def guests_of(folder):
    """Processes of QEMU with a file in this folder."""
    below = folder.encode() + b'/'
    return [pid for pid, words in processes() if b'qemu-system' in words[0] and any(below in word for word in words)]


class Libvirt:
    """A libvirtd of our own, not root, with all of its folders in one of ours."""

    RUN = 'run'  # what a reboot empties
    DOMAINS = 'config/libvirt/qemu/*.xml'
    STATES = 'run/libvirt/qemu/run/*.xml'  # of guests that run
    FOLDERS = 'config/libvirt/qemu/lib/domain-*'  # the same
    LOGS = (f'{LIBVIRT_LOGS}/berth-*',)  # that go with their machines

    def __init__(self, home):
        self.home = home
        self.socket = os.path.join(home, 'run/libvirt/libvirt-sock')
        for name in ('run', 'config/libvirt', 'cache'):
            os.makedirs(os.path.join(home, name))
        with open(os.path.join(home, 'config/libvirt/qemu.conf'), 'w', encoding='utf-8') as file:
            file.write('stdio_handler = "file"\nseccomp_sandbox = 1\nmax_core = 0\n')
        self.uri = f'qemu+unix:///session?socket={self.socket}'
        self.process = None

    def command(self, berth):
        """What becomes libvirtd, as with `berth up`: without what a dead one left."""
        states, sockets = (os.path.dirname(os.path.join(self.home, pattern)) for pattern in (self.STATES, self.FOLDERS))
        return [*as_guest_user(), berth, 'libvirtd', '--states', states, '--sockets', sockets]

    def start(self):
        environment = {'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'HOME': self.home,
                       'XDG_RUNTIME_DIR': os.path.join(self.home, 'run'),
                       'XDG_CONFIG_HOME': os.path.join(self.home, 'config'),
                       'XDG_CACHE_HOME': os.path.join(self.home, 'cache')}
        # Open, as the guests' user may not come where it is.
        with open(berth_fixture.binary(), 'rb') as berth, open(os.path.join(self.home, 'libvirtd.log'), 'ab') as log:
            self.process = subprocess.Popen(
                self.command(f'/proc/self/fd/{berth.fileno()}'), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd='/',
                env=environment, pass_fds=(berth.fileno(),))

        def listens():
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(self.socket)
            return True
        berth_fixture.eventually(berth_fixture.START_DEADLINE_S, listens, 'libvirtd')

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def hang(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def virsh(self, *words):
        return berth_fixture.run(['virsh', '--connect', self.uri, *words]).stdout

    def leftovers(self):
        """What there is of domains."""
        patterns = (self.DOMAINS, self.STATES, self.FOLDERS, *self.LOGS)
        return [path for pattern in patterns for path in glob.glob(os.path.join(self.home, pattern))]

    def end(self):
        """With all guests."""
        self.kill()
        for pid in self.guests():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def guests(self):
        return guests_of(self.home)


class SystemLibvirt(Libvirt):
    """libvirtd as systems have it (qemu:///system): root, with QEMU as another user. It sees folders of ours in the places
    of the machine's."""

    RUN = 'system/run/libvirt'
    DOMAINS = 'system/etc/libvirt/qemu/*.xml'
    STATES = 'system/run/libvirt/qemu/*.xml'
    FOLDERS = 'system/var/lib/libvirt/qemu/domain-*'
    LOGS = ()
    PLACES = ('/etc/libvirt', '/run/libvirt', '/var/cache/libvirt', '/var/lib/libvirt', '/var/log/libvirt')

    def __init__(self, home):
        self.home = home
        os.chmod(home, 0o711)
        for place in self.PLACES:
            os.makedirs(self._mine(place))
        with open(os.path.join(self._mine('/etc/libvirt'), 'qemu.conf'), 'w', encoding='utf-8') as file:
            file.write('stdio_handler = "file"\n'  # no virtlogd has its socket in our folders
                       'seccomp_sandbox = 1\nmax_core = 0\n'
                       'cgroup_controllers = []\n'  # end() kills guests without libvirtd, and nobody would remove their groups
                       'namespaces = []\n')  # libvirt cannot move the mount that hides KVM into a guest's /dev
        self.socket = os.path.join(self._mine('/run/libvirt'), 'libvirt-sock')
        self.uri = f'qemu+unix:///system?socket={self.socket}'
        self.process = None

    def _mine(self, place):
        return os.path.join(self.home, 'system', place.lstrip('/'))

    def command(self, berth):
        """As systems do: nobody of ours starts it."""
        mounts = [word for place in self.PLACES for word in (self._mine(place), place)]
        # KVM is there and hangs on some machines, and libvirtd uses what it may write.
        hide_kvm = '[ ! -e /dev/kvm ] || { mount --bind /etc/hostname /dev/kvm; mount -o remount,ro,bind /dev/kvm; }; '
        script = ('pid=$1; shift; while [ $# -gt 0 ]; do mkdir -p "$2"; mount --bind "$1" "$2"; shift 2; done; ' + hide_kvm +
                  'exec /usr/sbin/libvirtd --pid-file "$pid"')
        return ['unshare', '--mount', '--propagation', 'private', 'sh', '-ec', script, 'sh',
                os.path.join(self.home, 'libvirtd.pid'), *mounts]


MACHINE_CLASSES = '''
classes:
- name: tiny
  capabilities: {cpu: 1, memory: 96Mi}
'''

VOLUME_CLASSES = '''
classes:
- name: plain
  capabilities: {tps: 100Mi, iops: 5k}
'''

# The same for the server.
API_CLASSES = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: MachineClass
metadata: {name: tiny}
capabilities: {cpu: 1, memory: 96Mi}
---
apiVersion: storage.ironcore.dev/v1alpha1
kind: VolumeClass
metadata: {name: plain}
capabilities: {tps: 100Mi, iops: 4k}
resizePolicy: ExpandOnly
'''


def network_with(prefix, addresses):
    """The Network `lan`, and a Prefix of that name with these addresses."""
    return f'''
apiVersion: networking.ironcore.dev/v1alpha1
kind: Network
metadata: {{name: lan}}
---
apiVersion: ipam.ironcore.dev/v1alpha1
kind: Prefix
metadata: {{name: {prefix}}}
spec: {{prefix: {addresses}}}
'''


ONE_ADDRESS = network_with('narrow', '10.9.0.1/32')


class RealHost:
    """A host with nothing fake: libvirtd, `berth runtime machine`, `berth runtime volume` and `berth poollet`, with the
    pools NAME and NAME-disks and the images `demo` and `tiny.raw`. Some hosts have only machines, some only volumes; runtimes
    may get more arguments."""

    def __init__(self, server, name, *, labels=(), has=('machines', 'volumes'), machine_classes=MACHINE_CLASSES,
                 volume_classes=VOLUME_CLASSES, machine_runtime=(), volume_runtime=(), networks=False, image=None, system=False):
        """`networks`: in a namespace of network_fixture, where the runtime may make bridges. `image` makes `demo`.
        `system`: all is root's, with the libvirtd of a system."""
        self.server, self.name = server, name
        self.home = tempfile.mkdtemp(prefix=f'berth-{name}-')
        (image or make_image)(self.path('images', 'demo'))
        with open(self.path('images', 'tiny.raw'), 'wb') as file:
            file.write(boot_sector())
        self._write('machine-classes.yaml', machine_classes)
        self._write('volume-classes.yaml', volume_classes)
        self._write('token', server.berth('pool', 'join-token', name, *(f'--label={label}' for label in labels)).stdout)
        self.libvirt = SystemLibvirt(self.home) if system else Libvirt(self.home)
        self.berth = [berth_fixture.binary()] if system else berth_of_guest_user(self.home)
        if not system:
            give_to_guest_user(self.home)
        self.machine_socket = self.path('sockets', 'machine.sock')
        self.volume_socket = self.path('sockets', 'volume.sock')
        self.machine_runtime = self._process(
            'machine-runtime', 'runtime', 'machine', '--socket', self.machine_socket, '--libvirt', self.libvirt.uri,
            *(() if system else ('--libvirt-logs', self.path(LIBVIRT_LOGS))), '--dir', self.path('machines'),
            '--run-dir', self.path('guests'), '--secrets-on-disk', '--classes', self.path('machine-classes.yaml'), '--images', self.path('images'),
            '--local-disk', '64Mi', '--reserve-memory', '64Mi', '--overcommit-cpu', '8', '--acceleration', 'tcg', '--shutdown-grace', '2s',
            '--networks', 'bridge' if networks else 'none', *machine_runtime)
        if networks and not system:
            self.machine_runtime.command = [*self.berth[:-1], *NETWORK_RIGHTS, self.berth[-1]]
        self.volume_runtime = self._process(
            'volume-runtime', 'runtime', 'volume', '--socket', self.volume_socket, '--dir', self.path('disks'),
            '--classes', self.path('volume-classes.yaml'), '--capacity', '1Gi', '--images', self.path('images'),
            '--libvirt', self.libvirt.uri,
            *volume_runtime)
        self.poollet = self._process(
            'poollet', 'poollet', '--server', fleet_fixture.gateway_address(server), '--token-file', self.path('token'),
            '--data-dir', self.path('data'), '--name', name,
            *(('--machine-pool', name, '--machine-runtime', f'unix:{self.machine_socket}') if 'machines' in has else ()),
            *(('--volume-pool', f'{name}-disks', '--volume-runtime', f'unix:{self.volume_socket}')
              if 'volumes' in has else ()))
        self.has = has
        self.processes = (self.poollet, *((self.machine_runtime,) if 'machines' in has else ()),
                          *((self.volume_runtime,) if 'volumes' in has else ()))

    def path(self, *words):
        return os.path.join(self.home, *words)

    def _write(self, name, text):
        with open(self.path(name), 'w', encoding='utf-8', opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(text)

    def _process(self, name, *words):
        return fleet_fixture.Process(name, self.home, *words, command=self.berth)

    def start(self):
        if 'machines' in self.has:
            self.libvirt.start()
        for process in self.processes[1:]:
            process.start()
        for process in self.processes[1:]:
            path = self.machine_socket if process is self.machine_runtime else self.volume_socket
            berth_fixture.eventually(DEADLINE_S, lambda path=path: os.path.exists(path),
                                     f'the socket of {process.name} of {self.name}; {process.log_tail()}')
        self.poollet.start()
        return self

    def cut_power(self):
        """Everything ends at once, what was in memory is gone, and the next start() is that of another boot."""
        self._end_all()
        for folder in (self.libvirt.RUN, 'guests'):
            for path in glob.glob(self.path(folder, '*')):
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        boot = self.path('boot_id')
        with open(boot, 'w', encoding='ascii') as file:
            file.write(f'{uuid.uuid4()}\n')
        os.chmod(boot, 0o644)
        script = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'
        for process in self.processes:
            process.command = ['unshare', '--mount', 'sh', '-c', script, boot, *self.berth]

    def _end_all(self):
        for process in self.processes:
            process.kill()
        for pid in self.fencers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.libvirt.end()

    def close(self):
        self._end_all()
        if not os.environ.get('BERTH_KEEP'):
            shutil.rmtree(self.home, ignore_errors=True)

    def fencers(self):
        return [pid for pid, words in processes() if words[1:3] == [b'fencer', b'--folder']
                and words[3].decode().startswith(self.home)]

    def is_ready(self):
        pools = {'machines': ('machinepool', self.name), 'volumes': ('volumepool', f'{self.name}-disks')}
        for kind, name in (pools[each] for each in self.has):
            found = self.server.kubectl('get', kind, name, '--ignore-not-found', '-o', 'json').stdout
            conditions = json.loads(found).get('status', {}).get('conditions', []) if found else []
            if not any(c['type'] == 'Ready' and c['status'] == 'True' for c in conditions):
                return False
        return True

    def iri(self, *words):
        return berth_fixture.run([*self.berth, 'iri', *words, '--endpoint', f'unix:{self.machine_socket}', '-o', 'json'])

    def machine_id(self, uid):
        """What the runtime calls the machine of this UID; None if it has none."""
        for machine in json.loads(self.iri('machines').stdout).get('machines', []):
            if machine['metadata']['labels'][fleet_fixture.MACHINE_UID_LABEL] == uid:
                return machine['metadata']['id']
        return None

    def domains(self):
        """{file: machine UID} of what libvirt has written down."""
        found = {}
        for path in glob.glob(self.path(self.libvirt.DOMAINS)):
            with contextlib.suppress(FileNotFoundError):
                record = re.search(rb'<berth:machine[^>]*>([^<]+)<', read(path))
                if record:
                    text = base64.b64decode(record.group(1)).decode()
                    found[path] = re.search(rf'"{fleet_fixture.MACHINE_UID_LABEL}":\s*"([^"]+)"', text).group(1)
        return found

    def leftovers(self):
        """Whatever is there although no machine and no volume is."""
        files = [path for folder in ('machines', 'guests', 'disks/volumes', 'disks/snapshots')
                 for path in glob.glob(self.path(folder, '*')) if os.path.basename(path) != 'lock']
        return [*self.libvirt.leftovers(), *files, *self.libvirt.guests()]

    def logs(self):
        return '\n'.join(f'--- {self.name} {process.name} ---\n{process.log_tail()}' for process in self.processes)


class HostedServer(berth_fixture.Server):
    """`berth up` with everything: a server that is its own host, with the pools `alpha` and `alpha-disks` and the image
    `demo`. Guests end with it."""

    HOST = 'auto'

    def __init__(self, *arguments, **options):
        super().__init__('--host-name', 'alpha', '--acceleration', 'tcg', *arguments, **options)
        self.host_dir = self.data_dir + '-host'
        os.chmod(self.home, 0o755)  # the guests' user comes through

    def follow(self):
        """`berth up` once more: returns when the host is ready."""
        return self.berth('up', '--data-dir', self.data_dir, timeout=DEADLINE_S).stdout

    def start(self, wait=True):
        super().start(wait)
        if wait:
            shown = self.follow()
            if 'alpha is ready' not in shown:
                raise berth_fixture.Failure(f'the host is not ready: {shown}\n{self.logs()}')
        return self

    def guests(self):
        return guests_of(self.host_dir)

    def logs(self):
        return '\n'.join(f'--- {path} ---\n{read(path).decode(errors="replace")[-3000:]}'
                         for path in sorted(glob.glob(os.path.join(self.host_dir, 'log/*'))))

    def close(self):
        self.berth('down', '--guests', '--data-dir', self.data_dir, check=False)
        super().close()


class RealHostTestCase(berth_fixture.ServerTestCase):
    """A server and one real host, whose logs are shown when a test fails."""

    HOST = {}  # more arguments of RealHost

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.kubectl('apply', '-f', '-', input=API_CLASSES)
        cls.host = RealHost(cls.server, 'alpha', **cls.HOST)
        cls.addClassCleanup(cls.host.close)
        cls.host.start()
        berth_fixture.eventually(DEADLINE_S, cls.host.is_ready, f'the pools are ready\n{cls.host.logs()}')

    def more_logs(self):
        return [self.host.logs()]

    def used(self, name):
        """What a machine really uses, as `berth top machines` says; {} until its host has told."""
        listed = json.loads(self.server.berth('top', 'machines', '-o', 'json').stdout)['items']
        found = next(each for each in listed if each['metadata']['name'] == name).get('used', {})
        return {what: amount(found[what]) for what in ('cpu', 'memory', 'disk', 'networkReceivedBytes', 'networkSentBytes')
                if what in found}
