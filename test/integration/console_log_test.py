#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A guest that never stops talking does not fill the host's disk: its log stays short, and what it said last is there, for
`berth logs` and for whoever follows it, also after the runtime was dead."""

import contextlib
import functools
import glob
import os
import re
import unittest

import berth_fixture
import guest_fixture
from guest_fixture import DEADLINE_S

LOG_MAX = 256 << 10
LINES = 90000  # of seven bytes: 615 KiB

# Counts, on a line each.
INIT = guest_fixture.INIT.replace('\noff) ', '\ncount) $b seq -w 1 $rest; echo that was the last;;\noff) ')

MACHINE = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {name: loud}
spec:
  machineClassRef: {name: tiny}
  volumes:
  - {name: root, device: odx, localDisk: {sizeLimit: 1Mi, image: demo}}
'''


class ConsoleLog(guest_fixture.RealHostTestCase):
    HOST = {'has': ('machines',), 'machine_runtime': ('--console-log-max', str(LOG_MAX)),
            'image': functools.partial(guest_fixture.make_image, init=INIT)}

    def log(self):
        (path,) = glob.glob(self.host.path('machines', 'm-*', 'console.log'))
        return path

    def taken(self):
        return os.stat(self.log()).st_blocks * 512

    def count(self, ends, meanwhile=lambda: None):
        """Has the guest count, and waits until it has said so the n-th time. Typed into the socket: nobody else looks."""
        (socket,) = glob.glob(self.host.path('guests', 'm-*', 'console.sock'))

        def said():
            meanwhile()
            return guest_fixture.read(self.log()).count(b'that was the last') == ends
        with guest_fixture.typed(socket, f'count {LINES}'):
            berth_fixture.eventually(DEADLINE_S, said, 'it has counted to its end')

    def becomes_short(self):
        berth_fixture.eventually(DEADLINE_S, lambda: self.taken() <= LOG_MAX, f'the log is short\n{self.host.logs()}')

    def numbers(self, text):
        self.assertNotIn('\0', text)
        return [int(line) for line in re.findall(r'^(\d{5})\r?$', text, re.MULTILINE)]

    def test_a_guest_that_never_stops_talking(self):
        self.server.kubectl('apply', '-f', '-', input=MACHINE)
        berth_fixture.eventually(DEADLINE_S, lambda: 'hello from the guest' in self.server.berth(
            'logs', 'loud', check=False).stdout, f'it boots\n{self.host.logs()}')
        with self.server.background([self.server.binary, 'logs', 'loud', '-f', '--tail', '0']) as follower:
            os.set_blocking(follower.stdout.fileno(), False)
            heard = bytearray()

            def hears_the_end():
                with contextlib.suppress(BlockingIOError):
                    while some := os.read(follower.stdout.fileno(), 1 << 16):
                        heard.extend(some)
                return b'that was the last' in heard
            self.count(1, meanwhile=hears_the_end)
            berth_fixture.eventually(DEADLINE_S, hears_the_end, 'who follows hears the end')
        heard = heard.decode()
        followed = self.numbers(heard)
        self.assertEqual(followed, sorted(set(followed)), 'nothing twice')
        self.assertEqual(followed[-1], LINES)
        if 'bytes of the log are gone' not in heard:
            self.assertEqual(followed, list(range(1, LINES + 1)), 'nothing is missing that is not said to be')

        self.assertGreater(os.stat(self.log()).st_size, 2 * LOG_MAX)
        self.becomes_short()
        whole = self.server.berth('logs', 'loud').stdout
        kept = self.numbers(whole)
        self.assertEqual(kept, list(range(LINES + 1 - len(kept), LINES + 1)), 'the newest, and all of them')
        self.assertGreater(len(whole), LOG_MAX // 3, 'half of it, and a line is read without its carriage return')
        self.assertEqual(self.server.berth('logs', 'loud', '--tail', '1').stdout.strip(), 'that was the last')

        # Without its runtime a guest says what it likes; that is cut as soon as there is one again.
        self.host.machine_runtime.kill()
        self.count(2)
        self.assertGreater(self.taken(), 2 * LOG_MAX)
        self.host.machine_runtime.start()
        self.becomes_short()
        berth_fixture.eventually(DEADLINE_S, lambda: self.numbers(self.server.berth(
            'logs', 'loud', check=False).stdout)[-1:] == [LINES], f'the newest is there\n{self.host.logs()}')
        self.server.kubectl('delete', 'machine', 'loud', '--timeout=60s', timeout=90)
        berth_fixture.eventually(DEADLINE_S, lambda: not self.host.leftovers(), f'{self.host.leftovers()} are left')


if __name__ == '__main__':
    unittest.main(verbosity=2)
