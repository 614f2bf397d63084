#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Concurrent clients over HTTPS see one order of events that agrees with time: whichever server they ask, and also when
one is killed in the middle, which leaves calls of which nobody knows whether they happened."""

import dataclasses
import http.client
import math
import os
import random
import signal
import threading
import time
import unittest

import berth_fixture
import etcd_test
import linearizable
import several_servers_test
from linearizable import ABSENT, Call

DEADLINE_S = 60
MAPS = '/api/v1/namespaces/default/configmaps'
CLIENTS = 6
KEYS = ('a', 'b', 'c', 'd')
CALLS = 480  # before the kill and after it: 120 for each key
SEED = int(os.environ.get('BERTH_LINEARIZABLE_SEED', '1'))
LOST = (OSError, http.client.HTTPException)


def call(action, answer, begun, ended, value=ABSENT, expected=ABSENT, version=''):
    return Call('k', action, answer, begun, math.inf if answer == 'unknown' else ended, value, expected, version=version)


def made(value='1', ended=1):
    return call('create', 'done', 0, ended, value)


class Checker(unittest.TestCase):
    """What it must accept and what it must find. Times are plain numbers."""

    def check_right(self, *history):
        self.assertEqual(linearizable.violations(history), [])

    def check_wrong(self, *history):
        found = linearizable.violations(history)
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_what_happened_one_after_the_other_is_right(self):
        self.check_right(call('read', 'done', 0, 1), call('create', 'done', 2, 3, '1'), call('read', 'done', 4, 5, '1'),
                         call('create', 'exists', 6, 7, '2'), call('update', 'done', 8, 9, '3', '1'),
                         call('update', 'conflict', 10, 11, '4', '1'), call('delete', 'conflict', 12, 13, expected='1'),
                         call('delete', 'done', 14, 15, expected='3'), call('delete', 'absent', 16, 17),
                         call('update', 'absent', 18, 19, '5', '3'), call('read', 'done', 20, 21))

    def test_what_overlaps_may_have_happened_in_either_order(self):
        update = call('update', 'done', 2, 9, '2', '1')
        self.check_right(made(), update, call('read', 'done', 3, 4, '1'), call('read', 'done', 5, 6, '2'))
        self.check_right(made(), update, call('update', 'conflict', 3, 4, '3', '1'))
        self.check_wrong(made(), update, call('read', 'done', 3, 4, '2'), call('read', 'done', 5, 6, '1'))

    def test_a_stale_read_is_found(self):
        told = self.check_wrong(made(), call('update', 'done', 2, 3, '2', '1'), call('read', 'done', 4, 5, '1'))
        self.assertIn('read k: done 1', told)
        self.check_wrong(made(), call('read', 'done', 2, 3))
        self.check_wrong(made(), call('delete', 'done', 2, 3), call('read', 'done', 4, 5, '1'))

    def test_a_lost_update_is_found(self):
        self.check_wrong(made(), call('update', 'done', 2, 5, '2', '1'), call('update', 'done', 3, 4, '3', '1'))
        self.check_wrong(made(), call('update', 'done', 2, 3, '2', '1'), call('delete', 'done', 4, 5, expected='1'))
        self.check_wrong(made(), call('create', 'done', 0, 1, '2'))

    def test_a_refusal_without_a_reason_is_found(self):
        self.check_wrong(made(), call('update', 'conflict', 2, 3, '2', '1'))
        self.check_wrong(made(), call('delete', 'conflict', 2, 3))
        self.check_wrong(call('create', 'exists', 0, 1, '1'))
        self.check_wrong(made(), call('delete', 'absent', 2, 3))

    def test_what_nobody_knows_may_have_happened_late_or_never(self):
        unknown = call('update', 'unknown', 2, None, '2', '1')
        self.check_right(made(), unknown, call('read', 'done', 4, 5, '1'), call('read', 'done', 6, 7, '2'))
        self.check_right(made(), unknown, call('read', 'done', 4, 5, '1'))
        self.check_right(made(), unknown, call('update', 'conflict', 4, 5, '3', '1'))
        self.check_right(made(), call('delete', 'unknown', 2, None), call('create', 'done', 4, 5, '2'))
        self.check_wrong(made(), unknown, call('read', 'done', 4, 5, '2'), call('read', 'done', 6, 7, '1'))
        self.check_wrong(made(), unknown, call('update', 'done', 4, 5, '3', '1'), call('read', 'done', 6, 7, '2'))
        self.check_wrong(made(), call('read', 'done', 2, 3, '2'), call('update', 'unknown', 4, None, '2', '1'))

    def test_a_version_stands_for_one_value(self):
        self.check_wrong(call('create', 'done', 0, 1, '1', version='7'), call('update', 'done', 2, 3, '2', '1', version='7'))
        self.check_wrong(call('create', 'done', 0, 1, '1', version='7'), call('read', 'done', 2, 3, '1', version='8'))

    def test_objects_do_not_hide_each_other(self):
        other = [Call('other', 'create', 'done', 0, 1, '1'), Call('other', 'read', 'done', 2, 3, '1')]
        self.check_right(made(), *other, call('read', 'done', 4, 5, '1'))
        self.assertIn('k: no order', self.check_wrong(made(), *other, call('read', 'done', 4, 5)))

    def test_one_wrong_read_in_a_long_history_is_found(self):
        history, value = [made('0')], '0'
        for i in range(1, 150):
            # Four at a time: an update, two reads of either value, and an update that is too late.
            history += [call('update', 'done', 10 * i, 10 * i + 8, str(i), value),
                        call('read', 'done', 10 * i + 1, 10 * i + 4, value),
                        call('read', 'done', 10 * i + 2, 10 * i + 7, str(i)),
                        call('update', 'conflict', 10 * i + 3, 10 * i + 9, f'late-{i}', value)]
            value = str(i)
        self.check_right(*history)
        self.check_wrong(*history, call('read', 'done', 1499, 1500, '148'))


class Server:
    """One that clients may ask as long as it is up."""

    def __init__(self, server):
        self.server, self.is_up = server, threading.Event()
        self.is_up.set()

    def kill(self, clients):
        """SIGKILL while calls are on their way: it is stopped first, until somebody waits for it to write."""
        os.kill(self.server.pid, signal.SIGSTOP)
        try:
            berth_fixture.eventually(DEADLINE_S, lambda: any(client.writes_to is self for client in clients), 'a write')
        finally:
            self.is_up.clear()
            self.server.kill()

    def start(self):
        self.server.start()
        self.is_up.set()


class HttpClient(threading.Thread):
    """Reads and changes a few config maps through any server that is up, and notes everything."""

    def __init__(self, number, servers, key_prefix):
        super().__init__(name=f'client-{number}', daemon=True)
        self.random = random.Random(SEED * 1000 + number)
        self.servers, self.stopping = servers, threading.Event()
        self.actions = ('update', 'update', 'update', 'create', 'delete')
        if number > 0:  # one writes only: there is always a write on its way
            self.actions += ('read', 'read', 'read')
        self.keys = [key_prefix + key for key in KEYS]
        self.known = {}  # key -> (version, value) as it was last seen
        self.count = 0
        self.writes_to = None  # the server that owes an answer to a write
        self.history, self.failure = [], None

    def run(self):
        clients = {server: server.server.client(timeout=DEADLINE_S) for server in self.servers}
        try:
            while not self.stopping.is_set():
                server = self.random.choice(self.servers)
                if server.is_up.is_set():
                    self.step(server, clients[server])
                else:
                    self.stopping.wait(0.01)
        except Exception as error:  # shown by the test
            self.failure = error
        finally:
            for client in clients.values():
                client.close()

    def step(self, server, client):
        key, action = self.random.choice(self.keys), self.random.choice(self.actions)
        version, expected = self.known.get(key, ('', ABSENT))
        if action == 'update' and not version:
            action = 'read' if 'read' in self.actions else 'create'
        if action == 'delete' and self.random.random() < 0.5:
            version, expected = '', ABSENT  # whatever it is
        if action in ('read', 'create'):
            expected = ABSENT
        self.count += 1
        value = f'{self.name}-{self.count}' if action in ('create', 'update') else ABSENT
        sent = Call(key, action, 'unknown', time.monotonic(), math.inf, value, expected, self.name)
        self.writes_to = server if action != 'read' else None
        try:
            answer = self.send(client, action, key, value, version)
        except ConnectionRefusedError:
            return  # nobody heard it
        except LOST:
            self.note(sent)
            return
        finally:
            self.writes_to = None
        self.note_answer(sent, time.monotonic(), answer)

    @staticmethod
    def send(client, action, key, value, version):
        body = {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': key}, 'data': {'value': value}}
        if action == 'read':
            return client.get(f'{MAPS}/{key}')
        if action == 'create':
            return client.post(MAPS, body)
        if action == 'update':
            body['metadata']['resourceVersion'] = version
            return client.put(f'{MAPS}/{key}', body)
        return client.delete(f'{MAPS}/{key}', {'preconditions': {'resourceVersion': version}} if version else None)

    def note(self, call):
        if call.version:
            self.known[call.key] = (call.version, call.value)
        elif call.answer != 'exists':  # what was deleted, changed or perhaps changed is not what is known
            self.known.pop(call.key, None)
        if call.action != 'read' or call.answer != 'unknown':
            self.history.append(call)

    def note_answer(self, sent, ended, answer):
        said = {200: 'done', 201: 'done', 404: 'absent', 409: 'conflict', 503: 'unknown', 504: 'unknown'}.get(answer.status)
        if said is None and answer.status != 429:  # that one was not even begun
            raise berth_fixture.Failure(f'{sent}: {answer}')
        if said == 'conflict' and sent.action == 'create':
            said = 'exists'
        if said == 'absent' and sent.action == 'read':
            said = 'done'
        call = dataclasses.replace(sent, answer=said, ended=math.inf if said == 'unknown' else ended)
        if answer.status in (200, 201) and sent.action != 'delete':
            told = answer.json()
            if sent.value not in (ABSENT, told['data']['value']):
                raise berth_fixture.Failure(f'{sent} answers with something else: {answer}')
            call = dataclasses.replace(call, value=told['data']['value'], version=told['metadata']['resourceVersion'])
        if said is not None:
            self.note(call)

    def stop(self):
        self.stopping.set()
        self.join(DEADLINE_S)


class OverHttps(unittest.TestCase):

    def check(self, *servers):
        """The last one is killed in the middle."""
        servers = [Server(server) for server in servers]
        clients = [HttpClient(number, servers, f'seed-{SEED}-') for number in range(CLIENTS)]
        for client in clients:
            client.start()
            self.addCleanup(client.stop)
        self.wait_for_calls(clients)
        servers[-1].kill(clients)
        servers[-1].start()
        self.wait_for_calls(clients)
        for client in clients:
            client.stop()
        self.assertEqual([client.failure for client in clients], [None] * CLIENTS)
        history = [call for client in clients for call in client.history]
        self.assertIn('unknown', {call.answer for call in history}, 'nobody noticed that a server was killed')
        for said in (('read', 'done'), ('create', 'done'), ('update', 'done'), ('delete', 'done'), ('update', 'conflict')):
            self.assertIn(said, {(call.action, call.answer) for call in history}, f'seed {SEED}')
        found = linearizable.violations(history)
        self.assertEqual(found, [], f'seed {SEED}\n' + '\n'.join(found))

    def wait_for_calls(self, clients):
        goal = sum(len(client.history) for client in clients) + CALLS

        def answered():
            return sum(len(client.history) for client in clients) >= goal or any(client.failure for client in clients)
        berth_fixture.eventually(DEADLINE_S, answered, f'{CALLS} calls')

    def test_one_server(self):
        server = berth_fixture.Server()
        self.addCleanup(server.close)
        self.check(server.start())

    def test_two_servers_on_one_etcd(self):
        etcd = etcd_test.Etcd().start()
        self.addCleanup(etcd.close)
        first = berth_fixture.Server('--store', etcd.url)
        self.addCleanup(first.close)
        first.start()
        second = berth_fixture.Server('--store', etcd.url, '--encryption-keys', several_servers_test.keys_of(first))
        self.addCleanup(second.close)
        self.check(first, second.start())


if __name__ == '__main__':
    unittest.main()
