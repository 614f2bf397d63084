# SPDX-License-Identifier: Apache-2.0
"""Hosts for tests: a fake runtime and a poollet, both real processes, that join a server."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile

import berth_fixture

STOP_DEADLINE_S = 30
MACHINE_UID_LABEL = 'machinepoollet.ironcore.dev/machine-uid'


class Process:
    """A berth process with a log. kill() and start() again keep its folder."""

    def __init__(self, name, home, *arguments, command=None):
        """`command` are the words that run berth, if not simply its path."""
        self.name = name
        self.log_path = os.path.join(home, f'{name}.log')
        self._home, self._arguments, self.command, self.process = home, arguments, command, None

    def replace(self, **flags):
        """Other values of flags that it has, from the next start on. Gives back what they were."""
        words, before = list(self._arguments), {}
        for name, value in flags.items():
            place = words.index(f'--{name}') + 1
            before[name], words[place] = words[place], value
        self._arguments = tuple(words)
        return before

    def start(self):
        with open(self.log_path, 'ab') as log:
            command = self.command or [berth_fixture.binary()]
            self.process = subprocess.Popen([*command, *self._arguments], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, cwd=self._home, start_new_session=True)
        return self

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self):
        """SIGTERM, and an end with 0: under a sanitizer also one without a report."""
        process, self.process = self.process, None
        process.send_signal(signal.SIGTERM)
        code = process.wait(STOP_DEADLINE_S)
        if code != 0:
            raise berth_fixture.Failure(f'{self.name} ended with {code}:\n{self.log_tail()}')

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    @property
    def runs(self):
        return self.process is not None and self.process.poll() is None

    def log_tail(self, lines=30):
        try:
            with open(self.log_path, errors='replace') as file:
                return '\n'.join(file.read().splitlines()[-lines:])
        except FileNotFoundError:
            return ''


def gateway_address(server):
    """Where poollets connect, as `berth up` printed it last."""
    found = re.findall(r'^poollets\s+(\S+)', server.log(), re.MULTILINE)
    if not found:
        raise berth_fixture.Failure(f'no gateway address in the log:\n{server.log_tail()}')
    return found[-1]


class Host:
    """One host: `berth runtime fake` and `berth poollet`, with the pools NAME and NAME-disks, and NAME-buckets if it has buckets."""

    def __init__(self, server, name, *, cpu=8, memory='32Gi', boot_time='200ms', runtime=(), poollet=(), labels=(), token=(), gateway=None,
                 buckets=False):
        """`token`: more flags of its join token. `gateway`: where the poollet connects, if not to `server`; several are separated by commas."""
        self.server, self.name = server, name
        self.home = tempfile.mkdtemp(prefix=f'berth-{name}-')
        self.socket = os.path.join(self.home, 'runtime.sock')
        self.token_file = os.path.join(self.home, 'token')
        token = server.berth('pool', 'join-token', name, *(f'--label={label}' for label in labels), *token).stdout
        with open(self.token_file, 'w', opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(token)
        self.runtime = Process('runtime', self.home, 'runtime', 'fake', '--socket', self.socket, '--name', name,
                               '--cpu', str(cpu), '--memory', memory, '--boot-time', boot_time,
                               '--shutdown-time', '100ms', '--state-file', os.path.join(self.home, 'state.json'),
                               *runtime)
        self.poollet = Process('poollet', self.home, 'poollet', '--server', gateway or gateway_address(server),
                               '--token-file', self.token_file, '--data-dir', os.path.join(self.home, 'data'),
                               '--name', name, '--machine-pool', name, '--volume-pool', f'{name}-disks',
                               '--machine-runtime', f'unix:{self.socket}', '--volume-runtime', f'unix:{self.socket}',
                               *(('--bucket-pool', f'{name}-buckets', '--bucket-runtime', f'unix:{self.socket}')
                                 if buckets else ()), *poollet)

    def start(self):
        self.runtime.start()
        berth_fixture.eventually(30, lambda: os.path.exists(self.socket), f'the socket of {self.name}')
        self.poollet.start()
        return self

    def listed(self, kind):
        """What the runtime itself says of its machines, volumes or buckets, as JSON."""
        listed = berth_fixture.run([berth_fixture.binary(), 'iri', kind, '--endpoint', f'unix:{self.socket}', '-o', 'json'])
        return listed.stdout

    def machines(self):
        return self.listed('machines')

    def guests(self):
        """The runtime's own identifiers of its machines, each with the machine's UID."""
        return [(guest['metadata']['id'], guest['metadata']['labels'][MACHINE_UID_LABEL])
                for guest in json.loads(self.machines())['machines']]

    def machine_uids(self):
        return [uid for _, uid in self.guests()]

    def running_uids(self):
        """Of the machines that run, by the runtime's word: one for each copy."""
        return [machine['metadata']['labels'][MACHINE_UID_LABEL] for machine in json.loads(self.machines())['machines']
                if machine.get('status', {}).get('state') == 'MACHINE_RUNNING']

    def pool(self):
        return json.loads(self.server.kubectl('get', 'machinepool', self.name, '-o', 'json').stdout)

    def is_ready(self):
        found = self.server.kubectl('get', 'machinepool', self.name, '--ignore-not-found', '-o', 'json').stdout
        conditions = json.loads(found).get('status', {}).get('conditions', []) if found else []
        return any(c['type'] == 'Ready' and c['status'] == 'True' for c in conditions)

    def close(self):
        for process in (self.poollet, self.runtime):
            process.kill()
        if not os.environ.get('BERTH_KEEP'):
            shutil.rmtree(self.home, ignore_errors=True)

    def logs(self):
        return '\n'.join(f'--- {self.name} {process.name} ---\n{process.log_tail()}'
                         for process in (self.poollet, self.runtime))
