#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server says how it is, refuses to start with too little, and what is sent to helpers has no secret."""

import json
import os
import resource
import subprocess
import tarfile
import tempfile
import unittest

import berth_fixture


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

        found = {line['check']: line for line in json.loads(self.server.berth('doctor', '-o', 'json').stdout)['items']}
        for check in ['loops', "server's files", "server's memory"]:
            self.assertIn(check, found)

        path = os.path.join(tempfile.mkdtemp(prefix='berth-test-'), 'bundle.tar.gz')
        said = self.server.berth('support-bundle', '-f', path, '--data-dir', self.server.data_dir)
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
        names = [json.loads(line)['metadata']['name'] for line in contents['objects/secrets.jsonl'].splitlines()]
        self.assertIn('db', names)
        everything = '\n'.join(contents.values())
        for hidden in ['hunter2', 'aHVudGVyMg', token.split('_')[-1], 'PRIVATE KEY']:
            self.assertNotIn(hidden, everything)

    def test_too_few_files_are_told_at_the_start(self):
        def few_files():
            resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        ended = subprocess.run([berth_fixture.binary(), 'server', '--data-dir', self.server.data_dir],
                               capture_output=True, text=True, preexec_fn=few_files, timeout=30, check=False)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn('open files: at most 100 at once, a server needs 256', ended.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.server.data_dir, 'store')))


if __name__ == '__main__':
    unittest.main(verbosity=2)
