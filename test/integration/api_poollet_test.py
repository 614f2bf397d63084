#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A poollet that speaks the Kubernetes API and nothing else, as IronCore's do, with the certificate of its pool alone: it announces
what it has, is bound what fits without being asked, reports it as running, and gives it up when it is deleted."""

import datetime
import glob
import json
import os
import threading
import unittest

import berth_fixture
from security_matrix_test import Authority

POOL = 'rack'
COMPUTE = '/apis/compute.ironcore.dev/v1alpha1'
POOL_PATH = f'{COMPUTE}/machinepools/{POOL}'
LEASES = '/apis/coordination.k8s.io/v1/namespaces/ironcore-machinepool-lease/leases'
APPLY = 'application/apply-patch+yaml'
FINALIZER = 'machinepoollet.ironcore.dev/machine'
IDENTITY = '/O=compute.ironcore.dev:system:machinepools/CN=compute.ironcore.dev:system:machinepool:'
CAPACITY = 2  # machines of the class small
WATCH_S = 2

MACHINE = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {{name: {name}, namespace: default}}
spec: {{machineClassRef: {{name: small}}}}
'''


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%S.%fZ')


class ApiPoollet:
    """Keeps its guests in a dictionary, {UID of the machine: its name}."""

    def __init__(self, make_client):
        """`make_client` makes a client with the pool's certificate: one for each thread."""
        self._make_client, self._client = make_client, make_client()
        self._over, self._thread = threading.Event(), None
        self.guests, self.trouble = {}, None

    def announce(self):
        """What it is; its operator has made the pool and has said so too."""
        self._apply(POOL_PATH, 'MachinePool', {'metadata': {'name': POOL}, 'spec': {'providerID': f'test://{POOL}'}})
        status = {'state': 'Ready', 'availableMachineClasses': [{'name': 'small'}],
                  'capacity': {'class/machine.small': str(CAPACITY)},
                  'conditions': [{'type': 'Ready', 'status': 'True', 'reason': 'HeartbeatReceived', 'message': '',
                                  'lastTransitionTime': now()}]}
        self._apply(f'{POOL_PATH}/status', 'MachinePool', {'metadata': {'name': POOL}, 'status': status})

    def heartbeat(self):
        """Makes or renews the Lease of its pool, and gives it back."""
        spec = {'holderIdentity': f'{POOL}_test', 'leaseDurationSeconds': 40, 'renewTime': now()}
        found = self._client.get(f'{LEASES}/{POOL}')
        if found.status == 404:
            return self._good(self._client.post(LEASES, {'metadata': {'name': POOL}, 'spec': spec})).json()
        return self._good(self._client.patch(f'{LEASES}/{POOL}', {'spec': spec})).json()

    def start(self):
        self._over.clear()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def stop(self):
        """As if it were killed: what it keeps is kept."""
        self._over.set()
        self._thread.join(WATCH_S + berth_fixture.COMMAND_DEADLINE_S)

    def _follow(self):
        selector = {'fieldSelector': f'spec.machinePoolRef.name={POOL}'}
        try:
            with self._make_client() as client:
                while not self._over.is_set():
                    listed = self._good(client.get(f'{COMPUTE}/machines', **selector)).json()
                    for machine in listed['items']:
                        self._reconcile(client, machine)
                    for event in client.watch(f'{COMPUTE}/machines', timeoutSeconds=WATCH_S, **selector,
                                              resourceVersion=listed['metadata']['resourceVersion']):
                        if self._over.is_set() or event['type'] == 'ERROR':
                            break
                        if event['type'] != 'DELETED':
                            self._reconcile(client, event['object'])
        except Exception as error:  # pylint: disable=broad-except; the test shows it
            self.trouble = error

    def _reconcile(self, client, machine):
        metadata = machine['metadata']
        uid, finalizers = metadata['uid'], metadata.get('finalizers', [])
        path = f"{COMPUTE}/namespaces/{metadata['namespace']}/machines/{metadata['name']}"
        if 'deletionTimestamp' in metadata:
            self.guests.pop(uid, None)
            if FINALIZER in finalizers:
                self._change(client, path, {'metadata': {'uid': uid, 'resourceVersion': metadata['resourceVersion'],
                                                         'finalizers': [one for one in finalizers if one != FINALIZER]}})
        elif FINALIZER not in finalizers:
            self._change(client, path, {'metadata': {'uid': uid, 'resourceVersion': metadata['resourceVersion'],
                                                     'finalizers': [*finalizers, FINALIZER]}})
        elif machine.get('status', {}).get('state') != 'Running':
            self.guests[uid] = metadata['name']
            self._apply(f'{path}/status', 'Machine', {'metadata': {'name': metadata['name'], 'uid': uid}, 'status': {
                'state': 'Running', 'machineID': f'test://{uid}', 'observedGeneration': metadata['generation']}}, client)

    @staticmethod
    def _good(answer, *more):
        if answer.status not in (200, 201, *more):
            raise berth_fixture.Failure(f'{answer.status}: {answer.text}')
        return answer

    def _change(self, client, path, patch):
        """A later event comes if the object is another one by now, or is gone."""
        self._good(client.patch(path, patch), 404, 409)

    def _apply(self, path, kind, wanted, client=None):
        body = json.dumps({'apiVersion': 'compute.ironcore.dev/v1alpha1', 'kind': kind, **wanted})
        self._good((client or self._client).request('PATCH', path, body, content_type=APPLY, force='true',
                                                    fieldManager='machinepoollet'), *((404, 409) if client else ()))


class PoolletOfTheApi(berth_fixture.ServerTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        root = cls.server.client()
        for plural, body in (('machineclasses', {'metadata': {'name': 'small'}, 'capabilities': {'cpu': '1', 'memory': '1Gi'}}),
                             ('machinepools', {'metadata': {'name': POOL}, 'spec': {'providerID': f'test://{POOL}'}})):
            made = root.post(f'{COMPUTE}/{plural}', body)
            assert made.status == 201, made
        pem = glob.glob(os.path.join(cls.server.data_dir, '**', 'ca.pem'), recursive=True)
        certificate = Authority(os.path.join(cls.server.home, 'ours'), pem[0]).issue(POOL, IDENTITY + POOL)
        cls.poollet = ApiPoollet(lambda: cls.server.client(certificate=certificate))
        cls.poollet.announce()
        cls.poollet.heartbeat()
        cls.poollet.start()
        cls.addClassCleanup(cls.poollet.stop)

    def tearDown(self):
        self.assertIsNone(self.poollet.trouble)

    def machine(self, name):
        found = self.server.kubectl('get', 'machine', name, '--ignore-not-found', '-o', 'json').stdout
        return json.loads(found) if found else None

    def create(self, *names):
        self.server.kubectl('apply', '-f', '-', input='---'.join(MACHINE.format(name=name) for name in names))

    def runs(self, name):
        return lambda: (self.machine(name).get('status') or {}).get('state') == 'Running'

    def delete(self, *names):
        self.server.kubectl('delete', 'machine', *names, '--timeout=60s', timeout=90)

    def test_1_it_announces_itself_and_keeps_its_lease(self):
        pool = json.loads(self.server.kubectl('get', 'machinepool', POOL, '-o', 'json').stdout)
        self.assertEqual(pool['status']['state'], 'Ready')
        self.assertEqual(pool['status']['capacity'], {'class/machine.small': str(CAPACITY)})
        first, second = self.poollet.heartbeat(), self.poollet.heartbeat()
        self.assertGreater(second['spec']['renewTime'], first['spec']['renewTime'])
        self.assertEqual(second['metadata']['uid'], first['metadata']['uid'])

    def test_2_a_machine_is_bound_without_asking_it_and_reported_as_running(self):
        self.create('web')
        berth_fixture.eventually(60, self.runs('web'), 'web runs')
        web = self.machine('web')
        self.assertEqual(web['spec']['machinePoolRef'], {'name': POOL})
        self.assertEqual((web['status']['placement']['pool'], web['status']['placement']['epoch']), (POOL, 1))
        self.assertEqual(web['status']['observedGeneration'], web['metadata']['generation'])
        self.assertIn(FINALIZER, web['metadata']['finalizers'])
        self.assertEqual(self.poollet.guests, {web['metadata']['uid']: 'web'})
        self.delete('web')
        self.assertEqual(self.poollet.guests, {})

    def test_3_one_that_is_deleted_stays_until_the_poollet_has_given_it_up(self):
        self.create('going')
        berth_fixture.eventually(60, self.runs('going'), 'going runs')
        self.poollet.stop()
        try:
            self.server.kubectl('delete', 'machine', 'going', '--wait=false')
            kept = self.machine('going')
            self.assertIn('deletionTimestamp', kept['metadata'])
            self.assertIn(FINALIZER, kept['metadata']['finalizers'])
        finally:
            self.poollet.start()
        berth_fixture.eventually(60, lambda: self.machine('going') is None, 'it is gone')
        self.assertEqual(self.poollet.guests, {})

    def test_4_as_many_are_bound_as_its_class_counts_and_freed_room_is_used(self):
        names = [f'many-{i}' for i in range(CAPACITY + 1)]
        self.create(*names)
        berth_fixture.eventually(60, lambda: len(self.poollet.guests) == CAPACITY, 'the pool is full')

        def waiting():
            return [name for name in names if 'machinePoolRef' not in self.machine(name)['spec']]

        def explained():
            conditions = (self.machine(waiting()[0]).get('status') or {}).get('conditions', [])
            return any(c['type'] == 'Scheduled' and c['reason'] == 'Unschedulable' for c in conditions)

        berth_fixture.eventually(60, explained, 'the last one is told why it waits')
        (last,) = waiting()
        placed = [name for name in names if name != last]
        self.delete(placed[0])
        berth_fixture.eventually(60, self.runs(last), 'the last one has its room')
        self.delete(*placed[1:], last)


if __name__ == '__main__':
    unittest.main(verbosity=2)
