#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`berth up` makes this machine a host: a guest boots, is switched off and on, and outlives everything but the word that
ends it."""

import os
import re
import signal
import unittest

import berth_fixture
import guest_fixture
from guest_fixture import DEADLINE_S

HELLO = os.path.join(berth_fixture.ROOT, 'examples', 'hello.yaml')
LABEL = 'machine.compute.ironcore.dev/hello'


class Up(berth_fixture.ServerTestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = guest_fixture.HostedServer()
        cls.addClassCleanup(cls.server.close)
        cls.server.start()

    def more_logs(self):
        return [self.server.logs()]

    def boots(self):
        """How often the guest has said hello."""
        return self.server.berth('logs', 'hello', check=False).stdout.count('Hello from Berth! This is hello')

    def says_hello(self, times):
        berth_fixture.eventually(DEADLINE_S, lambda: self.boots() >= times, f'hello number {times}')

    def state(self):
        return self.server.berth('get', 'machine', 'hello', '-o', 'jsonpath={.status.state}').stdout

    def power(self, *words):
        return self.server.berth(*words, timeout=DEADLINE_S).stdout.strip()

    def parts(self, *words):
        """Processes of the host with these words on their command line."""
        home = self.server.host_dir.encode()
        return [pid for pid, line in guest_fixture.processes()
                if any(home in part for part in line) and all(word.encode() in line for word in words)]

    def test_1_a_guest_boots(self):
        self.server.berth('apply', '-f', HELLO)
        self.assertEqual(self.power('start', 'hello', '--wait', '--timeout=100s'), f'{LABEL} runs')
        self.says_hello(1)

    def test_2_up_again_finds_what_is_there(self):
        shown = self.server.follow()
        self.assertIn(f'Berth runs already, as process {self.server.process.pid}', shown)
        self.assertIn('host          alpha is ready', shown)

    def test_3_power(self):
        self.assertEqual(self.power('stop', 'hello', '--wait'), f'{LABEL} is off')
        self.assertEqual((self.state(), self.server.guests()), ('Shutdown', []))
        self.assertEqual(self.power('stop', 'hello'), f'{LABEL} is off already')
        self.assertEqual(self.power('start', 'hello', '--wait'), f'{LABEL} runs')
        self.says_hello(2)
        before = self.server.guests()
        with guest_fixture.Terminal(self.server, 'hello', '--reconnect') as terminal:
            terminal.ask('', '#')
            self.assertEqual(self.power('restart', 'hello', '--wait'), f'{LABEL} runs')
            self.assertNotEqual(self.server.guests(), before)
            terminal.expect('waiting for it')
            terminal.expect('it is there again')
            self.says_hello(3)
            terminal.said = ''
            terminal.ask('echo $((6 * 7))', '42')
            terminal.leave()
        self.assertEqual(self.power('start', 'hello'), f'{LABEL} is on already')

    def test_4_a_guest_that_shut_itself_down_is_started(self):
        with guest_fixture.Terminal(self.server, 'hello') as terminal:
            terminal.ask('', '#')
            terminal.ask('poweroff -f', None)
        berth_fixture.eventually(DEADLINE_S, lambda: self.state() == 'Shutdown', 'the end')
        self.assertEqual(self.power('start', 'hello', '--wait'), f'{LABEL} runs')
        self.says_hello(4)

    def test_5_parts_that_die_are_started_again(self):
        guests = self.server.guests()
        for words in (('runtime', 'machine'), ('runtime', 'volume'), ('poollet', '--name=alpha')):
            with self.subTest(words):
                (killed,) = self.parts(*words)
                os.kill(killed, signal.SIGKILL)
                berth_fixture.eventually(DEADLINE_S, lambda: self.parts(*words) not in ([], [killed]), 'another one')
        self.assertEqual(self.server.guests(), guests)
        self.assertEqual(self.power('restart', 'hello', '--wait'), f'{LABEL} runs')

    def test_6_guests_outlive_everything(self):
        guests = self.server.guests()
        self.server.kill()
        berth_fixture.eventually(DEADLINE_S, lambda: not self.parts('runtime'), 'the end of the parts')
        self.assertEqual(self.server.guests(), guests)
        self.server.start()
        self.assertEqual(self.server.guests(), guests)
        self.assertEqual(self.state(), 'Running')

        down = self.server.berth('down', '--data-dir', self.server.data_dir).stdout
        self.assertRegex(down, r'Berth +stopped')
        self.assertRegex(down, r'guests +1 run on')
        self.assertEqual(self.server.process.wait(berth_fixture.STOP_DEADLINE_S), 0, self.server.log_tail())
        self.assertEqual(self.server.guests(), guests)
        down = self.server.berth('down', '--guests', '--data-dir', self.server.data_dir).stdout
        self.assertRegex(down, r'Berth +does not run on')
        self.assertEqual(self.server.guests(), [])

        self.server.process = None
        self.server.start()
        berth_fixture.eventually(DEADLINE_S, lambda: len(self.server.guests()) == 1, 'it starts again')


class NoHost(berth_fixture.ServerTestCase):
    """What is in the way is said, and the server serves without."""

    @unittest.skipIf(os.geteuid() != 0, 'only root has another user for guests')
    def test_a_folder_that_guests_may_not_enter(self):
        self.server.stop()
        self.server.HOST = 'auto'
        self.server.start()
        self.assertTrue(re.search(f'host +none: .*may not enter {self.server.home}', self.server.log()), self.server.log())
        again = self.server.berth('up', '--data-dir', self.server.data_dir).stdout
        self.assertRegex(again, 'host +none: .*may not enter')


if __name__ == '__main__':
    unittest.main(verbosity=2)
