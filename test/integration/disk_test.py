#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A full disk and a read-only disk give a clear error, and nothing that was acknowledged is damaged."""

import os
import subprocess
import tempfile
import time
import unittest

import berth_fixture

PATH = '/api/v1/namespaces/default/configmaps'


class SmallDisk:
    """A file system of a few megabytes on tmpfs."""

    def __init__(self, megabytes):
        self.path = tempfile.mkdtemp(prefix='berth-disk-')
        subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={megabytes}m', 'berth-test', self.path], check=True)

    def remount(self, option):
        subprocess.run(['mount', '-o', f'remount,{option}', self.path], check=True)

    def close(self):
        subprocess.run(['umount', '-l', self.path], check=False)
        os.rmdir(self.path)


@unittest.skipUnless(os.geteuid() == 0, 'mounting a small disk needs root')
class Disk(unittest.TestCase):
    def serve(self, megabytes):
        disk = SmallDisk(megabytes)
        self.addCleanup(disk.close)
        server = berth_fixture.Server(data_dir=os.path.join(disk.path, 'data'))
        self.addCleanup(server.close)
        server.start()
        return disk, server

    @staticmethod
    def config_map(name, size):
        # What compresses well fills no disk.
        return {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': name},
                'data': {'x': os.urandom(size // 2).hex()}}

    def fill(self, server):
        """Creates objects until one is refused; the names of those that were acknowledged, and the refusal."""
        client, names = server.client(), []
        for i in range(10000):
            answer = client.post(PATH, self.config_map(f'fill-{i}', 200_000))
            if answer.status != 201:
                return names, answer
            names.append(f'fill-{i}')
        raise AssertionError('the disk never filled up')

    def test_a_full_disk_is_named_and_loses_nothing(self):
        disk, server = self.serve(64)
        names, refusal = self.fill(server)
        self.assertEqual(refusal.status, 503, refusal)
        self.assertRegex(refusal.json()['message'].lower(), 'no space left on device')
        client = server.client()
        self.assertNotEqual(client.get('/readyz').status, 200)
        self.assertEqual(client.get(f'{PATH}/{names[-1]}').status, 200, 'reads go on')
        server.kill()
        disk.remount('size=256m')
        server.start()
        client = server.client()
        present = {item['metadata']['name'] for item in client.get(PATH).json()['items']}
        self.assertEqual(present, set(names))
        self.assertEqual(client.post(PATH, self.config_map('after', 10)).status, 201)
        server.stop()

    def test_a_full_disk_that_gets_space_is_written_to_again_without_a_restart(self):
        disk, server = self.serve(64)
        names, refusal = self.fill(server)
        self.assertEqual(refusal.status, 503, refusal)
        disk.remount('size=256m')
        client = server.client()
        deadline = time.monotonic() + 60
        while (answer := client.post(PATH, self.config_map('after', 10))).status == 503:
            self.assertLess(time.monotonic(), deadline, answer)
            time.sleep(0.5)
        self.assertEqual(answer.status, 201, answer)
        self.assertEqual(client.get('/readyz').status, 200)
        server.kill()
        server.start()
        present = {item['metadata']['name'] for item in server.client().get(PATH).json()['items']}
        self.assertEqual(present, {*names, 'after'})
        server.stop()

    def test_a_read_only_disk_is_named(self):
        disk, server = self.serve(64)
        self.assertEqual(server.client().post(PATH, self.config_map('before', 10)).status, 201)
        server.stop()
        disk.remount('ro')
        server.start(wait=False)
        self.assertNotEqual(server.process.wait(30), 0)
        server.process = None
        self.assertRegex(server.log().lower(), 'read-only file system')
        disk.remount('rw')
        server.start()
        self.assertEqual(server.client().get(f'{PATH}/before').status, 200)
        server.stop()


if __name__ == '__main__':
    unittest.main(verbosity=2)
