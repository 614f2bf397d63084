#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs seeds of the simulation, each twice and one in a process of its own, and wants every named branch to be reached.

usage: sim_test.py FIRST..LAST [--scenario FILE] [--some-branches] [--failovers N] [--losses N]
"""

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys

BINARY = os.environ['BERTH_BINARY']
PROCESSES = 2
PER_PROCESS = 10  # seeds at most: what has ended is shown, and both processors end at about the same time
BRANCHES = 22
SHOWN = 2000  # characters of what a process said that ended badly


def run(first, last, scenario):
    """The runs of a process, and why it ended badly without a word about a run ('' if it did not)."""
    command = [BINARY, 'sim', '--seeds', f'{first}..{last}', '--scenario', scenario, '--twice', '-o', 'json']
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    runs = [json.loads(line) for line in ended.stdout.splitlines()]
    if ended.returncode == 0 or any('violation' in one for one in runs) and len(runs) == last - first + 1:
        return runs, ''
    crashed = re.search(r'^replay: berth sim --seed (\d+)', ended.stderr, re.MULTILINE)
    which = f'seed {crashed[1]} crashed: ' if crashed else ''
    return runs, f'{which}{" ".join(command)}\n  status {ended.returncode}: {ended.stderr[-SHOWN:]}'


def last_line(one):
    """What a process that has run nothing else must end with."""
    return 'pools={pools} machines={machines} faults={faults} reached={count} seed={seed} hash={hash}'.format(
        count=len(one['reached']), **one)


def replay(one, scenario):
    """How the same run in another process, after no other run, differs ('' if it does not).

    Who replays a seed that went wrong relies on that, and --twice does not show it: some things are the same for as long as a
    process lives, as addresses and the seeds of hash tables.
    """
    command = [BINARY, 'sim', '--seed', str(one['seed']), '--scenario', scenario]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    said = (ended.stdout.splitlines() or [''])[-1]
    if said == last_line(one):
        return ''
    return f'{" ".join(command)}\n  ended with {said!r} instead of {last_line(one)!r}: {ended.stderr[-SHOWN:]}'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('seeds', help='FIRST..LAST')
    parser.add_argument('--scenario', default='test/scenarios/small.yaml')
    parser.add_argument('--some-branches', action='store_true', help='too few seeds for all of them')
    parser.add_argument('--failovers', type=int, default=0, help='that have to be measured in all runs together')
    parser.add_argument('--losses', type=int, default=0, help='of leaders, that have to happen in all runs together')
    arguments = parser.parse_args()
    first, last = (int(number) for number in arguments.seeds.split('..'))
    problems = []
    reached = set()
    last_run = None
    ended = failovers = losses = 0
    with concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:
        step = min(PER_PROCESS, -(-(last - first + 1) // PROCESSES))
        chunks = [pool.submit(run, begin, min(begin + step - 1, last), arguments.scenario)
                  for begin in range(first, last + 1, step)]
        for chunk in concurrent.futures.as_completed(chunks):
            runs, why = chunk.result()
            ended += len(runs)
            for one in runs:
                if one['seed'] == last:
                    last_run = one  # the one that came after most others in its process
                reached.update(one['reached'])
                failovers += one['failovers']
                losses += one['losses']
                if 'violation' in one:
                    problems.append('seed {seed}: {checker} at {atSeconds:.3f}s: {what}\n  replay: {replay}'.format(
                        seed=one['seed'], **one['violation']))
                    print(problems[-1], flush=True)
            if why:
                problems.append(why)
                print(why, flush=True)
            print(f'{ended} of {last - first + 1} seeds, {len(reached)} of {BRANCHES} branches', flush=True)
    why = replay(last_run, arguments.scenario) if last_run else ''
    if why:
        problems.append(why)
    if len(reached) < BRANCHES and not arguments.some_branches:
        problems.append('not every branch was reached')
        print('only these branches were reached:', *sorted(reached), sep='\n  ')
    if failovers < arguments.failovers:
        problems.append(f'only {failovers} failovers of {arguments.failovers} were measured')
    if losses < arguments.losses:
        problems.append(f'the leader was lost only {losses} times of {arguments.losses}')
    if problems:
        print(f'{len(problems)} problems:', *problems, sep='\n')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
