#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demo image as a person uses it: built without a network, booted from its kernel and from its disk."""

import contextlib
import json
import os
import pwd
import shutil
import socket
import tempfile
import unittest

import berth_fixture
import fleet_fixture
import guest_fixture
import lying_registry

DEADLINE_S = guest_fixture.DEADLINE_S
MI = 1 << 20


class ImagesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp(prefix='berth-images-')
        cls.addClassCleanup(shutil.rmtree, cls.home, ignore_errors=True)
        cls.berth = guest_fixture.berth_of_guest_user(cls.home)
        with open(cls.path('classes.yaml'), 'w', encoding='utf-8') as file:
            file.write(guest_fixture.MACHINE_CLASSES)
        cls.libvirt = guest_fixture.Libvirt(cls.home)
        guest_fixture.give_to_guest_user(cls.home)
        cls.built = cls.image('build')
        cls.libvirt.start()
        cls.addClassCleanup(cls.libvirt.end)
        cls.runtime = fleet_fixture.Process(
            'machine-runtime', cls.home, 'runtime', 'machine', '--socket', cls.path('machine.sock'), '--libvirt',
            cls.libvirt.uri, '--dir', cls.path('machines'), '--run-dir', cls.path('guests'), '--secrets-on-disk', '--classes',
            cls.path('classes.yaml'), '--images', cls.path('images'), '--local-disk', '64Mi', '--reserve-memory', '64Mi',
            '--overcommit-cpu', '8', '--acceleration', 'tcg', '--shutdown-grace', '60s', command=cls.berth)
        cls.addClassCleanup(cls.runtime.kill)
        cls.runtime.start()
        berth_fixture.eventually(DEADLINE_S, lambda: os.path.exists(cls.path('machine.sock')), 'the runtime')

    @classmethod
    def path(cls, *words):
        return os.path.join(cls.home, *words)

    @classmethod
    def image(cls, *words, check=True):
        return berth_fixture.run([*cls.berth, 'image', *words, '--images', cls.path('images')], check=check)

    def iri(self, *words, **options):
        return berth_fixture.run([*self.berth, 'iri', *words, '--endpoint', f'unix:{self.path("machine.sock")}'], **options)

    def create(self, uid, image, **spec):
        root = {'name': 'root', 'device': 'oda', 'localDisk': {'sizeBytes': str(8 * MI), 'image': {'image': image}}}
        body = {'kind': 'Machine', 'metadata': {'labels': {fleet_fixture.MACHINE_UID_LABEL: uid}},
                'spec': {'class': 'tiny', 'volumes': [root], **spec}}
        self.iri('create', '-f', '-', input=json.dumps(body))
        machines = json.loads(self.iri('machines', '-o', 'json').stdout)['machines']
        return next(one['metadata']['id'] for one in machines
                    if one['metadata']['labels'][fleet_fixture.MACHINE_UID_LABEL] == uid)

    def console(self, machine_id):
        try:
            return guest_fixture.read(self.path('machines', machine_id, 'console.log')).decode(errors='replace')
        except FileNotFoundError:
            return ''

    def says(self, machine_id, text):
        try:
            berth_fixture.eventually(DEADLINE_S, lambda: text in self.console(machine_id), f'the guest says {text!r}')
        except berth_fixture.Failure as failure:
            raise berth_fixture.Failure(f'{failure}; it says {self.console(machine_id)[-500:]!r}\n'
                                        f'{self.iri("events").stdout}{self.runtime.log_tail()}') from failure

    def ask(self, machine_id, line, answer):
        """Types a line, and reads along: a console that nobody reads stops its guest after some 280 characters."""
        with socket.socket(socket.AF_UNIX) as console:
            console.connect(self.path('guests', machine_id, 'console.sock'))
            console.sendall(line.encode() + b'\n')
            console.setblocking(False)

            def is_answered():
                with contextlib.suppress(BlockingIOError):
                    while console.recv(4096):
                        pass
                return answer in self.console(machine_id)
            berth_fixture.eventually(DEADLINE_S, is_answered, f'the guest answers {answer!r}')

    def state(self, machine_id):
        machines = json.loads(self.iri('machines', '-o', 'json').stdout)['machines']
        return next(one['status'].get('state') for one in machines if one['metadata']['id'] == machine_id)

    def remove(self, machine_id):
        self.iri('delete', machine_id)
        berth_fixture.eventually(DEADLINE_S, lambda: not os.path.exists(self.path('machines', machine_id)), 'it is gone')

    def test_the_demo_guest_says_hello_and_has_a_shell_and_hears_the_power_button(self):
        self.assertIn('built   demo:latest (kernel,disk, ', self.built.stdout)
        machine = self.create('u-1', 'demo')
        self.says(machine, 'Hello from Berth! This is ')
        self.ask(machine, 'mount /dev/vda /mnt && cat /mnt/hello && echo shell $((40 + 2))', 'shell 42')
        self.assertIn('This file is on the disk of the demo image.', self.console(machine))
        self.iri('power', machine, 'off')
        self.says(machine, 'Power down')
        berth_fixture.eventually(DEADLINE_S, lambda: self.state(machine) != 'MACHINE_RUNNING', 'it is off')
        self.remove(machine)

    def test_a_machine_starts_again_when_its_image_is_gone(self):
        self.image('build', 'brief')
        machine = self.create('u-2', 'brief')
        self.says(machine, 'Hello from Berth! This is ')
        self.image('rm', 'brief')
        before = len(self.console(machine))
        for guest in self.libvirt.guests():
            os.kill(guest, 9)
        berth_fixture.eventually(DEADLINE_S, lambda: self.state(machine) != 'MACHINE_RUNNING', 'it was killed')
        self.iri('power', machine, 'on')
        berth_fixture.eventually(DEADLINE_S, lambda: 'Hello from Berth!' in self.console(machine)[before:], 'it is back')
        self.remove(machine)

    def test_a_disk_of_the_image_boots_by_itself(self):
        self.image('build', 'disk-only:1', '--disk', self.parts('demo:latest')['rootfs'])
        machine = self.create('u-3', 'disk-only:1')
        self.says(machine, 'Hello from Berth! This is a disk without a kernel.')
        self.remove(machine)

    def test_a_squashfs_is_a_read_only_disk_beside_the_kernel_that_a_guest_finds_by_its_serial_number(self):
        parts = self.parts('demo:latest')
        with open(self.path('live.squashfs'), 'wb') as file:
            file.write(b'hsqs of the live image\n'.ljust(4096, b'.'))
        self.image('build', 'live:1', '--kernel', parts['kernel'], '--initramfs', parts['initramfs'], '--cmdline',
                   'console=ttyS0 quiet tsc=unstable no_timer_check', '--squashfs', self.path('live.squashfs'))
        machine = self.create('u-5', 'live:1')
        self.says(machine, 'Hello from Berth! This is ')
        self.ask(machine, 'for d in /sys/block/vd*; do [ "$(cat $d/serial)" = squashfs ] && echo found $(cat $d/ro $d/size) '
                          '$(head -n 1 /dev/${d##*/}) end; done', 'found 1 8 hsqs of the live image end')
        self.remove(machine)

    def parts(self, image):
        """{part: file} of an image here."""
        entries = json.loads(self.image('ls', '-o', 'json').stdout)['items']
        found = next(entry for entry in entries if entry['image'] == image)
        blobs = self.path('images', image.partition(':')[0], 'blobs', 'sha256')
        manifest = json.loads(guest_fixture.read(os.path.join(blobs, found['digest'].removeprefix('sha256:'))))
        return {layer['mediaType'].rpartition('.')[2]: os.path.join(blobs, layer['digest'].removeprefix('sha256:'))
                for layer in manifest['layers']}

    def test_a_missing_image_is_said_and_recovered_from(self):
        machine = self.create('u-4', 'late')
        berth_fixture.eventually(
            DEADLINE_S, lambda: 'image \\"late\\"' in self.iri('events', '-o', 'json').stdout, 'the event')
        self.image('build', 'late')
        self.says(machine, 'Hello from Berth! This is ')
        self.remove(machine)


MACHINE = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {name: waiting}
spec:
  machineClassRef: {name: tiny}
  volumes:
  - {name: root, device: oda, localDisk: {sizeLimit: 1Mi, image: late}}
---
apiVersion: storage.ironcore.dev/v1alpha1
kind: Volume
metadata: {name: waiting}
spec:
  volumeClassRef: {name: plain}
  resources: {storage: 1Mi}
  dataSource: {osImage: {image: late.raw}}
'''


class ImageConditions(guest_fixture.RealHostTestCase):
    """What somebody sees of an image that is not there yet."""

    def condition(self, kind, word):
        text = self.server.kubectl('get', kind, 'waiting', '-o', 'json').stdout
        conditions = json.loads(text).get('status', {}).get('conditions', [])
        return next((each for each in conditions if each['type'] == word), {})

    def test_why_an_image_is_not_there_is_a_condition_until_it_is(self):
        self.server.kubectl('apply', '-f', '-', input=MACHINE)
        for kind, name in (('machine', 'late'), ('volume', 'late.raw')):
            berth_fixture.eventually(DEADLINE_S, lambda kind=kind: self.condition(kind, 'ImageReady').get('status') == 'False',
                                     f'the condition of the {kind}\n{self.host.logs()}')
            said = self.condition(kind, 'ImageReady')
            self.assertEqual('ImageNotFound', said['reason'])
            self.assertIn(f'image "{name}"', said['message'])
            self.assertIn(f'image "{name}"', self.condition(kind, 'Ready')['message'])
        shutil.copytree(self.host.path('images', 'demo'), self.host.path('images', 'late'))
        shutil.copy(self.host.path('images', 'tiny.raw'), self.host.path('images', 'late.raw'))
        os.chmod(self.host.path('images', 'late.raw'), 0o644)
        for kind in ('machine', 'volume'):
            berth_fixture.eventually(DEADLINE_S, lambda kind=kind: self.condition(kind, 'Ready').get('status') == 'True',
                                     f'the {kind} is ready\n{self.host.logs()}')
            self.assertEqual('True', self.condition(kind, 'ImageReady')['status'])
        self.server.kubectl('delete', 'machine,volume', 'waiting', '--timeout=60s', timeout=90)
        berth_fixture.eventually(DEADLINE_S, lambda: not self.host.leftovers(), f'{self.host.leftovers()} are left')


def owners(folder):
    """Who has something there."""
    return {os.lstat(os.path.join(path, name)).st_uid for path, _, names in os.walk(folder) for name in ('', *names)}


class ImagesOfUp(berth_fixture.ServerTestCase):
    """`berth image` and the runtimes of `berth up` look after the same folder, as one user, and know the same registry."""

    @classmethod
    def setUpClass(cls):
        home = tempfile.mkdtemp(prefix='berth-images-')
        cls.addClassCleanup(shutil.rmtree, home, ignore_errors=True)
        os.chmod(home, 0o755)  # the runtimes read the authority
        cls.registry = lying_registry.LyingRegistry(home)
        cls.addClassCleanup(cls.registry.shut)
        cls.server = guest_fixture.HostedServer('--registry', cls.registry.host, '--registry-ca', cls.registry.ca,
                                                '--overcommit-cpu', '3', '--image-cache', '1Gi')
        cls.addClassCleanup(cls.server.close)

    def more_logs(self):
        return [self.server.logs()]

    def image(self, *words):
        return self.server.berth('image', *words, env={'BERTH_DATA_DIR': self.server.data_dir}, timeout=DEADLINE_S).stdout

    def volume(self, name, image):
        self.server.kubectl('apply', '-f', '-', input=f'''
apiVersion: storage.ironcore.dev/v1alpha1
kind: Volume
metadata: {{name: {name}}}
spec:
  volumeClassRef: {{name: plain}}
  resources: {{storage: 1Mi}}
  dataSource: {{osImage: {{image: '{image}'}}}}
''')
        berth_fixture.eventually(
            DEADLINE_S, lambda: self.server.kubectl('get', 'volume', name, '-o', 'jsonpath={.status.state}').stdout == 'Available',
            f'the volume of {image}')

    def test_images_of_people_and_of_runtimes(self):
        folder = os.path.join(self.server.host_dir, 'images')
        user = pwd.getpwnam(guest_fixture.GUEST_USER).pw_uid if os.geteuid() == 0 else os.geteuid()
        secret = os.path.join(self.server.home, 'disk.raw')
        with open(secret, 'wb', opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(b'disk of a person'.ljust(MI, b'.'))
        with self.subTest('before there is a host'):
            self.assertIn('next    berth up', self.image('build', 'os/mine:1', '--disk', secret))
            self.assertEqual({user}, owners(folder))
            self.assertEqual(0o700, os.stat(folder).st_mode & 0o777)
        self.server.start()
        with self.subTest('the host has it'):
            self.assertRegex(self.image('ls'), r'(?s)demo:latest.*os/mine:1')
            self.volume('mine', 'os/mine:1')
        with self.subTest('a registry of this network, for people and for runtimes'):
            pulled, fetched = (f'{self.registry.host}/os/{name}:1' for name in ('pulled', 'fetched'))
            for name in ('pulled', 'fetched'):
                self.registry.push(f'os/{name}', '1', {'rootfs': name.encode().ljust(MI, b'.')})
            self.image('pull', pulled, '--registry-ca', self.registry.ca)
            self.volume('fetched', fetched)
            self.volume('pulled', pulled)
            listed = self.image('ls')
            self.assertIn(pulled, listed)
            self.assertIn(fetched, listed)
            self.assertEqual({user}, owners(folder))
            self.image('rm', pulled)
        with self.subTest('what it was told'):
            cpu = self.server.kubectl('get', 'machinepool', 'alpha', '-o', 'jsonpath={.status.capacity.cpu}').stdout
            self.assertEqual(3 * os.sysconf('SC_NPROCESSORS_ONLN'), int(cpu))
        with self.subTest('what its runtimes would refuse is refused at once'):
            self.server.stop()
            wrong = [(('--local-disk', '3Gx'), 2, '--local-disk "3Gx": expected'),
                     (('--overcommit-cpu', '0'), 2, '--overcommit-cpu "0": expected'),
                     (('--registry-ca', secret + '.no'), 3, f'--registry-ca: open {secret}.no')]
            if os.geteuid() == 0:
                wrong.append((('--registry-credentials', self.server.data_dir), 2, 'libvirt-qemu may not read it'))
            for words, code, said in wrong:
                refused = self.server.berth('up', '--data-dir', self.server.data_dir, *words, check=False)
                self.assertIn(said, refused.stderr)
                self.assertEqual(code, refused.returncode, refused.stderr)
            self.server.start()


if __name__ == '__main__':
    unittest.main(verbosity=2)
