#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Guests come and go while everything that looks after them is killed at random: server, poollet, both runtimes, libvirtd.
Some get another volume while they run. Then as many run all at once, and whoever looks after them is killed while they start and
while they go. There is never a second domain or process of a machine, and in the end nothing is left: no disk, socket, bridge,
rule or address.

BERTH_SEED, or the first argument, names the order of events; a failure prints it."""

import collections
import http.client
import json
import os
import random
import sys
import threading
import time
import unittest

import berth_fixture
import guest_fixture
import network_fixture
from guest_fixture import DEADLINE_S

GUESTS = 20
AT_ONCE = 4
GIVEN_EVERY = 3  # of those that are waited for, so many get another volume
KILLS = 40  # then those who still wait may boot
COME_AND_GO_S = 600  # it takes 2 minutes on two idle cores
KILLS_TOGETHER = 5  # while all start, and again while all go
TOGETHER_S = 300
SEED = None
PATH = '/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines'


NETWORK = guest_fixture.network_with('range', '10.9.0.0/30') + '''---
apiVersion: ipam.ironcore.dev/v1alpha1
kind: Prefix
metadata: {name: wide}
spec: {prefix: 10.9.1.0/27}
'''


def volume(name, device, **more):
    spec = {'volumeClassRef': {'name': 'plain'}, 'resources': {'storage': '1Mi'}, **more}
    return {'name': name, 'device': device, 'ephemeral': {'volumeTemplate': {'spec': spec}}}


def machine(name, prefix='range'):
    root = volume('root', 'oda', dataSource={'osImage': {'image': 'tiny.raw'}})
    address = {'ephemeral': {'prefixTemplate': {'spec': {'ipFamily': 'IPv4', 'prefixLength': 32, 'parentRef': {'name': prefix}}}}}
    nic = {'networkRef': {'name': 'lan'}, 'ipFamilies': ['IPv4'], 'ips': [address]}
    return {'metadata': {'name': name}, 'spec': {'machineClassRef': {'name': 'tiny'}, 'volumes': [root], 'networkInterfaces': [
        {'name': 'primary', 'ephemeral': {'networkInterfaceTemplate': {'spec': nic}}}]}}


class Watcher:
    """Looks all the time whether there is more than one of anything."""

    def __init__(self, host):
        self.host, self.wrong, self.most = host, [], 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *unused):
        self._stop.set()
        self._thread.join()

    def _run(self):
        while not self._stop.wait(0.05):
            self._count('domains', self.host.domains().values())
            guests = [words[words.index(b'-uuid') + 1] for _, words in guest_fixture.processes()
                      if b'qemu-system' in words[0] and b'-uuid' in words
                      and any(self.host.home.encode() in word for word in words)]
            self.most = max(self.most, len(guests))
            self._count('processes', guests)

    def _count(self, what, keys):
        for key, count in collections.Counter(keys).items():
            if count > 1:
                self.wrong.append(f'{count} {what} of {key}')


class RandomKills(guest_fixture.RealHostTestCase):
    HOST = {'networks': True, 'machine_runtime': ('--overcommit-cpu', str(GUESTS))}

    def leftovers(self):
        return [*self.host.leftovers(), *network_fixture.links(), *network_fixture.rules().splitlines()]

    def ask(self, method, path, body=None):
        """The answer; None while the server is away."""
        try:
            with self.server.client(timeout=10) as client:
                return client.request(method, path, body)
        except (OSError, http.client.HTTPException):
            return None

    def machines(self):
        """{name: state} of what the server knows, less what is being deleted; None while it is away."""
        listed = self.ask('GET', PATH)
        if listed is None or listed.status != 200:
            return None
        return {item['metadata']['name']: item.get('status', {}).get('state') for item in listed.json()['items']}

    def kill_one(self):
        host = self.host
        victim = self.random.choice(('server', 'poollet', 'machine runtime', 'volume runtime', 'libvirtd'))
        if victim == 'server':
            self.server.kill()
            self.server.start()
        elif victim == 'libvirtd':
            host.libvirt.kill()
            host.libvirt.start()
        else:
            process = {'poollet': host.poollet, 'machine runtime': host.machine_runtime,
                       'volume runtime': host.volume_runtime}[victim]
            process.kill()
            process.start()
        self.killed[victim] += 1
        self.start_what_ended()

    def start_what_ended(self):
        """A runtime that finds no libvirtd ends; whoever started it starts it again."""
        for process in self.host.processes:
            if not process.runs:
                process.kill()
                process.start()

    def test_one_guest_each_and_nothing_left(self):
        seed = int(os.environ.get('BERTH_SEED') or SEED or random.randrange(1 << 32))
        self.random, self.killed = random.Random(seed), collections.Counter()
        self.server.kubectl('apply', '-f', '-', input=NETWORK)
        with self.subTest(seed=seed), Watcher(self.host) as watcher:
            self.come_and_go()
            self.run_together()
            try:
                berth_fixture.eventually(2 * DEADLINE_S, lambda: self.machines() == {} and not self.leftovers(),
                                         'nothing is left')
            except berth_fixture.Failure as failure:
                left = self.server.kubectl('get', 'machines,volumes,events', '-o', 'wide', check=False).stdout
                raise berth_fixture.Failure(f'{failure}\n{self.leftovers()}\n{left}') from None
            print(f'seed {seed}: {self.given} got a volume, killed {dict(self.killed)}, up to {watcher.most} guests at once', flush=True)
            self.assertEqual(watcher.wrong, [])
            self.assertGreaterEqual(watcher.most, GUESTS)
        berth_fixture.eventually(DEADLINE_S, lambda: self.names() == {
            'volumes': [], 'networkinterfaces': [], 'prefixallocations': [], 'prefixes': ['range', 'wide']}, f'all is given back; {self.names()}')

    def names(self):
        return {kind: [item['metadata']['name'] for item in json.loads(self.server.kubectl('get', kind, '-o', 'json').stdout)[
            'items']] for kind in ('volumes', 'networkinterfaces', 'prefixallocations', 'prefixes')}

    def give_volume(self, name):
        """Another one, while the guest runs; whether that was heard."""
        found = self.ask('GET', f'{PATH}/{name}')
        if found is None or found.status != 200:
            return False
        body = found.json()
        if len(body['spec']['volumes']) == 1:
            body['spec']['volumes'].append(volume('late', 'odb'))
            put = self.ask('PUT', f'{PATH}/{name}', body)
            return put is not None and put.status == 200
        return True  # an earlier answer was lost

    def await_volume(self, name):
        """Whoever was killed in the middle of it: while nobody else is, the guest gets it, or it is over with the guest."""
        def has_it():
            self.start_what_ended()
            found = self.ask('GET', f'{PATH}/{name}')
            if found is None or found.status != 200:
                return False
            status = found.json().get('status', {})
            states = {each['name']: each['state'] for each in status.get('volumes', [])}
            return states.get('late') == 'Attached' or status.get('state') != 'Running'
        berth_fixture.eventually(DEADLINE_S, has_it, f'{name} has its late volume\n{self.host.logs()}')

    def come_and_go(self):
        created, alive, ran, given = 0, {}, set(), set()
        deadline = time.monotonic() + COME_AND_GO_S
        while created < GUESTS or alive:
            self.assertLess(time.monotonic(), deadline, f'{created} created, {list(alive)} are left: {self.machines()}')
            while created < GUESTS and len(alive) < AT_ONCE:
                made = self.ask('POST', PATH, machine(f'guest-{created}'))
                if made is None or made.status not in (201, 409):
                    break
                # Most are deleted when they run; some at any moment before.
                alive[f'guest-{created}'] = self.random.random() < 0.7
                created += 1
            if self.killed.total() < KILLS:
                self.kill_one()
            else:
                self.start_what_ended()
            time.sleep(self.random.uniform(0, 1))  # everything may be hit at any moment of its work
            states = self.machines() or {}
            for name, is_patient in list(alive.items()):
                runs = states.get(name) == 'Running'
                ran |= {name} if runs else set()
                is_chosen = is_patient and int(name.removeprefix('guest-')) % GIVEN_EVERY == 0
                if runs and is_chosen and name not in given and self.give_volume(name):
                    given.add(name)
                    continue
                chance = 0.7 if runs else 0 if is_patient else 0.2
                if self.random.random() < chance:
                    if name in given:
                        self.await_volume(name)
                    gone = self.ask('DELETE', f'{PATH}/{name}')
                    if gone is not None and gone.status in (200, 202, 404):
                        del alive[name]
        self.assertGreaterEqual(len(ran), GUESTS // 2)
        self.assertGreater(len(given), 0)
        self.given = len(given)

    def run_together(self):
        """As many as came and went, with an address and a disk each."""
        names = {f'together-{number}' for number in range(GUESTS)}

        def made(name):
            answer = self.ask('POST', PATH, machine(name, 'wide'))
            return answer is not None and answer.status in (201, 409)

        def gone(name):
            answer = self.ask('DELETE', f'{PATH}/{name}')
            return answer is not None and answer.status in (200, 202, 404)

        def all_run():
            self.start_what_ended()
            states = self.machines() or {}
            return {name for name in names if states.get(name) == 'Running'} == names
        for change in (made, gone):
            for name in sorted(names):
                berth_fixture.eventually(DEADLINE_S, lambda name=name: change(name), f'{name} is {change.__name__}')
            for _ in range(KILLS_TOGETHER):
                self.kill_one()
            if change is made:
                berth_fixture.eventually(TOGETHER_S, all_run, f'all of them run; {self.machines()}\n{self.host.logs()}')


if __name__ == '__main__':
    network_fixture.enter_namespace()
    SEED = sys.argv.pop(1) if len(sys.argv) > 1 and sys.argv[1].isdigit() else None
    unittest.main(verbosity=2)
