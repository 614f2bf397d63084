#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `berth sim` refuses, and what it says of a run that was violated."""

import os
import re
import signal
import subprocess
import tempfile
import unittest

BINARY = os.environ['BERTH_BINARY']
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCENARIOS = os.path.join(ROOT, 'test/scenarios')
LAST_LINE = re.compile(r'pools=\d+ machines=\d+ faults=\d+ reached=\d+ seed=\S+ hash=[0-9a-f]{16}')


def sim(*arguments):
    return subprocess.run([BINARY, 'sim', *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


class SimCommand(unittest.TestCase):

    def refused(self, words, *arguments):
        ended = sim(*arguments)
        self.assertNotEqual(ended.returncode, 0)
        self.assertEqual(ended.stdout, '')
        self.assertIn(words, ended.stderr)

    def test_what_makes_no_sense_is_refused(self):
        self.refused('--seed -1: expected 0 or more', '--seed', '-1')
        self.refused('--events -5: expected 0 or more', '--events', '-5')
        self.refused('--seeds "3..1": the last is less than the first', '--seeds', '3..1')
        self.refused('--broken "nobody"', '--broken', 'nobody')

    def test_variants_of_several_servers_want_several(self):
        for name in ('fence', 'sluggish'):
            self.refused(f'--broken {name}: shows with several servers only, and the scenario has servers 1', '--broken', name)

    def test_the_guide_has_every_variant_and_no_other(self):
        helped = re.search(r'broken part in: (.*?)\. A checker', ' '.join(sim('--help').stdout.split()))[1]
        with open(os.path.join(ROOT, 'docs/simulation.md'), encoding='utf-8') as guide:
            rows = re.findall(r'^\| `[^`]+` \|.*\| (`.*`) \|$', guide.read(), re.MULTILINE)
        self.assertEqual(sorted(re.findall('`([^`]+)`', ' '.join(rows))),
                         sorted(re.split(', |: ', helped.replace('; with several servers', ''))))
        self.assertEqual(len(rows), 12, 'checkers')

    def test_an_error_in_a_scenario_names_the_file(self):
        with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
            file.write('pools: 5000\n')
            file.flush()
            ended = sim('--scenario', file.name)
            self.assertNotEqual(ended.returncode, 0)
            self.assertIn(f'--scenario {file.name}: ', ended.stderr)
            self.assertIn('5000', ended.stderr)
        self.refused('--scenario /nowhere: cannot be read', '--scenario', '/nowhere')

    def test_a_violation_is_shown_with_its_replay_and_the_last_line(self):
        scenario = os.path.join(SCENARIOS, 'broken.yaml')
        ended = sim('--seed', '1', '--scenario', scenario, '--broken', 'spoilt-record', '--twice')
        self.assertEqual(ended.returncode, 1, ended.stderr)
        lines = ended.stdout.splitlines()
        self.assertRegex(lines[0], '^VIOLATED record at ')
        self.assertIn(f'replay: berth sim --seed 1 --scenario {scenario} --broken spoilt-record --twice', lines)
        self.assertRegex(lines[-1], LAST_LINE)

    def test_a_crash_is_followed_by_the_replay_of_the_seed_that_crashed(self):
        scenario = os.path.join(SCENARIOS, 'broken.yaml')
        command = [BINARY, 'sim', '--seeds', '1..1000000', '--scenario', scenario]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            lines = iter(process.stdout.readline, '')
            self.assertIsNotNone(next((line for line in lines if 'seed=2' in line), None))  # it has ended, or nearly
            process.send_signal(signal.SIGABRT)
            _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, said)
        replays = [f'replay: berth sim --seed {seed} --scenario {scenario}' for seed in range(2, 9)]
        self.assertIn(said.splitlines()[-1], replays)


if __name__ == '__main__':
    unittest.main(verbosity=2)
