#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares every C++ file with .clang-format. With --fix it rewrites them."""

import os
import subprocess
import sys

import sources

CLANG_FORMAT = 'clang-format-19'


def main():
    files = [path for path in sources.repository_files() if sources.is_cpp(path)]
    if '--fix' in sys.argv[1:]:
        return subprocess.run([CLANG_FORMAT, '-i', *files], cwd=sources.ROOT).returncode
    count = os.cpu_count() or 1
    batches = [batch for batch in (files[i::count] for i in range(count)) if batch]
    running = [subprocess.Popen([CLANG_FORMAT, '--dry-run', '-Werror', *batch], cwd=sources.ROOT,
                                stderr=subprocess.PIPE, text=True) for batch in batches]
    failed = set()
    for process in running:
        for line in process.communicate()[1].splitlines():
            if ': error:' in line:
                failed.add(line.split(':')[0])
        if process.returncode not in (0, 1):
            sys.exit(f'{CLANG_FORMAT} ended with {process.returncode}')
    for path in sorted(failed):
        print(f'{path}: not formatted')
    if failed:
        print('fix it with: tools/tidy/format.py --fix')
        return 1
    print(f'{len(files)} files are formatted')
    return 0


if __name__ == '__main__':
    sys.exit(main())
