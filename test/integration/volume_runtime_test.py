#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`berth runtime volume` as a real process: driven by `berth iri`, killed and started again, and behind a poollet, where
a Volume of the API becomes a real qcow2 file, grows, and goes."""

import json
import os
import random
import shutil
import subprocess
import tempfile
import unittest

import berth_fixture
import fleet_fixture

UID_LABEL = 'volumepoollet.ironcore.dev/volume-uid'
SNAPSHOT_UID_LABEL = 'volumepoollet.ironcore.dev/volume-snapshot-uid'
MI = 1 << 20

CLASSES = '''
classes:
- name: fast
  capabilities: {tps: 100Mi, iops: 5000}
- name: plain
  capabilities: {tps: 10Mi, iops: 500}
  format: raw
'''

API_OBJECTS = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: MachineClass
metadata: {name: small}
capabilities: {cpu: 1, memory: 1Gi}
---
apiVersion: storage.ironcore.dev/v1alpha1
kind: VolumeClass
metadata: {name: fast}
capabilities: {tps: 100Mi, iops: 5000}
resizePolicy: ExpandOnly
'''

API_VOLUME = '''
apiVersion: storage.ironcore.dev/v1alpha1
kind: Volume
metadata: {name: data, namespace: default}
spec:
  volumeClassRef: {name: fast}
  resources: {storage: 8Mi}
'''


def volume(uid, size=4 * MI, source=None, **spec):
    body = {'class': 'fast', 'resources': {'storageBytes': str(size)}, **spec}
    if source is not None:
        body['volumeDataSource'] = source
    return json.dumps({'kind': 'Volume', 'metadata': {'labels': {UID_LABEL: uid}}, 'spec': body})


def snapshot(uid, volume_id):
    return json.dumps({'kind': 'VolumeSnapshot', 'metadata': {'labels': {SNAPSHOT_UID_LABEL: uid}},
                       'spec': {'volumeId': volume_id}})


def qemu_img_facts(path):
    """What qemu-img says of a qcow2 file, whoever uses it."""
    told = subprocess.run(['/usr/bin/qemu-img', 'info', '-U', '--output=json', '-f', 'qcow2', path], check=True,
                          capture_output=True, text=True, timeout=60)
    return json.loads(told.stdout)


def qemu_io(path, command):
    told = subprocess.run(['/usr/bin/qemu-io', '-f', 'qcow2', '-c', command, path], check=True, capture_output=True,
                          text=True, timeout=60)
    assert 'verification failed' not in told.stdout, told.stdout


class VolumeRuntime:
    """One `berth runtime volume` process with a folder, a socket and a log of its own."""

    def __init__(self, home, *arguments):
        self.disks = os.path.join(home, 'disks')
        self.images = os.path.join(home, 'images')
        self.socket = os.path.join(home, 'sockets', 'volume.sock')
        os.makedirs(self.images, exist_ok=True)
        classes = os.path.join(home, 'classes.yaml')
        with open(classes, 'w', encoding='utf-8') as file:
            file.write(CLASSES)
        self.process = fleet_fixture.Process('volume-runtime', home, 'runtime', 'volume', '--socket', self.socket,
                                             '--dir', self.disks, '--classes', classes, '--images', self.images,
                                             *arguments)

    def start(self):
        self.process.start()
        berth_fixture.eventually(berth_fixture.START_DEADLINE_S,
                                 lambda: self.iri('version', check=False).returncode == 0,
                                 f'the volume runtime; {self.process.log_tail()}')
        return self

    def iri(self, *words, check=True, input=None):
        return berth_fixture.run([berth_fixture.binary(), 'iri', *words, '--endpoint', f'unix:{self.socket}'],
                                 check=check, input=input)

    def json(self, *words):
        return json.loads(self.iri(*words, '-o', 'json').stdout)

    def volumes(self):
        return {one['metadata']['labels'][UID_LABEL]: one for one in self.json('volumes')['volumes']}

    def available(self, uid, deadline_s=60):
        """The volume of this uid, once it is there."""
        def look():
            found = self.volumes().get(uid)
            return found if found and found.get('status', {}).get('state') == 'VOLUME_AVAILABLE' else None
        return berth_fixture.eventually(deadline_s, look, f'volume {uid}; {self.process.log_tail()}')

    def used(self):
        return int(self.json('capacity').get('used', {}).get('amounts', {}).get('storage', 0))

    def files(self):
        return sorted(os.path.join(folder, name) for folder, _, names in os.walk(self.disks) for name in names
                      if name != 'lock')


class VolumeRuntimeTest(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix='berth-volume-')
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)

    def runtime(self, *arguments):
        runtime = VolumeRuntime(self.home, *arguments).start()
        self.addCleanup(runtime.process.kill)
        return runtime

    def test_a_volume_is_a_qcow2_file_with_the_limits_of_its_class(self):
        runtime = self.runtime('--capacity', '64Mi')
        runtime.iri('create', '-f', '-', input=volume('u-1'))
        made = runtime.available('u-1')
        access = made['status']['access']
        self.assertEqual(access['driver'], 'file')
        self.assertEqual(access['attributes']['tps'], str(100 * MI))
        self.assertEqual(access['attributes']['iops'], '5000')
        facts = qemu_img_facts(access['attributes']['path'])
        self.assertEqual((facts['format'], facts['virtual-size']), ('qcow2', 4 * MI))
        self.assertEqual(runtime.used(), 4 * MI)
        runtime.iri('delete', 'volume', made['metadata']['id'])
        berth_fixture.eventually(30, lambda: not runtime.volumes(), 'deletion')
        self.assertEqual(runtime.files(), [])
        runtime.process.stop()
        self.assertFalse(os.path.exists(runtime.socket))

    def test_a_snapshot_restores_what_was(self):
        runtime = self.runtime('--capacity', '64Mi')
        runtime.iri('create', '-f', '-', input=volume('u-1'))
        source = runtime.available('u-1')
        path = source['status']['access']['attributes']['path']
        qemu_io(path, 'write -P 0x61 0 1M')
        runtime.iri('create', '-f', '-', input=snapshot('s-1', source['metadata']['id']))
        ready = berth_fixture.eventually(
            60, lambda: [one for one in runtime.json('snapshots')['volumeSnapshots']
                         if one['status'].get('state') == 'VOLUME_SNAPSHOT_READY'], 'the snapshot')
        qemu_io(path, 'write -P 0x62 0 1M')
        source_of = {'snapshotDataSource': {'snapshotId': ready[0]['metadata']['id']}}
        runtime.iri('create', '-f', '-', input=volume('u-2', source=source_of))
        qemu_io(runtime.available('u-2')['status']['access']['attributes']['path'], 'read -P 0x61 0 1M')

    def test_P6_6_a_full_budget_and_an_unknown_class_are_refused_by_name(self):
        runtime = self.runtime('--capacity', '20Mi', '--reserve', '10Mi')
        full = runtime.iri('create', '-f', '-', check=False, input=volume('u-1', 11 * MI))
        self.assertNotEqual(full.returncode, 0)
        self.assertIn('no room for a volume of 11534336 bytes', full.stderr)
        unknown = runtime.iri('create', '-f', '-', check=False,
                              input=volume('u-1').replace('"fast"', '"no-such-class"'))
        self.assertIn('volume class "no-such-class" is not offered', unknown.stderr)
        runtime.iri('create', '-f', '-', input=volume('u-1', 10 * MI))
        runtime.available('u-1')

    def test_P9_an_encrypted_volume_leaves_its_key_nowhere(self):
        runtime = self.runtime('--capacity', '64Mi')
        key = 'dG9wLXNlY3JldC1rZXk='  # "top-secret-key"
        runtime.iri('create', '-f', '-',
                    input=volume('u-1', encryption={'secretData': {'encryptionKey': key}}))
        made = runtime.available('u-1', deadline_s=300)  # hardening a key is seconds of computing
        self.assertEqual(made['status']['access']['attributes']['format'], 'luks')
        for path in [*runtime.files(), runtime.process.log_path]:
            with open(path, 'rb') as file:
                self.assertNotIn(b'top-secret-key', file.read(), path)

    def test_P9_an_image_with_a_backing_file_is_refused_with_the_reason(self):
        runtime = self.runtime('--capacity', '64Mi')
        subprocess.run(['/usr/bin/qemu-img', 'create', '-q', '-u', '-f', 'qcow2', '-b', '/etc/passwd', '-F', 'raw',
                        os.path.join(runtime.images, 'evil.qcow2'), '1M'], check=True, timeout=60)
        runtime.iri('create', '-f', '-', input=volume('u-1', source={'imageDataSource': {'image': 'evil.qcow2'}}))
        berth_fixture.eventually(
            60, lambda: runtime.volumes()['u-1'].get('status', {}).get('state') == 'VOLUME_ERROR', 'the refusal')
        self.assertIn('with a backing file', runtime.iri('events').stdout)

    def test_what_was_acknowledged_survives_kill_9_at_any_moment(self):
        runtime = self.runtime('--capacity', '1Gi')
        with open(os.path.join(runtime.images, 'base.raw'), 'wb') as file:
            file.write(b'base' * (MI // 4))
        wanted = []
        for round_ in range(5):
            for _ in range(random.randint(1, 3)):
                uid = f'u-{len(wanted)}'
                image = {'imageDataSource': {'image': 'base.raw'}}
                runtime.iri('create', '-f', '-', input=volume(uid, source=image))
                wanted.append(uid)
            runtime.process.kill()
            berth_fixture.eventually(30, lambda: not self.children_of(runtime), 'qemu-img goes with its runtime')
            runtime.start()
            self.assertEqual(sorted(runtime.volumes()), sorted(wanted), f'round {round_}')
        for uid in wanted:
            qemu_io(runtime.available(uid)['status']['access']['attributes']['path'], 'read -P 0x62 0 1')
        for uid in wanted:
            runtime.iri('delete', 'volume', runtime.volumes()[uid]['metadata']['id'])
        runtime.process.kill()
        runtime.start()
        berth_fixture.eventually(60, lambda: not runtime.volumes(), 'deletion goes on')
        self.assertEqual(runtime.files(), [])

    @staticmethod
    def children_of(runtime):
        """Programs that still write to the folder of a runtime that is dead."""
        found = []
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                with open(f'/proc/{pid}/cmdline', 'rb') as file:
                    words = file.read()
            except OSError:
                continue
            if b'qemu-img' in words and runtime.disks.encode() in words:
                found.append(pid)
        return found

    def test_usage_errors_say_what_to_do(self):
        for words, says in [((), 'name a folder with --dir'),
                            (('--dir', self.home), 'name a file with --classes'),
                            (('--dir', self.home, '--classes', '/no/such/file'), '/no/such/file')]:
            answer = berth_fixture.run([berth_fixture.binary(), 'runtime', 'volume', '--socket',
                                        os.path.join(self.home, 's.sock'), *words], check=False)
            self.assertNotEqual(answer.returncode, 0)
            self.assertIn(says, answer.stderr)


class VolumesOfTheApi(berth_fixture.ServerTestCase):
    """Server, poollet and volume runtime: all real processes."""

    def setUp(self):
        self.server.kubectl('apply', '-f', '-', input=API_OBJECTS)
        self.host = fleet_fixture.Host(self.server, 'alpha')
        self.addCleanup(self.host.close)
        self.volumes = VolumeRuntime(self.host.home, '--capacity', '64Mi').start()
        self.addCleanup(self.volumes.process.kill)
        self.host.poollet = fleet_fixture.Process(
            'poollet', self.host.home, 'poollet', '--server', fleet_fixture.gateway_address(self.server),
            '--token-file', self.host.token_file, '--data-dir', os.path.join(self.host.home, 'data'), '--name', 'alpha',
            '--machine-pool', 'alpha', '--volume-pool', 'alpha-disks', '--machine-runtime', f'unix:{self.host.socket}',
            '--volume-runtime', f'unix:{self.volumes.socket}')
        self.host.start()

    def get(self, kind, name):
        found = self.server.kubectl('get', kind, name, '--ignore-not-found', '-o', 'json').stdout
        return json.loads(found) if found else None

    def test_a_volume_becomes_a_file_grows_and_goes(self):
        berth_fixture.eventually(60, lambda: self.get('volumepool', 'alpha-disks'), 'the pool')
        self.server.kubectl('apply', '-f', '-', input=API_VOLUME)
        made = berth_fixture.eventually(
            60, lambda: (found := self.get('volume', 'data')).get('status', {}).get('state') == 'Available' and found,
            f'the volume; {self.host.logs()} {self.volumes.process.log_tail()}')
        path = made['status']['access']['volumeAttributes']['path']
        self.assertEqual(qemu_img_facts(path)['virtual-size'], 8 * MI)

        self.server.kubectl('patch', 'volume', 'data', '--type=merge',
                            '-p', '{"spec":{"resources":{"storage":"16Mi"}}}')
        berth_fixture.eventually(60, lambda: qemu_img_facts(path)['virtual-size'] == 16 * MI, 'the growth')
        berth_fixture.eventually(
            60, lambda: self.get('volume', 'data')['status'].get('resources', {}).get('storage') == '16Mi',
            'the new size in the status')

        self.server.kubectl('delete', 'volume', 'data', '--timeout=60s', timeout=90)
        berth_fixture.eventually(60, lambda: not self.volumes.files(), 'no file is left')
        self.host.poollet.stop()
        self.volumes.process.stop()


if __name__ == '__main__':
    unittest.main(verbosity=2)
