#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The official Python client lists, watches and patches, as it is."""

import os
import sys
import unittest

import kubernetes

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'integration'))
import berth_fixture  # noqa: E402  (the path is set above)

GROUP = ('compute.ironcore.dev', 'v1alpha1')


class PythonClient(berth_fixture.ServerTestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.api = kubernetes.config.new_client_from_config(cls.server.kubeconfig_path)
        cls.addClassCleanup(cls.api.close)
        cls.core = kubernetes.client.CoreV1Api(cls.api)
        cls.custom = kubernetes.client.CustomObjectsApi(cls.api)

    def test_built_in_kinds(self):
        for name in ('a', 'b', 'c'):
            self.core.create_namespaced_config_map('default', kubernetes.client.V1ConfigMap(
                metadata=kubernetes.client.V1ObjectMeta(name=name, labels={'kind': 'letter'}), data={'k': name}))
        page = self.core.list_namespaced_config_map('default', label_selector='kind=letter', limit=2)
        rest = self.core.list_namespaced_config_map('default', label_selector='kind=letter', limit=2,
                                                    _continue=page.metadata._continue)
        self.assertEqual([item.metadata.name for item in page.items + rest.items], ['a', 'b', 'c'])
        self.core.patch_namespaced_config_map('a', 'default', {'data': {'k': 'new'}})
        self.assertEqual(self.core.read_namespaced_config_map('a', 'default').data, {'k': 'new'})
        seen = []
        watch = kubernetes.watch.Watch()
        for event in watch.stream(self.core.list_namespaced_config_map, 'default', label_selector='kind=letter',
                                  resource_version=rest.metadata.resource_version, timeout_seconds=30):
            seen.append((event['type'], event['object'].metadata.name))
            if seen[-1] == ('MODIFIED', 'a'):
                self.core.delete_namespaced_config_map('b', 'default')
            else:
                watch.stop()
        self.assertEqual(seen, [('MODIFIED', 'a'), ('DELETED', 'b')])
        with self.assertRaises(kubernetes.client.ApiException) as refused:
            self.core.read_namespaced_config_map('b', 'default')
        self.assertEqual(refused.exception.status, 404)

    def test_kinds_of_berth(self):
        self.custom.create_cluster_custom_object(*GROUP, 'machineclasses', {
            'apiVersion': '/'.join(GROUP), 'kind': 'MachineClass', 'metadata': {'name': 'small'},
            'capabilities': {'cpu': '1', 'memory': '1Gi'}})
        self.custom.create_namespaced_custom_object(*GROUP, 'default', 'machines', {
            'apiVersion': '/'.join(GROUP), 'kind': 'Machine', 'metadata': {'name': 'web'},
            'spec': {'machineClassRef': {'name': 'small'}, 'power': 'Off'}})
        self.custom.patch_namespaced_custom_object(*GROUP, 'default', 'machines', 'web', {'spec': {'power': 'On'}})
        listed = self.custom.list_namespaced_custom_object(*GROUP, 'default', 'machines')
        self.assertEqual([item['spec']['power'] for item in listed['items']], ['On'])
        self.custom.delete_namespaced_custom_object(*GROUP, 'default', 'machines', 'web')
        watch = kubernetes.watch.Watch()
        for event in watch.stream(self.custom.list_namespaced_custom_object, *GROUP, 'default', 'machines',
                                  resource_version=listed['metadata']['resourceVersion'], timeout_seconds=30):
            last = event['type'], event['object']['metadata']['name']
            if event['type'] == 'DELETED':
                watch.stop()
        self.assertEqual(last, ('DELETED', 'web'))


if __name__ == '__main__':
    unittest.main()
