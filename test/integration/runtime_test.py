#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real runtime processes behind their sockets: `berth runtime fake` driven by `berth iri`, killed and started again."""

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import unittest

import berth_fixture

UID_LABEL = 'machinepoollet.ironcore.dev/machine-uid'


def machine(uid):
    return json.dumps({'kind': 'Machine', 'metadata': {'labels': {UID_LABEL: uid}}, 'spec': {'class': 'small'}})


class Runtime:
    """One `berth runtime fake` process on a socket of its own."""

    def __init__(self, folder, *arguments):
        self.socket = os.path.join(folder, 'sockets', 'iri.sock')
        self.log_path = os.path.join(folder, 'runtime.log')
        self._arguments = arguments
        self.process = None

    def start(self):
        with open(self.log_path, 'ab') as log:
            self.process = subprocess.Popen(
                [berth_fixture.binary(), 'runtime', 'fake', '--socket', self.socket, *self._arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        berth_fixture.eventually(berth_fixture.START_DEADLINE_S, lambda: self.iri('version', check=False).returncode == 0,
                                 'the runtime')
        return self

    def iri(self, *words, check=True, input=None):
        return berth_fixture.run([berth_fixture.binary(), 'iri', *words, '--endpoint', f'unix:{self.socket}'],
                                 check=check, input=input)

    def json(self, *words):
        return json.loads(self.iri(*words, '-o', 'json').stdout)

    def uids(self):
        return sorted(one['metadata']['labels'][UID_LABEL] for one in self.json('machines')['machines'])

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(berth_fixture.STOP_DEADLINE_S)
        if code != 0:
            with open(self.log_path) as log:
                raise berth_fixture.Failure(f'the runtime ended with {code}:\n{log.read()}')


class RuntimeTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='berth-runtime-')
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def runtime(self, *arguments):
        runtime = Runtime(self.folder, *arguments).start()
        self.addCleanup(lambda: runtime.process.poll() is None and runtime.kill())
        return runtime

    def test_a_machine_boots_is_switched_off_and_deleted(self):
        runtime = self.runtime('--boot-time', '10ms', '--shutdown-time', '10ms')
        runtime.iri('create', '-f', '-', input=machine('u-1'))
        self.assertEqual(runtime.uids(), ['u-1'])
        one = runtime.json('machines')['machines'][0]
        name = one['metadata']['id']
        berth_fixture.eventually(10, lambda: 'Running' in runtime.iri('machines').stdout, 'boot')
        runtime.iri('power', name, 'off')
        berth_fixture.eventually(10, lambda: 'Stopped' in runtime.iri('machines').stdout, 'power off')
        runtime.iri('delete', name)
        berth_fixture.eventually(10, lambda: runtime.json('machines')['machines'] == [], 'deletion')
        runtime.stop()
        self.assertFalse(os.path.exists(runtime.socket), 'a runtime removes its socket')

    def test_what_was_acknowledged_survives_kill_9(self):
        runtime = self.runtime('--state-file', os.path.join(self.folder, 'state'), '--cpu', '100', '--memory', '1Ti',
                               '--boot-time', '10ms')
        wanted = []
        for round_ in range(4):
            for _ in range(random.randint(1, 4)):
                uid = f'u-{len(wanted)}'
                runtime.iri('create', '-f', '-', input=machine(uid))
                wanted.append(uid)
            before = {one['metadata']['id'] for one in runtime.json('machines')['machines']}
            runtime.kill()
            runtime.start()
            after = {one['metadata']['id'] for one in runtime.json('machines')['machines']}
            self.assertEqual(after, before, f'round {round_}')
        self.assertEqual(runtime.uids(), sorted(wanted))
        used = runtime.json('capacity')['used']['amounts']['cpu']
        self.assertEqual(int(used), 1000 * len(wanted), 'capacity does not drift')

    def test_D15_a_lost_answer_and_a_second_create_leave_one_machine(self):
        runtime = self.runtime('--fail', 'create-answer=1')
        for _ in range(3):
            answer = runtime.iri('create', '-f', '-', check=False, input=machine('u-1'))
            self.assertEqual(answer.returncode, 5, answer.stderr)
        self.assertEqual(runtime.uids(), ['u-1'])

    def test_a_second_runtime_does_not_take_a_socket_that_is_served(self):
        runtime = self.runtime()
        second = berth_fixture.run([berth_fixture.binary(), 'runtime', 'fake', '--socket', runtime.socket], check=False)
        self.assertEqual(second.returncode, 4, second.stderr)
        self.assertIn('serves it already', second.stderr)
        runtime.iri('version')

    def test_P9_a_socket_in_a_folder_that_others_may_write_is_refused(self):
        runtime = self.runtime()
        os.chmod(os.path.dirname(runtime.socket), 0o777)
        answer = runtime.iri('machines', check=False)
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn('may be written by others', answer.stderr)


@unittest.skipIf(os.geteuid() != 0, 'only root can be others')
class OtherUsers(unittest.TestCase):
    """A runtime of one user, its poollet's user, and a stranger."""

    RUNTIME, POOLLET, STRANGER = 65531, 65532, 65533

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='berth-runtime-')
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.chmod(self.folder, 0o711)
        self.berth = shutil.copy(berth_fixture.binary(), self.folder)
        self.home = os.path.join(self.folder, 'runtime')
        os.mkdir(self.home, 0o711)
        os.chown(self.home, self.RUNTIME, self.RUNTIME)
        self.socket = os.path.join(self.home, 'sockets', 'iri.sock')

    def words(self, user, *words):
        return ['setpriv', f'--reuid={user}', f'--regid={user}', '--clear-groups', self.berth, *words]

    def version(self, user, *words):
        return berth_fixture.run(self.words(user, 'iri', 'version', '--endpoint', f'unix:{self.socket}', *words), check=False)

    def serve(self, *words):
        with open(os.path.join(self.folder, 'runtime.log'), 'ab') as log:
            process = subprocess.Popen(self.words(self.RUNTIME, 'runtime', 'fake', '--socket', self.socket, *words),
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        berth_fixture.eventually(berth_fixture.START_DEADLINE_S, lambda: self.version(self.RUNTIME).returncode == 0,
                                 'the runtime')

    def test_P9_who_is_named_may_call_and_nobody_else(self):
        self.serve('--allow-user', str(self.POOLLET))
        trusts = ('--runtime-user', str(self.RUNTIME))
        self.assertEqual(0, self.version(self.POOLLET, *trusts).returncode, self.version(self.POOLLET, *trusts).stderr)
        self.assertIn(f'belongs to user {self.RUNTIME}', self.version(self.POOLLET).stderr)
        refused = self.version(self.STRANGER, *trusts)
        self.assertEqual(5, refused.returncode, refused.stderr)
        with open(os.path.join(self.folder, 'runtime.log'), encoding='utf-8') as log:
            self.assertRegex(log.read(), f'process [0-9]+ of user {self.STRANGER} was refused')

    def test_P9_without_names_it_is_its_own_users(self):
        self.serve()
        modes = [os.stat(path).st_mode & 0o777 for path in (os.path.dirname(self.socket), self.socket)]
        self.assertEqual([0o700, 0o600], modes)
        refused = self.version(self.POOLLET, '--runtime-user', str(self.RUNTIME))
        self.assertNotEqual(0, refused.returncode)
        self.assertIn('Permission denied', refused.stderr)

    def test_a_user_that_is_none_is_said(self):
        wrong = berth_fixture.run(self.words(self.RUNTIME, 'runtime', 'fake', '--socket', self.socket, '--allow-user', 'nemo'),
                                  check=False)
        self.assertIn('--allow-user: there is no user "nemo"', wrong.stderr)


if __name__ == '__main__':
    unittest.main()
