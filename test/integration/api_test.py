#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a client that speaks plain HTTPS may rely on, where kubectl does not show it."""

import json
import resource
import unittest

import berth_fixture

POOLS = '/apis/storage.ironcore.dev/v1alpha1/volumepools'
CONFIGMAPS = '/api/v1/namespaces/default/configmaps'


class Answers(berth_fixture.ServerTestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client = cls.server.client()

    def make(self, collection, body):
        answer = self.client.post(collection, body)
        self.assertEqual(answer.status, 201, answer)
        self.addCleanup(self.client.delete, f'{collection}/{body["metadata"]["name"]}')
        return answer.json()

    def test_an_empty_status_is_there_to_be_read_and_patched(self):
        self.make(POOLS, {'metadata': {'name': 'bare'}, 'spec': {'providerID': 'x'}})
        self.assertEqual(self.client.get(f'{POOLS}/bare').json()['status'], {})
        answer = self.client.patch(
            f'{POOLS}/bare/status', [{'op': 'add', 'path': '/status/state', 'value': 'Available'}],
            content_type='application/json-patch+json')
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.json()['status'], {'state': 'Available'})

    def test_what_stands_in_the_body_of_a_delete_must_be_delete_options(self):
        self.make(CONFIGMAPS, {'metadata': {'name': 'kept'}})
        wrong = {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'kept'}}
        for content_type, body in (('application/json', json.dumps(wrong)),
                                   ('application/yaml', 'apiVersion: v1\nkind: ConfigMap\n'),
                                   # Of another kind, and no DeleteOptions by its fields either.
                                   ('application/json', json.dumps({'kind': 'ConfigMap', 'dryRun': {'a': 1}}))):
            for path in (f'{CONFIGMAPS}/kept', CONFIGMAPS):
                answer = self.client.delete(path, body, content_type=content_type)
                self.assertEqual(answer.status, 400, answer)
                self.assertIn('the kind in the data (ConfigMap) does not match the expected kind (DeleteOptions)',
                              answer.json()['message'])
        self.assertEqual(self.client.get(f'{CONFIGMAPS}/kept').status, 200)
        for right in ({}, {'kind': 'DeleteOptions'}, {'apiVersion': 'meta.k8s.io/v1', 'kind': 'DeleteOptions'},
                      {'apiVersion': 'compute.OpenKCM.dev/v1alpha1', 'kind': 'DeleteOptions'}):
            answer = self.client.delete(f'{CONFIGMAPS}/kept', right, dryRun='All')
            self.assertEqual(answer.status, 200, answer)

    def test_an_update_cannot_delete_nor_become_another_object(self):
        made = self.make(CONFIGMAPS, {'metadata': {'name': 'same'}})
        for change, status in (({'name': 'other'}, 400), ({'namespace': 'other'}, 400),
                               ({'uid': '00000000-0000-4000-8000-000000000000'}, 409),
                               ({'deletionTimestamp': '2026-01-01T00:00:00Z'}, 422),
                               ({'deletionGracePeriodSeconds': 5}, 422),
                               ({'creationTimestamp': '2026-01-01T00:00:00Z'}, 200)):
            put = self.client.put(f'{CONFIGMAPS}/same', {**made, 'metadata': {**made['metadata'], **change}})
            self.assertEqual(put.status, status, f'{change}: {put}')
            patched = self.client.patch(f'{CONFIGMAPS}/same', {'metadata': change})
            self.assertEqual(patched.status, status, f'{change}: {patched}')
        self.assertEqual(self.client.get(f'{CONFIGMAPS}/same').json()['metadata'], made['metadata'])


class GoClients(berth_fixture.ServerTestCase):
    """What clients made with client-go ask for beside the plain documents."""

    def test_discovery_comes_in_two_documents(self):
        client = self.server.client()
        for version in ('v2', 'v2beta1'):
            form = f'application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList'
            for path, old in (('/api', ['/api/v1']), ('/apis', None)):
                answer = client.get(path, headers={'Accept': f'{form},application/json'})
                self.assertEqual(answer.headers['Content-Type'], form)
                document = answer.json()
                self.assertEqual(document['apiVersion'], f'apidiscovery.k8s.io/{version}')
                seen = {}
                for group in document['items']:
                    for served in group['versions']:
                        names = set()
                        for resource in served['resources']:
                            names.add(resource['resource'])
                            names |= {f"{resource['resource']}/{below['subresource']}"
                                      for below in resource.get('subresources', ())}
                        seen['/'.join(filter(None, (path, group['metadata']['name'], served['version'])))] = names
                self.assertEqual(set(old) if old else set(seen), set(seen))
                for listed, names in seen.items():
                    plain = {resource['name'] for resource in client.get(listed).json()['resources']}
                    self.assertEqual(names, plain, listed)
        self.assertEqual(client.get('/apis').json()['kind'], 'APIGroupList')

    def test_a_watch_begins_with_the_state_and_says_where_it_ends(self):
        client = self.server.client()
        path = '/api/v1/namespaces/default/configmaps'
        for name in ('a', 'b'):
            self.assertEqual(client.post(path, {'metadata': {'name': name}}).status, 201)
        asked = {'watch': 'true', 'sendInitialEvents': 'true', 'resourceVersionMatch': 'NotOlderThan',
                 'allowWatchBookmarks': 'true'}
        version = client.get(path).json()['metadata']['resourceVersion']
        for start in (None, '0', version):
            events = client.watch(path, resourceVersion=start, timeoutSeconds=30, **asked)
            seen = [next(events) for _ in range(3)]
            self.assertEqual([(event['type'], event['object']['metadata'].get('name')) for event in seen],
                             [('ADDED', 'a'), ('ADDED', 'b'), ('BOOKMARK', None)])
            self.assertEqual(seen[2]['object']['metadata']['annotations'], {'k8s.io/initial-events-end': 'true'})
            events.close()
        for wrong in ({'sendInitialEvents': 'true'}, {'resourceVersionMatch': 'NotOlderThan'},
                      {'sendInitialEvents': 'true', 'resourceVersionMatch': 'Exact'}):
            self.assertEqual(client.get(path, watch='true', **wrong).status, 422, wrong)

    def test_lists_and_watches_come_as_tables_and_as_metadata_alone(self):
        client = self.server.client()
        self.assertEqual(client.post(POOLS, {'metadata': {'name': 'shaped'}, 'spec': {'providerID': 'x'}}).status, 201)

        def asking(shape):
            return self.server.client(headers={'Accept': f'application/json;as={shape};g=meta.k8s.io;v=v1'})
        table = asking('Table').get(POOLS).json()
        self.assertEqual((table['apiVersion'], table['kind']), ('meta.k8s.io/v1', 'Table'))
        self.assertEqual([row['cells'][0] for row in table['rows']], ['shaped'])
        metadata = asking('PartialObjectMetadataList').get(POOLS).json()
        self.assertEqual((metadata['apiVersion'], metadata['kind']), ('meta.k8s.io/v1', 'PartialObjectMetadataList'))
        self.assertEqual([set(item) for item in metadata['items']], [{'kind', 'apiVersion', 'metadata'}])
        watches = {shape: asking(shape).watch(POOLS, timeoutSeconds=30) for shape in ('Table', 'PartialObjectMetadata')}
        first = {shape: next(events) for shape, events in watches.items()}
        self.assertEqual({event['type'] for event in first.values()}, {'ADDED'})
        self.assertEqual(client.patch(f'{POOLS}/shaped', {'metadata': {'labels': {'a': 'b'}}}).status, 200)
        then = {shape: next(events) for shape, events in watches.items()}
        for event in (first['Table'], then['Table']):
            self.assertEqual(event['object']['kind'], 'Table')
            row, = event['object']['rows']
            self.assertEqual((row['cells'][0], row['object']['kind']), ('shaped', 'PartialObjectMetadata'))
        self.assertEqual(len(first['Table']['object']['columnDefinitions']), len(row['cells']))
        changed = then['PartialObjectMetadata']['object']
        self.assertEqual((changed['kind'], changed['metadata']['labels'], set(changed)),
                         ('PartialObjectMetadata', {'a': 'b'}, {'kind', 'apiVersion', 'metadata'}))
        for events in watches.values():
            events.close()


class Manifests(berth_fixture.ServerTestCase):

    def test_a_manifest_may_be_larger_than_a_request(self):
        objects = [{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': f'large-{i}', 'namespace': 'default'},
                    'data': {'text': 'x' * 200_000}} for i in range(20)]
        documents = '\n---\n'.join(json.dumps(each) for each in objects)
        for text, says in ((documents, 'created'),
                           (json.dumps({'apiVersion': 'v1', 'kind': 'List', 'items': objects}), 'unchanged')):
            applied = self.server.berth('apply', '-f', '-', input=text).stdout.splitlines()
            self.assertEqual(applied, [f'configmap/large-{i} {says}' for i in range(20)])


class Limits(unittest.TestCase):

    def test_a_server_opens_as_many_files_as_its_host_allows(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        with berth_fixture.Server() as server:
            now, allowed = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
            self.assertEqual((now, allowed), (min(hard, 1048576), hard))


if __name__ == '__main__':
    unittest.main()
