#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The newest kubectl: all of test/integration's sessions with kubectl, and what it can do beyond everyday use."""

import json
import os
import re
import subprocess
import sys
import unittest
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'integration'))
import berth_fixture  # noqa: E402  (the path is set above)
import certificates_test  # noqa: E402
import kubectl_test  # noqa: E402  (that of test/integration)
import server_side_apply_test  # noqa: E402


class Kubectl(berth_fixture.ServerTestCase):
    """What older ones cannot."""

    def kubectl(self, *arguments, **options):
        return self.server.kubectl(*arguments, **options)

    def test_rights_and_identity(self):
        self.assertRegex(self.kubectl('auth', 'whoami').stdout, r'Username +berth-admin')
        self.assertRegex(self.kubectl('auth', 'can-i', '--list').stdout, r'\*\.\* +\[\] +\[\] +\[\*\]')
        listed = self.kubectl('auth', 'can-i', '--list', '--as', 'nobody').stdout
        self.assertIn('selfsubjectreviews.authentication.k8s.io', listed)

    def test_raw_documents_and_versions(self):
        versions = self.kubectl('api-versions').stdout.split()
        self.assertIn('compute.ironcore.dev/v1alpha1', versions)
        self.assertIn('certificates.k8s.io/v1', versions)
        self.assertEqual(self.kubectl('get', '--raw', '/readyz').stdout, 'ok')
        self.assertEqual(json.loads(self.kubectl('get', '--raw', '/api/v1').stdout)['kind'], 'APIResourceList')

    def test_proxy(self):
        with self.server.background([berth_fixture.kubectl_paths()[berth_fixture.newest_kubectl()], 'proxy', '--port=0'],
                                    ) as process:
            port = re.search(r':(\d+)', process.stdout.readline()).group(1)
            with urllib.request.urlopen(f'http://127.0.0.1:{port}/api/v1/namespaces', timeout=10) as answer:
                self.assertEqual(json.load(answer)['kind'], 'NamespaceList')

    def test_apply_on_the_server_conflicts_and_is_forced(self):
        def apply(manager, value, *more, check=True):
            return self.kubectl('apply', '--server-side', '--field-manager', manager, *more, '-f', '-', check=check,
                                input=json.dumps({'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'c'},
                                                  'data': {'k': value}}))
        apply('one', '1')
        refused = apply('two', '2', check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn('conflict with "one"', refused.stderr)
        apply('two', '2', '--force-conflicts')
        self.assertEqual(self.kubectl('get', 'configmap', 'c', '-o', 'jsonpath={.data.k}').stdout, '2')


def load_tests(loader, standard_tests, pattern):
    """With the sessions of test/integration; Debian's kubectl has had its turn there."""
    version = berth_fixture.newest_kubectl()
    suite = unittest.TestSuite([standard_tests])
    for sessions in (kubectl_test.Sessions, server_side_apply_test.Kubectls):
        named = type(f'{sessions.__name__}_{version.replace(".", "_")}', (sessions,), {'version': version})
        suite.addTests(loader.loadTestsFromTestCase(named))
    suite.addTest(certificates_test.Certificates('test_kubectl_decides_and_learns_who_it_is'))
    return suite


if __name__ == '__main__':
    unittest.main(verbosity=2)
