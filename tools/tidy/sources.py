# SPDX-License-Identifier: Apache-2.0
"""Which files the house rules are about."""

import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def repository_files(root=ROOT):
    """Paths of all files below root, relative, sorted: what git tracks or would track; without git, all but build/."""
    try:
        listed = subprocess.run(
            ['git', '-c', 'safe.directory=*', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'],
            cwd=root, check=True, capture_output=True).stdout.decode().split('\0')
        # A file that is deleted but not yet staged is still listed.
        return sorted({path for path in listed if path and os.path.isfile(os.path.join(root, path))})
    except (OSError, subprocess.CalledProcessError):
        pass
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in ('build', '.git', '__pycache__')]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in files]
    return sorted(found)


def is_cpp(path):
    return path.endswith(('.cc', '.h')) and path.split('/')[0] in ('src', 'test', 'bench', 'fuzz', 'tools')


def is_product(path):
    """A source of ours that ends up in the binary."""
    return path.startswith('src/') and path.endswith('.cc') and not path.endswith('_test.cc')
