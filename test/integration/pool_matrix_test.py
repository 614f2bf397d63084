#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the certificate of pool A opens of pool B is nothing: every verb on every kind that discovery names, through every
domain, with certificates of machine, volume and bucket pools. What it does open is listed here, and nothing else may."""

import base64
import glob
import os
import unittest

import berth_fixture
from security_matrix_test import Authority

BLUE = 'blue'
POOLS = {'machinepool': 'compute', 'volumepool': 'storage', 'bucketpool': 'storage'}
CLASSES = {'machineclasses', 'volumeclasses', 'bucketclasses'}
PRIORITIES = {'priorityclasses'}
# What a pool may make about itself: each is looked into, and below are those about others.
CHECKED = {'events', 'certificatesigningrequests'}
READS = {'get', 'list', 'watch'}
# What everybody who is known may ask about itself.
REVIEWS = {'selfsubjectreviews', 'selfsubjectaccessreviews', 'selfsubjectrulesreviews'}


def is_open_to_pools(resource, verb):
    """To read classes, and to ask who one is."""
    return resource in CLASSES | PRIORITIES and verb in READS or resource in REVIEWS | CHECKED and verb == 'create'


class PoolMatrix(berth_fixture.ServerTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.root = cls.server.client()
        pem = glob.glob(os.path.join(cls.server.data_dir, '**', 'ca.pem'), recursive=True)
        ours = Authority(os.path.join(cls.server.home, 'ours'), pem[0])
        cls.make('/api/v1/namespaces', {'metadata': {'name': BLUE}})
        cls.pools = {}
        for kind, group in POOLS.items():
            for name in ('a', 'b'):
                cls.make(f'/apis/{group}.ironcore.dev/v1alpha1/{kind}s',
                         {'metadata': {'name': name}, 'spec': {'providerID': f'test://{kind}/{name}'}})
            identity = f'/O={group}.ironcore.dev:system:{kind}s/CN={group}.ironcore.dev:system:{kind}:a'
            cls.pools[kind] = cls.server.client(certificate=ours.issue(kind, identity))
        cls.make_tenants_objects()

    @classmethod
    def make(cls, path, body):
        made = cls.root.post(path, body)
        assert made.status == 201, (path, made)
        return made.json()

    @classmethod
    def make_tenants_objects(cls):
        """Something of each kind that is worth stealing, on pools b or on none."""
        compute, storage = '/apis/compute.ironcore.dev/v1alpha1', '/apis/storage.ironcore.dev/v1alpha1'
        cls.make(f'{compute}/machineclasses', {'metadata': {'name': 'b'}, 'capabilities': {'cpu': '1', 'memory': '1Gi'}})
        for kind in ('volumeclasses', 'bucketclasses'):
            cls.make(f'{storage}/{kind}', {'metadata': {'name': 'b'}, 'capabilities': {'tps': '1', 'iops': '1'}})
        cls.make(f'{compute}/namespaces/{BLUE}/machines', {'metadata': {'name': 'b'}, 'spec': {
            'machineClassRef': {'name': 'b'}, 'machinePoolRef': {'name': 'b'}, 'ignitionRef': {'name': 'b'}}})
        cls.make(f'{storage}/namespaces/{BLUE}/volumes', {'metadata': {'name': 'b'}, 'spec': {
            'volumeClassRef': {'name': 'b'}, 'volumePoolRef': {'name': 'b'}, 'resources': {'storage': '1Gi'}}})
        cls.make(f'{storage}/namespaces/{BLUE}/buckets', {'metadata': {'name': 'b'}, 'spec': {
            'bucketClassRef': {'name': 'b'}, 'bucketPoolRef': {'name': 'b'}}})
        cls.make(f'/api/v1/namespaces/{BLUE}/secrets', {'metadata': {'name': 'b'}, 'stringData': {'key': 'hidden'}})
        cls.make(f'/api/v1/namespaces/{BLUE}/configmaps', {'metadata': {'name': 'b'}, 'data': {'key': 'hidden'}})

    def resources(self):
        """(path of the group and version, resource) of all that discovery names."""
        versions = ['/api/v1']
        for group in self.root.get('/apis').json()['groups']:
            versions += [f"/apis/{version['groupVersion']}" for version in group['versions']]
        for version in versions:
            for resource in self.root.get(version).json()['resources']:
                yield version, resource

    @staticmethod
    def attempts(version, resource, namespace):
        """(verb, method, path, query) of all that can be asked of it, about an object that is not this pool's."""
        plural, _, subresource = resource['name'].partition('/')
        collection = f'{version}/namespaces/{namespace}/{plural}' if resource['namespaced'] else f'{version}/{plural}'
        one = f'{collection}/b' + (f'/{subresource}' if subresource else '')
        of_one = {'get': 'GET', 'update': 'PUT', 'patch': 'PATCH', 'delete': 'DELETE'}
        for verb in resource['verbs']:
            if verb in of_one:
                yield verb, of_one[verb], one, {}
            elif verb == 'create':
                yield verb, 'POST', one if subresource else collection, {}
            elif verb == 'deletecollection':
                yield verb, 'DELETE', collection, {}
            elif verb == 'list':
                yield verb, 'GET', collection, {}
                yield verb, 'GET', f'{version}/{plural}', {}
                yield verb, 'GET', collection, {'fieldSelector': 'metadata.name=b'}
                for kind in POOLS:
                    yield verb, 'GET', f'{version}/{plural}', {'fieldSelector': f'spec.{kind[:-4]}PoolRef.name=b'}
            elif verb == 'watch':
                yield verb, 'GET', collection, {'watch': 'true', 'timeoutSeconds': '1'}
                yield verb, 'GET', f'{version}/{plural}', {'watch': 'true', 'timeoutSeconds': '1'}

    def body(self, version, resource):
        group = version.removeprefix('/apis/').removeprefix('/api/')
        return {'apiVersion': group, 'kind': resource['kind'], 'metadata': {'name': 'b', 'labels': {'stolen': 'yes'}},
                'spec': {}, 'status': {'state': 'Ready'}}

    def ask(self, client, method, path, query, version, resource):
        if method == 'GET':
            return client.request(method, path, **query)
        content = 'application/merge-patch+json' if method == 'PATCH' else 'application/json'
        body = None if method == 'DELETE' else self.body(version, resource)
        return client.request(method, path, body, content_type=content, **query)

    def test_nothing_of_another_pool_is_open_to_a_pool(self):
        tried, opened = 0, []
        for version, resource in self.resources():
            plural = resource['name'].partition('/')[0]
            for verb, method, path, query in self.attempts(version, resource, BLUE):
                if is_open_to_pools(resource['name'], verb):
                    continue
                for kind, client in self.pools.items():
                    answer = self.ask(client, method, path, query, version, resource)
                    tried += 1
                    if answer.status not in (403, 404, 405):
                        opened.append(f'{kind}: {verb} {path} {query} of {plural}: {answer}')
        self.assertFalse(opened, '\n'.join(opened))
        self.assertGreater(tried, 2000)

    def test_events_and_certificate_requests_are_about_oneself(self):
        about_b = {'metadata': {'name': 'b', 'namespace': BLUE}, 'reason': 'Test', 'message': 'x', 'type': 'Normal',
                   'involvedObject': {'apiVersion': 'compute.ironcore.dev/v1alpha1', 'kind': 'Machine', 'name': 'b',
                                      'namespace': BLUE}}
        regarding_b = {'metadata': {'name': 'b2', 'namespace': BLUE}, 'reason': 'Test', 'note': 'x', 'type': 'Normal',
                       'action': 'Test', 'reportingController': 'test', 'reportingInstance': 'test',
                       'eventTime': '2026-01-01T00:00:00.000000Z', 'regarding': about_b['involvedObject']}
        for kind, client in self.pools.items():
            for path, event in ((f'/api/v1/namespaces/{BLUE}/events', about_b),
                                (f'/apis/events.k8s.io/v1/namespaces/{BLUE}/events', regarding_b)):
                self.assertEqual(client.post(path, event).status, 403, (kind, path))
            request = os.path.join(self.server.home, f'{kind}.csr')
            berth_fixture.run(['openssl', 'req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
                               '-subj', f'/O={POOLS[kind]}.ironcore.dev:system:{kind}s'
                                        f'/CN={POOLS[kind]}.ironcore.dev:system:{kind}:b',
                               '-keyout', os.path.join(self.server.home, f'{kind}.key'), '-out', request])
            with open(request, 'rb') as file:
                encoded = base64.b64encode(file.read()).decode()
            asked = client.post('/apis/certificates.k8s.io/v1/certificatesigningrequests', {
                'metadata': {'name': f'b-{kind}'}, 'spec': {'request': encoded, 'usages': ['client auth'],
                                                             'signerName': 'kubernetes.io/kube-apiserver-client'}})
            self.assertIn(asked.status, (403, 422), asked)

    def test_aliases_in_any_spelling_open_no_more(self):
        for domain in ('compute.openkcm.dev', 'compute.OPENKCM.dev', 'COMPUTE.ironcore.dev', 'compute.OpenKCM.dev'):
            for path in (f'/apis/{domain}/v1alpha1/machinepools/b', f'/apis/{domain}/v1alpha1/namespaces/{BLUE}/machines/b',
                         f'/apis/{domain}/v1alpha1/machines?fieldSelector=spec.machinePoolRef.name%3Db'):
                self.assertIn(self.pools['machinepool'].get(path).status, (403, 404), path)

    def test_what_is_a_pools_own_is_open_to_it(self):
        """So the refusals above are about whose it is, not about who asks."""
        for kind, group in POOLS.items():
            own = f'/apis/{group}.ironcore.dev/v1alpha1/{kind}s/a'
            self.assertEqual(self.pools[kind].get(own).status, 200, kind)
            status = {'status': {'conditions': [{'type': 'Seen', 'status': 'True', 'reason': 'Test',
                                                 'lastTransitionTime': '2026-01-01T00:00:00Z'}]}}
            answer = self.pools[kind].patch(own + '/status', status)
            self.assertEqual(answer.status, 200, answer)
            for plural in CLASSES:
                classes = f"/apis/{'compute' if plural == 'machineclasses' else 'storage'}.ironcore.dev/v1alpha1/{plural}"
                self.assertEqual(self.pools[kind].get(classes).status, 200, plural)

    def test_nothing_was_changed(self):
        for path in (f'/apis/compute.ironcore.dev/v1alpha1/namespaces/{BLUE}/machines/b', f'/api/v1/namespaces/{BLUE}/secrets/b',
                     '/apis/compute.ironcore.dev/v1alpha1/machinepools/b'):
            found = self.root.get(path)
            self.assertEqual(found.status, 200, path)
            self.assertNotIn('stolen', found.text)


if __name__ == '__main__':
    unittest.main()
