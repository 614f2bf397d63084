#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/up starts a server that answers and a guest that says hello, scripts/down stops the server, and both may be run
again at any time."""

import os
import re
import shutil
import signal
import tempfile
import unittest

import berth_fixture
import guest_fixture


class Scripts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='berth-test-')
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.data_dir = os.path.join(self.folder, 'data')
        self.env = {**os.environ, 'BERTH_DATA_DIR': self.data_dir, 'BERTH_LISTEN': '127.0.0.1:0',
                    'BERTH_BINARY': berth_fixture.binary(), 'BERTH_UP_HOST': 'none'}
        self.addCleanup(self.script, 'down')

    def script(self, name):
        return berth_fixture.run([os.path.join(berth_fixture.ROOT, 'scripts', name)], env=self.env, timeout=400).stdout

    def pid(self):
        with open(os.path.join(self.data_dir, 'berth.pid')) as file:
            return int(file.read())

    def wait_for_end(self, pid):
        def has_ended():
            # In a container without an init nobody reaps it: it has ended when its command line is gone.
            try:
                with open(f'/proc/{pid}/cmdline') as file:
                    return not file.read()
            except OSError:
                return True
        berth_fixture.eventually(10, has_ended, 'the end of the server')

    def test_up_twice_is_one_server_and_down_twice_is_none(self):
        first = self.script('up')
        self.assertIn('Berth is running', first)
        self.assertRegex(first, r'https://127\.0\.0\.1:\d+')
        self.assertIn(os.path.join(self.data_dir, 'kubeconfig'), first)
        pid = self.pid()

        again = self.script('up')
        self.assertIn('already running', again)
        self.assertEqual(self.pid(), pid)
        self.assertEqual(re.findall(r'https://\S+', first), re.findall(r'https://\S+', again))

        self.assertIn('stopped', self.script('down'))
        self.wait_for_end(pid)
        self.assertIn('not running', self.script('down'))

    def test_up_starts_again_after_a_crash(self):
        self.script('up')
        pid = self.pid()
        os.kill(pid, signal.SIGKILL)
        self.wait_for_end(pid)
        self.assertIn('Berth is running', self.script('up'))
        self.assertNotEqual(self.pid(), pid)

    def test_up_ends_with_a_guest_that_says_hello(self):
        os.chmod(self.folder, 0o755)  # the guests' user comes through
        self.env.update({'BERTH_UP_HOST': 'auto', 'BERTH_ACCELERATION': 'tcg'})
        self.addCleanup(berth_fixture.run, [berth_fixture.binary(), 'down', '--guests'], env=self.env)
        first = self.script('up')
        with open(os.path.join(self.data_dir, 'log', 'berth.log'), encoding='utf-8', errors='replace') as log:
            self.assertRegex(log.read(), r'image +(\d+)/\1 .* written\n')
        self.assertRegex(first, r'console +Hello from Berth! This is hello')
        guests = guest_fixture.guests_of(self.data_dir + '-host')
        self.assertEqual(len(guests), 1)
        self.assertRegex(self.script('up'), r'console +Hello from Berth! This is hello')
        self.assertRegex(self.script('down'), r'guests +1 run on')
        self.assertRegex(self.script('up'), r'console +Hello from Berth! This is hello')
        self.assertEqual(guest_fixture.guests_of(self.data_dir + '-host'), guests)

    def test_up_without_a_guest_is_no_success_unless_that_was_asked_for(self):
        self.env['BERTH_UP_HOST'] = 'auto'
        why = 'the guests\' user .* may not enter'  # the folders of tests are closed
        if os.geteuid() != 0:
            # Guests have our own user; libvirt's sockets do not fit into such a folder.
            deep = tempfile.mkdtemp(dir='/dev/shm', suffix='deep' * 10)
            self.addCleanup(os.rmdir, deep)
            self.env['XDG_RUNTIME_DIR'] = deep
            why = '.* characters'
        with self.assertRaisesRegex(berth_fixture.Failure, 'this machine is no host and boots no guest: ' + why):
            self.script('up')
        self.env['BERTH_UP_HOST'] = 'none'
        self.assertIn('already running', self.script('up'))

    def test_up_says_why_a_server_did_not_start(self):
        self.env['BERTH_BINARY'] = '/bin/false'
        with self.assertRaisesRegex(berth_fixture.Failure, 'the server ended; its log is'):
            self.script('up')


if __name__ == '__main__':
    unittest.main()
