#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people and registries get wrong, with a whole host: each is a condition that says what is wrong, leaves nothing
behind, and is over when its cause is. docs/guide/bad-input.md has the list."""

import glob
import gzip
import json
import os
import subprocess
import tempfile
import unittest

import berth_fixture
import fleet_fixture
import guest_fixture
import lying_registry
from guest_fixture import DEADLINE_S

MI = 1 << 20
DISK = b'a disk of the registry'.ljust(MI, b'.')

VOLUME = '''
apiVersion: storage.ironcore.dev/v1alpha1
kind: Volume
metadata: {{name: {name}}}
spec:
  volumeClassRef: {{name: plain}}
  resources: {{storage: {size}}}
  dataSource: {{osImage: {{image: "{image}"}}}}
'''
MACHINE = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {{name: {name}}}
spec:
  machineClassRef: {{name: {machine_class}}}
  volumes:
  - {{name: root, device: oda, localDisk: {{sizeLimit: 1Mi, image: "{image}"}}}}
'''

# A class that the host offers, and the server learns of later.
HOST_CLASS = '''
- name: late
  capabilities: {cpu: 1, memory: 112Mi}
'''
API_CLASS = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: MachineClass
metadata: {name: late}
capabilities: {cpu: 1, memory: 112Mi}
'''

INTERFACE = '''
apiVersion: networking.ironcore.dev/v1alpha1
kind: NetworkInterface
metadata: {{name: {name}}}
spec:
  networkRef: {{name: lan}}
  ipFamilies: [IPv4]
  ips:
  - ephemeral: {{prefixTemplate: {{spec: {{parentRef: {{name: narrow}}}}}}}}
'''


class RegistryHostTestCase(guest_fixture.RealHostTestCase):
    """A host whose runtimes know a registry."""

    @classmethod
    def setUpClass(cls):
        home = tempfile.mkdtemp(prefix='berth-lies-')
        cls.addClassCleanup(guest_fixture.shutil.rmtree, home, ignore_errors=True)
        os.chmod(home, 0o755)
        cls.registry = lying_registry.LyingRegistry(home)
        cls.addClassCleanup(cls.registry.shut)
        words = ('--registry', cls.registry.host, '--registry-ca', cls.registry.ca)
        cls.HOST = {'machine_runtime': words, 'volume_runtime': words,
                    'machine_classes': guest_fixture.MACHINE_CLASSES + HOST_CLASS}
        super().setUpClass()


class BadInput(RegistryHostTestCase):

    def tearDown(self):
        self.server.kubectl('delete', 'machines,volumes', '--all', '--timeout=100s', timeout=120)
        berth_fixture.eventually(DEADLINE_S, lambda: not self.host.leftovers(), f'{self.host.leftovers()} are left')
        self.assertEqual([], self.half_done())

    # What the API says

    def get(self, kind, name):
        return json.loads(self.server.kubectl('get', kind, name, '-o', 'json').stdout)

    def apply(self, text):
        self.server.kubectl('apply', '-f', '-', input=text)

    def condition(self, kind, name, word):
        conditions = self.get(kind, name).get('status', {}).get('conditions', [])
        return next((each for each in conditions if each['type'] == word), {})

    def says(self, kind, name, word, reason, *texts):
        """Its condition is False for this reason, with these words in it."""
        def look():
            said = self.condition(kind, name, word)
            return said.get('status') == 'False' and said['reason'] == reason and all(
                text in said['message'] for text in texts)
        self.until(kind, name, look, f'{word} is {reason} with {texts}')

    def is_ready(self, kind, name):
        self.until(kind, name, lambda: self.condition(kind, name, 'Ready').get('status') == 'True', 'it is ready')

    def until(self, kind, name, look, what):
        try:
            berth_fixture.eventually(DEADLINE_S, look, f'{kind} {name}: {what}')
        except berth_fixture.Failure as failure:
            raise berth_fixture.Failure(f'{failure}; it is {self.get(kind, name).get("status")}') from None

    # What is on the host

    def half_done(self):
        """Parts of disks and of unpacked layers; what came of a download stays, to be gone on with."""
        found = [*glob.glob(self.host.path('disks/volumes/*/part*')), *glob.glob(self.host.path('machines/*/*.part'))]
        cache = self.host.path('images/.registry')
        return found + glob.glob(f'{cache}/parts/*unpacked*')

    def write_image(self, name, *words):
        path = self.host.path('images', name)
        subprocess.run(['/usr/bin/qemu-img', 'create', '-q', '-u', '-f', 'qcow2', *words, path, '1M'], check=True, timeout=60)
        os.chmod(path, 0o644)
        return path

    # Images

    def test_an_image_with_a_wrong_digest(self):
        name = f'{self.registry.host}/os/wrong:1'
        self.registry.push('os/wrong', '1', {'rootfs': DISK})
        self.registry.put_blob('os/wrong', DISK, sent=DISK.replace(b'a disk', b'A DISK'))
        self.apply(VOLUME.format(name='wrong', size='1Mi', image=name) +
                   '---' + MACHINE.format(name='wrong', machine_class='tiny', image=name))
        for kind in ('volume', 'machine'):
            self.says(kind, 'wrong', 'ImageReady', 'ImageInvalid', f'image "{name}"',
                      f'expected {lying_registry.sha256(DISK)}')
            self.assertEqual('False', self.condition(kind, 'wrong', 'Ready')['status'])
        self.assertEqual([], self.half_done())
        self.registry.put_blob('os/wrong', DISK)
        for kind in ('volume', 'machine'):
            self.is_ready(kind, 'wrong')

    def test_a_truncated_download(self):
        name = f'{self.registry.host}/os/short:1'
        disk = DISK.replace(b'a disk', b'a tail')
        self.registry.push('os/short', '1', {'rootfs': disk})
        self.registry.put_blob('os/short', disk, sent=disk[:700_000])
        self.apply(VOLUME.format(name='short', size='1Mi', image=name))
        self.says('volume', 'short', 'ImageReady', 'ImageUnavailable', f'image "{name}"', '700000 of 1048576 bytes')
        self.registry.put_blob('os/short', disk)
        self.is_ready('volume', 'short')
        self.assertIn((self.registry.blob_path('os/short', disk), 'bytes=700000-'), self.registry.seen)

    def test_a_registry_that_goes_half_way(self):
        name = f'{self.registry.host}/os/gone:1'
        disk = DISK.replace(b'a disk', b'a half')
        self.registry.push('os/gone', '1', {'rootfs': disk})
        self.registry.breaks_at = self.registry.blob_path('os/gone', disk)
        self.apply(VOLUME.format(name='gone', size='1Mi', image=name))
        self.says('volume', 'gone', 'ImageReady', 'ImageUnavailable', f'image "{name}"', self.registry.host)
        self.registry.breaks_at = None
        self.registry.start()
        self.is_ready('volume', 'gone')
        self.assertTrue(any(path == self.registry.blob_path('os/gone', disk) and range_ for path, range_ in
                            self.registry.seen), 'it goes on behind what came')

    def test_a_decompression_bomb(self):
        name = f'{self.registry.host}/os/bomb:1'
        self.registry.push('os/bomb', '1', {'rootfs+gzip': gzip.compress(bytes(256 * MI), 1)})
        self.apply(VOLUME.format(name='bomb', size='1Mi', image=name) +
                   '---' + MACHINE.format(name='bomb', machine_class='tiny', image=name))
        for kind in ('volume', 'machine'):
            self.says(kind, 'bomb', 'ImageReady', 'ImageInvalid', f'image "{name}"',
                      f'more than {MI} bytes come out of it, which is the limit here')
        self.assertEqual([], self.half_done())
        self.registry.push('os/bomb', '1', {'rootfs+gzip': gzip.compress(DISK)})
        for kind in ('volume', 'machine'):
            self.is_ready(kind, 'bomb')

    def test_a_packed_layer_that_is_cut_short_or_followed_by_something(self):
        name = f'{self.registry.host}/os/packed:1'
        packed = gzip.compress(DISK)
        self.registry.push('os/packed', '1', {'rootfs+gzip': packed[:-9]})
        self.apply(VOLUME.format(name='packed', size='1Mi', image=name))
        self.says('volume', 'packed', 'ImageReady', 'ImageInvalid', 'the gzip stream is cut short')
        self.registry.push('os/packed', '1', {'rootfs+gzip': packed + b'and more'})
        self.says('volume', 'packed', 'ImageReady', 'ImageInvalid', 'something else follows the gzip stream')
        self.registry.push('os/packed', '1', {'rootfs+gzip': packed})
        self.is_ready('volume', 'packed')

    def test_P9_a_qcow2_that_leads_elsewhere(self):
        for name, words, says in (('backing', ('-b', '/etc/passwd', '-F', 'raw'), 'with a backing file'),
                                  ('data', ('-o', f'data_file={self.host.path("images", "data.raw")},data_file_raw=on'),
                                   'with an external data file')):
            image = f'{name}.qcow2'
            self.write_image(image, *words)
            self.apply(VOLUME.format(name=name, size='1Mi', image=image) +
                       '---' + MACHINE.format(name=name, machine_class='tiny', image=image))
            for kind in ('volume', 'machine'):
                self.says(kind, name, 'ImageReady', 'ImageInvalid', f'image "{image}"', says)
            self.assertEqual([], self.half_done())
            self.write_image(image)
            for kind in ('volume', 'machine'):
                self.is_ready(kind, name)

    # Classes, devices, names

    def test_an_unknown_class(self):
        self.apply(MACHINE.format(name='classless', machine_class='late', image='demo'))
        self.says('machine', 'classless', 'Scheduled', 'ClassNotFound', 'there is no MachineClass late')
        self.apply(API_CLASS)
        self.is_ready('machine', 'classless')

    def test_addresses_that_are_exhausted(self):
        def addresses(name):
            return [ip for ip in self.get('networkinterface', name).get('status', {}).get('ips', [])]
        self.apply(guest_fixture.ONE_ADDRESS + '---' + INTERFACE.format(name='first'))
        berth_fixture.eventually(DEADLINE_S, lambda: addresses('first') == ['10.9.0.1'], 'the first has it')
        self.apply(INTERFACE.format(name='second') + '---' +
                   MACHINE.format(name='addressless', machine_class='tiny', image='demo') +
                   '  networkInterfaces: [{name: primary, networkInterfaceRef: {name: second}}]\n')
        self.says('machine', 'addressless', 'NetworkInterfacesReady', 'NetworkInterfaceNotReady', 'primary',
                  'network interface second has no addresses: Prefix narrow (10.9.0.1/32) has no free /32',
                  'nothing of it is free')
        self.says('machine', 'addressless', 'PrerequisitesMet', 'PrerequisiteMissing', 'Prefix narrow')
        self.says('networkinterface', 'second', 'AddressesReady', 'PrefixExhausted', 'Prefix narrow')
        self.assertEqual('False', self.condition('machine', 'addressless', 'Ready')['status'])
        events = self.server.kubectl('get', 'events', '--field-selector', 'involvedObject.name=second').stdout
        self.assertIn('PrefixExhausted', events)
        self.assertIn('narrow', events)
        self.assertEqual([], self.host.leftovers())
        self.server.kubectl('delete', 'networkinterface', 'first', '--timeout=60s', timeout=90)
        berth_fixture.eventually(DEADLINE_S, lambda: addresses('second') == ['10.9.0.1'], 'it is given on')
        self.assertEqual({}, self.condition('networkinterface', 'second', 'AddressesReady'))
        self.until('machine', 'addressless', lambda: 'no address' not in
                   self.condition('machine', 'addressless', 'NetworkInterfacesReady').get('message', ''), 'it goes on')
        self.server.kubectl('delete', 'machine', 'addressless', '--timeout=100s', timeout=120)
        self.server.kubectl('delete', 'networkinterface', 'second', '--timeout=60s', timeout=90)
        self.server.kubectl('delete', 'network/lan', 'prefix/narrow', '--timeout=60s', timeout=90)

    def test_a_device_name_that_is_taken(self):
        twice = MACHINE.format(name='twice', machine_class='tiny', image='demo') + \
            '  - {name: data, device: oda, localDisk: {sizeLimit: 1Mi}}\n'
        refused = self.server.kubectl('apply', '-f', '-', input=twice, check=False)
        self.assertNotEqual(0, refused.returncode)
        self.assertIn('spec.volumes[1].device', refused.stderr)
        # A runtime does not take the server's word for it.
        self.apply(MACHINE.format(name='twice', machine_class='tiny', image='demo'))
        self.is_ready('machine', 'twice')
        uid = self.get('machine', 'twice')['metadata']['uid']
        attached = self.iri('attach', self.host.machine_id(uid), '--volume', 'data', '--device', 'oda', '--size', '1Mi')
        self.assertNotEqual(0, attached.returncode)
        self.assertIn('device "oda" is taken', attached.stderr)
        self.assertEqual(1, len(self.host.libvirt.guests()))

    def test_efi_variables_that_cannot_be(self):
        plain = MACHINE.format(name='variable', machine_class='tiny', image='demo')
        for uuid, words in (('8be4df61', 'efiVars[0]: uuid "8be4df61" of "Boot"'),
                            ('8be4df61-93ca-11d2-aa0d-00e098032b8c', 'class "tiny" have no EFI firmware')):
            self.apply(plain + f'  efiVars: [{{name: Boot, uuid: {uuid}, value: x}}]\n')
            self.says('machine', 'variable', 'Ready', 'RuntimeError', words)
        self.assertEqual([], self.host.leftovers())
        self.apply(plain)
        self.is_ready('machine', 'variable')

    def test_P9_names_that_are_hostile_to_xml_and_to_terminals(self):
        for bad in ('<name/>', 'a&b', 'line\nbreak', 'esc\x1b[2J', 'Ünicode', '../up'):
            body = {'apiVersion': 'compute.ironcore.dev/v1alpha1', 'kind': 'Machine', 'metadata': {'name': bad}, 'spec': {
                'machineClassRef': {'name': 'tiny'}, 'volumes': [{'name': 'root', 'device': 'oda', 'emptyDisk': {}}]}}
            with self.server.client() as client:
                refused = client.request('POST', '/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines', body)
            self.assertEqual(422, refused.status, bad)
            self.assertIn('metadata.name', refused.json()['message'])
        # At a runtime's own door nothing but text becomes of them, either.
        hostile = '</name><on_crash>preserve</on_crash>&lt;\'"]]>\x1b[2J\u202e\n'
        root = {'name': hostile, 'device': 'oda', 'localDisk': {'sizeBytes': str(MI), 'image': {'image': 'demo'}}}
        labels = {fleet_fixture.MACHINE_UID_LABEL: 'u-hostile', 'machinepoollet.ironcore.dev/machine-name': hostile}
        body = {'kind': 'Machine', 'metadata': {'labels': labels, 'annotations': {hostile: hostile}},
                'spec': {'class': 'tiny', 'volumes': [root]}}
        made = self.iri('create', '-f', '-', input=json.dumps(body))
        self.assertEqual(0, made.returncode, made.stderr)
        machine_id = self.host.machine_id('u-hostile')
        log = self.host.path('machines', machine_id, 'console.log')
        berth_fixture.eventually(DEADLINE_S, lambda: os.path.exists(log) and b'hello from the guest' in
                                 guest_fixture.read(log), f'it boots; {self.iri("events").stdout}')
        (there,) = (machine for machine in json.loads(self.host.iri('machines').stdout)['machines']
                    if machine['metadata']['id'] == machine_id)
        self.assertEqual(hostile, there['metadata']['labels']['machinepoollet.ironcore.dev/machine-name'])
        self.assertEqual({hostile: hostile}, there['metadata']['annotations'])
        xml = guest_fixture.read(self.host.path('config/libvirt/qemu', f'berth-{machine_id}.xml'))
        self.assertNotIn(b'preserve</on_crash>', xml)
        self.assertIn(b'<on_crash>destroy</on_crash>', xml)
        deleted = self.iri('delete', machine_id)
        self.assertEqual(0, deleted.returncode, deleted.stderr)
        berth_fixture.eventually(DEADLINE_S, lambda: self.host.machine_id('u-hostile') is None, 'it is gone')
        for process in self.host.processes:
            self.assertNotIn(b'\x1b[2J', guest_fixture.read(process.log_path), process.name)

    def iri(self, *words, **options):
        return berth_fixture.run([*self.host.berth, 'iri', *words, '--endpoint', f'unix:{self.host.machine_socket}'],
                                 check=False, **options)


@unittest.skipUnless(os.geteuid() == 0, 'mounting a small disk needs root')
class FullDisk(RegistryHostTestCase):
    """The runtimes promise more than their disks have."""

    SIZE_MB = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(cls.host.path('images', 'large.raw'), 'wb') as file:
            file.write(os.urandom(6 * MI))
        os.chmod(cls.host.path('images', 'large.raw'), 0o644)

    def mount(self, folder, megabytes=SIZE_MB):
        path = self.host.path(folder)
        os.makedirs(path, exist_ok=True)
        owner = os.stat(os.path.dirname(path))
        subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={megabytes}m,uid={owner.st_uid},gid={owner.st_gid},mode=700',
                        'berth-test', path], check=True)
        self.addCleanup(subprocess.run, ['umount', '-l', path], check=False)
        return path

    def condition(self, kind, word):
        text = self.server.kubectl('get', kind, 'large', '-o', 'json').stdout
        conditions = json.loads(text).get('status', {}).get('conditions', [])
        return next((each for each in conditions if each['type'] == word), {})

    def wants(self, image):
        """A volume and a machine, which two runtimes make of the same files."""
        self.server.kubectl('apply', '-f', '-', input=VOLUME.format(name='large', size='8Mi', image=image) + '---' +
                            MACHINE.format(name='large', machine_class='tiny', image=image).replace('sizeLimit: 1Mi', 'sizeLimit: 8Mi'))

    def has_no_room(self, image, folder, *causes):
        """Both say so, with the image, the folder and one of the causes."""
        def said(kind):
            condition = self.condition(kind, 'ImageReady')
            return (condition.get('status'), condition.get('reason')) == ('False', 'NoRoomForImage') and all(
                words in condition['message'] for words in (f'image "{image}"', folder)) and any(
                    cause in condition['message'] for cause in causes)
        for kind in ('volume', 'machine'):
            berth_fixture.eventually(DEADLINE_S, lambda kind=kind: said(kind), f'it is said of the {kind}; '
                                     f'{self.condition(kind, "ImageReady")}\n{self.host.logs()}')
            self.assertEqual('False', self.condition(kind, 'Ready')['status'])
        self.assertEqual([], self.host.libvirt.guests())

    def goes_on(self, cache):
        subprocess.run(['mount', '-o', 'remount,size=64m', cache], check=True)
        for kind in ('volume', 'machine'):
            berth_fixture.eventually(DEADLINE_S, lambda kind=kind: self.condition(kind, 'Ready').get('status') == 'True',
                                     f'there is room now; {self.condition(kind, "ImageReady")}\n{self.host.logs()}')
        self.assertEqual([], glob.glob(f'{cache}/parts/*'))
        self.server.kubectl('delete', 'machine/large', 'volume/large', '--timeout=100s', timeout=120)
        berth_fixture.eventually(DEADLINE_S, lambda: not self.host.leftovers(), f'{self.host.leftovers()} are left')

    def test_a_full_disk_of_images_that_come(self):
        """Full from the beginning on, and then half-way, because somebody else has filled it."""
        cache = self.mount('images/.registry')
        disk = os.urandom(6 * MI)
        image = f'{self.registry.host}/os/large:1'
        self.registry.push('os/large', '1', {'rootfs': disk})
        blob = self.registry.blob_path('os/large', disk)
        self.wants(image)
        self.has_no_room(image, cache, f'{6 * MI} more bytes do not fit')
        self.assertEqual([], [path for path, _ in self.registry.seen if path == blob], 'nothing of it was fetched')
        self.assertEqual(0, sum(map(os.path.getsize, glob.glob(f'{cache}/parts/*'))))

        self.registry.stalls_at = blob
        self.addCleanup(self.registry.goes_on.set)
        subprocess.run(['mount', '-o', 'remount,size=8m', cache], check=True)
        berth_fixture.eventually(DEADLINE_S, lambda: sum(map(os.path.getsize, glob.glob(f'{cache}/parts/*'))) >= 2 * MI,
                                 f'half of it comes\n{self.host.logs()}')
        with open(os.path.join(cache, 'filled'), 'wb', buffering=0) as file, self.assertRaises(OSError):
            while True:
                file.write(bytes(4096))
        self.registry.goes_on.set()
        self.has_no_room(image, cache, 'No space left on device', 'more bytes do not fit')
        os.unlink(os.path.join(cache, 'filled'))
        self.goes_on(cache)
        # Of what is there already, the last byte is asked for.
        asked = {int(range_.removeprefix('bytes=').rstrip('-')) for path, range_ in self.registry.seen if path == blob and range_}
        self.assertTrue(asked - {6 * MI - 1}, 'it goes on behind what had come')

    def test_a_full_disk_of_images_that_are_unpacked(self):
        cache = self.mount('images/.registry')
        image = f'{self.registry.host}/os/small:1'
        self.registry.push('os/small', '1', {'rootfs+gzip': gzip.compress(b'.' * (6 * MI))})
        self.wants(image)
        self.has_no_room(image, cache, 'No space left on device')
        berth_fixture.eventually(DEADLINE_S, lambda: not glob.glob(f'{cache}/parts/*unpacked*'),
                                 'nothing of it takes room until the next attempt')
        self.goes_on(cache)
        self.assertEqual(1, len(glob.glob(f'{cache}/unpacked/*')))

    def test_a_full_disk_of_volumes(self):
        path = self.mount('disks/volumes')
        self.server.kubectl('apply', '-f', '-', input=VOLUME.format(name='large', size='8Mi', image='large.raw'))
        berth_fixture.eventually(DEADLINE_S, lambda: self.condition('volume', 'ImageReady').get('reason') == 'NoRoomForImage',
                                 f'it is said\n{self.host.logs()}')
        said = self.condition('volume', 'ImageReady')
        self.assertIn('image "large.raw"', said['message'])
        self.assertIn('no space left', said['message'].lower())
        berth_fixture.eventually(DEADLINE_S, lambda: not glob.glob(os.path.join(path, '*', 'part*')),
                                 'nothing of it takes room until the next attempt')
        subprocess.run(['mount', '-o', 'remount,size=64m', path], check=True)
        berth_fixture.eventually(DEADLINE_S, lambda: self.condition('volume', 'Ready').get('status') == 'True',
                                 f'there is room now\n{self.host.logs()}')
        self.server.kubectl('delete', 'volume', 'large', '--timeout=60s', timeout=90)
        berth_fixture.eventually(DEADLINE_S, lambda: not self.host.leftovers(), f'{self.host.leftovers()} are left')

    def test_a_full_disk_of_local_disks(self):
        path = self.mount('machines')
        self.server.kubectl('apply', '-f', '-', input=MACHINE.format(name='large', machine_class='tiny', image='large.raw').replace(
            'sizeLimit: 1Mi', 'sizeLimit: 8Mi'))
        berth_fixture.eventually(DEADLINE_S, lambda: self.condition('machine', 'ImageReady').get('reason') == 'NoRoomForImage',
                                 f'it is said\n{self.host.logs()}')
        said = self.condition('machine', 'ImageReady')
        self.assertIn('image "large.raw"', said['message'])
        self.assertIn('no space left', said['message'].lower())
        self.assertEqual([], self.host.libvirt.guests())
        berth_fixture.eventually(DEADLINE_S, lambda: not glob.glob(os.path.join(path, '*', '*.part')),
                                 'nothing of it takes room until the next attempt')
        subprocess.run(['mount', '-o', 'remount,size=64m', path], check=True)
        berth_fixture.eventually(DEADLINE_S, lambda: self.condition('machine', 'Ready').get('status') == 'True',
                                 f'there is room now\n{self.host.logs()}')
        self.server.kubectl('delete', 'machine', 'large', '--timeout=100s', timeout=120)
        berth_fixture.eventually(DEADLINE_S, lambda: not self.host.leftovers(), f'{self.host.leftovers()} are left')


if __name__ == '__main__':
    unittest.main(verbosity=2)
