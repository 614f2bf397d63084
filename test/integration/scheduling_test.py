#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A controller in another language, with gRPC as it comes, asks a real server with a real host for machines."""

import contextlib
import json
import os
import unittest

import berth_fixture
import fleet_fixture
import several_servers_test
from grpc_fixture import DEADLINE_S, Reader, grpc, load_messages

SERVICE = '/berth.scheduler.v1.SchedulingService/'

CLASS = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: MachineClass
metadata: {name: small}
capabilities: {cpu: 1, memory: 1Gi}
'''
SMALL = 'spec: {machineClassRef: {name: small}}'

messages = load_messages('berth/scheduler/v1/scheduler')
Status, Event = messages.WorkloadStatus, messages.ClusterEvent


class Controller:
    """One channel to the service, and its six calls."""

    def __init__(self, server, certificate=None, key=None, token=None, address=None):
        """`address` is one of the API; without, the port of the hosts is asked."""
        credentials = grpc.ssl_channel_credentials(server.kubeconfig.ca_pem.encode(), key and key.encode(),
                                                   certificate and certificate.encode())
        self.channel = grpc.secure_channel(address or fleet_fixture.gateway_address(server), credentials)
        self.metadata = (('authorization', f'Bearer {token}'),) if token else ()

    def _stream(self, method, answer, request):
        call = self.channel.unary_stream(SERVICE + method, lambda r: r.SerializeToString(), answer.FromString)
        return Reader(call(request, metadata=self.metadata))

    def _unary(self, method, request):
        call = self.channel.unary_unary(SERVICE + method, lambda r: r.SerializeToString(), Status.FromString)
        return call(request, metadata=self.metadata, timeout=DEADLINE_S)

    def schedule(self, name, manifest=SMALL, namespace='default'):
        return self._stream('Schedule', Status, messages.ScheduleRequest(namespace=namespace, instance_id=name,
                                                                         manifest=manifest))

    def attach(self, name, namespace='default'):
        return self._stream('Attach', Status, messages.AttachRequest(namespace=namespace, instance_id=name))

    def watch(self, **fields):
        return self._stream('Watch', Event, messages.WatchRequest(**fields))

    def update(self, name, manifest):
        return self._unary('Update', messages.UpdateRequest(namespace='default', instance_id=name, manifest=manifest))

    def stop(self, name):
        return self._unary('Stop', messages.StopRequest(namespace='default', instance_id=name))

    def destroy(self, name):
        return self._unary('Destroy', messages.DestroyRequest(namespace='default', instance_id=name))


def code_of(call):
    try:
        call()
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def is_in(state):
    return lambda status: status.state == state


class Scheduling(berth_fixture.ServerTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.kubectl('apply', '-f', '-', input=CLASS)
        cls.host = fleet_fixture.Host(cls.server, 'alpha')
        cls.addClassCleanup(cls.host.close)
        cls.host.start()

    def setUp(self):
        self.wait_for_pool()

    def wait_for_pool(self):
        def ready():
            found = self.server.kubectl('get', 'machinepool', 'alpha', '--ignore-not-found', '-o', 'json').stdout
            conditions = json.loads(found or '{}').get('status', {}).get('conditions', [])
            return any(c['type'] == 'Ready' and c['status'] == 'True' for c in conditions)

        berth_fixture.eventually(DEADLINE_S, ready, 'pool alpha is ready')

    def controller(self, **who):
        if not who:
            config = self.server.kubeconfig
            who = {'certificate': config.certificate_pem, 'key': config.key_pem}
        controller = Controller(self.server, **who)
        self.addCleanup(controller.channel.close)
        return controller

    def token(self, user, *arguments):
        return self.server.berth('token', 'create', user, *arguments).stdout.split()[-1]

    def test_c9_c24_a_machine_runs_is_updated_stops_and_goes(self):
        controller = self.controller()
        stream = controller.schedule('web')
        running = stream.until(is_in(Status.RUNNING))
        self.assertEqual(running.pool, 'alpha')
        seen = json.loads(self.server.kubectl('get', 'machine', 'web', '-o', 'json').stdout)
        self.assertEqual(seen['metadata']['labels']['berth.dev/instance-id'], 'web')
        self.assertEqual(seen['metadata']['uid'], running.uid)
        self.assertIn(running.uid, self.host.machines())
        controller.stop('web')
        stream.until(is_in(Status.STOPPED))
        controller.update('web', SMALL)  # which says On
        stream.until(is_in(Status.RUNNING))
        controller.destroy('web')
        stream.until(is_in(Status.TERMINATED))
        self.assertEqual(stream.code(), grpc.StatusCode.OK)
        self.assertNotIn(running.uid, self.host.machines())

    def test_an_id_is_scheduled_once(self):
        controller = self.controller()
        first = controller.schedule('once').until(is_in(Status.RUNNING))
        again = controller.schedule('once', '{"spec":{"machineClassRef":{"name":"small"}}}')
        self.assertEqual(again.until(is_in(Status.RUNNING)).uid, first.uid)
        other = controller.schedule('once', 'spec: {machineClassRef: {name: large}}')
        self.assertEqual(other.code(), grpc.StatusCode.ALREADY_EXISTS)
        self.assertIn('default/once', other.details)
        controller.destroy('once')

    def test_c14_streams_and_cursors_survive_a_killed_server(self):
        controller = self.controller()
        watch = controller.watch(namespace='default')
        cursor = watch.until(lambda event: event.type == Event.SYNCED).cursor
        stream = controller.schedule('survivor')
        before = stream.until(is_in(Status.RUNNING))
        self.server.kill()
        self.assertEqual(stream.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertEqual(watch.code(), grpc.StatusCode.UNAVAILABLE)
        self.server.start()
        self.wait_for_pool()
        controller = self.controller()
        for stream in (controller.schedule('survivor'), controller.attach('survivor')):
            self.assertEqual(stream.until(is_in(Status.RUNNING)).uid, before.uid)
        resumed = controller.watch(namespace='default', cursor=cursor)
        resumed.until(lambda event: event.workload.uid == before.uid and event.workload.state == Status.RUNNING)
        controller.destroy('survivor')
        resumed.until(lambda event: event.workload.uid == before.uid and event.workload.state == Status.TERMINATED)

    def test_c20_a_host_that_dies_and_leaves_is_told_and_nobody_else_can_be_asked(self):
        controller = self.controller()
        watch = controller.watch()
        watch.until(lambda event: event.type == Event.SYNCED)
        self.host.poollet.kill()
        watch.until(lambda event: event.type == Event.POOL_TIMED_OUT and event.pool.name == 'alpha')
        stream = controller.schedule('waiting')
        waiting = stream.until(lambda status: status.reason == Status.NO_POOL_REACHABLE)
        self.assertEqual(waiting.state, Status.WAITING)
        self.host.poollet.start()
        watch.until(lambda event: event.type == Event.POOL_JOINED and event.pool.name == 'alpha')
        stream.until(is_in(Status.RUNNING))
        controller.destroy('waiting')
        stream.until(is_in(Status.TERMINATED))
        self.host.poollet.stop()
        watch.until(lambda event: event.type == Event.POOL_LEFT and event.pool.name == 'alpha')
        self.host.poollet.start()

    def test_c4_bad_input_is_named(self):
        controller = self.controller()
        for name, manifest, word in (('Bad_Id', SMALL, 'instance_id'),
                                     ('bad', 'spec: {machineClassRef: {name: small}, cpus: 4}', 'spec.cpus'),
                                     ('bad', 'spec: {}', 'machineClassRef'),
                                     ('bad', '{', 'invalid JSON'),
                                     ('bad', 'x' * 3_000_000, '')):
            stream = controller.schedule(name, manifest)
            self.assertIn(stream.code(), (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED))
            self.assertIn(word, stream.details)
        self.assertEqual(controller.watch(cursor='nonsense').code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(controller.attach('nobody').code(), grpc.StatusCode.NOT_FOUND)
        self.assertEqual(code_of(lambda: controller.stop('nobody')), grpc.StatusCode.NOT_FOUND)
        nothing = controller.channel.unary_unary(SERVICE + 'Nothing', lambda r: r, lambda r: r)
        self.assertEqual(code_of(lambda: nothing(b'', timeout=DEADLINE_S)), grpc.StatusCode.UNIMPLEMENTED)

    def test_rights_are_those_of_https(self):
        self.server.kubectl('create', 'namespace', 'other')
        self.server.kubectl('create', 'rolebinding', 'tenant', '--clusterrole=edit', '--user=tenant', '-n', 'default')
        tenant = self.controller(token=self.token('tenant'))
        berth_fixture.eventually(10, lambda: tenant.attach('mine').code() == grpc.StatusCode.NOT_FOUND, 'the rights')
        stream = tenant.schedule('mine')
        stream.until(is_in(Status.RUNNING))
        self.assertEqual(tenant.schedule('mine', namespace='other').code(), grpc.StatusCode.PERMISSION_DENIED)
        self.assertEqual(tenant.watch().code(), grpc.StatusCode.PERMISSION_DENIED)
        tenant.destroy('mine')
        stream.until(is_in(Status.TERMINATED))
        self.assertEqual(self.controller(token='berth_0000000000_' + 'x' * 43).attach('mine').code(),
                         grpc.StatusCode.UNAUTHENTICATED)
        anonymous = Controller(self.server)
        with contextlib.closing(anonymous.channel):
            self.assertEqual(anonymous.attach('mine').code(), grpc.StatusCode.UNAUTHENTICATED)
        with open(os.path.join(self.server.data_dir, 'audit.log')) as log:
            berth_fixture.eventually(DEADLINE_S, lambda: '"mine"' in log.read(), 'the audit log knows')


def api_address(server):
    return server.url.removeprefix('https://')


class SchedulingOfSeveralServers(several_servers_test.SeveralServersTestCase):
    """Every server serves controllers on the port of its API, whoever leads."""

    def controller(self, server, **who):
        if not who:
            config = self.servers[0].kubeconfig
            who = {'certificate': config.certificate_pem, 'key': config.key_pem}
        controller = Controller(self.servers[0], address=api_address(server), **who)
        self.addCleanup(controller.channel.close)
        return controller

    def test_each_of_them_serves_controllers_and_goes_on_without_the_leader(self):
        leader = self.wait_leader(self.servers[0])
        first, second = self.others(leader)
        first.kubectl('apply', '-f', '-', input=CLASS)
        host, = self.start_hosts('alpha')
        leading, one, two = (self.controller(server) for server in (leader, first, second))
        watch = one.watch(namespace='default')
        cursor = watch.until(lambda event: event.type == Event.SYNCED).cursor
        # What one has scheduled the others know, stop and switch on.
        stream = one.schedule('web')
        web = stream.until(is_in(Status.RUNNING))
        self.assertEqual((web.pool, host.machine_uids()), ('alpha', [web.uid]))
        for other in (two.attach('web'), leading.schedule('web')):
            self.assertEqual(other.until(is_in(Status.RUNNING)).uid, web.uid)
        two.stop('web')
        stream.until(is_in(Status.STOPPED))
        leading.update('web', SMALL)
        stream.until(is_in(Status.RUNNING))
        self.check_rights(second)
        # Only the leader's streams end with it.
        lost = leading.attach('web')
        lost.until(is_in(Status.RUNNING))
        leader.kill()
        self.assertEqual(lost.code(), grpc.StatusCode.UNAVAILABLE)
        two.schedule('after').until(is_in(Status.RUNNING))
        watch.until(lambda event: event.workload.instance_id == 'after' and event.workload.state == Status.RUNNING)
        self.assertIsNone(stream.end)
        self.check_another_server(first, second, stream, cursor)

    def check_rights(self, server):
        token = server.berth('token', 'create', 'tenant').stdout.split()[-1]
        tenant = self.controller(server, token=token)
        berth_fixture.eventually(DEADLINE_S, lambda: tenant.attach('web').code() == grpc.StatusCode.PERMISSION_DENIED,
                                 'that the token is known, and no more')
        self.assertEqual(tenant.schedule('mine').code(), grpc.StatusCode.PERMISSION_DENIED)
        self.assertEqual(self.controller(server, token='berth_0000000000_' + 'x' * 43).attach('web').code(),
                         grpc.StatusCode.UNAUTHENTICATED)

    def check_another_server(self, gone, left, stream, cursor):
        """Ids and cursors of one server are good at the next; a client that knows all addresses finds it by itself."""
        gone.kill()
        self.assertEqual(stream.code(), grpc.StatusCode.UNAVAILABLE)
        config = self.servers[0].kubeconfig
        credentials = grpc.ssl_channel_credentials(config.ca_pem.encode(), config.key_pem.encode(),
                                                   config.certificate_pem.encode())
        everybody = self.controller(left)
        everybody.channel = grpc.secure_channel('ipv4:' + ','.join(api_address(server) for server in self.servers), credentials,
                                                options=(('grpc.ssl_target_name_override', '127.0.0.1'),))
        self.addCleanup(everybody.channel.close)
        everybody.attach('web').until(is_in(Status.RUNNING))
        resumed = everybody.watch(namespace='default', cursor=cursor)
        resumed.until(lambda event: event.workload.instance_id == 'after' and event.workload.state == Status.RUNNING)
        berth_fixture.eventually(DEADLINE_S, lambda: code_of(lambda: everybody.destroy('web')) == grpc.StatusCode.OK,
                                 'that it is destroyed')
        resumed.until(lambda event: event.workload.instance_id == 'web' and event.workload.state == Status.TERMINATED)


if __name__ == '__main__':
    unittest.main(verbosity=2)
