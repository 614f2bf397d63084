#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A class with EFI firmware: a real guest boots with it, keeps its variables while it is off, and takes them along. And what
boots without a kernel and a disk of its own: a unified kernel image under that firmware, a CD under a BIOS."""

import json
import os
import shutil
import tempfile
import unittest

import berth_fixture
import boot_media
import fleet_fixture
import guest_fixture
from guest_fixture import DEADLINE_S

MI = 1 << 20
CLASSES = '''
classes:
- name: efi
  capabilities: {cpu: 1, memory: 192Mi}
  firmware: efi
- name: bios
  capabilities: {cpu: 1, memory: 64Mi}
'''


class Efi(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp(prefix='berth-efi-')
        cls.addClassCleanup(shutil.rmtree, cls.home, ignore_errors=True)
        guest_fixture.make_image(cls.path('images', 'demo'))
        with open(cls.path('classes.yaml'), 'w', encoding='utf-8') as file:
            file.write(CLASSES)
        cls.libvirt = guest_fixture.Libvirt(cls.home)
        guest_fixture.give_to_guest_user(cls.home)
        cls.libvirt.start()
        cls.addClassCleanup(cls.libvirt.end)
        cls.berth = guest_fixture.berth_of_guest_user(cls.home)
        cls.runtime = fleet_fixture.Process(
            'machine-runtime', cls.home, 'runtime', 'machine', '--socket', cls.path('machine.sock'), '--libvirt',
            cls.libvirt.uri, '--dir', cls.path('machines'), '--run-dir', cls.path('guests'), '--secrets-on-disk', '--classes',
            cls.path('classes.yaml'), '--images', cls.path('images'), '--local-disk', '64Mi', '--reserve-memory', '64Mi',
            '--acceleration', 'tcg', '--shutdown-grace', '2s', command=cls.berth)
        cls.addClassCleanup(cls.runtime.kill)
        cls.runtime.start()
        berth_fixture.eventually(DEADLINE_S, lambda: os.path.exists(cls.path('machine.sock')), cls.runtime.log_tail())

    @classmethod
    def path(cls, *words):
        return os.path.join(cls.home, *words)

    def iri(self, *words, **options):
        return berth_fixture.run([*self.berth, 'iri', *words, '--endpoint', f'unix:{self.path("machine.sock")}'], **options)

    def machine(self):
        machines = json.loads(self.iri('machines', '-o', 'json').stdout).get('machines', [])
        return machines[0] if machines else None

    def console(self, machine_id):
        try:
            return guest_fixture.read(self.path('machines', machine_id, 'console.log')).decode(errors='replace')
        except FileNotFoundError:
            return ''

    def says(self, machine_id, text, behind=0):
        berth_fixture.eventually(2 * DEADLINE_S, lambda: text in self.console(machine_id)[behind:],
                                 f'it says {text!r}: {self.console(machine_id)[-300:]!r}; {self.iri("events").stdout}')

    def ask(self, machine_id, line, answer):
        behind = len(self.console(machine_id))
        with guest_fixture.typed(self.path('guests', machine_id, 'console.sock'), line):
            self.says(machine_id, answer, behind)
        self.assertNotIn('no firmware', self.console(machine_id)[behind:])

    def test_variables_outlive_a_power_cycle_and_go_with_the_machine(self):
        root = {'name': 'root', 'device': 'odx', 'localDisk': {'sizeBytes': str(MI), 'image': {'image': 'demo'}}}
        variable = 'Spec-8be4df61-93ca-11d2-aa0d-00e098032b8c'
        body = {'kind': 'Machine', 'metadata': {'labels': {fleet_fixture.MACHINE_UID_LABEL: 'u-1'}, 'annotations': {
                    'berth.dev/efi-variables': '8be4df61-93ca-11d2-aa0d-00e098032b8c Spec of%20the%20spec\n'}},
                'spec': {'class': 'efi', 'volumes': [root]}}
        self.iri('create', '-f', '-', input=json.dumps(body))
        machine_id = self.machine()['metadata']['id']
        self.says(machine_id, 'hello from the guest')
        self.ask(machine_id, 'efi something-to-keep', 'set')
        self.assertIn(f'spec {variable} of the spec end', self.console(machine_id))
        self.iri('power', machine_id, 'off')
        berth_fixture.eventually(DEADLINE_S, lambda: self.machine()['status'].get('state') == 'MACHINE_STOPPED', 'it is off')
        self.assertEqual([], self.libvirt.guests())
        behind = len(self.console(machine_id))
        self.iri('power', machine_id, 'on')
        self.says(machine_id, 'hello from the guest', behind)
        self.ask(machine_id, 'efi', 'kept something-to-keep end')
        self.assertIn(f'spec {variable} of the spec end', self.console(machine_id)[behind:])
        self.iri('delete', machine_id)
        berth_fixture.eventually(DEADLINE_S, lambda: self.machine() is None, f'it is gone; {self.iri("events").stdout}')
        for folder in ('machines', 'guests'):
            self.assertFalse(os.path.exists(self.path(folder, machine_id)))
        left = [name for _, _, names in os.walk(self.path('config')) for name in names if 'm-' in name]
        self.assertEqual([], left)

    # What an image is beside a kernel and a disk

    def build(self, name, flag, content):
        path = self.path(f'{name}.part')
        with open(path, 'wb') as file:
            file.write(content)
        berth_fixture.run([*self.berth, 'image', 'build', name, flag, path, '--images', self.path('images')])

    def boot(self, uid, machine_class, image):
        root = {'name': 'root', 'device': 'oda', 'localDisk': {'sizeBytes': str(MI), 'image': {'image': image}}}
        self.iri('create', '-f', '-', input=json.dumps({
            'kind': 'Machine', 'metadata': {'labels': {fleet_fixture.MACHINE_UID_LABEL: uid}},
            'spec': {'class': machine_class, 'volumes': [root]}}))
        return self.machine()['metadata']['id']

    def end(self, machine_id):
        self.iri('delete', machine_id)
        berth_fixture.eventually(DEADLINE_S, lambda: self.machine() is None, f'it is gone; {self.iri("events").stdout}')
        for folder in ('machines', 'guests'):
            self.assertFalse(os.path.exists(self.path(folder, machine_id)))

    def test_a_cd_boots_while_the_disk_does_not(self):
        self.build('installer', '--iso', boot_media.cd('hello from the CD'))
        machine_id = self.boot('u-cd', 'bios', 'installer')
        self.says(machine_id, 'hello from the CD')
        self.end(machine_id)

    def test_a_unified_kernel_image_boots_under_efi_and_is_refused_by_name_under_a_bios(self):
        self.build('unified', '--uki', boot_media.efi_program('hello from the firmware'))
        machine_id = self.boot('u-uki', 'efi', 'unified')
        self.says(machine_id, 'hello from the firmware')
        self.end(machine_id)
        machine_id = self.boot('u-bios', 'bios', 'unified')
        berth_fixture.eventually(
            DEADLINE_S, lambda: 'its layer of type application/vnd.ironcore.image.uki' in self.iri('events').stdout,
            'it says why')
        self.assertIn('machines of class "bios"', json.dumps(self.machine()['status']).replace('\\"', '"'))
        self.end(machine_id)


API_CLASS = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: MachineClass
metadata: {name: efi}
capabilities: {cpu: 1, memory: 192Mi}
'''
API_MACHINE = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {name: firm}
spec:
  machineClassRef: {name: efi}
  volumes:
  - {name: root, device: odx, localDisk: {sizeLimit: 1Mi, image: demo}}
  efiVars:
  - {name: Spec, uuid: 8be4df61-93ca-11d2-aa0d-00e098032b8c, value: of the object}
'''


class EfiOfTheApi(guest_fixture.RealHostTestCase):
    """From spec.efiVars of a Machine into the firmware of its guest."""

    HOST = {'machine_classes': CLASSES}

    def test_variables_of_the_object_are_in_the_guest(self):
        self.server.kubectl('apply', '-f', '-', input=API_CLASS)
        self.server.kubectl('apply', '-f', '-', input=API_MACHINE)
        berth_fixture.eventually(2 * DEADLINE_S, lambda: 'hello from the guest' in self.server.berth(
            'logs', 'firm', check=False).stdout, f'it boots; {self.server.kubectl("get", "machine", "firm", "-o", "yaml").stdout}')
        with guest_fixture.Terminal(self.server, 'firm') as terminal:
            said = terminal.ask('efi something', 'set')
        self.assertIn('spec Spec-8be4df61-93ca-11d2-aa0d-00e098032b8c of the object end', said)
        self.server.kubectl('delete', 'machine', 'firm', '--timeout=60s', timeout=90)


if __name__ == '__main__':
    unittest.main(verbosity=2)
