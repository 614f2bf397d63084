#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cheap clang-tidy checks on product sources: coroutine traps and naming.

By default on the sources that have coroutines, where a trap can be: reading all of them costs ten minutes of two cores.
--all takes every product source, before a release.

A file that passed is not looked at again until it, a header of ours that it includes, the configuration or the
compiler flags change. What passed is remembered in $BERTH_TIDY_CACHE (default: ~/.cache/berth-tidy).
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

import sources

CLANG_TIDY = 'clang-tidy-19'
CHECKS = ','.join([
    '-*',
    'misc-coroutine-hostile-raii',
    'cppcoreguidelines-avoid-capturing-lambda-coroutines',
    'cppcoreguidelines-avoid-reference-coroutine-parameters',
    'readability-identifier-naming',
])
# What may be a reference parameter of a coroutine: it outlives every task. Everything else goes by value.
OUTLIVES = {
    'const meta::KindInfo&': 'a constant table',
    'const KindInfo&': 'the same, inside meta',
    'const meta::TypeInfo&': 'a constant table',
    'const meta::Scheme&': 'made once, before anything runs',
    'rt::Loop&': 'loops are made first and end last (app/)',
    'Loop&': 'the same, inside rt',
    'store::Store&': 'services are made in app/ and outlive what is built on them',
    'client::Client&': 'the same',
    'Client&': 'the same, inside client',
    'Registry&': 'the same',
    'Authorizer&': 'the same',
    'Authenticator&': 'the same',
    'Disk&': 'the same, of a poollet',
    'net::RpcDialer&': 'the same',
    'rt::AsioLoop&': 'a loop',
    'rt::Event&': 'lives in the frame that runs the loop (app/serve.cc)',
    'const std::function<void(const Server&)>&': 'the same',
    'Run&': 'benches: the frame that runs the loop holds it',
    'BenchWorld&': 'the same',
    'HostProcess&': 'the same',
    'Creators&': 'benches: the awaiting frame holds it',
    'const Watchers&': 'the same',
    'const MachineTemplate&': 'the same',
    'const ServerProcess&': 'the same',
    'net::HttpClient&': 'the same',
    'net::MessageStream&': 'lives until its handler has returned, which waits for its tasks (net/rpc.h)',
    'Session&': 'gateway: lives in the handler that serves it, which waits for its tasks',
}
REFERENCE = 'cppcoreguidelines-avoid-reference-coroutine-parameters'
DIAGNOSTIC = re.compile(r'^(?P<path>/[^:\n]+):(?P<line>\d+):(?P<column>\d+): error: ', re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


@functools.lru_cache(maxsize=None)
def digest_and_includes(path):
    """The hash of one file of ours, and the files of ours that it includes directly."""
    with open(os.path.join(sources.ROOT, path), 'rb') as file:
        content = file.read()
    included = []
    for name in INCLUDE.findall(content.decode(errors='replace')):
        candidate = os.path.join('src', name)
        if os.path.isfile(os.path.join(sources.ROOT, candidate)):
            included.append(candidate)
    return hashlib.sha256(content).hexdigest(), included


def closure(path):
    """All files of ours that `path` is made of, itself included."""
    seen, waiting = set(), [path]
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            waiting += digest_and_includes(current)[1]
    return sorted(seen)


def usable_command(entry):
    """The compiler's arguments without what clang-tidy does not need or cannot have."""
    words = shlex.split(entry['command'])
    kept, skip = [], 0
    for i, word in enumerate(words):
        if skip:
            skip -= 1
        elif word == '-Xclang' and words[i + 1] == '-include-pch':
            # The precompiled header is there only after a build.
            skip = 3
            if os.path.exists(os.path.join(entry['directory'], words[i + 3])):
                kept += words[i:i + 4]
        else:
            kept.append(word)
    return kept


def has_coroutines(path):
    with open(os.path.join(sources.ROOT, path), errors='replace') as file:
        return re.search(r'\bco_(await|return|yield)\b', file.read()) is not None


def is_excused(block):
    """Is this diagnostic about a reference to something that outlives every task?"""
    where = DIAGNOSTIC.match(block)
    if REFERENCE not in block.split('\n', 1)[0]:
        return False
    with open(where.group('path')) as file:
        line = file.read().split('\n')[int(where.group('line')) - 1]
    return any(line[int(where.group('column')) - 1:].startswith(declared) for declared in OUTLIVES)


def real_findings(output):
    """The diagnostics in clang-tidy's output that are not excused."""
    starts = [found.start() for found in DIAGNOSTIC.finditer(output)] + [len(output)]
    blocks = [output[begin:end] for begin, end in zip(starts, starts[1:])]
    return ''.join(block for block in blocks if not is_excused(block))


class Checker:
    def __init__(self, build, cache):
        self.cache = cache
        self.build = build
        self.version = subprocess.run([CLANG_TIDY, '--version'], check=True, capture_output=True).stdout
        with open(os.path.join(sources.ROOT, '.clang-tidy'), 'rb') as file:
            self.config = file.read()

    def key(self, path, command):
        hasher = hashlib.sha256()
        # Paths of this clone do not matter.
        flags = ' '.join(command).replace(self.build, '<build>').replace(sources.ROOT, '<root>')
        for part in (self.version, self.config, CHECKS.encode(), repr(sorted(OUTLIVES)).encode(), flags.encode()):
            hasher.update(part + b'\0')
        for name in closure(path):
            hasher.update(f'{name} {digest_and_includes(name)[0]}\n'.encode())
        return hasher.hexdigest()

    def check(self, path, command, database):
        """None if the file is fine, else what is wrong with it. Second value: was it remembered?"""
        mark = os.path.join(self.cache, self.key(path, command))
        if os.path.exists(mark):
            return None, True
        ran = subprocess.run([CLANG_TIDY, '--quiet', f'--checks={CHECKS}', '-p', database, path], cwd=sources.ROOT,
                             capture_output=True, text=True)
        if ran.returncode != 0:
            # Without a diagnostic clang-tidy itself failed: show all that it said.
            problem = real_findings(ran.stdout) if DIAGNOSTIC.search(ran.stdout) else ran.stdout + ran.stderr
            if problem:
                return problem, False
        os.makedirs(self.cache, exist_ok=True)
        with open(mark, 'w'):
            pass
        return None, False


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', required=True, help='build folder with compile_commands.json')
    parser.add_argument('--jobs', type=int, default=int(os.environ.get('BERTH_JOBS', os.cpu_count() or 1)))
    parser.add_argument('--all', action='store_true', help='every product source, not only those with coroutines')
    parser.add_argument('files', nargs='*', help='only these')
    arguments = parser.parse_args()

    cache = os.environ.get('BERTH_TIDY_CACHE') or os.path.expanduser('~/.cache/berth-tidy')
    build = os.path.abspath(arguments.build)
    with open(os.path.join(build, 'compile_commands.json')) as file:
        entries = {os.path.relpath(entry['file'], sources.ROOT): entry for entry in json.load(file)}
    wanted = arguments.files or [path for path in sources.repository_files()
                                 if sources.is_product(path) and (arguments.all or has_coroutines(path))]
    wanted = [path for path in wanted if path in entries]
    commands = {path: usable_command(entries[path]) for path in wanted}

    checker = Checker(build, cache)
    failures = remembered = 0
    with tempfile.TemporaryDirectory() as database:
        with open(os.path.join(database, 'compile_commands.json'), 'w') as file:
            json.dump([{'directory': entries[path]['directory'], 'file': entries[path]['file'],
                        'arguments': commands[path]} for path in wanted], file)
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            jobs = {pool.submit(checker.check, path, commands[path], database): path for path in wanted}
            for job in concurrent.futures.as_completed(jobs):
                problem, was_remembered = job.result()
                remembered += was_remembered
                if problem is not None:
                    failures += 1
                    print(f'{jobs[job]}:\n{problem}', flush=True)
    print(f'{len(wanted)} files checked ({remembered} unchanged), {failures} with findings')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
