#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a server keeps: Secrets are unreadable in its files, keys change under kill -9, a backup of a live server comes back in
either store, and a broken one changes nothing."""

import base64
import os
import pathlib
import shutil
import unittest

import berth_fixture
import etcd_test

DEADLINE_S = 60
SECRETS = '/api/v1/namespaces/default/secrets'
MAPS = etcd_test.MAPS
COUNT = 40
PASSPHRASE = 'correct horse battery staple'


def plain(number):
    return f'the-plain-value-of-{number}'


def secret(number):
    data = base64.b64encode(plain(number).encode()).decode()
    return {'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': f's-{number}'}, 'data': {'value': data}}


def snapshot(folder):
    """{path: content} of everything below a folder."""
    return {path: pathlib.Path(path).read_bytes()
            for where, _, names in os.walk(folder) for path in (os.path.join(where, name) for name in names)}


def first_key(path):
    """The id of the key that encrypts."""
    return pathlib.Path(path).read_text().split('\n')[1].split()[0]


class VaultTestCase(unittest.TestCase):

    def make_server(self, *arguments, **options):
        server = berth_fixture.Server(*arguments, **options)
        self.addCleanup(server.close)
        return server

    def create(self, server, count=COUNT):
        client = server.client()
        for number in range(count):
            self.assertEqual(client.post(SECRETS, secret(number)).status, 201)

    def check(self, server, count=COUNT):
        items = {item['metadata']['name']: item for item in server.client().get(SECRETS).json()['items']}
        for number in range(count):
            self.assertEqual(base64.b64decode(items[f's-{number}']['data']['value']).decode(), plain(number))

    def assert_fails(self, server, text):
        """The server does not start, and says why."""
        server.start(wait=False)
        self.assertNotEqual(server.process.wait(DEADLINE_S), 0)
        server.process = None
        self.assertIn(text, server.log())

    def passphrase(self, server, text=PASSPHRASE):
        path = os.path.join(server.home, 'passphrase')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text + '\n')
        os.chmod(path, 0o600)
        return path

    def backup(self, server, name='backup', **options):
        path = os.path.join(server.home, name)
        store = [part for part in server._arguments if part.startswith('etcd://')]
        done = server.berth('backup', path, '--data-dir', server.data_dir, '--passphrase-file', self.passphrase(server),
                            *(['--store', *store] if store else []), **options)
        return path, done

    def restore(self, server, path, data_dir, *arguments, **options):
        return server.berth('restore', path, '--data-dir', data_dir, '--passphrase-file', self.passphrase(server), '--yes',
                            *arguments, **options)


class AtRest(VaultTestCase):

    def test_values_are_unreadable_and_keys_change_under_kills(self):
        server = self.make_server().start()
        keys = os.path.join(server.data_dir, 'pki', 'encryption-keys')
        self.assertEqual(os.stat(keys).st_mode & 0o777, 0o600)
        self.create(server)
        first = first_key(keys)
        for _ in range(3):
            revision = server.client().get(SECRETS).json()['metadata']['resourceVersion']
            server.berth('store', 'rotate-key', '--data-dir', server.data_dir, '--timeout', '0')
            # Every value that is encrypted anew is an event: the kill falls in the middle.
            try:
                for seen, _ in enumerate(server.client().watch(SECRETS, resourceVersion=revision), 1):
                    if seen == COUNT // 4:
                        break
            finally:
                server.kill()
            server.start()
            self.check(server)
        newest = first_key(keys)
        self.assertNotEqual(first, newest)

        def done():
            with open(keys + '.done', encoding='utf-8') as file:
                return file.read().strip() == newest

        berth_fixture.eventually(DEADLINE_S, done, 'everything is encrypted with the newest key')
        told = server.berth('store', 'rotate-key', '--data-dir', server.data_dir).stdout
        self.assertIn('everything is encrypted with it', told)
        early = server.berth('store', 'retire-keys', '--data-dir', server.data_dir, check=False)
        self.assertIn('wait 15 minutes', early.stderr)
        server.berth('store', 'retire-keys', '--data-dir', server.data_dir, '--yes')
        server.kill()
        for path, content in snapshot(server.data_dir).items():
            for number in range(COUNT):
                self.assertNotIn(plain(number).encode(), content, path)
                # Three alignments of base64 share no text but this.
                self.assertNotIn(base64.b64encode(plain(number).encode())[:20], content, path)
        server.start()
        self.check(server)
        server.stop()

        # Another key is not good enough, and is told so.
        aside = keys + '.aside'
        os.rename(keys, aside)
        last = first_key(aside)
        self.assert_fails(server, f'is encrypted with key {last}, which is not there in {keys}')
        os.rename(aside, keys)
        os.chmod(keys, 0o644)
        self.assert_fails(server, 'is open to group or others')
        os.chmod(keys, 0o600)
        server.start()
        self.check(server)
        server.stop()


class Backup(VaultTestCase):

    def expired(self, server, revision):
        answer = server.client().get(MAPS, watch='true', resourceVersion=revision, timeoutSeconds='5')
        self.assertEqual(answer.status, 410, answer)

    def test_a_live_server_comes_back_in_either_store(self):
        server = self.make_server().start()
        self.create(server, 5)
        token = server.berth('token', 'create', 'eve').stdout.split()[-1]
        self.assertNotEqual(server.client(token=token).get('/api/v1/namespaces').status, 401)
        writer = etcd_test.Writer(server)
        writer.start()
        self.addCleanup(writer.stop)
        writer.wait_for(20)
        before = list(writer.acknowledged)
        path, made = self.backup(server)
        self.assertIn('values', made.stdout)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        writer.wait_for(5)
        writer.stop()
        revision = server.client().get(MAPS).json()['metadata']['resourceVersion']
        with open(path, 'rb') as file:
            content = file.read()
        self.assertNotIn(b'PRIVATE KEY', content)
        self.assertNotIn(b'w-1', content)
        again = self.backup(server, check=False)[1]
        self.assertIn('is there already', again.stderr)
        running = self.restore(server, path, server.data_dir, check=False)
        self.assertIn('stop it first', running.stderr)
        server.kill()

        # On another machine: nothing but the file.
        moved = self.make_server(data_dir=os.path.join(server.home, 'moved'))
        self.assertIn('incarnation 2', self.restore(moved, path, moved.data_dir).stdout)
        moved.start()
        self.check(moved, 5)
        names = {item['metadata']['name'] for item in moved.client().get(MAPS).json()['items']}
        self.assertLessEqual(set(before), names, 'what was acknowledged before is in it')
        self.expired(moved, revision)
        self.assertEqual(moved.client(token=token).get('/api/v1/namespaces').status, 401, 'tokens are void')
        self.assertEqual(moved.kubeconfig.ca_pem, server.kubeconfig.ca_pem, 'hosts know the authority')
        moved.stop()
        # The same file once more: numbers do not come twice.
        self.assertIn('incarnation 3', self.restore(moved, path, moved.data_dir).stdout)

        etcd = etcd_test.Etcd().start()
        self.addCleanup(etcd.close)
        third = self.make_server('--store', etcd.url, data_dir=os.path.join(server.home, 'third'))
        self.restore(third, path, third.data_dir, '--store', etcd.url)
        refused = self.restore(third, path, third.data_dir, '--store', etcd.url, check=False)
        self.assertIn('the store is not empty', refused.stderr)
        third.start()
        self.check(third, 5)
        self.assertEqual({item['metadata']['name'] for item in third.client().get(MAPS).json()['items']}, names)
        self.expired(third, revision)
        self.assertEqual(third.client().post(MAPS, etcd_test.config_map('in-etcd', 1)).status, 201)
        second, _ = self.backup(third, 'second')
        third.stop()

        # And back, without a backup.
        def migrate(*arguments, **options):
            return third.berth('store', 'migrate', '--data-dir', third.data_dir, *arguments, **options)

        berth_fixture.eventually(
            DEADLINE_S, lambda: migrate('--from', etcd.url, '--to', 'embedded', check=False).returncode == 0, 'a migration')
        self.assert_fails(third, 'was migrated to')
        fourth = self.make_server(data_dir=third.data_dir).start()
        self.check(fourth, 5)
        self.assertEqual(fourth.client().get(f'{MAPS}/in-etcd').status, 200)
        self.expired(fourth, revision)
        running = migrate('--from', 'embedded', '--to', etcd.url, check=False)
        self.assertIn('stop it first', running.stderr)
        fourth.stop()
        refused = migrate('--from', 'embedded', '--to', etcd.url, check=False)
        self.assertIn('the store is not empty', refused.stderr)
        etcd.control('del', '', '--from-key=true')
        etcd.control('put', '/guard/filling', '1')  # what one that was killed leaves
        etcd.control('put', '/registry/half', 'done')
        self.assert_fails(third, 'the store is not whole')
        self.assertIn('set aside', migrate('--from', 'embedded', '--to', etcd.url).stdout)
        self.assertEqual(etcd.control('get', '/registry/half').stdout, '')
        third.start()
        self.check(third, 5)
        self.assertEqual(third.client().get(f'{MAPS}/in-etcd').status, 200)
        third.stop()
        fifth = self.make_server(data_dir=os.path.join(server.home, 'fifth'))
        self.restore(fifth, second, fifth.data_dir)
        fifth.start()
        self.check(fifth, 5)
        self.assertEqual(fifth.client().get(f'{MAPS}/in-etcd').status, 200)
        fifth.stop()

    def test_what_is_no_good_backup_changes_nothing(self):
        server = self.make_server().start()
        self.create(server, 3)
        path, _ = self.backup(server)
        server.stop()
        before = snapshot(server.data_dir)
        with open(path, 'rb') as file:
            good = file.read()

        def attempt(content, text, **options):
            broken = os.path.join(server.home, 'broken')
            with open(broken, 'wb') as out:
                out.write(content)
            done = self.restore(server, broken, server.data_dir, check=False, **options)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(text, done.stderr)
            self.assertEqual(snapshot(server.data_dir), before)

        middle = len(good) // 2
        attempt(b'', 'this is not a backup')
        attempt(b'something else entirely, and quite long', 'this is not a backup')
        attempt(good[:20], 'its end is missing')
        attempt(good[:middle], 'its end is missing')
        attempt(good[:-1], 'its end is missing')
        attempt(good + b'x', 'something behind its end')
        attempt(good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1:], 'damaged')
        attempt(good[:8] + bytes([9]) + good[9:], 'it has version 9, this program reads 1')
        done = server.berth('restore', path, '--data-dir', server.data_dir, '--yes', '--passphrase-file',
                            self.passphrase(server, 'correct horse battery stable'), check=False)
        self.assertIn('the passphrase is wrong', done.stderr)
        done = server.berth('backup', path + '2', '--data-dir', server.data_dir, '--passphrase-file',
                            self.passphrase(server, 'short'), check=False)
        self.assertIn('at least 8', done.stderr)
        done = server.berth('restore', path, '--data-dir', server.data_dir, '--passphrase-file', self.passphrase(server),
                            check=False)
        self.assertIn('--yes', done.stderr)
        self.assertEqual(snapshot(server.data_dir), before)
        stranger = self.make_server().start()
        stranger.stop()
        done = self.restore(stranger, path, stranger.data_dir, check=False)
        self.assertIn('is another authority than the backup', done.stderr)


class Folder(VaultTestCase):

    def test_a_copy_of_the_folder_comes_back_with_its_keys(self):
        server = self.make_server().start()
        self.create(server, 3)
        server.stop()
        copy = os.path.join(server.home, 'copy')
        shutil.copytree(server.data_dir, copy)
        keys = os.path.join(server.data_dir, 'pki', 'encryption-keys')
        server.berth('store', 'rotate-key', '--data-dir', server.data_dir)
        server.start()
        berth_fixture.eventually(DEADLINE_S, lambda: os.path.exists(keys + '.done'), 'the new key')
        server.berth('store', 'rotate-key', '--data-dir', server.data_dir)
        server.berth('store', 'retire-keys', '--data-dir', server.data_dir, '--yes')
        server.stop()
        server.berth('restore', '--from', copy, '--data-dir', server.data_dir, '--yes')
        server.start()
        self.check(server, 3)
        server.stop()


if __name__ == '__main__':
    unittest.main(verbosity=2)
