#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A transcript says exactly what was seen, except where it says that it does not care."""

import os
import unittest

import transcript


class Parsing(unittest.TestCase):
    def test_commands_continue_and_comments_end_the_output(self):
        text = '## prose\n\n$ cat <<END\n> a\n> END\na\n\n$ true\n## more\n$ false\n[1]\n'
        steps = transcript.parse('x.t', text)
        self.assertEqual([(s.line, s.command, s.expected) for s in steps],
                         [(3, 'cat <<END\na\nEND', ['a']), (8, 'true', []), (10, 'false', ['[1]'])])

    def test_blank_lines_inside_output_count(self):
        self.assertEqual(transcript.parse('x.t', '$ x\na\n\nb\n\n$ y\n')[0].expected, ['a', '', 'b'])

    def test_only_console_blocks_of_markdown_are_run(self):
        text = '# T\n$ no\n```sh\n$ no\n```\n\n```console\n$ yes\nout\n```\ntext\n```console\n$ also\n```\n'
        steps = transcript.parse('x.md', text)
        self.assertEqual([(s.command, s.expected) for s in steps], [('yes', ['out']), ('also', [])])


class Matching(unittest.TestCase):
    def test_lines_must_be_equal(self):
        self.assertTrue(transcript.matches(['a.b'], ['a.b']))
        for actual in (['axb'], ['a.b', 'c'], [], ['a.b ']):
            self.assertFalse(transcript.matches(['a.b'], actual), actual)

    def test_an_ellipsis_stands_for_anything_in_a_line(self):
        self.assertTrue(transcript.matches(['web  …  2s'], ['web  Running  2s']))
        self.assertFalse(transcript.matches(['web  …  2s'], ['web  Running  3s']))

    def test_an_ellipsis_alone_stands_for_any_lines(self):
        for actual in (['a', 'z'], ['a', 'b', 'c', 'z']):
            self.assertTrue(transcript.matches(['a', '…', 'z'], actual))
        self.assertFalse(transcript.matches(['a', '…', 'z'], ['a', 'b']))

    def test_an_ellipsis_stands_for_no_failure(self):
        self.assertFalse(transcript.matches(['…'], ['gone wrong', '[1]']))
        self.assertFalse(transcript.matches(['…', '[2]'], ['gone wrong', '[1]']))
        self.assertFalse(transcript.matches(['…', '[1]'], ['gone well']))
        self.assertTrue(transcript.matches(['…', '[1]'], ['gone wrong', '[1]']))

    def test_slashes_are_a_regular_expression(self):
        self.assertTrue(transcript.matches([r'/age +\d+s/'], ['age   12s']))
        self.assertFalse(transcript.matches([r'/age +\d+s/'], ['age   xs']))


class Running(unittest.TestCase):
    def setUp(self):
        self.shell = transcript.Shell({'PATH': os.environ['PATH']}, '/')
        self.addCleanup(self.shell.close)

    def test_state_stays_between_steps(self):
        self.assertEqual(self.shell.run('export A=1; cd /usr'), [])
        self.assertEqual(self.shell.run('echo $A; pwd'), ['1', '/usr'])

    def test_errors_and_exit_codes_are_seen(self):
        self.assertEqual(self.shell.run('echo out; echo err >&2; (exit 3)'), ['out', 'err', '[3]'])

    def test_output_without_a_newline_is_a_line(self):
        self.assertEqual(self.shell.run('printf a'), ['a'])

    def test_commands_do_not_read_the_script(self):
        self.assertEqual(self.shell.run('cat; echo done'), ['done'])
        self.assertEqual(self.shell.run('cat <<END\nx\nEND'), ['x'])


if __name__ == '__main__':
    unittest.main()
