#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at any moment: nothing acknowledged is lost, nothing is applied twice, no watch has a gap.

Writers change their own objects and remember what was acknowledged. A write whose answer was lost may have happened or
not; the writer reads back which, and either is right, but nothing in between. Watchers resume from the last revision
that they saw, across every restart. The killer waits until the server says (through its commit trace) that it is inside
a commit, for at least half of its kills.
"""

import http.client
import mmap
import os
import random
import struct
import tempfile
import threading
import time
import unittest

import berth_fixture

KILLS = int(os.environ.get('BERTH_CRASH_KILLS', '200'))
SEED = int(os.environ.get('BERTH_CRASH_SEED', '1'))
WRITERS = 6
WATCHERS = 3
KEYS_PER_WRITER = 8
PATH = '/api/v1/namespaces/default/configmaps'
LOST = (OSError, http.client.HTTPException)


class CommitTrace:
    """Two counters that the server keeps in a file: commits begun and commits ended."""

    def __init__(self, path):
        with open(path, 'wb') as file:
            file.write(bytes(16))
        self._file = open(path, 'r+b')
        self._map = mmap.mmap(self._file.fileno(), 16)

    def inside(self):
        begun, ended = struct.unpack('<QQ', self._map[:16])
        return begun != ended

    def close(self):
        self._map.close()
        self._file.close()


class Writer(threading.Thread):
    """Owns its keys: nobody else writes them, so it knows what must be there."""

    def __init__(self, number, server, stop):
        super().__init__(name=f'writer-{number}', daemon=True)
        self.random = random.Random(SEED * 1000 + number)
        self.server, self.stop = server, stop
        self.keys = [f'w{number}-{i}' for i in range(KEYS_PER_WRITER)]
        self.known = {key: None for key in self.keys}  # key -> object as acknowledged, None: absent
        self.acknowledged = []                         # (revision, key, count or None for a deletion)
        self.unknown = 0
        self.failure = None

    def run(self):
        try:
            client = self.server.client(timeout=10)
            while not self.stop.is_set():
                self.step(client)
        except Exception as error:  # shown by the test
            self.failure = error

    def step(self, client):
        key = self.random.choice(self.keys)
        before = self.known[key]
        choice = 'create' if before is None else self.random.choice(('update', 'update', 'update', 'delete'))
        try:
            answer = self.send(client, choice, key, before)
        except LOST:
            self.unknown += 1
            self.resolve(client, choice, key, before)
            return
        if answer.status == 503 or answer.status == 429:
            return
        if answer.status not in (200, 201):
            raise AssertionError(f'{choice} {key}: {answer}')
        self.acknowledge(key, choice, before, None if choice == 'delete' else answer.json())

    def send(self, client, choice, key, before):
        if choice == 'create':
            return client.post(PATH, {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': key},
                                      'data': {'count': '1'}})
        if choice == 'delete':
            return client.delete(f'{PATH}/{key}', {'kind': 'DeleteOptions', 'apiVersion': 'v1', 'preconditions': {
                'uid': before['metadata']['uid'], 'resourceVersion': before['metadata']['resourceVersion']}})
        after = {**before, 'data': {'count': str(int(before['data']['count']) + 1)}}
        return client.put(f'{PATH}/{key}', after)

    def acknowledge(self, key, choice, before, after):
        self.known[key] = after
        count = None if after is None else int(after['data']['count'])
        revision = None if after is None else int(after['metadata']['resourceVersion'])
        self.acknowledged.append((revision, key, count, before['metadata']['uid'] if before else None))

    def resolve(self, client, choice, key, before):
        """Reads back what became of a write without an answer."""
        while not self.stop.is_set():
            try:
                answer = client.get(f'{PATH}/{key}')
            except LOST:
                time.sleep(0.005)
                continue
            if answer.status in (503, 429):
                continue
            now = None if answer.status == 404 else answer.json()
            self.check_either(choice, key, before, now)
            self.known[key] = now
            return

    def check_either(self, choice, key, before, now):
        was = None if before is None else (before['metadata']['uid'], int(before['data']['count']))
        is_now = None if now is None else (now['metadata']['uid'], int(now['data']['count']))
        if is_now == was:
            return  # it did not happen
        if choice == 'create' and now is not None and is_now[1] == 1:
            return
        if choice == 'delete' and now is None:
            return
        if choice == 'update' and now is not None and is_now == (was[0], was[1] + 1):
            return
        raise AssertionError(f'{choice} {key}: was {was}, is {is_now}')


class Watcher(threading.Thread):
    """Follows all objects from one revision on, through every restart."""

    def __init__(self, number, server, stop):
        super().__init__(name=f'watcher-{number}', daemon=True)
        self.server, self.stop = server, stop
        self.revision = 0
        self.state = {}   # key -> (uid, count)
        self.seen = {}    # revision -> (type, key)
        self.resumed = 0
        self.failure = None

    def run(self):
        try:
            client = self.server.client(timeout=10)
            listed = client.get(PATH).json()
            self.revision = int(listed['metadata']['resourceVersion'])
            for item in listed['items']:
                self.state[item['metadata']['name']] = self.brief(item)
            while not self.stop.is_set():
                self.follow(client)
        except Exception as error:
            self.failure = error

    @staticmethod
    def brief(item):
        return item['metadata']['uid'], int(item['data'].get('count', 0))

    def follow(self, client):
        try:
            for event in client.watch(PATH, resourceVersion=self.revision, allowWatchBookmarks='true', idle_s=5,
                                      timeoutSeconds=5):
                self.take(event)
                if self.stop.is_set():
                    return
        except LOST:
            self.resumed += 1
            time.sleep(0.005)
        except berth_fixture.Failure as failure:
            if ' 503 ' not in str(failure):
                raise

    def take(self, event):
        kind, item = event['type'], event['object']
        if kind == 'ERROR':
            raise AssertionError(f'watch from {self.revision}: {item}')
        revision = int(item['metadata']['resourceVersion'])
        if kind == 'BOOKMARK':
            self.revision = max(self.revision, revision)
            return
        if revision <= self.revision:
            raise AssertionError(f'{kind} at {revision} after {self.revision}: twice or out of order')
        self.revision = revision
        key, before, now = item['metadata']['name'], self.state.get(item['metadata']['name']), self.brief(item)
        self.seen[revision] = (kind, key)
        if kind == 'ADDED' and (before is not None or now[1] != 1):
            raise AssertionError(f'ADDED {key} {now} over {before}')
        if kind == 'MODIFIED' and (before is None or now != (before[0], before[1] + 1)):
            raise AssertionError(f'MODIFIED {key} {now} after {before}: a gap or a repetition')
        if kind == 'DELETED' and before != now:
            raise AssertionError(f'DELETED {key} {now} after {before}: a gap')
        self.state[key] = None if kind == 'DELETED' else now


class Crash(unittest.TestCase):
    def test_kill_at_any_moment_loses_nothing_and_repeats_nothing(self):
        folder = tempfile.mkdtemp(prefix='berth-crash-')
        trace_path = os.path.join(folder, 'commits')
        trace = CommitTrace(trace_path)
        server = berth_fixture.Server('--debug-commit-trace', trace_path)
        self.addCleanup(server.close)
        server.start()
        dice, stop = random.Random(SEED), threading.Event()
        self.addCleanup(stop.set)
        watchers = [Watcher(i, server, stop) for i in range(WATCHERS)]
        for watcher in watchers:
            watcher.start()
        berth_fixture.eventually(20, lambda: all(watcher.revision for watcher in watchers), 'the first lists')
        writers = [Writer(i, server, stop) for i in range(WRITERS)]
        for writer in writers:
            writer.start()
        threads = writers + watchers

        inside = 0
        for kill in range(KILLS):
            time.sleep(dice.uniform(0.005, 0.08))
            end = time.monotonic() + 0.2
            while kill % 4 != 0 and not trace.inside() and time.monotonic() < end:
                pass
            server.kill()
            inside += trace.inside()
            with open(trace_path, 'r+b') as file:
                file.write(bytes(16))
            server.start()
            for thread in threads:
                self.assertIsNone(thread.failure, f'{thread.name} after {kill + 1} kills: {thread.failure}')
        time.sleep(0.5)

        stop.set()
        for writer in writers:
            writer.join(30)
        final = server.client().get(PATH).json()
        state = {item['metadata']['name']: Watcher.brief(item) for item in final['items']}
        last = int(final['metadata']['resourceVersion'])
        for watcher in watchers:
            watcher.join(30)
            self.assertIsNone(watcher.failure)
        self.check_nothing_lost(writers, state)
        self.check_watchers(server, writers, watchers, state, last)
        writes = sum(len(writer.acknowledged) for writer in writers)
        unknown = sum(writer.unknown for writer in writers)
        print(f'{KILLS} kills, {inside} of them inside a commit; {writes} writes acknowledged, {unknown} without an '
              f'answer; {sum(watcher.resumed for watcher in watchers)} watches resumed', flush=True)
        self.assertGreaterEqual(inside, KILLS // 2)
        self.assertGreater(writes, KILLS * 5)
        server.stop()
        trace.close()

    def check_nothing_lost(self, writers, state):
        for writer in writers:
            for key in writer.keys:
                known = writer.known[key]
                expected = None if known is None else Watcher.brief(known)
                self.assertEqual(state.get(key), expected, key)

    def check_watchers(self, server, writers, watchers, state, last):
        for watcher in watchers:
            watcher.stop = threading.Event()
            client = server.client(timeout=10)
            # What happened after the watcher was told to stop.
            for event in client.watch(PATH, resourceVersion=watcher.revision, timeoutSeconds=1, idle_s=5):
                watcher.take(event)
            alive = {key: value for key, value in watcher.state.items() if value is not None}
            self.assertEqual(alive, {key: value for key, value in state.items()}, watcher.name)
            for writer in writers:
                for revision, key, count, _ in writer.acknowledged:
                    if revision is not None:
                        self.assertIn(revision, watcher.seen, f'{watcher.name} missed {key} {count}')


if __name__ == '__main__':
    unittest.main(verbosity=2)
