#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a server keeps: Secrets are unreadable in its files, keys change under kill -9, a backup of a live server comes back in
either store, a broken one changes nothing, and who was revoked since is not let in again."""

import base64
import os
import pathlib
import shutil
import unittest

import berth_fixture
import etcd_test
import fleet_fixture

DEADLINE_S = 60
SECRETS = '/api/v1/namespaces/default/secrets'
MAPS = etcd_test.MAPS
COUNT = 40
PASSPHRASE = 'correct horse battery staple'
REQUESTS = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
WHOAMI = '/apis/authentication.k8s.io/v1/selfsubjectreviews'


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

    def write(self, server, name, text):
        path = os.path.join(server.home, name)
        pathlib.Path(path).write_text(text)
        return path

    def certificate(self, server, user):
        """(certificate file, key file) of a user."""
        key, request, path = (os.path.join(server.home, f'{user}.{what}') for what in ('key', 'csr', 'crt'))
        berth_fixture.run(['openssl', 'req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
                           '-subj', f'/CN={user}', '-keyout', key, '-out', request])
        client = server.client()
        made = client.post(REQUESTS, {'metadata': {'name': user}, 'spec': {
            'request': base64.b64encode(pathlib.Path(request).read_bytes()).decode(),
            'signerName': 'kubernetes.io/kube-apiserver-client', 'usages': ['client auth']}})
        self.assertEqual(made.status, 201, made)
        server.berth('certificate', 'approve', user)
        pem = berth_fixture.eventually(
            DEADLINE_S, lambda: client.get(f'{REQUESTS}/{user}').json().get('status', {}).get('certificate'), 'a certificate')
        pathlib.Path(path).write_bytes(base64.b64decode(pem))
        return path, key

    def answer(self, server, **credentials):
        """What the very first request of this connection is answered with."""
        with server.client(**credentials) as client:
            return client.post(WHOAMI, {}).status


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

    def test_r4_4_a_live_server_comes_back_in_either_store(self):
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
        # Not while another server serves from it, although a restore that was broken off may be begun anew.
        lease = etcd.control('lease', 'grant', '600').stdout.split()[1]
        etcd.control('put', f'--lease={lease}', '/guard/server/other', 'elsewhere:/var/lib/berth')
        etcd.control('put', '/guard/filling', '1')
        refused = self.restore(third, path, third.data_dir, '--store', etcd.url, check=False)
        self.assertIn('a server serves from this store', refused.stderr)
        self.assertIn('elsewhere:/var/lib/berth', refused.stderr)
        self.assertIn('/guard/server/other', etcd.control('get', '/guard/', '--prefix').stdout)
        etcd.control('lease', 'revoke', lease)
        revoked = self.write(third, 'revoked', 'user jane always\nhost gone 2026-01-01T00:00:00Z\n')
        self.assertIn('revoked       2 of the list', self.restore(
            third, path, third.data_dir, '--store', etcd.url, '--revoked', revoked).stdout)
        refused = self.restore(third, path, third.data_dir, '--store', etcd.url, check=False)
        self.assertIn('the store is not empty', refused.stderr)
        third.start()
        self.check(third, 5)
        listed = third.berth('certificate', 'revocations').stdout.splitlines()
        self.assertEqual(listed[1:], ['host gone 2026-01-01T00:00:00Z', 'user jane always'])
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
        # Nor does a list of revocations that is not good.
        listed = os.path.join(server.home, 'listed')
        for content, text in ((b'host a\nhots b\n', 'line 2: unknown kind "hots"'), (b'user\n', 'line 1: has 1 words'),
                              (b'# x\n\nuser jane soon\n', 'line 3: time "soon"'), (b'user \x00\xff', 'line 1: user "'),
                              (b'#' * (1 << 20) + b'\n', 'has more than 1048576 bytes')):
            with open(listed, 'wb') as out:
                out.write(content)
            done = self.restore(server, path, server.data_dir, '--revoked', listed, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f'revocations {listed}: {text}', done.stderr)
            self.assertEqual(snapshot(server.data_dir), before)
        for missing in (listed + '-none', server.home):
            done = self.restore(server, path, server.data_dir, '--revoked', missing, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f'revocations {missing}: ', done.stderr)
            self.assertEqual(snapshot(server.data_dir), before)
        stranger = self.make_server().start()
        stranger.stop()
        done = self.restore(stranger, path, stranger.data_dir, check=False)
        self.assertIn('is another authority than the backup', done.stderr)


class Revoked(VaultTestCase):

    def host_says(self, host, words):
        """Starts the host's poollet anew and waits until it has said one of the words; gives it back."""
        host.poollet.kill()
        begin = os.path.getsize(host.poollet.log_path) if os.path.exists(host.poollet.log_path) else 0

        def said():
            with open(host.poollet.log_path, errors='replace') as log:
                log.seek(begin)
                text = log.read()
            return next((word for word in words if word in text), None)

        host.poollet.start()
        return berth_fixture.eventually(DEADLINE_S, said, f'{host.name} says one of {words}')

    def test_r4_4_who_was_revoked_after_the_backup_stays_out(self):
        server = self.make_server().start()
        jane, joe = self.certificate(server, 'jane'), self.certificate(server, 'joe')
        alpha, late = fleet_fixture.Host(server, 'alpha'), fleet_fixture.Host(server, 'late')
        self.addCleanup(alpha.close)
        self.addCleanup(late.close)
        alpha.start()
        berth_fixture.eventually(DEADLINE_S, alpha.is_ready, 'the pool is ready')
        path, _ = self.backup(server)
        server.berth('certificate', 'revoke', 'jane')
        server.berth('pool', 'isolate', 'alpha', '--yes', timeout=90)
        text = server.berth('certificate', 'revocations').stdout
        self.assertRegex(text, r'(?m)^host alpha \S+Z$')
        self.assertRegex(text, r'(?m)^user jane \S+Z$')
        revoked = self.write(server, 'revoked', text)
        server.kill()

        # Without the list both come back: nobody has told.
        said = self.restore(server, path, server.data_dir).stdout
        self.assertIn('revoke again what was revoked since the copy', said)
        server.start()
        self.assertEqual(self.answer(server, certificate=jane), 201)
        self.assertEqual(self.host_says(alpha, ('in contact', 'was revoked')), 'in contact')
        server.kill()

        said = self.restore(server, path, server.data_dir, '--revoked', revoked).stdout
        self.assertIn('revoked       2 of the list', said)
        server.start()
        self.assertEqual(self.answer(server, certificate=jane), 401)
        self.assertEqual(self.answer(server, certificate=joe), 201)
        self.assertEqual(self.host_says(alpha, ('in contact', 'was revoked')), 'was revoked')
        # A token that nobody has used yet: made before, void after.
        late.start()
        self.assertEqual(self.host_says(late, ('joined as', 'join token: ')), 'join token: ')
        server.stop()


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

    def test_r4_4_tokens_of_a_copy_are_void_and_so_is_who_is_on_the_list(self):
        server = self.make_server().start()
        jane, joe = self.certificate(server, 'jane'), self.certificate(server, 'joe')
        token = server.berth('token', 'create', 'eve').stdout.strip()
        late = fleet_fixture.Host(server, 'late')
        self.addCleanup(late.close)
        self.assertEqual(self.answer(server, token=token), 201)
        server.stop()
        copy = os.path.join(server.home, 'copy')
        shutil.copytree(server.data_dir, copy)
        wrong = self.write(server, 'wrong', 'user jane\nuser jane doe today\n')
        before = snapshot(server.data_dir)
        done = server.berth('restore', '--from', copy, '--data-dir', server.data_dir, '--yes', '--revoked', wrong, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f'revocations {wrong}: line 2: ', done.stderr)
        self.assertEqual(snapshot(server.data_dir), before)
        revoked = self.write(server, 'revoked', 'user jane\n')  # until now
        server.berth('restore', '--from', copy, '--data-dir', server.data_dir, '--yes', '--revoked', revoked)
        server.start()
        self.assertEqual(self.answer(server, token=token), 401)
        self.assertEqual(self.answer(server, certificate=jane), 401)
        self.assertEqual(self.answer(server, certificate=joe), 201)
        late.start()
        berth_fixture.eventually(DEADLINE_S, lambda: 'join token: ' in late.poollet.log_tail(), 'the token is void')
        server.stop()


if __name__ == '__main__':
    unittest.main(verbosity=2)
