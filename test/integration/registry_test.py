#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Images from a real registry (Debian's docker-registry), over TLS and with a password: what a person pulls, and what a
volume is made of on behalf of a namespace."""

import base64
import crypt
import glob
import gzip
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import unittest

import berth_fixture
import guest_fixture
import volume_runtime_test
from lying_registry import MANIFEST_TYPE, TYPE, LyingRegistry, make_certificate, sha256

USER, PASSWORD = 'anna', 'correct horse'
DEADLINE_S = 60
MI = 1 << 20

CONFIG = '''
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {home}/registry}}}}
http: {{addr: '127.0.0.1:{port}', tls: {{certificate: {home}/server.pem, key: {home}/server.key}}}}
auth: {{htpasswd: {{realm: test, path: {home}/htpasswd}}}}
'''


class Registry:
    """One docker-registry with everything in a folder."""

    def __init__(self, home):
        self.home, self.process = home, None
        make_certificate(home)
        with socket.socket() as probe:
            probe.bind(('127.0.0.1', 0))
            self.port = probe.getsockname()[1]
        self.host = f'127.0.0.1:{self.port}'
        self.ca = os.path.join(home, 'ca.pem')
        with open(os.path.join(home, 'htpasswd'), 'w', encoding='utf-8') as file:
            file.write(f'{USER}:{crypt.crypt(PASSWORD, crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16))}\n')
        with open(os.path.join(home, 'registry.yml'), 'w', encoding='utf-8') as file:
            file.write(CONFIG.format(home=home, port=self.port))

    def start(self):
        with open(os.path.join(self.home, 'registry.log'), 'ab') as log:
            self.process = subprocess.Popen(['/usr/bin/docker-registry', 'serve', os.path.join(self.home, 'registry.yml')],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        berth_fixture.eventually(DEADLINE_S, lambda: self.ask('GET', '/v2/').status == 200, 'the registry')

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def credentials(self):
        both = base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()
        return json.dumps({'auths': {self.host: {'auth': both}}})

    def ask(self, method, target, body=None, headers=None):
        connection = http.client.HTTPSConnection('127.0.0.1', self.port, timeout=DEADLINE_S,
                                                 context=ssl.create_default_context(cafile=self.ca))
        both = base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()
        connection.request(method, target, body, {'Authorization': f'Basic {both}', **(headers or {})})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer

    def push_blob(self, name, content):
        begun = self.ask('POST', f'/v2/{name}/blobs/uploads/')
        place = begun.getheader('Location').removeprefix(f'https://{self.host}')
        joint = '&' if '?' in place else '?'
        done = self.ask('PUT', f'{place}{joint}digest={sha256(content)}', content,
                        {'Content-Type': 'application/octet-stream'})
        assert done.status == 201, done.status

    def push(self, name, tag, **parts):
        """An image of these parts: rootfs=b'...', kernel=b'...'."""
        config = b'{}'
        for content in (config, *parts.values()):
            self.push_blob(name, content)
        layers = [{'mediaType': TYPE + kind, 'digest': sha256(content), 'size': len(content)}
                  for kind, content in parts.items()]
        manifest = json.dumps({'schemaVersion': 2, 'mediaType': MANIFEST_TYPE, 'layers': layers, 'config': {
            'mediaType': TYPE + 'config.v1+json', 'digest': sha256(config), 'size': len(config)}}).encode()
        done = self.ask('PUT', f'/v2/{name}/manifests/{tag}', manifest, {'Content-Type': MANIFEST_TYPE})
        assert done.status == 201, done.status
        return sha256(manifest)


class RegistryTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp(prefix='berth-registry-')
        cls.addClassCleanup(shutil.rmtree, cls.home, ignore_errors=True)
        cls.registry = Registry(cls.home)
        cls.addClassCleanup(cls.registry.stop)
        cls.registry.start()
        cls.disk = b'disk of the registry'.ljust(1 << 20, b'.')
        cls.digest = cls.registry.push('os/demo', '1', rootfs=cls.disk, kernel=b'a kernel')
        cls.image = f'{cls.registry.host}/os/demo'

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='berth-registry-')
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8', opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(text)
        return path

    def berth(self, *words):
        return berth_fixture.run([berth_fixture.binary(), 'image', *words, '--images', os.path.join(self.folder, 'images')],
                                 check=False)

    def pull(self, name, *words):
        return self.berth('pull', name, '--registry-ca', self.registry.ca, '--credentials',
                          self.write('login.json', self.registry.credentials()), *words)

    def test_an_image_is_pulled_listed_and_removed(self):
        pulled = self.pull(f'{self.image}:1')
        self.assertEqual(0, pulled.returncode, pulled.stderr)
        self.assertIn(self.digest, pulled.stdout)
        self.assertEqual(0, self.pull(f'{self.image}@{self.digest}').returncode)
        listed = json.loads(self.berth('ls', '-o', 'json').stdout)['items']
        self.assertEqual({f'{self.image}:1', f'{self.image}@{self.digest}'}, {one['image'] for one in listed})
        self.assertTrue(all(one['digest'] == self.digest and one['kernel'] and one['disk'] for one in listed))
        for name in (f'{self.image}:1', f'{self.image}@{self.digest}'):
            removed = self.berth('rm', name)
            self.assertEqual(0, removed.returncode, removed.stderr)
        self.assertEqual([], json.loads(self.berth('ls', '-o', 'json').stdout)['items'])
        left = os.listdir(os.path.join(self.folder, 'images/.registry/blobs/sha256'))
        self.assertEqual([], left)

    def test_refusals_say_what_to_do(self):
        untrusted = self.berth('pull', f'{self.image}:1')
        self.assertEqual(5, untrusted.returncode, untrusted.stderr)
        self.assertIn('--registry-ca', untrusted.stderr)
        nobody = self.berth('pull', f'{self.image}:1', '--registry-ca', self.registry.ca)
        self.assertIn('--credentials', nobody.stderr)
        self.assertNotEqual(0, nobody.returncode)
        missing = self.pull(f'{self.image}:none')
        self.assertEqual(3, missing.returncode, missing.stderr)
        self.assertIn(f'image "{self.image}:none"', missing.stderr)
        self.assertEqual(2, self.pull('os/demo:1').returncode)

    def test_volumes_are_made_of_it_on_behalf_of_their_namespace(self):
        credentials = os.path.join(self.folder, 'credentials')
        self.write('credentials/team-a.json', self.registry.credentials())
        runtime = volume_runtime_test.VolumeRuntime(
            self.folder, '--capacity', '64Mi', '--registry', self.registry.host, '--registry-ca', self.registry.ca,
            '--registry-credentials', credentials)
        self.addCleanup(runtime.process.kill)
        runtime.start()
        self.create(runtime, 'u-a', 'team-a')
        disk = runtime.available('u-a')['status']['access']['attributes']['path']
        volume_runtime_test.qemu_io(disk, 'read -P 0x2e 64 512')
        # That it is in the cache is no permission.
        self.create(runtime, 'u-b', 'team-b')
        self.event(runtime, 'it wants credentials')
        self.write('credentials/team-b.json', self.registry.credentials())
        runtime.available('u-b')

    def test_packed_layers_are_unpacked_and_a_bomb_is_refused(self):
        packed, bomb = gzip.compress(self.disk), gzip.compress(bytes(64 << 20), 1)
        image = f'{self.registry.host}/os/packed'
        self.registry.push('os/packed', '1', **{'rootfs+gzip': packed, 'kernel': b'a kernel'})
        self.assertEqual(0, self.pull(f'{image}:1').returncode)
        unpacked = os.path.join(self.folder, 'images/.registry/unpacked')
        self.assertEqual([f'{sha256(packed)}.{sha256(self.disk)}'.replace('sha256:', '')], os.listdir(unpacked))

        self.write('credentials/team-a.json', self.registry.credentials())
        runtime = volume_runtime_test.VolumeRuntime(
            self.folder, '--capacity', '64Mi', '--registry', self.registry.host, '--registry-ca', self.registry.ca,
            '--registry-credentials', os.path.join(self.folder, 'credentials'))
        self.addCleanup(runtime.process.kill)
        runtime.start()
        self.create(runtime, 'u-a', 'team-a', image=f'{image}:1')
        disk = runtime.available('u-a')['status']['access']['attributes']['path']
        volume_runtime_test.qemu_io(disk, 'read -P 0x2e 64 512')
        self.registry.push('os/packed', 'bomb', **{'rootfs+gzip': bomb})
        self.create(runtime, 'u-b', 'team-a', image=f'{image}:bomb')
        self.event(runtime, f'more than {4 << 20} bytes come out of it, which is the limit here')
        self.assertEqual([], os.listdir(os.path.join(self.folder, 'images/.registry/parts')))
        self.registry.push('os/packed', 'bomb', **{'rootfs+gzip': packed})
        runtime.available('u-b')

    def test_a_registry_that_is_gone_is_waited_for(self):
        self.write('credentials/team-a.json', self.registry.credentials())
        runtime = volume_runtime_test.VolumeRuntime(
            self.folder, '--capacity', '64Mi', '--registry', self.registry.host, '--registry-ca', self.registry.ca,
            '--registry-credentials', os.path.join(self.folder, 'credentials'))
        self.addCleanup(runtime.process.kill)
        runtime.start()
        self.registry.stop()
        self.addCleanup(lambda: self.registry.process or self.registry.start())
        self.create(runtime, 'u-a', 'team-a')
        self.event(runtime, f'connect to {self.registry.host}')
        self.registry.start()
        runtime.available('u-a')

    def test_P9_an_address_of_a_private_network_needs_the_operator(self):
        runtime = volume_runtime_test.VolumeRuntime(self.folder, '--capacity', '64Mi', '--registry-ca', self.registry.ca)
        self.addCleanup(runtime.process.kill)
        runtime.start()
        self.create(runtime, 'u-a', 'team-a')
        self.event(runtime, 'of a private network')

    def create(self, runtime, uid, namespace, image=None):
        labels = {volume_runtime_test.UID_LABEL: uid, 'volumepoollet.ironcore.dev/volume-namespace': namespace}
        body = json.loads(volume_runtime_test.volume(uid, source={'imageDataSource': {'image': image or f'{self.image}:1'}}))
        body['metadata']['labels'] = labels
        runtime.iri('create', '-f', '-', input=json.dumps(body))

    def event(self, runtime, text):
        berth_fixture.eventually(DEADLINE_S, lambda: text in runtime.iri('events', '-o', 'json').stdout,
                                 f'an event with {text!r}; {runtime.iri("events").stdout}')


class RoomForImages(unittest.TestCase):
    """P6.6: an image is promised of the host's disk before it comes."""

    def setUp(self):
        self.home = tempfile.mkdtemp(prefix='berth-registry-')
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.registry = LyingRegistry(self.home)
        self.addCleanup(self.registry.shut)
        self.addCleanup(self.registry.goes_on.set)
        self.disk = b'.' * (8 * MI)
        self.registry.push('os/demo', '1', {'rootfs': self.disk})
        self.image = f'{self.registry.host}/os/demo:1'
        # What comes of it, from this registry.
        self.piece = '.'.join([sha256(self.disk).removeprefix('sha256:'),
                               sha256(self.registry.host.encode()).removeprefix('sha256:')[:16], 'blob'])

    def runtime(self, capacity):
        runtime = volume_runtime_test.VolumeRuntime(
            self.home, '--capacity', capacity, '--registry', self.registry.host, '--registry-ca', self.registry.ca,
            '--disk-budget', os.path.join(self.home, 'budget'))
        self.addCleanup(runtime.process.kill)
        return runtime.start()

    def create(self, runtime, uid, size, image=None):
        source = None if image is None else {'imageDataSource': {'image': image}}
        runtime.iri('create', '-f', '-', input=volume_runtime_test.volume(uid, size, source=source))

    def share(self):
        (path,) = glob.glob(os.path.join(self.home, 'budget', 'volumes-*.share'))
        with open(path, encoding='utf-8') as file:
            return json.load(file)

    def test_P6_6_a_pull_takes_nothing_that_volumes_were_promised(self):
        runtime = self.runtime('40Mi')
        self.create(runtime, 'u-thin', 30 * MI)
        thin = runtime.available('u-thin')
        self.create(runtime, 'u-image', 8 * MI, self.image)
        says = f'no room for its files of {8 * MI} bytes'
        berth_fixture.eventually(DEADLINE_S, lambda: says in runtime.iri('events', '-o', 'json').stdout,
                                 f'it is said; {runtime.process.log_tail()}')
        events = runtime.iri('events', '-o', 'json').stdout
        for words in (self.image, f'of {40 * MI} bytes are promised', 'are free'):
            self.assertIn(words, events)
        self.assertEqual(0, sum('/blobs/' in path for path, _ in self.registry.seen), 'nothing of it was fetched')
        self.assertEqual(self.share()['arriving'], {})
        runtime.iri('delete', 'volume', thin['metadata']['id'])
        runtime.available('u-image')

    def test_P6_6_what_is_on_its_way_is_promised_also_by_a_runtime_that_was_killed(self):
        self.registry.stalls_at = self.registry.blob_path('os/demo', self.disk)
        runtime = self.runtime('64Mi')
        self.create(runtime, 'u-image', 8 * MI, self.image)
        part = os.path.join(self.home, 'images/.registry/parts', self.piece)
        berth_fixture.eventually(DEADLINE_S, lambda: os.path.getsize(part) >= 3 * MI, 'a part of it comes')
        self.assertEqual(self.share()['arriving'], {self.piece: 8 * MI})
        # Beside the volume there is room for 48 MiB: not for all of them.
        full = runtime.iri('create', '-f', '-', check=False, input=volume_runtime_test.volume('u-large', 48 * MI))
        self.assertIn('no room for a volume', full.stderr)
        runtime.process.kill()
        self.assertEqual(self.share()['arriving'], {self.piece: 8 * MI})
        runtime.start()
        berth_fixture.eventually(DEADLINE_S, lambda: 0 < self.share()['arriving'].get(self.piece, 0) < 8 * MI,
                                 'what is still to come')
        self.registry.goes_on.set()
        runtime.available('u-image')
        berth_fixture.eventually(DEADLINE_S, lambda: self.share()['arriving'] == {}, 'it is there')
        (taken,) = self.share()['images'].values()
        self.assertTrue(8 * MI <= taken < 9 * MI, taken)


VOLUME = '''
apiVersion: storage.ironcore.dev/v1alpha1
kind: Volume
metadata: {{name: {name}, namespace: team}}
spec:
  volumeClassRef: {{name: plain}}
  resources: {{storage: 4Mi}}
  imagePullSecretRef: {{name: {secret}}}
  dataSource: {{osImage: {{image: "{image}"}}}}
'''
MACHINE = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {{name: {name}, namespace: team}}
spec:
  machineClassRef: {{name: tiny}}
  volumes:
  - {{name: root, device: oda, localDisk: {{sizeLimit: 1Mi, image: "{image}"}}}}
'''


class PullSecrets(berth_fixture.ServerTestCase):
    """Credentials that come with Secrets of the API, to the host that needs them and to no file of it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.home = tempfile.mkdtemp(prefix='berth-registry-')
        cls.addClassCleanup(shutil.rmtree, cls.home, ignore_errors=True)
        os.chmod(cls.home, 0o755)
        cls.registry = Registry(cls.home)
        cls.addClassCleanup(cls.registry.stop)
        cls.registry.start()
        cls.registry.push('os/demo', '1', rootfs=b'disk of the registry'.ljust(1 << 20, b'.'))
        cls.registry.push('os/boots', '1', rootfs=guest_fixture.boot_sector().ljust(1 << 20, b'.'))
        cls.server.kubectl('create', 'namespace', 'team')
        cls.server.kubectl('apply', '-f', '-', input=guest_fixture.API_CLASSES)
        words = ('--registry', cls.registry.host, '--registry-ca', cls.registry.ca)
        cls.host = guest_fixture.RealHost(cls.server, 'alpha', machine_runtime=words, volume_runtime=words)
        cls.addClassCleanup(cls.host.close)
        cls.host.start()
        berth_fixture.eventually(DEADLINE_S, cls.host.is_ready, f'the pools are ready\n{cls.host.logs()}')

    def secret(self, name, config):
        made = json.dumps({'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': name, 'namespace': 'team'},
                           'type': 'kubernetes.io/dockerconfigjson', 'stringData': {'.dockerconfigjson': config}})
        self.server.kubectl('apply', '-f', '-', input=made)

    def volume(self, name, secret):
        self.server.kubectl('apply', '-f', '-', input=VOLUME.format(
            name=name, secret=secret, image=f'{self.registry.host}/os/demo:1'))

    def machine(self, name, secret=None):
        self.server.kubectl('apply', '-f', '-', input=MACHINE.format(name=name, image=f'{self.registry.host}/os/boots:1') + (
            f'  imagePullSecretRef: {{name: {secret}}}\n' if secret else ''))

    def status(self, name, kind='volume'):
        return json.loads(self.server.kubectl('get', kind, name, '-n', 'team', '-o', 'json').stdout).get('status', {})

    def becomes(self, name, state, kind='volume'):
        berth_fixture.eventually(guest_fixture.DEADLINE_S, lambda: self.status(name, kind).get('state') == state,
                                 f'{name} {state}: {self.status(name, kind)}\n{self.host.logs()}')

    def says(self, name, text, kind='volume'):
        berth_fixture.eventually(DEADLINE_S, lambda: text in json.dumps(self.status(name, kind).get('conditions', [])),
                                 f'{name} says {text!r}: {self.status(name, kind)}')

    def is_forbidden(self, machine):
        """Its image is, and that is what it says; no guest of it runs."""
        def image():
            return next((each for each in self.status(machine, 'machine').get('conditions', []) if each['type'] == 'ImageReady'), {})
        berth_fixture.eventually(DEADLINE_S, lambda: image().get('reason') == 'ImageForbidden',
                                 f'{machine}: {self.status(machine, "machine")}\n{self.host.logs()}')
        self.assertEqual('False', image()['status'])
        self.assertIn(f'image "{self.registry.host}/os/boots:1"', image()['message'])
        self.assertNotIn(PASSWORD, image()['message'])
        self.assertEqual([], self.host.libvirt.guests())
        return image()['message']

    def test_1_the_image_is_fetched_with_the_secret_of_its_namespace(self):
        self.volume('first', 'pull')
        self.says('first', 'secret pull does not exist')
        self.secret('pull', self.registry.credentials())
        self.becomes('first', 'Available')
        disk = self.status('first')['access']['volumeAttributes']['path']
        volume_runtime_test.qemu_io(disk, 'read -P 0x2e 64 512')

    def test_2_a_secret_that_is_rotated_is_followed(self):
        wrong = base64.b64encode(f'{USER}:wrong'.encode()).decode()
        self.secret('rotated', json.dumps({'auths': {self.registry.host: {'auth': wrong}}}))
        self.volume('second', 'rotated')
        self.says('second', 'ImageForbidden')
        self.secret('rotated', self.registry.credentials())
        self.becomes('second', 'Available')

    def test_3_so_are_the_images_of_machines(self):
        wrong = base64.b64encode(f'{USER}:wrong'.encode()).decode()
        self.secret('own', json.dumps({'auths': {self.registry.host: {'auth': wrong}}}))
        self.machine('nobody')
        self.machine('wrong', 'own')
        self.machine('early', 'later')
        self.says('early', 'secret later does not exist', 'machine')
        self.is_forbidden('wrong')
        self.assertIn('it wants credentials', self.is_forbidden('nobody'))
        for secret in ('own', 'later'):
            self.secret(secret, self.registry.credentials())
        for name in ('wrong', 'early'):
            self.becomes(name, 'Running', 'machine')
            berth_fixture.eventually(guest_fixture.DEADLINE_S, lambda name=name: 'boot 1 of this disk' in self.server.berth(
                'logs', name, '-n', 'team', check=False).stdout, f'{name} boots from the disk of the registry')
        # That it is there by now is no permission.
        self.machine('late')
        for name in ('late', 'nobody'):
            self.says(name, 'it wants credentials', 'machine')
        self.assertEqual(2, len(self.host.libvirt.guests()))

    def test_4_nothing_secret_is_left_on_the_host(self):
        both = base64.b64encode(f'{USER}:{PASSWORD}'.encode())
        for folder, _, names in os.walk(self.host.home):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    with open(path, 'rb') as file:
                        content = file.read()
                    for word in (both, PASSWORD.encode()):
                        self.assertNotIn(word, content, path)
        self.assertNotIn(PASSWORD, self.server.log())


if __name__ == '__main__':
    unittest.main(verbosity=2)
