#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A host that somebody else wrote, in another language with gRPC as it comes, goes through the whole session with a real
server: it joins, announces a pool, answers offers, runs what it is assigned, and leaves. What is not in agent.proto it does
not know."""

import json
import queue
import subprocess
import threading
import unittest

import berth_fixture
import fleet_fixture
from grpc_fixture import DEADLINE_S, Reader, grpc, load_messages

pb = load_messages('berth/agent/v1/agent')

SERVICE = '/berth.agent.v1.AgentService/'
GI = 1 << 30
CLASS = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: MachineClass
metadata: {name: small}
capabilities: {cpu: 1, memory: 1Gi}
'''


def machine(name):
    return f'''
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {{name: {name}, namespace: default}}
spec: {{machineClassRef: {{name: small}}}}
'''


def new_key():
    return subprocess.run(['openssl', 'genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'], check=True,
                          capture_output=True, text=True).stdout


def certificate_request(key):
    """The subject is the server's to write."""
    return subprocess.run(['openssl', 'req', '-new', '-key', '/dev/stdin', '-subj', '/CN=whoever'], input=key, check=True,
                          capture_output=True, text=True).stdout


class Answered:
    """A call whose offers are answered before anybody else hears of them: a host has 300 ms for that."""

    def __init__(self, call, answer):
        self._call, self._answer = call, answer

    def __iter__(self):
        for message in self._call:
            if len(message.batch.offers) > 0:
                self._answer(message.batch.offers)
            yield message

    def cancel(self):
        self._call.cancel()


class ForeignHost:
    def __init__(self, server, name):
        self.server, self.name, self.key, self.certificate = server, name, new_key(), None
        self.refusal = None  # what it says to offers, if not yes
        self.offered, self.kept, self.heartbeats = {}, {}, 0
        self._queue, self._reader, self._channel, self._over = None, None, None, None

    def channel(self):
        credentials = grpc.ssl_channel_credentials(self.server.kubeconfig.ca_pem.encode(),
                                                   self.certificate and self.key.encode(),
                                                   self.certificate and self.certificate.encode())
        return grpc.secure_channel(fleet_fixture.gateway_address(self.server), credentials)

    def join(self, token):
        request = pb.JoinRequest(token=token, csr_pem=certificate_request(self.key), host=self.name,
                                 versions=pb.VersionRange(min=1, max=1))
        with self.channel() as channel:
            join = channel.unary_unary(SERVICE + 'Join', pb.JoinRequest.SerializeToString, pb.JoinResponse.FromString)
            answer = join(request, timeout=DEADLINE_S)
        self.certificate = answer.certificate_pem
        return answer

    def renew(self):
        """A new certificate for a new key, with the old one."""
        key = new_key()
        with self.channel() as channel:
            renew = channel.unary_unary(SERVICE + 'Renew', pb.RenewRequest.SerializeToString, pb.RenewResponse.FromString)
            answer = renew(pb.RenewRequest(csr_pem=certificate_request(key)), timeout=DEADLINE_S)
        self.key, self.certificate = key, answer.certificate_pem

    def connect(self, versions=(1, 1)):
        """Says hello; gives back the first answer."""
        self._queue, self._channel, self._over = queue.Queue(), self.channel(), threading.Event()
        call = self._channel.stream_stream(SERVICE + 'Connect', pb.HostMessage.SerializeToString,
                                           pb.ServerMessage.FromString)
        self._reader = Reader(Answered(call(iter(self._queue.get, None)), self._answer))
        self.say(hello=pb.Hello(versions=pb.VersionRange(min=versions[0], max=versions[1]), poollet_version='0.1-foreign',
                                boot_id='boot-1'))
        first = self._reader.until(lambda message: True)
        if first.HasField('welcome'):
            threading.Thread(target=self._live, args=(self._queue, first.welcome), daemon=True).start()
        return first

    def _live(self, queue_of_session, welcome):
        """A host that is silent for three heartbeats is offered nothing."""
        while not self._over.wait(welcome.heartbeat_ms / 1000):
            self.heartbeats += 1
            queue_of_session.put(pb.HostMessage(heartbeat=pb.Heartbeat(session=welcome.session, number=self.heartbeats)))

    def say(self, **message):
        self._queue.put(pb.HostMessage(**message))

    def hear(self, matches):
        return self._reader.until(matches)

    def hear_batch(self, *fields):
        """The next batch that has something in one of these fields."""
        return self.hear(lambda message: any(len(getattr(message.batch, field)) > 0 for field in fields)).batch

    def announce(self):
        capacity = pb.Facts(ledger=pb.LedgerVersion(boot='ledger-1', counter=1), capacity={'cpu': 4000, 'memory': 4 * GI})
        pool = pb.PoolAnnounce(kind='MachinePool', name=self.name, provider_id=f'foreign://{self.name}', capacity=capacity,
                               classes=[pb.ClassOffer(name='small', capabilities={'cpu': 1000, 'memory': GI})])
        known = [pb.Known(uid=uid, incarnation=one.incarnation, placement=one.placement, hash=one.hash,
                          pool_uid=one.pool_uid, proof=one.proof) for uid, one in self.kept.items()]
        self.say(announce=pb.Announce(host=pb.HostFacts(hostname=self.name), pools=[pool], known=known, last=True))
        return self.hear_batch('pools').pools[0]

    def synced(self):
        self.hear(lambda message: message.HasField('synced'))

    def granted(self):
        """The seconds that the next heartbeat is granted: what was said before it was heard before it."""
        number = self.heartbeats + 1
        message = self.hear(lambda message: max(message.grant.number, message.batch.grant.number) >= number)
        return max(message.grant.ttl_ms, message.batch.grant.ttl_ms) / 1000

    def _answer(self, offers):
        self.offered.update({offer.uid: offer for offer in offers})
        said = self.refusal or {'verdict': pb.Answer.ACCEPTED}
        ledger = pb.LedgerVersion(boot='ledger-1', counter=2)
        self.say(batch=pb.HostBatch(answers=[pb.Answer(id=offer.id, ledger=ledger, **said) for offer in offers]))

    def assigned(self):
        """The next machine that it is given, after it was asked."""
        assign = self.hear_batch('assigns').assigns[0]
        if assign.placement != self.offered[assign.uid].placement:
            raise AssertionError(f'offered was {self.offered[assign.uid]}, assigned {assign}')
        self.kept[assign.uid] = assign
        return assign

    def report(self, assign, state, **changes):
        status = pb.ObjectStatus(uid=assign.uid, incarnation=assign.incarnation, placement=assign.placement, kind='Machine',
                                 state=state, runtime_id='foreign://1', observed_generation=assign.machine.generation)
        for field, value in changes.items():
            setattr(status, field, value)
        self.say(batch=pb.HostBatch(statuses=[status]))

    def leave(self):
        self.say(goodbye=pb.Goodbye(mode=pb.Goodbye.KEEP))
        self.hear(lambda message: message.HasField('farewell'))
        self._over.set()
        self._queue.put(None)
        return self._reader.code()

    def drop(self):
        """The connection is gone, without a word."""
        if self._channel is not None:
            self._over.set()
            self._reader.call.cancel()
            self._channel.close()
            self._channel = None


class ForeignHostTest(berth_fixture.ServerTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.kubectl('apply', '-f', '-', input=CLASS)

    def token(self, name):
        return self.server.berth('pool', 'join-token', name).stdout.strip()

    def host(self, name):
        host = ForeignHost(self.server, name)
        self.addCleanup(host.drop)
        self.addCleanup(self.server.berth, 'cordon', name, check=False)  # nothing of the next test comes here
        host.join(self.token(name))
        return host

    def connected(self, name):
        host = self.host(name)
        self.assertEqual(host.connect().welcome.version, 1)
        self.assertEqual(host.announce().refused, '')
        host.synced()
        return host

    def create(self, name):
        self.server.kubectl('apply', '-f', '-', input=machine(name))

    def seen(self, name):
        return json.loads(self.server.kubectl('get', 'machine', name, '-o', 'json').stdout)

    def until_state(self, name, state):
        berth_fixture.eventually(DEADLINE_S, lambda: self.seen(name).get('status', {}).get('state') == state,
                                 f'{name} is {state}')

    def refused(self, code, call, *words):
        with self.assertRaises(grpc.RpcError) as raised:
            call()
        self.assertEqual(raised.exception.code(), code, raised.exception.details())
        for word in words:
            self.assertIn(word, raised.exception.details())

    def test_goes_through_the_whole_session(self):
        host = self.connected('whole')
        self.assertGreater(host.granted(), 1)
        self.create('one')
        assign = host.assigned()
        self.assertEqual((assign.kind, assign.namespace, assign.name), ('Machine', 'default', 'one'))
        self.assertEqual(assign.machine.class_name, 'small')
        self.assertEqual(dict(assign.resources), {'cpu': 1000, 'memory': GI})
        host.report(assign, 'Running')
        self.until_state('one', 'Running')
        one = self.seen('one')
        self.assertEqual((one['metadata']['uid'], one['spec']['machinePoolRef']['name']), (assign.uid, 'whole'))
        self.server.kubectl('delete', 'machine', 'one', '--wait=false')
        deletion = host.hear_batch('deletes').deletes[0]
        self.assertEqual((deletion.uid, deletion.why), (assign.uid, pb.Delete.DELETED))
        gone = pb.Gone(uid=assign.uid, incarnation=assign.incarnation, placement=assign.placement)
        host.say(batch=pb.HostBatch(gone=[gone]))
        self.assertEqual(host.hear_batch('forget').forget[0].uid, assign.uid)
        self.server.kubectl('wait', 'machine/one', '--for=delete', f'--timeout={DEADLINE_S}s')
        self.assertEqual(host.leave(), grpc.StatusCode.OK)

    def test_a_no_is_told_with_what_is_missing(self):
        host = self.connected('full')
        host.refusal = {'verdict': pb.Answer.REJECTED, 'reason': 'Insufficient', 'message': 'no memory left',
                        'missing': {'memory': GI}}
        self.create('too-much')

        def says_why():
            conditions = {c['type']: c for c in self.seen('too-much').get('status', {}).get('conditions', [])}
            scheduled = conditions.get('Scheduled', {})
            return scheduled.get('status') == 'False' and 'no memory left' in scheduled['message']
        self.addCleanup(self.server.kubectl, 'delete', 'machine', 'too-much')
        berth_fixture.eventually(DEADLINE_S, says_why, 'the reason')

    def test_what_it_knows_is_confirmed_when_it_comes_back(self):
        host = self.connected('returning')
        self.create('kept')
        assign = host.assigned()
        host.report(assign, 'Running')
        self.until_state('kept', 'Running')
        host.drop()
        host.renew()
        self.assertEqual(host.connect().welcome.version, 1)
        host.announce()
        confirmed = host.hear_batch('confirms', 'assigns')
        # What has not changed is not sent again.
        self.assertEqual([one.uid for one in confirmed.confirms], [assign.uid])
        self.assertEqual(len(confirmed.assigns), 0)
        host.synced()
        self.assertEqual(self.seen('kept')['status']['state'], 'Running')

    def test_what_was_not_assigned_to_it_cannot_be_reported(self):
        host = self.connected('honest')
        self.create('mine')
        assign = host.assigned()
        host.report(assign, 'Running')
        self.until_state('mine', 'Running')
        other = self.connected('forging')
        other.report(assign, 'Shutdown')
        other.report(assign, 'Shutdown', placement=assign.placement + 1)
        other.report(assign, 'Shutdown', incarnation=assign.incarnation + 1)
        # Once its next words were heard so were these.
        other.granted()
        host.report(assign, 'Running', runtime_id='foreign://2')

        berth_fixture.eventually(DEADLINE_S, lambda: 'foreign://2' in json.dumps(self.seen('mine')['status']),
                                 'the report of its own host')
        self.assertEqual(self.seen('mine')['status']['state'], 'Running')

    def test_refusals_name_the_reason(self):
        host = self.host('refused')
        used = self.token('twice')
        ForeignHost(self.server, 'twice').join(used)
        self.refused(grpc.StatusCode.UNAUTHENTICATED, lambda: ForeignHost(self.server, 'twice').join(used), 'used')
        self.refused(grpc.StatusCode.PERMISSION_DENIED,
                     lambda: ForeignHost(self.server, 'another').join(self.token('some')), 'another')
        nobody = ForeignHost(self.server, 'nobody')
        self.addCleanup(nobody.drop)
        self.assertEqual(nobody.connect().refused.reason, 'NoCertificate')
        refused = host.connect(versions=(7, 9)).refused
        self.assertEqual(refused.reason, 'Version')
        self.assertIn('7', refused.message)
        host.drop()
        host.connect()
        host.say(hello=pb.Hello())  # twice
        self.assertEqual(host.hear(lambda message: message.HasField('refused')).refused.reason, 'Protocol')


if __name__ == '__main__':
    unittest.main()
