#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Server-side apply: real kubectls share objects field by field, and the API answers as Kubernetes' does."""

import json
import os
import unittest

import berth_fixture

MANIFESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'manifests')
APPLY = 'application/apply-patch+yaml'
CONFIGMAPS = '/api/v1/namespaces/shop/configmaps'
MACHINES = '/apis/compute.ironcore.dev/v1alpha1/namespaces/shop/machines'


def machine(name, labels=None, **spec):
    return {'apiVersion': 'compute.ironcore.dev/v1alpha1', 'kind': 'Machine',
            'metadata': {'name': name, 'namespace': 'shop', **({'labels': labels} if labels else {})},
            **({'spec': spec} if spec else {})}


def config(name, **data):
    """Nothing but its clients writes to it."""
    return {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': name, 'namespace': 'shop'}, 'data': data}


def managers(found):
    return {(entry['manager'], entry['operation'], entry.get('subresource', '')): entry['fieldsV1']
            for entry in found['metadata'].get('managedFields', [])}


class Kubectls(berth_fixture.ServerTestCase):
    """Run once per kubectl version, each on a server of its own."""

    version = None

    @classmethod
    def setUpClass(cls):
        if cls.version is None:
            raise unittest.SkipTest('the subclasses below name a version')
        super().setUpClass()

    def kubectl(self, *arguments, **options):
        return self.server.kubectl(*arguments, version=self.version, **options)

    def setUp(self):
        self.kubectl('apply', '-f', os.path.join(MANIFESTS, 'tour.yaml'))

    def apply(self, wanted, *arguments, **options):
        # 1.20 takes every manifest for a whole object.
        return self.kubectl('apply', '--server-side', '--validate=false', *arguments, '-f', '-',
                            input=json.dumps(wanted), **options)

    def read(self, name):
        return self.server.client().get(f'{MACHINES}/{name}').json()

    def test_two_managers_share_an_object(self):
        small = {'name': 'small'}
        first = self.apply(machine('shared', machineClassRef=small, power='Off'), '--field-manager=first')
        self.assertIn('machine.compute.ironcore.dev/shared serverside-applied', first.stdout)
        self.apply(machine('shared', labels={'tier': 'front'}), '--field-manager=second')
        found = managers(self.read('shared'))
        self.assertEqual(found[('first', 'Apply', '')], {'f:spec': {'f:machineClassRef': {}, 'f:power': {}}})
        self.assertEqual(found[('second', 'Apply', '')], {'f:metadata': {'f:labels': {'f:tier': {}}}})

        refused = self.apply(machine('shared', power='On'), '--field-manager=second', check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn('Apply failed with 1 conflict: conflict with "first": .spec.power', refused.stderr)
        self.assertIn('--force-conflicts', refused.stderr)
        self.apply(machine('shared', power='On'), '--field-manager=second', '--force-conflicts')
        self.assertEqual(self.read('shared')['spec']['power'], 'On')
        self.assertNotIn('tier', self.read('shared')['metadata'].get('labels', {}))
        self.assertEqual(managers(self.read('shared'))[('first', 'Apply', '')], {'f:spec': {'f:machineClassRef': {}}})

    def test_from_client_side_to_server_side_and_back(self):
        wanted = machine('moved', labels={'a': '1'}, machineClassRef={'name': 'small'}, power='Off')
        self.kubectl('apply', '-f', '-', input=json.dumps(wanted))
        self.assertIn(('kubectl-client-side-apply', 'Update', ''), managers(self.read('moved')))
        wanted['spec']['power'] = 'On'
        wanted['metadata']['labels'] = {'b': '2'}
        self.apply(wanted)
        self.assertEqual(self.read('moved')['spec']['power'], 'On')
        self.assertIn(('kubectl', 'Apply', ''), managers(self.read('moved')))
        wanted['metadata']['labels'] = {'c': '3'}
        self.kubectl('apply', '-f', '-', input=json.dumps(wanted))
        self.assertEqual(self.read('moved')['metadata']['labels'].get('c'), '3')
        self.assertNotIn('b', self.read('moved')['metadata']['labels'])

    def test_what_edits_and_scales_is_remembered(self):
        self.kubectl('label', 'machine', 'web', '-n', 'shop', 'x=y')
        self.kubectl('apply', '-f', os.path.join(MANIFESTS, 'machine_set.yaml'))
        self.kubectl('scale', 'machineset/fleet', '-n', 'shop', '--replicas=0')
        found = managers(json.loads(self.kubectl('get', 'machineset', 'fleet', '-n', 'shop', '-o', 'json').stdout)
                         if self.version == '1.20' else self.read_set())
        scaled = [fields for (_, _, subresource), fields in found.items() if subresource == 'scale']
        self.assertEqual(scaled, [{'f:spec': {'f:replicas': {}}}], found)
        self.kubectl('delete', 'machineset', 'fleet', '-n', 'shop')
        labelled = [fields for fields in managers(self.read('web')).values()
                    if 'f:x' in fields.get('f:metadata', {}).get('f:labels', {})]
        self.assertEqual(len(labelled), 1)

    def read_set(self):
        shown = self.kubectl('get', 'machineset', 'fleet', '-n', 'shop', '-o', 'json', '--show-managed-fields').stdout
        return json.loads(shown)

    def left(self, kind):
        return self.kubectl('get', kind, '-n', 'shop', '-l', 'set=pruned', '-o', 'name').stdout.split()

    def prune(self, objects, *arguments, **options):
        """Applies the objects, and removes what was applied before and is not among them."""
        for each in objects:
            each['metadata']['labels'] = {'set': 'pruned'}
        documents = {'apiVersion': 'v1', 'kind': 'List', 'items': objects}
        return self.kubectl('apply', '--prune', '-n', 'shop', *arguments, '-f', '-', input=json.dumps(documents), **options)

    def test_prune_removes_what_the_manifests_no_longer_have(self):
        allow = '--prune-whitelist' if self.version == '1.20' else '--prune-allowlist'
        small = {'name': 'small'}
        for kind, allowed, make in (
                ('configmap', 'core/v1/ConfigMap', lambda name: config(name, a='b')),
                ('machine', 'compute.ironcore.dev/v1alpha1/Machine', lambda name: machine(name, machineClassRef=small))):
            arguments = ('-l', 'set=pruned', f'{allow}={allowed}')
            self.prune([make('one'), make('two')], *arguments)
            group = '' if kind == 'configmap' else '.compute.ironcore.dev'
            self.assertIn(f'{kind}{group}/two pruned', self.prune([make('one')], *arguments).stdout)
            self.assertEqual(self.left(kind), [f'{kind}{group}/one'])
            self.kubectl('delete', kind, 'one', '-n', 'shop')

    def test_prune_without_a_list_of_kinds_asks_for_kinds_of_kubernetes(self):
        refused = self.prune([config('kept', a='b')], '-l', 'set=pruned', check=False)
        self.addCleanup(self.kubectl, 'delete', 'configmap', 'kept', '-n', 'shop')
        self.assertNotEqual(refused.returncode, 0)
        self.assertRegex(refused.stderr, 'no matches for kind "[A-Z]')
        self.assertEqual(self.left('configmap'), ['configmap/kept'])

    def test_prune_on_the_server_goes_by_an_apply_set(self):
        if self.version == '1.20':
            self.skipTest('apply sets came with 1.27')
        small = {'name': 'small'}

        def prune(*objects):
            return self.prune(list(objects), '--server-side', '--applyset=parts', env={'KUBECTL_APPLYSET': 'true'})

        prune(machine('one', machineClassRef=small), machine('two', machineClassRef=small), config('three', a='b'))
        self.assertEqual(self.left('machine'), ['machine.compute.ironcore.dev/one', 'machine.compute.ironcore.dev/two'])
        pruned = prune(machine('one', machineClassRef=small)).stdout
        self.assertIn('machine.compute.ironcore.dev/two pruned', pruned)
        self.assertIn('configmap/three pruned', pruned)
        self.assertEqual((self.left('machine'), self.left('configmap')), (['machine.compute.ironcore.dev/one'], []))
        self.assertIn(('kubectl', 'Apply', ''), managers(self.read('one')))
        self.kubectl('delete', 'machine', 'one', '-n', 'shop')
        # The older way of pruning goes by an annotation that such objects do not have, and kubectl says so.
        refused = self.prune([config('one', a='b')], '--server-side', '-l', 'set=pruned',
                             '--prune-allowlist=core/v1/ConfigMap', check=False)
        self.assertIn('work on objects created by server-side apply', refused.stderr)


class Api(berth_fixture.ServerTestCase):
    """The same without kubectl's manners."""

    def setUp(self):
        self.client = self.server.client()
        self.server.berth('apply', '-f', os.path.join(MANIFESTS, 'tour.yaml'))

    def apply(self, wanted, path=None, **query):
        query.setdefault('fieldManager', 'me')
        return self.client.patch(path or f"{MACHINES}/{wanted['metadata']['name']}", wanted, content_type=APPLY, **query)

    def test_a_missing_object_is_created(self):
        wanted = config('new', a='b')
        path = f'{CONFIGMAPS}/new'
        tried = self.apply(wanted, path, dryRun='All')
        self.assertEqual(tried.status, 201, tried)
        self.assertEqual(self.client.get(path).status, 404)
        made = self.apply(wanted, path)
        self.assertEqual(made.status, 201, made)
        self.assertEqual(managers(made.json()), {('me', 'Apply', ''): {'f:data': {'f:a': {}}}})
        again = self.apply(wanted, path)
        self.assertEqual((again.status, again.json()['metadata']['resourceVersion']),
                         (200, made.json()['metadata']['resourceVersion']))

    def test_preconditions_do_not_make_objects(self):
        wanted = machine('ghost', machineClassRef={'name': 'small'})
        for field in ('uid', 'resourceVersion'):
            wanted['metadata'] = {'name': 'ghost', field: '7'}
            self.assertEqual(self.apply(wanted).status, 409)
        self.assertEqual(self.client.get(f'{MACHINES}/ghost').status, 404)

    def test_a_conflict_has_kubernetes_causes(self):
        self.apply(machine('fought', machineClassRef={'name': 'small'}, power='Off'), fieldManager='first')
        answer = self.apply(machine('fought', power='On'), fieldManager='second')
        self.assertEqual(answer.status, 409, answer)
        status = answer.json()
        self.assertEqual(status['reason'], 'Conflict')
        self.assertEqual(status['details']['causes'], [
            {'reason': 'FieldManagerConflict', 'message': 'conflict with "first"', 'field': '.spec.power'}])
        self.assertEqual(self.apply(machine('fought', power='On'), fieldManager='second', force='true').status, 200)

    def test_malformed_applies_are_refused(self):
        wanted = machine('web', power='On')
        unnamed = self.client.patch(f'{MACHINES}/web', wanted, content_type=APPLY)
        self.assertEqual((unnamed.status, unnamed.json()['reason']), (422, 'Invalid'))
        self.assertIn('fieldManager: Required value: is required for apply patch', unnamed.json()['message'])
        self.assertEqual(self.apply(wanted, fieldManager='x' * 129).status, 422)
        self.assertEqual(self.apply(machine('web', nonsense=1)).status, 400)
        self.assertEqual(self.apply(machine('web', volumes=[{'device': 'odb'}])).status, 400)
        self.assertEqual(self.apply({**wanted, 'apiVersion': 'v1'}).status, 400)
        self.assertEqual(self.apply({**wanted, 'metadata': {'name': 'web', 'managedFields': []}}).status, 400)
        self.assertEqual(self.apply({'metadata': {'name': 'web'}}).status, 400)
        for body in (b'[]', b'{', b'a: [', b'\xff', b''):
            answer = self.client.request('PATCH', f'{MACHINES}/web', body, content_type=APPLY, fieldManager='me')
            self.assertEqual(answer.status, 400, body)
        forced = self.client.patch(f'{MACHINES}/web', {}, force='true')
        self.assertEqual(forced.status, 422)

    def test_status_and_scale_have_sets_of_their_own(self):
        self.apply(machine('parts', machineClassRef={'name': 'small'}))
        state = {**machine('parts'), 'status': {'state': 'Running'}}
        answer = self.apply(state, path=f'{MACHINES}/parts/status')
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(managers(answer.json())[('me', 'Apply', 'status')], {'f:status': {'f:state': {}}})
        with open(os.path.join(MANIFESTS, 'machine_set.yaml')) as file:
            self.server.berth('apply', '-f', '-', input=file.read())
        sets = '/apis/berth.dev/v1alpha1/namespaces/shop/machinesets'
        scale = {'apiVersion': 'autoscaling/v1', 'kind': 'Scale', 'metadata': {'name': 'fleet'}, 'spec': {'replicas': 0}}
        refused = self.apply(scale, path=f'{sets}/fleet/scale', fieldManager='scaler')
        self.assertEqual(refused.status, 409, refused)
        self.assertEqual(self.apply(scale, path=f'{sets}/fleet/scale', fieldManager='scaler', force='true').status, 200)
        found = self.client.get(f'{sets}/fleet').json()
        self.assertEqual(found['spec']['replicas'], 0)
        self.assertEqual(managers(found)[('scaler', 'Apply', 'scale')], {'f:spec': {'f:replicas': {}}})

    def test_the_managers_can_be_reset(self):
        path = f'{CONFIGMAPS}/reset'
        for reset in ([{}], []):
            self.apply(config('reset', a='b'), path, force='true')
            self.assertTrue(managers(self.client.get(path).json()))
            answer = self.client.patch(path, {'metadata': {'managedFields': reset}})
            self.assertEqual((answer.status, managers(answer.json())), (200, {}))
        self.apply(config('reset', a='b'), path, force='true')
        whole = self.client.get(path).json()
        whole['metadata']['managedFields'] = []
        answer = self.client.put(path, whole)
        self.assertEqual((answer.status, managers(answer.json())), (200, {}))

    def test_a_writer_without_a_name_is_called_as_its_program(self):
        headers = {'User-Agent': 'gardener/v1.2 (linux)'}
        made = self.client.request('POST', MACHINES, machine('named', machineClassRef={'name': 'small'}), headers=headers)
        self.assertEqual(made.status, 201, made)
        self.assertEqual(list(managers(made.json())), [('gardener', 'Update', '')])

    def test_aliases_share_their_managers(self):
        wanted = machine('alias', machineClassRef={'name': 'small'}, power='Off')
        self.apply(wanted)
        wanted['apiVersion'] = 'compute.OpenKCM.dev/v1alpha1'
        del wanted['spec']['power']
        answer = self.apply(wanted, path=f'{MACHINES}/alias'.replace('ironcore', 'OpenKCM'))
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.json()['spec']['power'], 'On')
        self.assertEqual([entry['apiVersion'] for entry in answer.json()['metadata']['managedFields']],
                         ['compute.ironcore.dev/v1alpha1'])


def load_tests(loader, standard_tests, pattern):
    suite = unittest.TestSuite([loader.loadTestsFromTestCase(Api)])
    for version in berth_fixture.kubectl_paths():
        named = type(f'Kubectl_{version.replace(".", "_")}', (Kubectls,), {'version': version})
        suite.addTests(loader.loadTestsFromTestCase(named))
    return suite


if __name__ == '__main__':
    unittest.main(verbosity=2)
