#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands in a real guest: a host with nothing fake, and a guest with Debian's own qemu-guest-agent."""

import os
import stat
import subprocess
import unittest

import berth_fixture
import guest_fixture
from guest_fixture import DEADLINE_S

AGENT = '/usr/sbin/qemu-ga'
PORT = '/dev/virtio-ports/org.qemu.guest_agent.0'
TOOLS = ('cat', 'head', 'id', 'kill', 'ps', 'sh', 'sleep')
# What a distribution does for its agent, and words that hold it and let it go on.
INIT = guest_fixture.INIT.replace('$b stty', f'''$b insmod /virtio_console.ko
$b mkdir -p /dev/virtio-ports
for p in /sys/class/virtio-ports/*; do $b ln -s /dev/${{p##*/}} /dev/virtio-ports/$($b cat $p/name); done
PATH=/bin {AGENT} -m virtio-serial -p {PORT} -t /run &
$b stty''', 1).replace('esac; done', '''hold) $b killall -STOP qemu-ga; echo it is held;;
go) $b killall -CONT qemu-ga; echo it goes on;;
esac; done''', 1)
MIB = 1 << 20

MACHINE = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {name: web}
spec:
  machineClassRef: {name: tiny}
  volumes:
  - {name: root, device: odx, localDisk: {sizeLimit: 1Mi, image: demo}}
'''


def add_agent(archive, modules):
    """The agent as it is installed here, with the libraries that it needs and the loader that finds them."""
    if not os.path.exists(AGENT):
        raise berth_fixture.Failure(f'no {AGENT}: install the packages of scripts/packages.txt')
    listed = berth_fixture.run(['ldd', AGENT]).stdout
    files = [AGENT, *(word for word in listed.split() if word.startswith('/'))]
    folders = {'run'}
    for path in files:
        while path := os.path.dirname(path).rstrip('/'):
            folders.add(path.lstrip('/'))
    for folder in sorted(folders):
        archive.add(folder, stat.S_IFDIR | 0o755)
    for path in files:
        archive.add(path.lstrip('/'), stat.S_IFREG | 0o755, guest_fixture.read(path))
    for tool in TOOLS:
        archive.add(f'bin/{tool}', stat.S_IFLNK | 0o777, b'busybox')
    archive.add('virtio_console.ko', stat.S_IFREG | 0o644, guest_fixture.read(f'{modules}/drivers/char/virtio_console.ko'))


def make_agent_image(folder):
    guest_fixture.make_image(folder, INIT, add_agent)


class CommandsInGuests(guest_fixture.RealHostTestCase):
    HOST = {'image': make_agent_image}

    def exec(self, *words, **options):
        return self.server.berth('exec', *words, check=False, timeout=DEADLINE_S, **options)

    def processes(self):
        return self.exec('web', '--', 'ps').stdout

    def test_1_a_command_runs_as_it_is_written(self):
        self.server.kubectl('apply', '-f', '-', input=MACHINE)
        berth_fixture.eventually(DEADLINE_S, lambda: self.exec('web', '--', 'id').stdout == 'uid=0 gid=0\n',
                                 f'the agent answers: {self.exec("web", "--", "id")}')
        said = self.exec('web', '--', 'sh', '-c', 'echo "$1"; echo oops >&2; exit 3', 'sh', 'a b $(id)')
        self.assertEqual((said.returncode, said.stdout, said.stderr), (3, 'a b $(id)\n', 'oops\n'))
        killed = self.exec('web', '--', 'sh', '-c', 'kill -9 $$')
        self.assertEqual(killed.returncode, 128 + 9)

    def test_2_input_goes_in_before_it_starts(self):
        text = 'line\n' * 40_000
        self.assertEqual(self.exec('-i', 'web', '--', 'cat', input=text).stdout, text)
        refused = self.exec('-i', 'web', '--', 'cat', input='x' * (MIB + 1))
        self.assertIn('the input has more than the 1 MiB', refused.stderr)

    def test_3_a_long_output_is_cut_and_said_to_be(self):
        cut = self.exec('web', '--', 'head', '-c', str(3 * MIB), '/dev/zero')
        self.assertEqual((cut.returncode, len(cut.stdout)), (0, 2 * MIB))
        self.assertIn('berth: the output is longer than 2 MiB: the rest of it is lost', cut.stderr)

    def test_4_what_cannot_be_run_is_said(self):
        refused = self.exec('web', '--', 'no-such-program')
        self.assertEqual(refused.returncode, 1)
        self.assertIn('the guest agent refused it', refused.stderr)
        self.assertIn('no-such-program', refused.stderr)
        self.assertIn('next: look at its console: berth console web', refused.stderr)

    def test_5_who_leaves_takes_the_command_along(self):
        with subprocess.Popen([self.server.binary, 'exec', 'web', '--', 'sleep', '4321'], env=self.server.environment(),
                              cwd=self.server.home) as client:
            try:
                berth_fixture.eventually(DEADLINE_S, lambda: 'sleep 4321' in self.processes(), 'it runs, and others beside it')
            finally:
                client.kill()
        berth_fixture.eventually(DEADLINE_S, lambda: 'sleep 4321' not in self.processes(), 'it is gone')

    def test_6_without_a_command_it_is_the_console(self):
        with guest_fixture.Terminal(self.server, 'web', command='exec') as terminal:
            terminal.ask('disks', 'that is all')
            terminal.leave()

    def test_7_an_agent_that_hangs_is_told_soon_and_heard_again(self):
        with guest_fixture.Terminal(self.server, 'web') as terminal:
            terminal.ask('hold', 'it is held')
            refused = self.exec('web', '--', 'id')
            self.assertIn('no guest agent answers', refused.stderr)
            self.assertIn('install qemu-guest-agent in the guest', refused.stderr)
            terminal.ask('go', 'it goes on')
        self.assertEqual(self.exec('web', '--', 'id').stdout, 'uid=0 gid=0\n')


if __name__ == '__main__':
    unittest.main(verbosity=2)
