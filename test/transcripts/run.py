#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs transcripts, each against a private server, and compares what is seen with what is written.

Usage: test/transcripts/run.py [--update] [--host] [FILE...]     (default: all *.t below test/ and docs/)

--host: the server is its own host, with real guests.
"""

import difflib
import os
import sys

import transcript

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'test', 'integration'))
import berth_fixture  # noqa: E402  (the path is set above)
import guest_fixture  # noqa: E402


def default_files():
    found = []
    for top in ('test/transcripts', 'docs'):
        for folder, _, files in os.walk(os.path.join(ROOT, top)):
            for name in files:
                path = os.path.join(folder, name)
                if name.endswith('.t') or (name.endswith('.md') and top == 'docs'):
                    found.append(path)
    return sorted(found)


def environment(server):
    """The shell of the fixture, with kubectl in front of the PATH whichever package it came from."""
    env = server.environment()
    tools = os.path.join(server.home, 'bin')
    os.makedirs(tools, exist_ok=True)
    paths = berth_fixture.kubectl_paths()
    for name, path in [('kubectl', paths[berth_fixture.newest_kubectl()])] + \
            [(f'kubectl-{version}', path) for version, path in paths.items()]:
        link = os.path.join(tools, name)
        if not os.path.lexists(link):
            os.symlink(path, link)
    return {**env, 'PATH': tools + os.pathsep + env['PATH'], 'TMPDIR': server.home, 'BERTH_DATA_DIR': server.data_dir}


def run_steps(path, text, update, new_server):
    """Number of steps and failed steps; with update, writes what was seen back into the file."""
    steps = transcript.parse(path, text)
    if not steps:
        return 0, 0
    lines, failed, shift = text.split('\n'), 0, 0
    with new_server() as server:
        shell = transcript.Shell(environment(server), ROOT)
        try:
            for step in steps:
                actual = shell.run(step.command)
                if transcript.matches(step.expected, actual):
                    continue
                failed += 1
                print(f'{os.path.relpath(path, ROOT)}:{step.line}: $ {step.command}')
                print('\n'.join(difflib.unified_diff(step.expected, actual, 'written', 'seen', lineterm='', n=2)))
                if update:
                    begin, end = step.end - len(step.expected) + shift, step.end + shift
                    lines[begin:end] = actual
                    shift += len(actual) - len(step.expected)
        finally:
            shell.close()
        if failed:
            print(server.log_tail())
    if update and failed:
        with open(path, 'w') as file:
            file.write('\n'.join(lines))
    return len(steps), failed


def main():
    arguments = sys.argv[1:]
    update = '--update' in arguments
    new_server = guest_fixture.HostedServer if '--host' in arguments else berth_fixture.Server
    files = [os.path.abspath(name) for name in arguments if not name.startswith('--')] or default_files()
    total = wrong = 0
    for path in files:
        with open(path) as file:
            steps, failed = run_steps(path, file.read(), update, new_server)
        if steps:
            print(f'{os.path.relpath(path, ROOT)}: {steps} steps, {failed} failed', flush=True)
        total, wrong = total + steps, wrong + failed
    print(f'{total} steps, {wrong} failed')
    return 1 if wrong and not update else 0


if __name__ == '__main__':
    sys.exit(main())
