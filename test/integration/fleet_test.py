#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two real hosts join a server with tokens; machines and volumes are placed, run, move and survive."""

import glob
import json
import os
import re
import signal
import socket
import subprocess
import threading
import unittest

import berth_fixture
import fleet_fixture
import web_socket

SAMPLES = sorted(glob.glob(os.path.join(berth_fixture.ROOT, 'test/integration/manifests/seed-*.yaml')))

CLASSES = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: MachineClass
metadata: {name: small}
capabilities: {cpu: 1, memory: 1Gi}
---
apiVersion: storage.ironcore.dev/v1alpha1
kind: VolumeClass
metadata: {name: fast}
capabilities: {tps: 100, iops: 100}
'''

MACHINE = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {{name: {name}, namespace: default}}
spec:
  machineClassRef: {{name: small}}
'''

TIED = '''  placement: {onPoolLoss: Move}
  volumes:
  - {name: scratch, device: oda, localDisk: {sizeLimit: 1Mi}}
'''

BUCKET = '''
apiVersion: storage.ironcore.dev/v1alpha1
kind: BucketClass
metadata: {name: standard}
capabilities: {tps: 100Mi, iops: 1000}
---
apiVersion: storage.ironcore.dev/v1alpha1
kind: Bucket
metadata: {name: photos, namespace: default}
spec: {bucketClassRef: {name: standard}}
'''

SET = '''
apiVersion: berth.dev/v1alpha1
kind: MachineSet
metadata: {name: herd, namespace: default}
spec:
  replicas: 4
  selector: {matchLabels: {app: herd}}
  template:
    metadata: {labels: {app: herd}}
    spec:
      machineClassRef: {name: small}
      placement: {policy: spread}
'''

WITH_VOLUME = '''
apiVersion: storage.ironcore.dev/v1alpha1
kind: Volume
metadata: {name: data, namespace: default}
spec:
  volumeClassRef: {name: fast}
  resources: {storage: 1Gi}
---
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {name: db, namespace: default}
spec:
  machineClassRef: {name: small}
  volumes:
  - name: data
    volumeRef: {name: data}
'''

RESERVATION = '''
apiVersion: core.ironcore.dev/v1alpha1
kind: Reservation
metadata: {name: kept, namespace: default}
spec: {classRef: {name: small}, pools: [alpha], count: 8}
'''

WITH_ADDRESS = '''
apiVersion: networking.ironcore.dev/v1alpha1
kind: Network
metadata: {name: lan}
---
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {name: addressed}
spec:
  machineClassRef: {name: small}
  networkInterfaces:
  - name: eth
    ephemeral:
      networkInterfaceTemplate:
        spec:
          networkRef: {name: lan}
          ipFamilies: [IPv4]
          ips:
          - ephemeral: {prefixTemplate: {spec: {parentRef: {name: web}}}}
'''


class Fleet(berth_fixture.ServerTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.kubectl('apply', '-f', '-', input=CLASSES)
        cls.hosts = {}
        for name in ('alpha', 'beta'):
            host = fleet_fixture.Host(cls.server, name, labels=(f'zone={name}',),
                                      token=('--zone', name, '--region', 'here'),
                                      poollet=('--on-stop', 'drain', '--drain-timeout', '5m'), buckets=name == 'alpha')
            cls.addClassCleanup(host.close)
            cls.hosts[name] = host.start()

    def more_logs(self):
        return [host.logs() for host in self.hosts.values()]

    def setUp(self):
        for name in self.hosts:
            berth_fixture.eventually(60, lambda name=name: self.pool_is_ready(name), f'pool {name} is ready')

    def get(self, kind, name, *more):
        return json.loads(self.server.kubectl('get', kind, name, '-o', 'json', *more).stdout)

    def pool_is_ready(self, name):
        found = self.server.kubectl('get', 'machinepool', name, '--ignore-not-found', '-o', 'json').stdout
        if not found:
            return False
        conditions = json.loads(found).get('status', {}).get('conditions', [])
        return any(c['type'] == 'Ready' and c['status'] == 'True' for c in conditions)

    def state_of(self, machine):
        return self.get('machine', machine).get('status', {}).get('state')

    def pool_of(self, machine):
        return self.get('machine', machine)['spec'].get('machinePoolRef', {}).get('name')

    def create(self, name, more=''):
        """`more`: fields of its metadata."""
        manifest = MACHINE.format(name=name).replace('namespace: default', 'namespace: default' + more)
        self.server.kubectl('apply', '-f', '-', input=manifest)

    def runs(self, name):
        return lambda: self.state_of(name) == 'Running'

    def delete(self, *names):
        self.server.kubectl('delete', 'machine', *names, '--timeout=60s', timeout=90)

    def test_1_pools_announce_themselves(self):
        pool = self.get('machinepool', 'alpha')
        self.assertEqual(pool['metadata']['labels']['zone'], 'alpha')
        self.assertEqual(pool['metadata']['labels']['topology.ironcore.dev/zone'], 'alpha')
        self.assertEqual(pool['metadata']['labels']['topology.ironcore.dev/region'], 'here')
        self.assertEqual(pool['status']['agent']['mode'], 'Session')
        self.assertIn({'name': 'small'}, pool['status']['availableMachineClasses'])
        self.assertEqual(pool['status']['capacity']['cpu'], '8')
        self.assertEqual(self.server.kubectl('get', 'volumepool', 'alpha-disks', '-o', 'name').returncode, 0)

    def test_2_a_machine_is_placed_and_runs(self):
        self.create('web')
        berth_fixture.eventually(60, self.runs('web'), 'web runs')
        machine = self.get('machine', 'web')
        self.assertIn(machine['spec']['machinePoolRef']['name'], self.hosts)
        self.assertEqual(machine['status']['placement']['epoch'], 1)
        self.assertIn(machine['metadata']['uid'], self.hosts[self.pool_of('web')].machines())
        self.delete('web')

    def test_2_kubectl_shows_every_step(self):
        """A watch tells the machine made, placed and running, in that order; conditions and events say the same."""
        kubectl = berth_fixture.kubectl_paths()[berth_fixture.newest_kubectl()]
        step = '{.metadata.name}/{.spec.machinePoolRef.name}/{.status.state}{"\\n"}'
        watch = [kubectl, 'get', 'machines', '-l', 'watched=steps', '-w', '-o', f'jsonpath={step}']
        label = ', labels: {watched: steps}'
        # Once this one is told, the watch misses nothing that comes later.
        self.create('earlier', more=label)
        seen = []
        with self.server.background(watch) as process:
            # What kubectl says beside it, of another version or a throttle, has another form.
            told = filter(None, (re.fullmatch(r'(earlier|steps)/([^/]*)/([^/]*)', line.strip()) for line in process.stdout))
            self.assertEqual(next(told)[1], 'earlier')
            self.create('steps', more=label)
            for name, pool, state in (found.groups() for found in told):
                now = (pool, 'runs' if state == 'Running' else 'waits')
                if name == 'steps' and now not in seen[-1:]:
                    seen.append(now)
                if name == 'steps' and state == 'Running':
                    break
        pool = self.pool_of('steps')
        self.assertIn(pool, self.hosts)
        self.assertEqual(seen, [('', 'waits'), (pool, 'waits'), (pool, 'runs')])
        scheduled = next(c for c in self.get('machine', 'steps')['status']['conditions'] if c['type'] == 'Scheduled')
        self.assertEqual(scheduled['status'], 'True', scheduled)

        def is_told():
            events = self.server.kubectl('get', 'events', '--field-selector', 'involvedObject.name=steps').stdout
            return 'Scheduled' in events and pool in events
        berth_fixture.eventually(30, is_told, 'an event says where it was placed')
        self.assertRegex(self.server.kubectl('describe', 'machine', 'steps').stdout, r'Normal\s+Scheduled')
        self.delete('steps', 'earlier')

    def test_2_the_example_of_the_guide_goes_where_it_says(self):
        with open(os.path.join(berth_fixture.ROOT, 'examples/web.yaml')) as file:
            manifest = file.read().replace('{name: tiny}', '{name: small}')
        self.server.berth('apply', '-f', '-', input=manifest)
        names = ['db', *(f'web-{i}' for i in range(3))]
        for name in names:
            berth_fixture.eventually(60, self.runs(name), f'{name} runs')
        self.assertEqual({self.pool_of(name) for name in names[1:]}, {'alpha', 'beta'}, 'apart, and over both zones')
        self.assertEqual(self.get('machine', 'web-0')['spec']['placement']['priority'], 100)
        self.assertIn('Fits', self.server.berth('fit', '-f', '-', '-o', 'json', input=manifest).stdout)
        self.server.berth('delete', '-f', '-', input=manifest, timeout=90)

    def test_2_why_fit_and_dry_run_tell_where_things_go(self):
        fits = self.server.berth('fit', '-f', '-', input=MACHINE.format(name='asked')).stdout
        self.assertRegex(fits, r'machine.compute.ironcore.dev/asked: would be placed on pool (alpha|beta) '
                               r'\(2 of 2 pools fit; room for \d+\)')
        self.assertRegex(fits, r'RANK +POOL +SCORE')
        for command in ('create', 'apply'):
            dry = self.server.kubectl(command, '--dry-run=server', '-f', '-', input=MACHINE.format(name='asked'))
            self.assertRegex(dry.stderr, r'Warning: dry run: would be placed on pool (alpha|beta)')
        self.assertEqual(self.server.kubectl('get', 'machine', 'asked', check=False).returncode, 1)

        self.create('placed')
        berth_fixture.eventually(60, self.runs('placed'), 'placed runs')
        why = self.server.berth('why', 'machine/placed').stdout
        self.assertIn(f"is on pool {self.pool_of('placed')} and would go there again", why)
        self.assertRegex(why, r'\n1 +' + self.pool_of('placed') + r' +\d+ +0 +is here\n')
        self.delete('placed')

        too_large = MACHINE.format(name='giant').replace('spec:', 'spec:\n  machinePoolSelector: {zone: nowhere}')
        refused = self.server.berth('fit', '-f', '-', '-o', 'json', input=too_large, check=False)
        self.assertEqual(refused.returncode, 1)
        status = json.loads(refused.stdout)['status']
        self.assertEqual((status['verdict'], status['pools']), ('NoPool', 2))
        self.assertEqual(status['failed'], [{'rule': 'Selector', 'pools': 2, 'message': 'do not match the selector'}])
        self.server.kubectl('apply', '-f', '-', input=too_large)
        berth_fixture.eventually(30, lambda: 'FailedScheduling' in self.server.kubectl(
            'get', 'events', '--field-selector', 'involvedObject.name=giant').stdout, 'an event says why')
        conditions = self.get('machine', 'giant')['status']['conditions']
        scheduled = next(c for c in conditions if c['type'] == 'Scheduled')
        self.assertEqual((scheduled['status'], scheduled['reason']), ('False', 'Unschedulable'))
        self.assertIn('2 do not match the selector', scheduled['message'])
        self.delete('giant')

    def test_3_a_volume_goes_with_its_machine(self):
        self.server.kubectl('apply', '-f', '-', input=WITH_VOLUME)
        berth_fixture.eventually(60, self.runs('db'), 'db runs')
        volume = self.get('volume', 'data')
        self.assertTrue(volume['spec']['volumePoolRef']['name'].endswith('-disks'))
        self.assertEqual(volume['status']['state'], 'Available')
        self.assertEqual(volume['spec']['claimRef']['name'], 'db')
        self.delete('db')
        self.server.kubectl('delete', 'volume', 'data', '--timeout=60s', timeout=90)

    def test_3_a_bucket_is_placed_and_goes_where_it_was(self):
        self.server.kubectl('apply', '-f', '-', input=BUCKET)
        berth_fixture.eventually(60, lambda: self.get('bucket', 'photos').get('status', {}).get('state') == 'Available',
                                 'the bucket is there')
        bucket = self.get('bucket', 'photos')
        self.assertEqual(bucket['spec']['bucketPoolRef'], {'name': 'alpha-buckets'}, 'the only host with buckets')
        self.assertEqual(bucket['status']['placement']['pool'], 'alpha-buckets')
        secret = self.get('secret', bucket['status']['access']['secretRef']['name'])
        self.assertEqual(secret['metadata']['ownerReferences'][0]['uid'], bucket['metadata']['uid'])
        self.assertTrue(bucket['status']['access']['endpoint'])
        self.assertIn(bucket['metadata']['uid'], self.hosts['alpha'].listed('buckets'))
        self.server.kubectl('delete', 'bucket', 'photos', '--timeout=60s', timeout=90)
        self.assertEqual(json.loads(self.hosts['alpha'].listed('buckets'))['buckets'], [])
        berth_fixture.eventually(30, lambda: not self.server.kubectl(
            'get', 'secret', secret['metadata']['name'], '--ignore-not-found').stdout, 'its secret went with it')

    def test_3_a_machine_gets_its_address_out_of_a_prefix(self):
        with open(os.path.join(berth_fixture.ROOT, 'docs/guide/addresses.md'), encoding='utf-8') as guide:
            self.server.kubectl('apply', '-f', '-', input=guide.read().split('```yaml\n')[1].split('```')[0])
        self.server.kubectl('apply', '-f', '-', input=WITH_ADDRESS)
        berth_fixture.eventually(60, self.runs('addressed'), 'addressed runs')
        nic = self.get('networkinterface', 'addressed-eth')
        self.assertEqual(nic['status']['state'], 'Available')
        self.assertIn(nic['status']['ips'][0], ('10.20.0.0', '10.20.0.1'))
        # Two of them: the guide's interface has the other.
        berth_fixture.eventually(
            30, lambda: self.get('prefix', 'web')['status'].get('used') == ['10.20.0.0/31'], 'the parent shows what is held')
        self.delete('addressed')
        self.server.kubectl('delete', 'networkinterface', 'web-1', '--timeout=60s', timeout=90)
        self.server.kubectl('delete', 'prefix', 'web', 'corp', '--timeout=60s', timeout=90)

    def test_4_drain_moves_machines_to_the_other_host(self):
        self.create('mover')
        berth_fixture.eventually(60, self.runs('mover'), 'mover runs')
        first = self.pool_of('mover')
        self.server.berth('drain', first, '--timeout=60s', timeout=90)
        berth_fixture.eventually(60, self.runs('mover'), 'mover runs again')
        self.assertNotEqual(self.pool_of('mover'), first)
        uid = self.get('machine', 'mover')['metadata']['uid']
        self.assertNotIn(uid, self.hosts[first].machines())
        self.server.berth('uncordon', first)
        self.delete('mover')

    def test_4_talks_with_guests(self):
        self.create('guest')
        berth_fixture.eventually(60, self.runs('guest'), 'guest runs')
        with self.subTest('logs'):
            whole = self.server.berth('logs', 'guest').stdout
            self.assertIn('the guest runs', whole)
            last = self.server.berth('logs', 'guest', '--tail', '1').stdout
            self.assertEqual(last, whole.splitlines(keepends=True)[-1])
            self.assertEqual(self.server.berth('logs', 'guest', '--tail', '0').stdout, '')
        with self.subTest('exec: output, input, and the exit status is the command\'s'):
            self.assertEqual(self.server.berth('exec', 'guest', '--', 'uname', '-a').stdout, 'ran uname -a\n')
            echoed = self.server.berth('exec', '-i', 'machine/guest', '--', 'cat', input='hello')
            self.assertEqual(echoed.stdout, 'ran cat\nhello')
            failed = self.server.berth('exec', 'guest', '--', 'false', check=False)
            self.assertEqual((failed.returncode, failed.stderr), (1, ''))
        with self.subTest('console'):
            uid = self.get('machine', 'guest')['metadata']['uid']
            self.assertEqual(self.server.berth('console', 'guest', input='help').stdout,
                             f'console of {uid}\nhelp')
        with self.subTest('exec without a command is the console, as it is with IronCore'):
            self.assertEqual(self.server.berth('exec', 'guest', input='help').stdout, f'console of {uid}\nhelp')
            self.assertIn('name a machine and a command', self.server.berth('exec', check=False).stderr)
        with self.subTest('port-forward'):
            self.assertEqual(self.forwarded('guest', b'ping' * 50_000), b'ping' * 50_000)
        with self.subTest('a client of another make, in the protocol of Kubernetes\' own'):
            self.other_clients('/apis/compute.OpenKCM.dev/v1alpha1/namespaces/default/machines/guest')
        with self.subTest('who may'):
            for command in (('exec', 'guest', '--', 'id'), ('console', 'guest'), ('logs', 'guest')):
                refused = self.server.berth(*command[:1], '--as', 'stranger', *command[1:], check=False, input='')
                self.assertEqual(refused.returncode, 1, refused)
                self.assertIn('forbidden', refused.stderr)
            self.server.kubectl('create', 'rolebinding', 'reader', '--clusterrole=view', '--user=reader')
            berth_fixture.eventually(10, lambda: self.server.berth('logs', '--as', 'reader', 'guest', check=False)
                                     .returncode == 0, 'who may read may read the log')
            refused = self.server.berth('exec', '--as', 'reader', 'guest', '--', 'id', check=False)
            self.assertIn('cannot create resource "machines/exec"', refused.stderr)
        with self.subTest('what cannot be'):
            self.assertEqual(self.server.berth('exec', 'nobody', '--', 'id', check=False).returncode, 3)
            plain = self.server.kubectl('get', '--raw', '/apis/compute.ironcore.dev/v1alpha1/namespaces/default/'
                                        'machines/guest/exec?command=id', check=False)
            self.assertIn('WebSocket', plain.stderr)
        with self.subTest('the audit log has both ends of it'):
            def lines():
                with open(os.path.join(self.server.data_dir, 'audit.log')) as log:
                    return [line for line in map(json.loads, log) if line.get('subresource') == 'exec']

            def of(stage):
                return [line for line in lines() if line.get('stage') == stage]

            berth_fixture.eventually(10, lambda: len(of('Ended')) == len(of('Started')) > 0, 'every start has its end')
            ended = of('Ended')
            self.assertIn(('create', 'guest', 5), {(line['verb'], line['name'], line['bytesIn']) for line in ended})
            self.assertTrue(any(line['code'] == 403 and line['user'] == 'stranger' for line in lines()))
        self.delete('guest')

    def other_clients(self, machine):
        with self.server.client() as client:
            for protocols, chosen in (('v4.channel.k8s.io', 'v4.channel.k8s.io'), ('', None),
                                      ('v5.channel.k8s.io, v4.channel.k8s.io', 'v5.channel.k8s.io')):
                talk = web_socket.WebSocket(client, f'{machine}/exec?command=false', protocols)
                self.assertEqual((talk.status, talk.headers.get('sec-websocket-protocol')), (101, chosen))
                out, end = talk.messages()
                self.assertEqual((out, end[:1]), (b'\x01ran false\n', b'\x03'))
                status = json.loads(end[1:])
                self.assertEqual((status['reason'], status['details']['causes']),
                                 ('NonZeroExitCode', [{'reason': 'ExitCode', 'message': '1'}]))
                self.assertEqual(talk.close_code, 1000)
                talk.close()

            talk = web_socket.WebSocket(client, f'{machine}/portforward?ports=80', 'v4.channel.k8s.io')
            self.assertEqual([talk.receive()[1] for _ in range(2)], [b'\x00\x50\x00', b'\x01\x50\x00'])
            talk.send(b'\x00ping')
            self.assertEqual(talk.receive(), (web_socket.BINARY, b'\x00ping'))
            talk.send(b'\x03x')  # not a client's to write to
            self.assertEqual(list(talk.messages()), [])
            self.assertEqual(talk.close_code, 1008)
            talk.close()

            for path, headers, status in ((f'{machine}/exec?command=id', {'Origin': 'https://evil.example'}, 403),
                                          (f'{machine}/exec', {}, 101), (f'{machine}/portforward?ports=0', {}, 400),
                                          (f'{machine}/portforward?ports=80&ports=81', {}, 400),
                                          (f'{machine}/exec?command=id', {'Sec-WebSocket-Protocol': 'x'}, 400)):
                talk = web_socket.WebSocket(client, path, headers=headers)
                self.assertEqual(talk.status, status, (path, headers))
                talk.close()

    def forwarded(self, machine, data):
        """What comes back from a port of the machine."""
        forward = subprocess.Popen([berth_fixture.binary(), 'port-forward', machine, ':80'], stdout=subprocess.PIPE,
                                   text=True, env=self.server.environment())
        try:
            address, port = re.search(r'from (\S+):(\d+) -> 80', forward.stdout.readline()).groups()
            with socket.create_connection((address, int(port)), timeout=30) as connection:
                sender = threading.Thread(target=lambda: (connection.sendall(data),
                                                          connection.shutdown(socket.SHUT_WR)))
                sender.start()
                back = b''
                while chunk := connection.recv(65536):
                    back += chunk
                sender.join()
            return back
        finally:
            forward.send_signal(signal.SIGINT)
            self.assertEqual(forward.wait(30), 0)
            forward.stdout.close()

    def test_5_killed_processes_lose_nothing_and_run_nothing_twice(self):
        names = [f'survivor-{i}' for i in range(4)]
        for name in names:
            self.create(name)
        for name in names:
            berth_fixture.eventually(60, self.runs(name), f'{name} runs')
        before = {name: (self.get('machine', name)['metadata']['uid'], self.pool_of(name)) for name in names}
        self.server.kill()
        self.hosts['alpha'].poollet.kill()
        self.hosts['alpha'].poollet.start()
        self.hosts['beta'].runtime.kill()
        self.hosts['beta'].runtime.start()
        self.server.start()
        for name in self.hosts:
            berth_fixture.eventually(60, lambda name=name: self.pool_is_ready(name), f'pool {name} is ready again')
        self.create('afterwards')
        berth_fixture.eventually(60, self.runs('afterwards'), 'a new machine runs')
        for name, (uid, pool) in before.items():
            berth_fixture.eventually(60, self.runs(name), f'{name} runs still')
            self.assertEqual((self.get('machine', name)['metadata']['uid'], self.pool_of(name)), (uid, pool))
            copies = sum(host.machines().count(f'"{uid}"') > 0 for host in self.hosts.values())
            self.assertEqual(copies, 1, name)
        self.delete(*names, 'afterwards')

    def test_6_a_machine_that_fits_nowhere_says_why(self):
        self.server.kubectl('apply', '-f', '-', input=CLASSES.split('---')[0].replace('small', 'giant').replace(
            'cpu: 1', 'cpu: 64'))
        self.server.kubectl('apply', '-f', '-', input=MACHINE.format(name='big').replace('small', 'giant'))

        def explained():
            conditions = self.get('machine', 'big').get('status', {}).get('conditions', [])
            return any(c['type'] == 'Scheduled' and c['status'] == 'False' and '2 ' in c['message'] for c in conditions)

        berth_fixture.eventually(60, explained, 'a condition that says why')
        self.delete('big')

    def test_7_r8_6_reserved_room_is_kept_for_who_names_it(self):
        def state(wanted):
            return lambda: self.get('reservation', 'kept').get('status', {}).get('state') == wanted

        # All that alpha has: nobody else fits there, also after everybody was killed.
        self.server.kubectl('apply', '-f', '-', input=RESERVATION)
        berth_fixture.eventually(60, state('Accepted'), 'a host keeps the room')
        self.assertEqual(self.get('reservation', 'kept')['spec']['machinePoolRef'], {'name': 'alpha'})
        self.server.kill()
        self.hosts['alpha'].poollet.kill()
        self.hosts['alpha'].poollet.start()
        self.server.start()
        berth_fixture.eventually(60, lambda: self.pool_is_ready('alpha'), 'alpha is ready again')
        stranger = MACHINE.format(name='stranger') + '  machinePoolSelector: {zone: alpha}\n'
        self.server.kubectl('apply', '-f', '-', input=stranger)
        berth_fixture.eventually(60, lambda: 'have too little room' in json.dumps(
            self.get('machine', 'stranger').get('status', {})), 'the stranger is told why it waits')
        self.assertIsNone(self.pool_of('stranger'))

        named = '  placement: {reservationRef: {name: kept}}\n'
        for name in ('guest-1', 'guest-2'):
            self.server.kubectl('apply', '-f', '-', input=MACHINE.format(name=name) + named)
            berth_fixture.eventually(60, self.runs(name), f'{name} runs')
            self.assertEqual(self.pool_of(name), 'alpha')
        why = self.server.berth('why', 'reservation/kept').stdout
        self.assertIn('is on pool alpha', why)
        table = self.server.kubectl('get', 'reservation', 'kept').stdout
        self.assertRegex(table, r'NAME +STATE +POOL +COUNT +LEFT.*\nkept +Accepted +alpha +8 +6')
        self.assertIsNone(self.pool_of('stranger'))

        self.server.kubectl('delete', 'reservation', 'kept', '--timeout=60s', timeout=90)
        berth_fixture.eventually(60, self.runs('stranger'), 'the room is everybody\'s')
        for name in ('guest-1', 'guest-2'):
            self.assertEqual(self.state_of(name), 'Running')
        self.delete('stranger', 'guest-1', 'guest-2')

    def test_8_r8_6_a_reservation_ends_with_its_time(self):
        self.server.kubectl('apply', '-f', '-', input=RESERVATION.replace('count: 8', 'count: 8, ttl: 2s'))

        def is_over():
            reservation = self.get('reservation', 'kept')
            return (reservation.get('status', {}).get('state') == 'Expired'
                    and 'machinePoolRef' not in reservation['spec'])

        berth_fixture.eventually(60, is_over, 'its time is over and its host has let go')
        self.server.kubectl('delete', 'reservation', 'kept', '--timeout=60s', timeout=90)

    def condition_of(self, kind, name, wanted):
        """(status, reason, message) of a condition; None if there is none of that type."""
        conditions = self.get(kind, name).get('status', {}).get('conditions', [])
        return next(((c['status'], c['reason'], c['message']) for c in conditions if c['type'] == wanted), None)

    def takes_new_ones(self, pool):
        found = self.get('machinepool', pool)
        marks = [name for name in found['metadata'].get('annotations', {}) if name.startswith('berth.dev/drain')]
        return not found['spec'].get('unschedulable') and not marks

    def test_c19_c21_a_host_that_leaves_with_a_drain_sends_its_machines_elsewhere_and_ends(self):
        self.create('leaver')
        berth_fixture.eventually(60, self.runs('leaver'), 'leaver runs')
        first = self.pool_of('leaver')
        host, uid = self.hosts[first], self.get('machine', 'leaver')['metadata']['uid']
        host.poollet.stop()
        try:
            self.assertNotEqual(self.pool_of('leaver'), first)
            self.assertNotIn(uid, host.machines())
            self.assertTrue(self.get('machinepool', first)['spec']['unschedulable'])
            self.assertEqual(self.condition_of('machinepool', first, 'Drained')[:2], ('True', 'Empty'))
            berth_fixture.eventually(60, self.runs('leaver'), 'leaver runs again')
            self.assertIn(uid, self.hosts[self.pool_of('leaver')].machines())
        finally:
            host.poollet.start()
        berth_fixture.eventually(60, lambda: self.takes_new_ones(first), 'the host is back and takes new ones')
        self.assertIsNone(self.condition_of('machinepool', first, 'Drained'))
        self.delete('leaver')

    def test_c19_c21_r3_2_what_is_tied_to_a_leaving_host_stays_and_the_host_ends(self):
        self.server.kubectl('apply', '-f', '-', input=MACHINE.format(name='tied') + TIED)
        berth_fixture.eventually(60, self.runs('tied'), 'tied runs')
        first = self.pool_of('tied')
        host, uid = self.hosts[first], self.get('machine', 'tied')['metadata']['uid']
        berth_fixture.eventually(30, lambda: self.condition_of('machine', 'tied', 'Movable'), 'its Move is refused')
        status, reason, message = self.condition_of('machine', 'tied', 'Movable')
        self.assertEqual((status, reason), ('False', 'HostLocalState'))
        self.assertIn('its disk scratch is on this host only', message)
        host.poollet.stop()
        try:
            self.assertEqual(self.pool_of('tied'), first)
            self.assertIn(uid, host.machines())
            status, reason, message = self.condition_of('machinepool', first, 'Drained')
            self.assertEqual((status, reason), ('False', 'SomeStay'))
            self.assertIn('machine default/tied, its disk scratch is on this host only', message)
            self.assertEqual(self.condition_of('machine', 'tied', 'Released')[:2], ('False', 'Stays'))
        finally:
            host.poollet.start()
        berth_fixture.eventually(60, lambda: self.takes_new_ones(first), 'the host is back and takes new ones')
        self.assertEqual((self.pool_of('tied'), self.get('machine', 'tied')['status']['placement']['epoch']), (first, 1))
        self.delete('tied')

    def test_c20_r3_2_copies_of_a_lost_host_are_replaced_elsewhere_and_gone_when_it_returns(self):
        def copies():
            """{UID: pool} of those that are not being deleted and run."""
            items = json.loads(self.server.kubectl('get', 'machines', '-l', 'app=herd', '-o', 'json').stdout)['items']
            return {item['metadata']['uid']: item['spec']['machinePoolRef']['name'] for item in items
                    if 'deletionTimestamp' not in item['metadata'] and item['status'].get('state') == 'Running'}

        self.server.kubectl('apply', '-f', '-', input=SET)
        berth_fixture.eventually(60, lambda: len(copies()) == 4, 'all copies run')
        before = copies()
        lost = {uid for uid, pool in before.items() if pool == 'alpha'}
        self.assertEqual(len(lost), 2, before)
        host = self.hosts['alpha']  # with its volume and bucket pools three of five: one host is no mass loss
        host.poollet.kill()
        host.runtime.kill()
        try:
            berth_fixture.eventually(90, lambda: len(copies()) == 4 and not lost & set(copies()), 'new copies run')
            after = copies()
            self.assertEqual(set(after.values()), {'beta'})
            self.assertLess(set(before) - lost, set(after), 'the others were left alone')
        finally:
            host.start()
        berth_fixture.eventually(60, lambda: self.pool_is_ready('alpha'), 'alpha is ready again')
        berth_fixture.eventually(60, lambda: not lost & set(host.machine_uids()), 'the old copies are gone')
        self.assertEqual(copies(), after)
        self.server.kubectl('delete', 'machineset', 'herd', '--timeout=60s', timeout=90)
        berth_fixture.eventually(60, lambda: not self.server.kubectl('get', 'machines', '-l', 'app=herd', '-o', 'name').stdout,
                                 'the set took its machines with it')


class PoolOfTheManifests(berth_fixture.ServerTestCase):
    """A pool and a class that were applied before a host announces them, as upstream's documentation shows them."""

    def apply_manifests(self):
        for path in SAMPLES:
            self.server.kubectl('apply', '-f', path)

    def get(self, kind, name):
        return json.loads(self.server.kubectl('get', kind, name, '-o', 'json').stdout)

    def test_a_host_announces_the_pool_of_the_manifests_and_runs_what_is_placed_there(self):
        self.assertEqual(len(SAMPLES), 6)
        self.apply_manifests()
        before = self.get('machinepool', 'machinepool-sample')
        self.assertEqual(before['spec'], {'providerID': 'ironcore://shared'})
        volume_class = CLASSES.split('---')[1]
        self.server.kubectl('apply', '-f', '-', input=volume_class)
        host = fleet_fixture.Host(self.server, 'machinepool-sample', runtime=('--classes', 'machineclass-sample:4:16Gi'))
        self.addCleanup(host.close)
        host.start()
        berth_fixture.eventually(60, host.is_ready, 'the pool is ready')
        self.check_pool(before['metadata']['uid'])

        self.server.kubectl('apply', '-f', '-', input=WITH_VOLUME.replace('small', 'machineclass-sample'))
        berth_fixture.eventually(60, lambda: self.get('machine', 'db').get('status', {}).get('state') == 'Running', 'db runs')
        machine, volume = self.get('machine', 'db'), self.get('volume', 'data')
        self.assertEqual(machine['spec']['machinePoolRef'], {'name': 'machinepool-sample'})
        self.assertEqual(volume['spec']['volumePoolRef'], {'name': 'machinepool-sample-disks'})
        self.assertEqual(volume['status']['state'], 'Available')
        self.assertEqual(host.machine_uids(), [machine['metadata']['uid']])

        with self.subTest('the manifests again: the pool stays its host\'s, and what runs there runs on'):
            for path in SAMPLES:
                with open(path) as manifest:
                    is_other = 'OpenKCM://' in manifest.read()  # a providerID stays once a host has announced the pool
                applied = self.server.kubectl('apply', '-f', path, check=False)
                self.assertEqual(applied.returncode != 0, is_other, applied.stderr)
            self.check_pool(before['metadata']['uid'])
            again = self.get('machine', 'db')
            self.assertEqual((again['status']['state'], again['status']['placement']['epoch']), ('Running', 1))
        self.server.kubectl('delete', 'machine', 'db', '--timeout=60s', timeout=90)
        self.server.kubectl('delete', 'volume', 'data', '--timeout=60s', timeout=90)
        self.assertEqual(host.machine_uids(), [])
        with self.subTest('beside another host it gets its part'):
            self.check_with_another(host)

    def check_with_another(self, host):
        other = fleet_fixture.Host(self.server, 'another', runtime=('--classes', 'machineclass-sample:4:16Gi'))
        self.addCleanup(other.close)
        other.start()
        berth_fixture.eventually(60, other.is_ready, 'the other pool is ready')
        self.server.kubectl('apply', '-f', '-', input=SET.replace('small', 'machineclass-sample'))

        def copies():
            """{pool: UIDs} of the machines that run."""
            items = json.loads(self.server.kubectl('get', 'machines', '-l', 'app=herd', '-o', 'json').stdout)['items']
            running = [item for item in items if item.get('status', {}).get('state') == 'Running']
            return {one.name: sorted(item['metadata']['uid'] for item in running
                                     if item['spec']['machinePoolRef']['name'] == one.name) for one in (host, other)}

        berth_fixture.eventually(60, lambda: [len(uids) for uids in copies().values()] == [2, 2], 'two copies run on each')
        self.assertEqual(copies(), {one.name: sorted(one.machine_uids()) for one in (host, other)})
        self.server.kubectl('delete', 'machineset', 'herd', '--timeout=60s', timeout=90)

    def check_pool(self, uid):
        pool = self.get('machinepool', 'machinepool-sample')
        self.assertEqual(pool['metadata']['uid'], uid)
        self.assertEqual(pool['spec']['providerID'], 'ironcore://shared')
        self.assertEqual(pool['spec']['hostRef'], {'name': 'machinepool-sample'})
        self.assertEqual(pool['status']['availableMachineClasses'], [{'name': 'machineclass-sample'}])


if __name__ == '__main__':
    unittest.main(verbosity=2)
