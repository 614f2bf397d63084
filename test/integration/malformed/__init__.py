# SPDX-License-Identifier: Apache-2.0
"""Requests that nobody should send, and what each is answered with. malformed_test.py sends them.

A case is data: its class, its name in that class, what is sent, and status, reason and a part of the message that come
back. Each module has the cases of some classes; every case differs from the others in what is wrong, not in its size.
"""

import dataclasses

CONFIGMAPS = '/api/v1/namespaces/default/configmaps'
KEPT = f'{CONFIGMAPS}/kept'  # made before the cases are sent; none of them may change it
SECRETS = '/api/v1/namespaces/default/secrets'
LEASES = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
MACHINES = '/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines'
KEPT_MACHINE = f'{MACHINES}/kept'
CLASSES = '/apis/compute.ironcore.dev/v1alpha1/machineclasses'
VOLUMES = '/apis/storage.ironcore.dev/v1alpha1/namespaces/default/volumes'
REQUESTS = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
SETS = '/apis/berth.dev/v1alpha1/namespaces/default/machinesets'

JSON = 'application/json'
YAML = 'application/yaml'
PROTOBUF = 'application/vnd.kubernetes.protobuf'
JSON_PATCH = 'application/json-patch+json'
MERGE_PATCH = 'application/merge-patch+json'
STRATEGIC_PATCH = 'application/strategic-merge-patch+json'
APPLY_PATCH = 'application/apply-patch+yaml'

GOOD = 'Bearer <good>'  # stands for a token that the server takes

BAD = (400, 'BadRequest')
INVALID = (422, 'Invalid')
NOT_FOUND = (404, 'NotFound')
NO_METHOD = (405, 'MethodNotAllowed')
TOO_LARGE = (413, 'RequestEntityTooLarge')
NO_MEDIA = (415, 'UnsupportedMediaType')
NO_ACCEPT = (406, 'NotAcceptable')


@dataclasses.dataclass(frozen=True)
class Case:
    kind: str      # the class it belongs to
    name: str
    status: int
    reason: str    # of the Status that is answered
    says: str = ''
    method: str = 'POST'
    path: str = CONFIGMAPS
    headers: tuple = ()
    body: bytes = None
    raw: bytes = None      # instead of everything above: the bytes as they are sent
    anonymous: bool = False

    @property
    def id(self):
        return f'{self.kind}/{self.name}'


def bodies(kind, content_type, path, rows, *, method='POST', headers=()):
    """Cases that differ in their body: rows of (name, (status, reason), part of the message, body)."""
    for name, (status, reason), says, body in rows:
        body = body.encode() if isinstance(body, str) else body
        yield Case(kind, name, status, reason, says, method, path, (('Content-Type', content_type), *headers), body)


def requests(kind, rows):
    """Cases without a body: rows of (name, (status, reason), part of the message, method, path)."""
    for name, (status, reason), says, method, path in rows:
        yield Case(kind, name, status, reason, says, method, path)


def all_cases():
    from malformed import documents, fields, patches, targets, wire
    for module in (documents, fields, patches, targets, wire):
        yield from module.cases()
