#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A policy decides how much the audit log tells; what is in Secrets it never tells."""

import json
import os
import tempfile
import unittest

import berth_fixture

POLICY = '''
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: None
  resources: [{group: "", resources: [configmaps], resourceNames: [quiet]}]
- level: RequestResponse
  resources: [{group: "", resources: [configmaps, secrets]}]
- level: Metadata
  nonResourceURLs: [/metrics]
'''


def thing(kind, name, **more):
    return {'apiVersion': 'v1', 'kind': kind, 'metadata': {'name': name}, **more}


class Audit(unittest.TestCase):

    def start(self, policy):
        home = tempfile.mkdtemp(prefix='berth-test-')
        path = os.path.join(home, 'policy.yaml')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(policy)
        server = berth_fixture.Server('--audit-policy', path)
        self.addCleanup(server.close)
        return server, path

    def test_a_policy_decides_what_is_told(self):
        server, _ = self.start(POLICY)
        server.start()
        client = server.client()
        maps, secrets = '/api/v1/namespaces/default/configmaps', '/api/v1/namespaces/default/secrets'
        self.assertEqual(client.post(maps, thing('ConfigMap', 'loud', data={'a': 'told'})).status, 201)
        self.assertEqual(client.post(maps, thing('ConfigMap', 'large', data={'a': 'x' * 100_000})).status, 201)
        self.assertEqual(client.put(f'{maps}/quiet', thing('ConfigMap', 'quiet')).status, 404)
        self.assertEqual(client.post(secrets, thing('Secret', 'kept', stringData={'a': 'hunter2'})).status, 201)
        self.assertEqual(client.get('/metrics').status, 200)
        self.assertEqual(client.get('/openapi/v2').status, 200)
        server.stop()
        with open(os.path.join(server.data_dir, 'audit.log'), encoding='utf-8') as file:
            text = file.read()
        self.assertNotIn('hunter2', text)
        self.assertNotIn('aHVudGVyMg', text)
        lines = [json.loads(line) for line in text.splitlines()]
        mine = [line for line in lines if line['user'] == 'berth-admin']
        by_name = {line.get('name', line.get('path')): line for line in mine}
        self.assertEqual(set(by_name) - {None}, {'loud', 'large', 'kept', '/metrics'})
        self.assertEqual(by_name['loud']['requestObject']['data'], {'a': 'told'})
        self.assertIn('uid', by_name['loud']['responseObject']['metadata'])
        self.assertGreater(by_name['large']['requestBytes'], 100_000)
        self.assertNotIn('requestObject', by_name['kept'])
        self.assertNotIn('responseObject', by_name['kept'])

    def test_a_policy_that_cannot_be_read_is_refused(self):
        server, path = self.start(POLICY.replace('Metadata', 'Everything'))
        server.start(wait=False)
        self.assertNotEqual(server.process.wait(60), 0)
        server.process = None
        self.assertIn(f'--audit-policy {path}: rules[2].level: "Everything"', server.log())


if __name__ == '__main__':
    unittest.main(verbosity=2)
