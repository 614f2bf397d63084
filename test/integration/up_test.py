#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`berth up` makes this machine a host: a guest boots, is switched off and on, and outlives everything but the word that
ends it."""

import fcntl
import glob
import os
import pty
import pwd
import re
import signal
import stat
import struct
import subprocess
import sys
import termios
import threading
import unittest

import berth_fixture
import guest_fixture
from guest_fixture import DEADLINE_S

HELLO = os.path.join(berth_fixture.ROOT, 'examples', 'hello.yaml')
SECRET = '''
apiVersion: v1
kind: Secret
metadata: {name: hello}
stringData: {ignition.yaml: "#cloud-config\\nmotd: hello\\n"}
'''
LABEL = 'machine.compute.ironcore.dev/hello'


def status(pid):
    """What the kernel says of a process."""
    lines = guest_fixture.read(f'/proc/{pid}/status').decode().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(':') for line in lines)}


def environment(pid):
    try:
        return guest_fixture.read(f'/proc/{pid}/environ')
    except OSError:  # somebody else's
        return b''


def as_nobody(python):
    """What a user without any rights hears who tries that."""
    words = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--', sys.executable, '-c',
             f'import os, socket; {python}']
    return subprocess.run(words, cwd='/', capture_output=True, text=True, timeout=DEADLINE_S, check=False).stderr


class Screen:
    """A terminal, and all that is written on it."""

    COLUMNS = 100

    def __init__(self):
        self._mine, self.theirs = pty.openpty()
        fcntl.ioctl(self._mine, termios.TIOCSWINSZ, struct.pack('HHHH', 24, self.COLUMNS, 0, 0))
        self._written = b''
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        try:
            while part := os.read(self._mine, 65536):
                self._written += part
        except OSError:
            pass  # nobody has it open any more

    def hand_over(self):
        """Somebody else has it open by now."""
        os.close(self.theirs)

    def run(self, server, *words):
        done = subprocess.run([server.binary, *words], stdin=subprocess.DEVNULL, stdout=self.theirs, stderr=subprocess.PIPE,
                              env=server.environment(), cwd=server.home, timeout=DEADLINE_S, check=False)
        self.hand_over()
        self._reader.join(DEADLINE_S)
        if done.returncode != 0:
            raise berth_fixture.Failure(f'{words}: ended with {done.returncode}: {done.stderr}{self.text()}')
        return self

    def text(self):
        return self._written.decode(errors='replace')

    def bars(self, what):
        """[(how many signs of twenty, text)] of the bars that were there one after the other."""
        return [(len(full), text) for full, text in re.findall(
            rf'\r\x1b\[K{what:<13} \[(?=[# ]{{20}}\])(#*) *\] ([^\r\n\x1b]*)', self.text())]

    def lines(self):
        """What is left on it for whoever looks now."""
        return [re.sub(r'.*\r\x1b\[K', '', line).rstrip('\r') for line in self.text().split('\n')]


class Up(berth_fixture.ServerTestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = guest_fixture.HostedServer()
        cls.addClassCleanup(cls.server.close)
        cls.screen = Screen()
        cls.server.output = cls.screen.theirs
        cls.server.start(wait=False)
        cls.server.output = None
        cls.screen.hand_over()
        cls.server.wait_ready()
        cls.follower = Screen().run(cls.server, 'up', '--data-dir', cls.server.data_dir)

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

    def user_data(self):
        """What the disk with the guest's configuration has of it."""
        (guest,) = self.server.guests()
        command = guest_fixture.read(f'/proc/{guest}/cmdline')
        return guest_fixture.read(re.search(rb'"filename":"([^"]+/seed\.img)"', command).group(1)).count(b'motd: hello')

    def test_0_bars_of_host_and_image_on_a_terminal(self):
        ready = 'host          alpha is ready'
        berth_fixture.eventually(DEADLINE_S, lambda: ready in self.screen.text(), 'it is said in the foreground')
        for screen in (self.screen, self.follower):
            full = [full for full, _ in screen.bars('host')]
            self.assertTrue(full, screen.text())
            self.assertEqual(full, sorted(full))
            self.assertTrue(any(line.startswith(ready) for line in screen.lines()), screen.text())
            self.assertEqual([], [line for line in screen.lines() if '[' in line], 'no bar stays')
            self.assertEqual([], [line for line in re.split(r'[\r\n]+', screen.text()) if len(line) > Screen.COLUMNS + 10])
        # Who follows sees what there is to see by then.
        self.assertLessEqual({'libvirtd', 'demo image', 'volume runtime', 'machine runtime', 'poollet', 'classes', 'pools'},
                             {text for _, text in self.screen.bars('host')})
        image = self.screen.bars('image')
        self.assertEqual((20, True), (image[-1][0], image[-1][1].endswith(' written')), image)

    def test_1_a_guest_boots(self):
        self.server.kubectl('apply', '-f', '-', input=SECRET)
        with open(HELLO, encoding='utf-8') as file:
            self.server.kubectl('apply', '-f', '-', input=file.read() + '  ignitionRef: {name: hello}\n')
        screen = Screen().run(self.server, 'start', 'hello', '--wait', '--timeout=100s')
        self.assertEqual(screen.lines(), [f'{LABEL} runs', ''])
        boot = screen.bars('boot')
        self.assertEqual((16, 'started, its console is silent yet'), boot[-1], screen.text())
        self.assertTrue(all(full in (0, 4, 8, 16) for full, _ in boot), boot)
        self.says_hello(1)

    def test_2_P9_who_runs_what_and_who_reaches_it(self):
        (machine,), (volume,), (poollet,) = (self.parts(*words) for words in (
            ('runtime', 'machine'), ('runtime', 'volume'), ('poollet', '--name=alpha')))
        guests = self.server.guests()
        (libvirtd,) = {pid for pid, line in guest_fixture.processes()
                       if line[0] == b'/usr/sbin/libvirtd' and self.server.host_dir.encode() in environment(pid)}
        is_root = os.geteuid() == 0
        user = pwd.getpwnam('libvirt-qemu').pw_uid if is_root else os.geteuid()
        networks = 1 << 12 | 1 << 13  # CAP_NET_ADMIN, CAP_NET_RAW
        for pid in (machine, volume, poollet, libvirtd, *guests):
            with self.subTest(guest_fixture.read(f'/proc/{pid}/cmdline')[:80]):
                seen = status(pid)
                self.assertEqual(set(seen['Uid'].split()), {str(user)})
                self.assertEqual(int(seen['CapEff'], 16) & ~(networks if pid == machine else 0), 0)
        for pid in guests:
            self.assertEqual(status(pid)['Seccomp'], '2')
        for pid in (machine, volume, poollet):
            # Another process of the same user, such as a guest's, does not read it.
            self.assertEqual(os.stat(f'/proc/{pid}/environ').st_uid, 0, pid)

        sockets = [word.partition('unix:')[2] for word in guest_fixture.read(f'/proc/{poollet}/cmdline').decode().split('\0')
                   if 'unix:' in word]
        self.assertEqual(len(sockets), 2)
        run = os.path.dirname(sockets[0])
        keys = os.path.join(self.server.host_dir, 'poollet')
        for path, mode in ((sockets[0], 0o600), (sockets[1], 0o600), (run, 0o700), (keys, 0o700)):
            found = os.stat(path)
            self.assertEqual((stat.S_IMODE(found.st_mode), found.st_uid), (mode, user), path)
        if not is_root:
            return
        # Somebody else on this machine reaches none of it, and gets no further than the door.
        for path in (*sockets, os.path.join(run, 'libvirt/libvirt-sock')):
            self.assertIn('PermissionError', as_nobody(f'socket.socket(socket.AF_UNIX).connect({path!r})'))
        for path in (run, keys, self.server.host_dir, os.path.join(self.server.host_dir, 'machines')):
            self.assertIn('PermissionError', as_nobody(f'os.listdir({path!r})'))

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
        self.assertEqual(self.user_data(), 1)
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
        # It was in memory that is gone, and came again from the server.
        self.assertEqual(self.user_data(), 1)

    def test_7_a_guest_with_which_libvirtd_was_killed_is_started(self):
        berth_fixture.eventually(DEADLINE_S, lambda: self.state() == 'Running', 'a guest')
        (poollet,) = self.parts('poollet', '--name=alpha')
        socket = re.search(rb'unix:([^\0]+)', guest_fixture.read(f'/proc/{poollet}/cmdline')).group(1).decode()
        (state,) = glob.glob(os.path.join(os.path.dirname(socket), 'libvirt/qemu/run/*.xml'))
        self.server.kill()
        berth_fixture.eventually(DEADLINE_S, lambda: not self.parts('runtime'), 'the end of the parts')
        (guest,) = self.server.guests()
        os.kill(guest, signal.SIGKILL)
        berth_fixture.eventually(DEADLINE_S, lambda: not self.server.guests(), 'the end of the guest')
        # What libvirt has written down before QEMU has a process, and never corrects.
        text = guest_fixture.read(state).decode()
        text, count = re.subn(r"<domstatus [^>]*>", "<domstatus state='paused' reason='starting up' pid='0'>", text)
        self.assertEqual(count, 1)
        text = text.replace('</qemuCaps>', "</qemuCaps><job type='none' async='start' flags='0x0' asyncStarted='1'/>")
        with open(state, 'w', encoding='utf-8') as file:
            file.write(text)
        self.server.start()
        berth_fixture.eventually(DEADLINE_S, lambda: len(self.server.guests()) == 1, 'it starts again')
        berth_fixture.eventually(DEADLINE_S, lambda: self.state() == 'Running', 'it runs')


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
