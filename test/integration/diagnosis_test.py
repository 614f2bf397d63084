#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server says how it is, refuses to start with too little, and what is sent to helpers has no secret."""

import json
import os
import re
import resource
import subprocess
import tarfile
import tempfile
import unittest
import urllib.request

import berth_fixture
import fleet_fixture


class Diagnosis(unittest.TestCase):

    def setUp(self):
        self.server = berth_fixture.Server()
        self.addCleanup(self.server.close)

    def test_a_bundle_helps_and_has_no_secret(self):
        self.server.start()
        client = self.server.client()
        secret = {'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': 'db', 'annotations': {'a/b': 'hunter2'}},
                  'stringData': {'key': 'hunter2'}}
        self.assertEqual(client.post('/api/v1/namespaces/default/secrets', secret).status, 201)
        token = self.server.berth('token', 'create', 'helper').stdout.strip()
        self.assertIn('berth_', token)
        joins = self.server.berth('pool', 'join-token', 'alpha').stdout.strip()
        self.assertTrue(joins.startswith('berth1.'))
        log = os.path.join(self.server.home, 'poollet.log')
        with open(log, 'w', encoding='utf-8') as file:
            file.write(f'joining with {joins}\nGET https://jane:sesame@registry.example/v2/ failed\n')

        found = {line['check']: line for line in json.loads(self.server.berth('doctor', '-o', 'json').stdout)['items']}
        for check in ['loops', "server's files", "server's memory"]:
            self.assertIn(check, found)
        self.assertRegex(found['controllers']['text'], r'^all \d+ keep up$')

        path = os.path.join(tempfile.mkdtemp(prefix='berth-test-'), 'bundle.tar.gz')
        said = self.server.berth('support-bundle', '-f', path, '--data-dir', self.server.data_dir, '--log', log)
        self.assertIn('look before you send it on', said.stdout)
        self.assertEqual(said.stderr, '')
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        with tarfile.open(path) as bundle:
            contents = {os.path.relpath(member.name, bundle.getnames()[0].split('/')[0]): bundle.extractfile(member).read().decode()
                        for member in bundle}
        for name in ['doctor.jsonl', 'summary.json', 'server/metrics.txt', 'objects/namespaces.jsonl',
                     'objects/secrets.jsonl', 'host/data-dir.txt', 'host/store-log.txt']:
            self.assertIn(name, contents)
        self.assertIn('berth_loop_lag_max_seconds{loop="hosts"}', contents['server/metrics.txt'])
        for controller in ['garbage collector', 'quota', 'certificate signer', 'gateway', 'scheduler', 'pool loss']:
            for figure in ['follow_unsynced', 'follow_failing_seconds']:
                self.assertIn(f'berth_controller_{figure}{{controller="{controller}"}}', contents['server/metrics.txt'])
        self.assertIn('berth_controller_failing_keys{controller="quota"} 0', contents['server/metrics.txt'])
        names = [json.loads(line)['metadata']['name'] for line in contents['objects/secrets.jsonl'].splitlines()]
        self.assertIn('db', names)
        everything = '\n'.join(contents.values())
        self.assertIn('joining with <redacted>\nGET https://<redacted>@registry.example/v2/ failed', everything)
        for hidden in ['hunter2', 'aHVudGVyMg', token.split('_')[-1], joins.split('.')[-1], 'sesame', 'PRIVATE KEY']:
            self.assertNotIn(hidden, everything)

    def test_controllers_follow_everything_soon(self):
        self.server.start()

        def followed():
            text = self.server.client().get('/metrics').text
            unsynced = re.findall(r'(?m)^berth_controller_follow_unsynced\{controller="(.*)"\} (\d+)$', text)
            self.assertGreaterEqual(len(unsynced), 14)
            return all(count == '0' for _, count in unsynced)

        berth_fixture.eventually(60, followed, 'every controller has read what it follows')

    def test_a_poollet_says_how_late_its_loop_is(self):
        self.server.start()
        host = fleet_fixture.Host(self.server, 'alpha', poollet=('--metrics', '127.0.0.1:0'))
        self.addCleanup(host.close)
        host.start()
        address = berth_fixture.eventually(
            60, lambda: re.search(r'metrics at (http://\S+)', host.poollet.log_tail(200)), 'the page').group(1)

        def measured():
            with urllib.request.urlopen(address, timeout=10) as answer:
                text = answer.read().decode()
            self.assertIn('berth_poollet_in_contact', text)
            return 'berth_loop_lag_max_seconds{loop="main"}' in text

        berth_fixture.eventually(30, measured, 'the lag of its loop')

    def test_too_few_files_are_told_at_the_start(self):
        def few_files():
            resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        ended = subprocess.run([berth_fixture.binary(), 'server', '--data-dir', self.server.data_dir],
                               capture_output=True, text=True, preexec_fn=few_files, timeout=30, check=False)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn('open files: at most 100 at once, a server needs 256', ended.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.server.data_dir, 'store')))

    def test_no_authority_is_made_where_that_is_forbidden(self):
        forbidden = berth_fixture.Server('--no-new-authority')
        self.addCleanup(forbidden.close)
        forbidden.start(wait=False)
        self.assertNotEqual(forbidden.process.wait(60), 0)
        forbidden.process = None
        self.assertIn('pki/ca.pem is missing, and no new certificate authority may be made', forbidden.log())
        self.assertFalse(os.path.exists(os.path.join(forbidden.data_dir, 'store')))


if __name__ == '__main__':
    unittest.main(verbosity=2)
