# SPDX-License-Identifier: Apache-2.0
"""Transcripts: what a person types and what they see. README.md here says how they are written."""

import dataclasses
import os
import re
import subprocess
import tempfile

WILD = '…'


@dataclasses.dataclass
class Step:
    line: int       # of the command, counted from 1
    command: str
    expected: list  # lines
    end: int        # index of the first line behind the expected output


def steps_of(lines, first=0, last=None):
    """The steps in lines[first:last]."""
    last = len(lines) if last is None else last
    steps, i = [], first
    while i < last:
        if not lines[i].startswith('$ '):
            i += 1
            continue
        start, command = i, lines[i][2:]
        i += 1
        while i < last and lines[i].startswith('> '):
            command += '\n' + lines[i][2:]
            i += 1
        begin = i
        while i < last and not lines[i].startswith(('$ ', '## ')):
            i += 1
        end = i
        while end > begin and lines[end - 1] == '':
            end -= 1  # blank lines in front of the next command are for the reader
        steps.append(Step(start + 1, command, lines[begin:end], end))
    return steps


def parse(path, text):
    """All steps of a .t file, or of the ```console blocks of a Markdown file."""
    lines = text.split('\n')
    if not path.endswith('.md'):
        return steps_of(lines)
    steps, i = [], 0
    while i < len(lines):
        if lines[i].strip() == '```console':
            begin = i + 1
            while lines[i + 1].strip() != '```':
                i += 1
            steps += steps_of(lines, begin, i + 1)
            i += 1
        i += 1
    return steps


def line_pattern(line):
    if len(line) > 1 and line.startswith('/') and line.endswith('/') and ' ' + WILD not in line:
        return re.compile(line[1:-1])
    return re.compile('.*'.join(re.escape(part) for part in line.split(WILD)))


def exit_code(lines):
    """The line [n] at the end, as a list of that line or of none."""
    return [line for line in lines[-1:] if re.fullmatch(r'\[\d+\]', line)]


def matches(expected, actual):
    """Do the lines fit? A line that is only … stands for any number of lines, but for no failure: that is written."""
    return exit_code(expected) == exit_code(actual) and lines_match(expected, actual)


def lines_match(expected, actual):
    if not expected:
        return not actual
    if expected[0].strip() == WILD:
        return any(lines_match(expected[1:], actual[i:]) for i in range(len(actual) + 1))
    return bool(actual) and line_pattern(expected[0]).fullmatch(actual[0]) is not None and \
        lines_match(expected[1:], actual[1:])


class Shell:
    """One bash for all commands of a transcript, so that `export` and `cd` mean what they say."""

    MARK = '--- end of step '

    def __init__(self, env, cwd):
        self._folder = tempfile.TemporaryDirectory()
        self._bash = subprocess.Popen(['bash', '--noprofile', '--norc'], env=env, cwd=cwd, text=True, errors='replace',
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, command):
        """Lines of output; a last line [n] if the command ended with n other than 0."""
        script = os.path.join(self._folder.name, 'command')
        with open(script, 'w') as file:
            file.write(command + '\n')
        self._bash.stdin.write(f'. "{script}" 2>&1 </dev/null; printf "\\n{self.MARK}%d\\n" $?\n')
        self._bash.stdin.flush()
        lines = []
        for line in self._bash.stdout:
            if line.startswith(self.MARK):
                code = int(line[len(self.MARK):])
                if lines and lines[-1] == '':
                    lines.pop()  # the newline in front of the mark
                while lines and lines[-1] == '':
                    lines.pop()
                return lines + ([f'[{code}]'] if code else [])
            lines.append(line.rstrip('\n').rstrip())
        raise AssertionError(f'the shell ended during: {command}')

    def close(self):
        self._bash.stdin.close()
        self._bash.stdout.close()
        self._bash.wait()
        self._folder.cleanup()
