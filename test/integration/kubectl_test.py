#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real kubectl, Debian's 1.20 and whatever newer one is installed, works with Berth as with any cluster."""

import glob
import itertools
import json
import os
import unittest

import berth_fixture

MANIFESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'manifests')
TOUR = os.path.join(MANIFESTS, 'tour.yaml')


class Sessions(berth_fixture.ServerTestCase):
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
        self.kubectl('apply', '-f', TOUR)

    def machine(self):
        return json.loads(self.kubectl('get', 'machine', 'web', '-n', 'shop', '-o', 'json').stdout)

    def table(self, *arguments):
        lines = self.kubectl('get', *arguments).stdout.splitlines()
        return [line.split() for line in lines]

    # Reading

    def test_get_prints_the_documented_columns(self):
        header, row = self.table('machines', '-n', 'shop', '-o', 'wide')
        self.assertEqual(header[:6], ['NAME', 'MACHINECLASSREF', 'IMAGE', 'MACHINEPOOLREF', 'STATE', 'AGE'])
        self.assertEqual(row[:5], ['web', 'small', 'registry.example.org/debian:12', '<none>', 'Pending'])
        header, row = self.table('machineclass', 'small')
        self.assertEqual(header, ['NAME', 'CPU', 'MEMORY', 'AGE'])
        self.assertEqual(row[:3], ['small', '2', '4Gi'])
        header, row = self.table('volumes', '-A')
        self.assertEqual(header[:6], ['NAMESPACE', 'NAME', 'VOLUMEPOOLREF', 'IMAGE', 'VOLUMECLASS', 'STATE'])
        self.assertEqual((header[6], row[6]), ('SIZE', '10Gi'))
        header, row = self.table('namespace', 'shop')
        self.assertEqual((header, row[:2]), (['NAME', 'STATUS', 'AGE'], ['shop', 'Active']))

    def test_get_all_shows_each_object_once(self):
        shown = self.kubectl('get', 'all', '-n', 'shop', '-o', 'name').stdout.split()
        self.assertIn('machine.compute.ironcore.dev/web', shown)
        self.assertIn('volume.storage.ironcore.dev/', ' '.join(shown))
        self.assertEqual([name for name in shown if 'OpenKCM' in name or 'secret' in name], [])
        self.assertEqual(sorted(self.server.berth('get', 'all', '-n', 'shop', '-o', 'name').stdout.split()), sorted(shown))

    def test_get_classes_and_pools_show_all_kinds_of_them(self):
        shown = self.kubectl('get', 'classes', '-o', 'name').stdout.split()
        self.assertIn('machineclass.compute.ironcore.dev/small', shown)
        self.assertEqual(sorted(self.server.berth('get', 'classes', '-o', 'name').stdout.split()), sorted(shown))
        for listed in (self.kubectl('get', 'pools'), self.server.berth('get', 'pools')):
            self.assertIn('no resources found', (listed.stdout + listed.stderr).lower())

    def test_selectors_choose_objects(self):
        self.assertEqual(len(self.table('machines', '-n', 'shop', '-l', 'app=web', '--no-headers')), 1)
        self.assertEqual(self.kubectl('get', 'machines', '-n', 'shop', '-l', 'app!=web').stdout, '')
        self.assertEqual(
            len(self.table('machines', '-n', 'shop', '--field-selector', 'spec.machineClassRef.name=small',
                           '--no-headers')), 1)
        refused = self.kubectl('get', 'machines', '-n', 'shop', '--field-selector', 'spec.power=On', check=False)
        self.assertIn('field label not supported: spec.power', refused.stderr)

    def test_watch_shows_changes(self):
        path = berth_fixture.kubectl_paths()[self.version]
        with self.server.background([path, 'get', 'machines', '-n', 'shop', '-w', '--output-watch-events']) as watch:
            self.assertIn('EVENT', watch.stdout.readline())
            self.assertIn('ADDED', watch.stdout.readline())
            self.kubectl('label', 'machine', 'web', '-n', 'shop', 'stage=test')
            self.assertRegex(watch.stdout.readline(), r'MODIFIED\s+web')
            self.kubectl('delete', 'machine', 'web', '-n', 'shop')
            self.assertRegex(watch.stdout.readline(), r'(MODIFIED|DELETED)\s+web')

    def test_describe_shows_fields_and_events(self):
        text = self.kubectl('describe', 'machine', 'web', '-n', 'shop').stdout
        self.assertRegex(text, r'Name:\s+web')
        self.assertRegex(text, r'Kind:\s+Machine')
        self.assertIn('registry.example.org/debian:12', text)
        self.assertIn('Events:', text)
        # Nothing has announced a pool, and the machine says so.
        berth_fixture.eventually(
            30, lambda: 'FailedScheduling' in self.kubectl('describe', 'machine', 'web', '-n', 'shop').stdout,
            'an event that says why the machine has no place')

    def test_explain_describes_every_field(self):
        text = self.kubectl('explain', 'machine.spec.volumes', '--recursive').stdout
        for field in ('device', 'emptyDisk', 'localDisk', 'sizeLimit', 'volumeTemplate', 'volumeRef'):
            self.assertIn(field, text)
        self.assertIn('capabilities', self.kubectl('explain', 'machineclass').stdout)
        self.assertIn('power', self.kubectl('explain', 'machine.spec.power').stdout)

    def test_api_resources_lists_kinds_and_aliases(self):
        text = self.kubectl('api-resources', '--verbs=list', '-o', 'name').stdout.split()
        for name in ('machines.compute.ironcore.dev', 'machines.compute.OpenKCM.dev', 'secrets', 'configmaps',
                     'leases.coordination.k8s.io', 'clusterroles.rbac.authorization.k8s.io',
                     'prefixes.ipam.ironcore.dev', 'loadbalancers.networking.ironcore.dev'):
            self.assertIn(name, text)
        versions = self.kubectl('api-versions').stdout.split()
        self.assertIn('compute.ironcore.dev/v1alpha1', versions)
        self.assertIn('v1', versions)

    def test_can_i(self):
        self.assertEqual(self.kubectl('auth', 'can-i', 'create', 'machines').stdout.strip(), 'yes')
        answer = self.kubectl('auth', 'can-i', 'delete', 'machines', '--as', 'nobody', check=False)
        self.assertEqual((answer.stdout.strip(), answer.returncode), ('no', 1))

    # Writing

    def test_every_seed_manifest_applies_verbatim_in_any_order_twice(self):
        files = sorted(glob.glob(os.path.join(MANIFESTS, 'seed-*.yaml')))
        self.assertEqual(len(files), 6)
        for order in (files, list(reversed(files)), files[3:] + files[:3]):
            for path in itertools.chain(order, order):
                self.kubectl('apply', '-f', path)
        self.assertEqual(self.kubectl('get', 'machineclass', 'machineclass-sample', '-o',
                                      'jsonpath={.capabilities.memory}/{.capabilities.cpu}').stdout, '16Gi/4')
        canonical = json.loads(self.kubectl('get', 'machinepools.compute.ironcore.dev', 'machinepool-sample',
                                            '-o', 'json').stdout)
        alias = json.loads(self.kubectl('get', 'machinepools.compute.OpenKCM.dev', 'machinepool-sample',
                                        '-o', 'json').stdout)
        self.assertEqual(canonical['metadata']['uid'], alias['metadata']['uid'])
        self.assertEqual(canonical['metadata']['resourceVersion'], alias['metadata']['resourceVersion'])
        self.assertEqual(canonical['apiVersion'], 'compute.ironcore.dev/v1alpha1')
        self.assertEqual(alias['apiVersion'], 'compute.OpenKCM.dev/v1alpha1')
        self.kubectl('delete', 'machinepool', 'machinepool-sample')
        self.kubectl('delete', 'machineclass', 'machineclass-sample')

    def test_apply_says_what_it_did(self):
        self.assertIn('machineclass.compute.ironcore.dev/small unchanged', self.kubectl('apply', '-f', TOUR).stdout)
        with open(TOUR) as file:
            changed = file.read().replace('app: web', 'app: shop')
        self.assertIn('machine.compute.ironcore.dev/web configured',
                      self.kubectl('apply', '-f', '-', input=changed).stdout)
        self.assertEqual(self.machine()['metadata']['labels']['app'], 'shop')

    def test_a_quota_may_name_a_group_through_an_alias(self):
        def quota(**hard):
            return json.dumps({'apiVersion': 'core.OpenKCM.dev/v1alpha1', 'kind': 'ResourceQuota',
                               'metadata': {'name': 'few', 'namespace': 'shop'}, 'spec': {'hard': hard}})

        def used():
            return self.kubectl('get', 'resourcequotas.core.ironcore.dev', 'few', '-n', 'shop', '-o',
                                r'jsonpath={.status.used.count/machines\.compute\.ironcore\.dev}').stdout

        alias, canonical = 'count/machines.compute.OpenKCM.dev', 'count/machines.compute.ironcore.dev'
        self.addCleanup(self.kubectl, 'delete', 'resourcequotas.core.ironcore.dev', 'few', '-n', 'shop')
        self.kubectl('apply', '-f', '-', input=quota(**{alias: '1'}))
        berth_fixture.eventually(10, lambda: used() == '1', 'the count')
        second = json.dumps({'apiVersion': 'compute.OpenKCM.dev/v1alpha1', 'kind': 'Machine',
                             'metadata': {'name': 'second', 'namespace': 'shop'},
                             'spec': {'machineClassRef': {'name': 'small'}}})
        refused = self.kubectl('apply', '-f', '-', input=second, check=False)
        self.assertIn(f'limited: {canonical}=1', refused.stderr)
        self.assertIn('unchanged', self.kubectl('apply', '-f', '-', input=quota(**{alias: '1'})).stdout)
        self.kubectl('apply', '-f', '-', input=quota(**{alias: '2'}))
        self.kubectl('apply', '-f', '-', input=second)
        self.addCleanup(self.kubectl, 'delete', 'machine', 'second', '-n', 'shop')
        self.kubectl('apply', '-f', '-', input=quota(**{canonical: '3'}))
        hard = self.kubectl('get', 'resourcequotas.core.ironcore.dev', 'few', '-n', 'shop', '-o', 'json').stdout
        self.assertEqual(json.loads(hard)['spec']['hard'], {canonical: '3'})

    def test_server_dry_run_and_diff_change_nothing(self):
        def asked():
            """Without what the scheduler says of it meanwhile."""
            machine = self.machine()
            return machine['spec'], machine['metadata']['generation'], machine['metadata']['labels']

        before = asked()
        with open(TOUR) as file:
            changed = file.read().replace('app: web', 'app: dry')
        self.assertIn('(server dry run)', self.kubectl('apply', '--dry-run=server', '-f', '-', input=changed).stdout)
        diff = self.kubectl('diff', '-f', '-', input=changed, check=False)
        self.assertEqual(diff.returncode, 1, diff.stderr)
        self.assertIn('+    app: dry', diff.stdout)
        self.assertEqual(asked(), before)

    def test_edit_writes_what_the_editor_leaves(self):
        self.kubectl('edit', 'machine', 'web', '-n', 'shop', env={'KUBE_EDITOR': "sed -i 's/power: .*/power: \"Off\"/'"})
        self.assertEqual(self.machine()['spec']['power'], 'Off')

    def test_patches_of_three_types(self):
        target = ('machine', 'web', '-n', 'shop')
        self.kubectl('patch', *target, '--type=merge', '-p', '{"spec":{"power":"Off"}}')
        self.assertEqual(self.machine()['spec']['power'], 'Off')
        self.kubectl('patch', *target, '--type=json', '-p',
                     '[{"op":"test","path":"/spec/power","value":"Off"},'
                     '{"op":"replace","path":"/spec/power","value":"On"}]')
        self.assertEqual(self.machine()['spec']['power'], 'On')
        client = self.server.client()
        path = '/apis/compute.ironcore.dev/v1alpha1/namespaces/shop/machines/web'
        answer = client.patch(path, {'spec': {'volumes': [{'name': 'root', 'device': 'odz'}]}},
                              content_type='application/strategic-merge-patch+json')
        self.assertEqual(answer.status, 200, answer)
        volumes = {volume['name']: volume for volume in answer.json()['spec']['volumes']}
        self.assertEqual(set(volumes), {'root', 'data'})
        self.assertEqual(volumes['root']['device'], 'odz')
        wrong = self.kubectl('patch', *target, '--type=merge', '-p', '{"spec":{"power":"Maybe"}}', check=False)
        self.assertIn('spec.power: Unsupported value: "Maybe"', wrong.stderr)

    def test_label_and_annotate(self):
        self.kubectl('label', 'machine', 'web', '-n', 'shop', 'tier=front')
        self.kubectl('annotate', 'machine', 'web', '-n', 'shop', 'note=hello world')
        self.assertEqual(self.machine()['metadata']['labels']['tier'], 'front')
        self.assertEqual(self.machine()['metadata']['annotations']['note'], 'hello world')
        self.kubectl('label', 'machine', 'web', '-n', 'shop', 'tier-')
        self.assertNotIn('tier', self.machine()['metadata']['labels'])

    def test_wait_for_a_condition_and_for_deletion(self):
        client = self.server.client()
        path = '/apis/compute.ironcore.dev/v1alpha1/namespaces/shop/machines/web'
        waiter = [berth_fixture.kubectl_paths()[self.version], 'wait', '--for=condition=Ready', 'machine/web',
                  '-n', 'shop', '--timeout=30s']
        with self.server.background(waiter) as waiting:
            answer = client.patch(path + '/status', {'status': {'conditions': [
                {'type': 'Ready', 'status': 'True', 'reason': 'Tested', 'message': ''}]}})
            self.assertEqual(answer.status, 200, answer)
            self.assertIn('condition met', waiting.communicate(timeout=40)[0])
        waiter[2] = '--for=delete'
        with self.server.background(waiter) as waiting:
            berth_fixture.eventually(30, lambda: self.watched(waiting), 'the watch of kubectl wait')
            self.kubectl('delete', 'machine', 'web', '-n', 'shop', '--wait=false')
            self.assertIn('condition met', waiting.communicate(timeout=40)[0])

    def watched(self, process):
        """Whether the server serves a watch. 1.20 fails when the object is gone before it looks."""
        metrics = self.server.client().get('/metrics').text
        return process.poll() is not None or 'berth_apiserver_watchers 1' in metrics

    def test_scale_of_a_machine_set(self):
        self.kubectl('apply', '-f', os.path.join(MANIFESTS, 'machine_set.yaml'))

        def machines(count):
            return lambda: len(self.table('machines', '-n', 'shop', '-l', 'app=fleet', '--no-headers')) == count

        berth_fixture.eventually(30, machines(2), 'two machines of the set')
        self.assertIn('scaled', self.kubectl('scale', 'machineset/fleet', '-n', 'shop', '--replicas=5').stdout)
        berth_fixture.eventually(30, machines(5), 'five machines of the set')
        self.kubectl('scale', 'machineset/fleet', '-n', 'shop', '--current-replicas=5', '--replicas=1')
        berth_fixture.eventually(30, machines(1), 'one machine of the set')
        refused = self.kubectl('scale', 'machineset/fleet', '-n', 'shop', '--current-replicas=7', '--replicas=2', check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertEqual(self.table('machineset', 'fleet', '-n', 'shop')[0][:5],
                         ['NAME', 'DESIRED', 'CURRENT', 'READY', 'UPDATED'])
        self.kubectl('delete', 'machineset', 'fleet', '-n', 'shop')
        berth_fixture.eventually(30, machines(0), 'no machine of the set')

    def test_delete_cascades_to_dependents(self):
        for policy, expected in (('background', False), ('foreground', False), ('orphan', True)):
            owner = self.machine()['metadata']
            child = f'child-{policy}'
            self.kubectl('apply', '-f', '-', input=json.dumps({
                'apiVersion': 'v1', 'kind': 'ConfigMap',
                'metadata': {'name': child, 'namespace': 'shop', 'ownerReferences': [
                    {'apiVersion': 'compute.ironcore.dev/v1alpha1', 'kind': 'Machine', 'name': owner['name'],
                     'uid': owner['uid'], 'blockOwnerDeletion': True}]}}))
            self.kubectl('delete', 'machine', 'web', '-n', 'shop', f'--cascade={policy}')

            def settled():
                found = self.kubectl('get', 'configmap', child, '-n', 'shop', '--ignore-not-found',
                                     '-o', 'jsonpath={.metadata.name}:{.metadata.ownerReferences}').stdout
                return found == (f'{child}:' if expected else '')

            berth_fixture.eventually(30, settled, f'{policy} deletion of the dependent')
            self.kubectl('apply', '-f', TOUR)

    def test_deleting_a_namespace_removes_what_is_in_it(self):
        self.kubectl('create', 'namespace', 'gone')
        self.kubectl('create', 'secret', 'generic', 'token', '-n', 'gone', '--from-literal=a=b')
        self.kubectl('create', 'configmap', 'config', '-n', 'gone', '--from-literal=a=b')
        self.kubectl('delete', 'namespace', 'gone', '--timeout=30s')
        self.assertEqual(self.kubectl('get', 'secrets', '-n', 'gone', '-o', 'name').stdout, '')
        self.assertNotEqual(self.kubectl('get', 'namespace', 'gone', check=False).returncode, 0)

    def test_a_class_in_use_is_not_removed(self):
        self.kubectl('delete', 'machineclass', 'small', '--wait=false')
        shown = json.loads(self.kubectl('get', 'machineclass', 'small', '-o', 'json').stdout)
        self.assertIn('deletionTimestamp', shown['metadata'])
        self.kubectl('delete', 'machine', 'web', '-n', 'shop')
        berth_fixture.eventually(
            30, lambda: self.kubectl('get', 'machineclass', 'small', check=False).returncode != 0,
            'removal of the class after its last machine')

    def test_r4_6_an_ignition_in_use_is_not_removed_and_says_why(self):
        self.kubectl('create', 'secret', 'generic', 'boot', '-n', 'shop', '--from-literal=ignition.yaml=x')
        self.kubectl('apply', '-f', '-', input=json.dumps({
            'apiVersion': 'compute.ironcore.dev/v1alpha1', 'kind': 'Machine',
            'metadata': {'name': 'booted', 'namespace': 'shop'},
            'spec': {'machineClassRef': {'name': 'small'}, 'ignitionRef': {'name': 'boot'}}}))
        self.kubectl('delete', 'secret', 'boot', '-n', 'shop', '--wait=false')
        self.assertIn('machine booted', self.kubectl('describe', 'secret', 'boot', '-n', 'shop').stdout)
        self.kubectl('delete', 'machine', 'booted', '-n', 'shop')
        berth_fixture.eventually(
            30, lambda: self.kubectl('get', 'secret', 'boot', '-n', 'shop', check=False).returncode != 0,
            'removal of the secret after its last machine')

    # Errors

    def test_errors_name_every_wrong_field_at_once(self):
        wrong = {'apiVersion': 'compute.ironcore.dev/v1alpha1', 'kind': 'Machine',
                 'metadata': {'name': 'wrong', 'namespace': 'shop'},
                 'spec': {'machineClassRef': {'name': ''}, 'power': 'Maybe',
                          'volumes': [{'name': 'a', 'device': 'UPPER', 'localDisk': {}},
                                      {'name': 'a', 'localDisk': {}}]}}
        refused = self.kubectl('create', '--validate=false', '-f', '-', input=json.dumps(wrong), check=False)
        for text in ('spec.machineClassRef: Required value', 'spec.power: Unsupported value: "Maybe"',
                     'spec.volumes[0].device: Invalid value: "UPPER"', 'spec.volumes[1].name: Duplicate value: "a"'):
            self.assertIn(text, refused.stderr)

    def test_a_stale_write_is_a_conflict(self):
        machine = self.machine()
        self.kubectl('label', 'machine', 'web', '-n', 'shop', 'x=y')
        machine['spec']['power'] = 'Off'
        refused = self.kubectl('replace', '-f', '-', input=json.dumps(machine), check=False)
        self.assertIn('the object has been modified', refused.stderr)

    def test_what_is_not_there_is_not_found(self):
        self.assertIn('NotFound', self.kubectl('get', 'machine', 'nope', '-n', 'shop', check=False).stderr)
        self.assertIn("the server doesn't have a resource type", self.kubectl('get', 'pods', check=False).stderr)


def load_tests(loader, standard_tests, pattern):
    suite = unittest.TestSuite()
    for version in berth_fixture.kubectl_paths():
        named = type(f'Kubectl_{version.replace(".", "_")}', (Sessions,), {'version': version})
        suite.addTests(loader.loadTestsFromTestCase(named))
    return suite


if __name__ == '__main__':
    unittest.main(verbosity=2)
