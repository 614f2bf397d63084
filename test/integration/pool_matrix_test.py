#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the certificate of pool A opens of pool B is nothing: every verb on every kind that discovery names, through every
domain and an odd spelling of each, with certificates of machine, volume and bucket pools. What it does open is listed here, and
nothing else may. The certificate of a host is for sessions, and opens nothing of the API at all."""

import base64
import glob
import os
import re
import unittest

import berth_fixture
from security_matrix_test import Authority

BLUE = 'blue'
POOLS = {'machinepool': 'compute', 'volumepool': 'storage', 'bucketpool': 'storage'}
HOST = 'host'  # among the pools, in what is tried
HOST_IDENTITY = '/O=berth:hosts/CN=berth:host:a'
# Forbidden, or not to be done with anybody's rights. Everything that is asked for exists, so "not found" is no refusal.
CLOSED = (403, 405)
# No objects: they are asked and answered.
ANSWERS = {'placementreviews', 'subjectaccessreviews', 'localsubjectaccessreviews', 'selfsubjectaccessreviews',
           'selfsubjectrulesreviews', 'selfsubjectreviews', 'tokenreviews'}
CLASSES = {'machineclasses', 'volumeclasses', 'bucketclasses'}
PRIORITIES = {'priorityclasses'}
# What a pool may make about itself: each is looked into, and below are those about others.
CHECKED = {'events', 'certificatesigningrequests'}
READS = {'get', 'list', 'watch'}
# What everybody who is known may ask about itself.
REVIEWS = {'selfsubjectreviews', 'selfsubjectaccessreviews', 'selfsubjectrulesreviews'}


def is_open(who, resource, verb):
    """To ask who one is, for all; and for pools to read classes."""
    if resource in REVIEWS and verb == 'create':
        return True
    return who != HOST and (resource in CLASSES | PRIORITIES and verb in READS or resource in CHECKED and verb == 'create')


def odd(path):
    """The path with its domain in letters of the other size, /apis/compute.IRONCORE.DEV/v1alpha1; or as it is without one of ours."""
    return re.sub(r'^(/apis/\w+\.)(ironcore\.dev|openkcm\.dev)(/)', lambda found: found[1] + found[2].swapcase() + found[3], path,
                  flags=re.IGNORECASE)


def lease_namespace(kind):
    """Where IronCore's poollets keep their Leases."""
    return f'ironcore-{kind}-lease'


class PoolMatrix(berth_fixture.ServerTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.root = cls.server.client()
        pem = glob.glob(os.path.join(cls.server.data_dir, '**', 'ca.pem'), recursive=True)
        ours = Authority(os.path.join(cls.server.home, 'ours'), pem[0])
        for namespace in (BLUE, 'b', lease_namespace('volumepool'), lease_namespace('bucketpool')):  # the third is there
            cls.make('/api/v1/namespaces', {'metadata': {'name': namespace}})
        cls.callers = {HOST: cls.server.client(certificate=ours.issue(HOST, HOST_IDENTITY))}
        for kind, group in POOLS.items():
            for name in ('a', 'b'):
                cls.make(f'/apis/{group}.ironcore.dev/v1alpha1/{kind}s',
                         {'metadata': {'name': name}, 'spec': {'providerID': f'test://{kind}/{name}'}})
            identity = f'/O={group}.ironcore.dev:system:{kind}s/CN={group}.ironcore.dev:system:{kind}:a'
            cls.callers[kind] = cls.server.client(certificate=ours.issue(kind, identity))
        cls.pools = {kind: cls.callers[kind] for kind in POOLS}
        cls.make_classes()
        cls.make_placed()
        cls.make_networks()
        cls.make_records()

    @classmethod
    def make(cls, path, body):
        made = cls.root.post(path, body)
        assert made.status == 201, (path, made)
        return made.json()

    @classmethod
    def make_in(cls, group, plural, spec, name='b', **more):
        """In the tenant's namespace; a group without a dot is one of IronCore's."""
        version = f'/apis/{group}' if '.' in group else f'/apis/{group}.ironcore.dev/v1alpha1'
        return cls.make(f'{version}/namespaces/{BLUE}/{plural}', {'metadata': {'name': name}, 'spec': spec, **more})

    @classmethod
    def make_classes(cls):
        cls.make('/apis/compute.ironcore.dev/v1alpha1/machineclasses',
                 {'metadata': {'name': 'b'}, 'capabilities': {'cpu': '1', 'memory': '1Gi'}})
        for kind in ('volumeclasses', 'bucketclasses'):
            cls.make(f'/apis/storage.ironcore.dev/v1alpha1/{kind}',
                     {'metadata': {'name': 'b'}, 'capabilities': {'tps': '1', 'iops': '1'}})
        cls.make('/apis/scheduling.k8s.io/v1/priorityclasses', {'metadata': {'name': 'b'}, 'value': 1})

    @classmethod
    def make_placed(cls):
        """On pools b, with all that a machine can name: an interface, a secret, a volume, and through it a snapshot."""
        volume = {'volumeClassRef': {'name': 'b'}, 'volumePoolRef': {'name': 'b'}, 'resources': {'storage': '1Gi'}}
        cls.make_in('storage', 'volumes', volume, 'source')
        cls.make_in('storage', 'volumesnapshots', {'volumeRef': {'name': 'source'}})
        cls.make_in('storage', 'volumes', {**volume, 'dataSource': {'volumeSnapshotRef': {'name': 'b'}}})
        cls.make_in('storage', 'buckets', {'bucketClassRef': {'name': 'b'}, 'bucketPoolRef': {'name': 'b'}})
        cls.make_in('compute', 'machines', {
            'machineClassRef': {'name': 'b'}, 'machinePoolRef': {'name': 'b'}, 'ignitionRef': {'name': 'b'},
            'volumes': [{'name': 'own', 'volumeRef': {'name': 'b'}}, {'name': 'lent', 'volumeRef': {'name': 'lent'}}],
            'networkInterfaces': [{'name': 'nic', 'networkInterfaceRef': {'name': 'b'}}]})
        # The volume pool a has a volume that machine b uses: it may read the volume, and nothing of the machine.
        machine = cls.root.get(f'/apis/compute.ironcore.dev/v1alpha1/namespaces/{BLUE}/machines/b').json()
        cls.make_in('storage', 'volumes', {**volume, 'volumePoolRef': {'name': 'a'}, 'claimRef': {
            'name': 'b', 'uid': machine['metadata']['uid']}}, 'lent')
        cls.make_in('core', 'reservations', {'classRef': {'name': 'b'}, 'machinePoolRef': {'name': 'b'}})
        cls.make_in('core', 'resourcequotas', {'hard': {'requests.cpu': '100'}})
        template = {'metadata': {'labels': {'app': 'b'}}, 'spec': {'machineClassRef': {'name': 'b'}}}
        cls.make_in('berth.dev/v1alpha1', 'machinesets',
                    {'replicas': 0, 'selector': {'matchLabels': {'app': 'b'}}, 'template': template})
        cls.make_in('berth.dev/v1alpha1', 'machinegroups', {'minMembers': 1})

    @classmethod
    def make_networks(cls):
        network = {'networkRef': {'name': 'b'}}
        cls.make_in('networking', 'networks', {})
        cls.make_in('networking', 'networkinterfaces', {**network, 'ipFamilies': ['IPv4'], 'ips': [{'value': '10.0.0.1'}]})
        cls.make_in('networking', 'virtualips', {'type': 'Public', 'ipFamily': 'IPv4'})
        cls.make_in('networking', 'natgateways', {**network, 'type': 'Public', 'ipFamily': 'IPv4'})
        cls.make_in('networking', 'networkpolicies', {**network, 'policyTypes': ['Ingress']})
        cls.make_in('networking', 'loadbalancers', {**network, 'type': 'Public', 'ipFamilies': ['IPv4'],
                                                    'ports': [{'protocol': 'TCP', 'port': 80}]})
        cls.make_in('networking', 'loadbalancerroutings', {}, networkRef={'name': 'b'}, destinations=[])
        cls.make_in('ipam', 'prefixes', {'prefix': '10.0.0.0/8'})
        cls.make_in('ipam', 'prefixallocations', {'ipFamily': 'IPv4', 'prefixLength': 32, 'prefixRef': {'name': 'b'}})

    @classmethod
    def make_records(cls):
        """What every cluster has, whoever made it."""
        core, rbac = f'/api/v1/namespaces/{BLUE}', '/apis/rbac.authorization.k8s.io/v1'
        named = {'metadata': {'name': 'b'}}
        cls.make(f'{core}/secrets', {**named, 'stringData': {'key': 'hidden'}})
        cls.make(f'{core}/configmaps', {**named, 'data': {'key': 'hidden'}})
        cls.make(f'{core}/events', {**named, 'reason': 'Test', 'message': 'x', 'type': 'Normal', 'involvedObject': {
            'apiVersion': 'compute.ironcore.dev/v1alpha1', 'kind': 'Machine', 'name': 'b', 'namespace': BLUE}})
        cls.make_in('coordination.k8s.io/v1', 'leases', {'holderIdentity': 'b'})
        for kind in POOLS:
            cls.make(f'/apis/coordination.k8s.io/v1/namespaces/{lease_namespace(kind)}/leases',
                     {**named, 'spec': {'holderIdentity': 'b'}})
        rules = {'rules': [{'apiGroups': [''], 'resources': ['secrets'], 'verbs': ['get']}]}
        subjects = {'subjects': [{'kind': 'User', 'apiGroup': 'rbac.authorization.k8s.io', 'name': 'nobody'}]}
        for collection, kind in ((f'{rbac}/namespaces/{BLUE}/', 'Role'), (f'{rbac}/', 'ClusterRole')):
            role = {'apiGroup': 'rbac.authorization.k8s.io', 'kind': kind, 'name': 'b'}
            cls.make(f'{collection}{kind.lower()}s', {**named, **rules})
            cls.make(f'{collection}{kind.lower()}bindings', {**named, **subjects, 'roleRef': role})
        cls.make('/apis/certificates.k8s.io/v1/certificatesigningrequests', cls.certificate_request('b', '/CN=somebody'))

    @classmethod
    def certificate_request(cls, name, subject):
        request = os.path.join(cls.server.home, f'{name}.csr')
        berth_fixture.run(['openssl', 'req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj',
                           subject, '-keyout', os.path.join(cls.server.home, f'{name}.key'), '-out', request])
        with open(request, 'rb') as file:
            encoded = base64.b64encode(file.read()).decode()
        return {'metadata': {'name': name}, 'spec': {'request': encoded, 'usages': ['client auth'],
                                                     'signerName': 'kubernetes.io/kube-apiserver-client'}}

    def resources(self):
        """(path of the group and version, resource) of all that discovery names, and of the same in an odd spelling."""
        versions = ['/api/v1']
        for group in self.root.get('/apis').json()['groups']:
            versions += [f"/apis/{version['groupVersion']}" for version in group['versions']]
        for version in versions:
            for resource in self.root.get(version).json()['resources']:
                yield version, resource
                if odd(version) != version:
                    yield odd(version), resource

    @staticmethod
    def path_of(version, resource, namespace):
        """(the collection, and b in it or what is below b)."""
        plural, _, subresource = resource['name'].partition('/')
        collection = f'{version}/namespaces/{namespace}/{plural}' if resource['namespaced'] else f'{version}/{plural}'
        return collection, f'{collection}/b' + (f'/{subresource}' if subresource else '')

    @staticmethod
    def attempts(version, resource, namespace):
        """(verb, method, path, query) of all that can be asked of it, about an object that is not this pool's."""
        plural, _, subresource = resource['name'].partition('/')
        collection, one = PoolMatrix.path_of(version, resource, namespace)
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

    def test_1_there_is_one_of_every_kind_to_be_stolen_and_odd_spellings_lead_to_it(self):
        found = 0
        for version, resource in self.resources():
            if '/' in resource['name'] or resource['name'] in ANSWERS:
                continue
            one = self.path_of(version, resource, BLUE)[1]
            answer = self.root.get(one)
            self.assertEqual(answer.status, 200, (one, answer))
            found += 1
        self.assertGreater(found, 80)
        machine = self.root.get(f'/apis/compute.ironcore.dev/v1alpha1/namespaces/{BLUE}/machines/b').json()
        lent = self.root.get(f'/apis/storage.ironcore.dev/v1alpha1/namespaces/{BLUE}/volumes/lent').json()
        self.assertEqual(lent['spec']['claimRef']['uid'], machine['metadata']['uid'])

    def test_2_nothing_of_another_pool_is_open_to_a_pool_or_host(self):
        tried, opened = 0, []
        for version, resource in self.resources():
            plural = resource['name'].partition('/')[0]
            for verb, method, path, query in self.attempts(version, resource, BLUE):
                for who, client in self.callers.items():
                    if is_open(who, resource['name'], verb):
                        continue
                    answer = self.ask(client, method, path, query, version, resource)
                    tried += 1
                    if answer.status not in CLOSED:
                        opened.append(f'{who}: {verb} {path} {query} of {plural}: {answer}')
        self.assertFalse(opened, '\n'.join(opened))
        self.assertGreater(tried, 6000)

    def test_the_lease_of_another_pool_is_closed(self):
        for kind, client in self.callers.items():
            for namespace in map(lease_namespace, POOLS):
                leases = f'/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases'
                stolen = {'metadata': {'name': 'b'}, 'spec': {'holderIdentity': 'a'}}
                for answer in (client.get(f'{leases}/b'), client.get(leases), client.patch(f'{leases}/b', stolen),
                               client.delete(f'{leases}/b'), client.post(leases, stolen)):
                    self.assertEqual(answer.status, 403, (kind, namespace, answer))

    def test_a_hosts_certificate_opens_not_even_what_is_its_own(self):
        """It is for sessions, where the gateway tells it what it needs."""
        host = self.callers[HOST]
        for kind, group in POOLS.items():
            own = f'/apis/{group}.ironcore.dev/v1alpha1/{kind}s/a'
            self.assertEqual(host.get(own).status, 403, kind)
            self.assertEqual(host.patch(own + '/status', {'status': {'state': 'Ready'}}).status, 403, kind)
        mine = host.post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {}).json()['status']['userInfo']
        self.assertEqual((mine['username'], mine['groups'][0]), ('berth:host:a', 'berth:hosts'))

    def test_events_and_certificate_requests_are_about_oneself(self):
        about_b = {'metadata': {'name': 'b1', 'namespace': BLUE}, 'reason': 'Test', 'message': 'x', 'type': 'Normal',
                   'involvedObject': {'apiVersion': 'compute.ironcore.dev/v1alpha1', 'kind': 'Machine', 'name': 'b',
                                      'namespace': BLUE}}
        regarding_b = {'metadata': {'name': 'b2', 'namespace': BLUE}, 'reason': 'Test', 'note': 'x', 'type': 'Normal',
                       'action': 'Test', 'reportingController': 'test', 'reportingInstance': 'test',
                       'eventTime': '2026-01-01T00:00:00.000000Z', 'regarding': about_b['involvedObject']}
        for kind, client in self.pools.items():
            for path, event in ((f'/api/v1/namespaces/{BLUE}/events', about_b),
                                (f'/apis/events.k8s.io/v1/namespaces/{BLUE}/events', regarding_b)):
                self.assertEqual(client.post(path, event).status, 403, (kind, path))
            system = f'{POOLS[kind]}.ironcore.dev:system:{kind}'
            asked = client.post('/apis/certificates.k8s.io/v1/certificatesigningrequests',
                                self.certificate_request(f'b-{kind}', f'/O={system}s/CN={system}:b'))
            self.assertIn(asked.status, (403, 422), asked)

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

    def test_3_nothing_was_changed(self):
        for version, resource in self.resources():
            if '/' not in resource['name'] and resource['name'] not in ANSWERS:
                found = self.root.get(self.path_of(version, resource, BLUE)[1])
                self.assertEqual(found.status, 200, (version, resource['name']))
                self.assertNotIn('stolen', found.text)


if __name__ == '__main__':
    unittest.main()
