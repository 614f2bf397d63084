#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of server, poollets and runtimes at random moments while 500 machines come and go.

At no time a machine runs twice. In the end nothing that was acknowledged is lost, every machine runs once, what was deleted
is gone, and the capacity of every pool is what its machines leave. BERTH_SEED replays a choice of victims (not the timing of
processes).
"""

import collections
import concurrent.futures
import http.client
import os
import random
import threading
import time
import unittest

import berth_fixture
import fleet_fixture

MACHINES = 500  # created in the course of the test
ALIVE_MAX = 320  # at once
KILLS_MIN = 30
KINDS = ('server', 'poollet', 'runtime')
KILLS_OF_EACH_MIN = 3
LOOKS_MIN = 10  # at all hosts at once, while something runs
PAUSE_S = 0.2  # between two looks: what asks takes a part of both processors
WORKERS = 4
CONVERGE_S = 180
PATH = '/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines'
CLASS = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: MachineClass
metadata: {name: small}
capabilities: {cpu: 1, memory: 1Gi}
'''


class Model:
    """What was acknowledged. A request without an answer may have happened or not."""

    def __init__(self):
        self.lock = threading.Lock()
        self.made = 0
        self.alive, self.gone, self.unsure = {}, set(), set()

    def next_name(self):
        with self.lock:
            self.made += 1
            return f'm-{self.made}'

    @property
    def is_full(self):
        return self.made >= MACHINES


class Worker(threading.Thread):
    """Creates and deletes machines until enough were made."""

    def __init__(self, server, model, seed):
        super().__init__(daemon=True)
        self.server, self.model, self.random = server, model, random.Random(seed)
        self.error = None

    def run(self):
        try:
            while not self.model.is_full:
                with self.model.lock:
                    names = list(self.model.alive)
                if names and (len(names) > ALIVE_MAX or self.random.random() < 0.35):
                    self.delete(self.random.choice(names))
                else:
                    self.create(self.model.next_name())
        except Exception as error:  # shown by the test's thread
            self.error = error

    def send(self, method, path, body=None):
        """The answer, or None if there is none: the server was killed."""
        try:
            with self.server.client(timeout=20) as client:
                return client.request(method, path, body)
        except (OSError, http.client.HTTPException):
            time.sleep(0.05)  # a server that is being started again
            return None

    def create(self, name):
        answer = self.send('POST', PATH, {
            'apiVersion': 'compute.ironcore.dev/v1alpha1', 'kind': 'Machine', 'metadata': {'name': name},
            'spec': {'machineClassRef': {'name': 'small'}, 'power': 'On'}})
        with self.model.lock:
            if answer is not None and answer.status == 201:
                self.model.alive[name] = answer.json()['metadata']['uid']
            elif answer is None or answer.status >= 500:
                self.model.unsure.add(name)
            else:
                raise berth_fixture.Failure(f'create {name}: {answer}')

    def delete(self, name):
        with self.model.lock:
            if self.model.alive.pop(name, None) is None:
                return
        answer = self.send('DELETE', f'{PATH}/{name}')
        with self.model.lock:
            if answer is not None and answer.status in (200, 202, 404):
                self.model.gone.add(name)
            elif answer is None or answer.status >= 500:
                self.model.unsure.add(name)
            else:
                raise berth_fixture.Failure(f'delete {name}: {answer}')


class Watcher(threading.Thread):
    """Asks all runtimes at once what runs, all the time, and remembers what ran twice."""

    def __init__(self, hosts):
        super().__init__(daemon=True)
        self.hosts, self.stopped = hosts, threading.Event()
        self.looks, self.twice, self.error = 0, [], None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.join()

    def run(self):
        try:
            with concurrent.futures.ThreadPoolExecutor(len(self.hosts)) as pool:
                while not self.stopped.wait(PAUSE_S):
                    self.compare([answer for answer in pool.map(self.ask, self.hosts) if answer is not None])
        except Exception as error:  # shown by the test's thread
            self.error = error

    @staticmethod
    def ask(host):
        """(host, begin, end, UIDs with how many copies), or None if there is no answer: its runtime was killed."""
        begin = time.monotonic()
        try:
            uids = host.running_uids()
        except (berth_fixture.Failure, ValueError):
            return None
        return host.name, begin, time.monotonic(), collections.Counter(uids)

    def compare(self, answers):
        """No two runtimes are asked at the same instant: only answers that were given beside each other say something."""
        for i, (host, begin, end, copies) in enumerate(answers):
            self.twice += [f'{uid} runs {count} times on {host}' for uid, count in copies.items() if count > 1]
            for other, other_begin, other_end, others in answers[:i]:
                if begin <= other_end and other_begin <= end:
                    self.twice += [f'{uid} runs on {other} and on {host}' for uid in copies.keys() & others.keys()]
        if len(answers) == len(self.hosts) and any(copies for *_, copies in answers):
            self.looks += 1


class FleetCrash(berth_fixture.ServerTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.kubectl('apply', '-f', '-', input=CLASS)
        cls.hosts = []
        for name in ('alpha', 'beta', 'gamma', 'delta'):
            host = fleet_fixture.Host(cls.server, name, cpu=120, memory='400Gi', boot_time='50ms')
            cls.addClassCleanup(host.close)
            cls.hosts.append(host.start())
        for host in cls.hosts:
            berth_fixture.eventually(60, host.is_ready, f'pool {host.name} is ready')

    def machines(self):
        with self.server.client() as client:
            answer = client.get(PATH)
        self.assertEqual(answer.status, 200, answer)
        return {item['metadata']['name']: item for item in answer.json()['items']}

    def kinds(self, chance):
        """Of process, to be killed one after the other: as often as there are of each, and enough of each among the first."""
        hosts = len(self.hosts)
        first = [*KINDS] * KILLS_OF_EACH_MIN
        first += chance.choices(KINDS, weights=(1, hosts, hosts), k=KILLS_MIN - len(first))
        chance.shuffle(first)
        yield from first
        while True:
            yield from chance.choices(KINDS, weights=(1, hosts, hosts))

    def kill_one(self, kind, chance):
        """Whether it ran."""
        if kind == 'server':
            was_running = self.server.process is not None and self.server.process.poll() is None
            self.server.kill()
            self.server.start(wait=False)
            return was_running
        process = getattr(chance.choice(self.hosts), kind)
        was_running = process.runs
        process.kill()
        process.start()
        return was_running

    def test_c37_nothing_is_lost_and_nothing_runs_twice(self):
        seed = int(os.environ.get('BERTH_SEED', random.randrange(1 << 32)))
        print(f'seed {seed}', flush=True)
        chance, model = random.Random(seed), Model()
        workers = [Worker(self.server, model, seed + i) for i in range(WORKERS)]
        for worker in workers:
            worker.start()
        kills = collections.Counter()
        with Watcher(self.hosts) as watcher:
            for kind in self.kinds(chance):
                kills[kind] += self.kill_one(kind, chance)
                time.sleep(chance.uniform(0.05, 0.6))  # the moment of a kill is what is random here
                if kills.total() >= KILLS_MIN and not any(worker.is_alive() for worker in workers):
                    break
            self.server.wait_ready()
            for worker in workers:
                worker.join()
                if worker.error is not None:
                    raise worker.error
            print(f'{dict(kills)} kills, {model.made} creates, {len(model.gone)} deletes, '
                  f'{len(model.unsure)} without an answer', flush=True)
            try:
                berth_fixture.eventually(CONVERGE_S, lambda: self.check(model), 'everything is as it was acknowledged')
            except AssertionError:
                for host in self.hosts:
                    print(host.logs(), flush=True)
                raise
        print(f'{watcher.looks} looks at all hosts', flush=True)
        if watcher.error is not None:
            raise watcher.error
        self.assertEqual(watcher.twice, [])
        self.assertGreaterEqual(watcher.looks, LOOKS_MIN)
        for kind in KINDS:
            self.assertGreaterEqual(kills[kind], KILLS_OF_EACH_MIN, kills)

    def check(self, model):
        found = self.machines()
        self.assertLessEqual(set(model.alive), set(found), 'acknowledged machines are there')
        for name, uid in model.alive.items():
            self.assertEqual(found[name]['metadata']['uid'], uid)
        self.assertFalse(model.gone & set(found), 'deleted machines are gone')
        self.assertLessEqual(set(found), set(model.alive) | model.unsure, 'nothing else is there')
        states = collections.Counter(item.get('status', {}).get('state') for item in found.values())
        self.assertEqual(states, {'Running': len(found)})
        wanted = collections.Counter(item['metadata']['uid'] for item in found.values())
        running = collections.Counter(uid for host in self.hosts for uid in host.machine_uids())
        self.assertEqual(running, wanted, 'each runs once, asked of the runtimes')
        for host in self.hosts:
            bound = sum(item['spec']['machinePoolRef']['name'] == host.name for item in found.values())
            self.assertEqual(sorted(host.machine_uids()), sorted(
                item['metadata']['uid'] for item in found.values()
                if item['spec']['machinePoolRef']['name'] == host.name))
            status = host.pool()['status']
            free = int(status['capacity']['cpu']) - bound
            self.assertEqual(int(status['allocatable']['cpu']), free, f'{host.name}: capacity less its machines')
        return True


if __name__ == '__main__':
    unittest.main(verbosity=2)
