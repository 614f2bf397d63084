#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Benches of a whole cluster, and of real guests, run in a tiny world and print every figure, whatever its value."""

import json
import os
import shutil
import tempfile
import unittest

import berth_fixture

HOSTS = '8'
PARAMS = {'fsync_per_s', 'creators', 'policy', 'object_bytes', 'build'}


class Bench(unittest.TestCase):
    def figures(self, bench, *arguments, parent='/var/tmp'):
        """`parent`: where its folder is; None for a bench that writes nothing."""
        if parent is not None:
            folder = tempfile.mkdtemp(prefix='b-', dir=parent)
            self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
            os.chmod(folder, 0o711)  # guests have a user of their own
            arguments = ('--dir', folder, *arguments)
        ran = berth_fixture.run([berth_fixture.binary(), 'bench', bench, '--quick', '-o', 'json', *arguments],
                                timeout=300)
        lines = [json.loads(line) for line in ran.stdout.splitlines()]
        for line in lines:
            self.assertEqual(set(line), {'bench', 'metric', 'value', 'unit', 'params'})
            self.assertEqual(line['bench'], bench)
            # The client may hear of something as early as the next step does; and nothing may be lost or placed twice.
            # An exact best fit may be worse than we are.
            if not line['metric'].startswith('step_') and line['metric'] not in ('lost', 'placed_twice', 'core_quality'):
                self.assertGreater(line['value'], 0, line)
        return lines

    def test_abuse_prints_what_others_notice(self):
        lines = {line['metric']: line for line in self.figures('abuse', '--watchers', '40')}
        self.assertEqual(set(lines), {'idle_p99_ms', 'rss_idle_mb', 'abuse_p99_ms', 'rss_abuse_mb', 'abuse_ratio'})
        seen = lines['abuse_ratio']['params']
        self.assertEqual(seen['watchers'], '40')
        self.assertEqual((seen['stalled'], seen['stalled_watches']), ('1', '1'))
        self.check_memory(lines['rss_idle_mb'], lines['rss_abuse_mb'])
        self.assertGreater(int(seen['lists']), 0)
        self.assertGreater(int(seen['events']), 0)
        for phase in ('idle', 'abuse'):
            self.assertEqual(lines[f'{phase}_p99_ms']['params']['refused'], '0')

    def check_memory(self, idle, abuse):
        """The bar is the idle server's memory and what each abuser may take. This build may take more."""
        said = abuse['params']
        allowed_kb = int(said['growth_kb_max']) + sum(
            int(said[count]) * int(said[f'{one}_kb_max']) for count, one in
            (('watchers', 'watch'), ('silent', 'silent'), ('stalled', 'stalled_list'), ('stalled_watches', 'stalled_watch')))
        self.assertEqual((said['watchers'], said['silent'], said['stalled'], said['stalled_watches']), ('40', '10', '1', '1'))
        self.assertGreater(int(said['stalled_watch_kb_max']), 512)  # lines of one read, a KB each at least
        self.assertAlmostEqual(float(said['bar']), idle['value'] + allowed_kb * 1024 / 1e6, delta=2)
        self.assertEqual(said['verdict'], 'within' if abuse['value'] <= float(said['bar']) else 'over')

    def test_api_prints_every_figure_with_an_etcd_too(self):
        lines = {line['metric']: line for line in self.figures('api', '--etcd', '1', '--machines', '200')}
        self.assertEqual(set(lines), {'fsync_per_s', 'etcd_create_rate_16', 'etcd_create_p99_ms_16', 'etcd_list_10k_ms',
                                      'etcd_watch_events_rate'})
        self.assertEqual(lines['etcd_list_10k_ms']['params']['objects'], '200')
        events = lines['etcd_watch_events_rate']['params']
        self.assertEqual((events['watchers'], events['members']), ('20', '1'))
        self.assertEqual(events['events'], events['expected_events'])

    def test_cluster_prints_every_figure_with_what_it_depends_on(self):
        lines = self.figures('cluster', '--hosts', HOSTS)
        self.assertEqual({line['metric'] for line in lines},
                         {'fsync_per_s', 'rss_session_kb', 'idle_p50_ms', 'idle_p99_ms', 'burst_p99_ms',
                          'rss_server_mb', 'cluster_rate_1k', 'running_rate', 'set_rate', 'rss_poollet_mb',
                          'cluster_rate_5k'})
        for line in lines:
            self.assertLessEqual(PARAMS, set(line['params']), line)
        rate = next(line for line in lines if line['metric'] == 'cluster_rate_1k')
        self.assertEqual(rate['params']['policy'], 'spread')
        self.assertGreater(float(rate['params']['binpack_rate']), 0)

    def test_scheduler_prints_every_figure_with_what_it_depends_on(self):
        lines = {line['metric']: line for line in self.figures('scheduler', '--pools', '1000', parent=None)}
        self.assertEqual(set(lines), {'core_rate_10', 'core_rate_100', 'core_rate_1k', 'core_rate_100_spread',
                                      'core_rank3_rate_100', 'core_quality', 'core_utilisation_exact_best_fit',
                                      'core_utilisation_binpack', 'core_utilisation_spread', 'core_utilisation_balanced'})
        for line in lines.values():
            params = line['params']
            self.assertLessEqual(PARAMS, set(params), line)
            # The core alone: nothing is written, created or encoded.
            self.assertEqual([params[name] for name in ('fsync_per_s', 'creators', 'object_bytes')], ['0', '0', '0'], line)
            self.assertTrue(params['build'], line)
            self.assertIn(params['policy'], ('binpack', 'spread', 'balanced'), line)
        self.assertEqual(lines['core_rate_100_spread']['params']['policy'], 'spread')
        self.assertEqual(lines['core_rate_1k']['params']['pools'], '1000')
        self.assertEqual(lines['core_quality']['params']['pools'], '10')

    def test_recovery_prints_every_figure_with_what_it_depends_on(self):
        lines = self.figures('recovery', '--hosts', HOSTS)
        self.assertEqual({line['metric'] for line in lines},
                         {'fsync_per_s', 'recovery_ms', 'recovery_all_s', 'loss_to_replacement_s', 'loss_to_move_s'})
        for line in lines:
            self.assertLessEqual(PARAMS, set(line['params']), line)

    def test_failover_loses_the_leader_in_every_way_and_nothing_else(self):
        lines = {line['metric']: line for line in self.figures('failover', '--hosts', HOSTS, '--losses', '3')}
        self.assertEqual(set(lines), {'failover_ms', 'failover_p99_ms', 'failover_max_ms', 'acknowledged', 'lost',
                                      'placed_twice'})
        for line in lines.values():
            params = line['params']
            self.assertEqual([params[name] for name in ('servers', 'members', 'hosts', 'losses', 'kinds')],
                             ['3', '3', HOSTS, '3', 'killed,paused,cut_off'])
        longest = lines['failover_max_ms']
        each = [float(longest['params'][f'{kind}_ms']) for kind in ('killed', 'paused', 'cut_off')]
        self.assertGreater(min(each), 0)
        self.assertAlmostEqual(max(each), longest['value'], delta=1)  # they are rounded
        self.assertGreaterEqual(longest['value'], lines['failover_ms']['value'])
        self.assertGreater(lines['acknowledged']['value'], 3)  # there was load
        self.assertEqual((lines['lost']['value'], lines['placed_twice']['value']), (0, 0))

    def check_boot(self, lines, infix, params):
        """Takes the figures of one group of guests out of `lines` and checks that they add up."""
        steps = [lines.pop(f'step_{name}{infix}_ms')
                 for name in ('api', 'scheduler', 'gateway', 'poollet', 'runtime', 'report', 'guest')]
        running, userspace, own = (lines.pop(f'{name}{infix}_ms')
                                   for name in ('create_to_running', 'create_to_userspace', 'control_plane'))
        self.assertLessEqual(params.items() | {('acceleration', 'tcg')}, own['params'].items())
        self.assertLessEqual({'bind_ms', 'build', 'least_ms', 'most_ms'}, set(running['params']))
        self.assertGreater(userspace['value'], running['value'])
        shown = {name: float(own['params'][name + '_ms']) for name in ('libvirt', 'qemu_img', 'running', 'userspace')}
        rounded = 0.06  # to 0.1
        self.assertAlmostEqual(own['value'] + shown['libvirt'] + shown['qemu_img'], shown['running'], delta=4 * rounded)
        self.assertAlmostEqual(sum(step['value'] for step in steps), shown['userspace'], delta=rounded)
        self.assertAlmostEqual(sum(step['value'] for step in steps[:-1]), shown['running'], delta=rounded)
        own_parts = sum(float(step['params'].get('own_ms', 0)) for step in steps)
        self.assertAlmostEqual(own_parts, own['value'], delta=rounded * len(steps))
        for line in (running, userspace, own, *steps):
            self.assertLessEqual(float(line['params']['least_ms']), line['value'] + rounded, line)
            self.assertGreaterEqual(float(line['params']['most_ms']), line['value'] - rounded, line)
        for step in steps:
            self.assertGreaterEqual(step['value'], 0, step)
        return running, userspace

    def test_boot_prints_every_figure_and_what_it_is_made_of_for_one_guest_and_for_several(self):
        lines = {line['metric']: line for line in
                 self.figures('boot', '--guests', '2', '--acceleration', 'tcg', parent='/tmp')}  # short, for sockets
        running, userspace = self.check_boot(lines, '', {'guests': '1', 'rounds': '1'})
        for line in (running, userspace):  # one round: the median is what there is
            self.assertEqual(line['params']['least_ms'], line['params']['most_ms'])
        self.check_boot(lines, '_2', {'guests': '2'})
        self.assertEqual(lines, {})

    def test_a_world_that_is_too_small_is_refused(self):
        with self.assertRaisesRegex(berth_fixture.Failure, '--hosts 1: expected 4 to 20000'):
            self.figures('cluster', '--hosts', '1')
        with self.assertRaisesRegex(berth_fixture.Failure, '--losses 2: expected 3 to 300'):
            self.figures('failover', '--losses', '2')
        with self.assertRaisesRegex(berth_fixture.Failure, '--pools 999: expected 1000 to 1000000'):
            self.figures('scheduler', '--pools', '999', parent=None)


if __name__ == '__main__':
    unittest.main()
