# SPDX-License-Identifier: Apache-2.0
"""Patches of all forms, server-side apply and the options of deletes."""

import json

from malformed import (APPLY_PATCH, BAD, CONFIGMAPS, INVALID, JSON, JSON_PATCH, KEPT, KEPT_MACHINE, MERGE_PATCH, NO_MEDIA,
                       NOT_FOUND, STRATEGIC_PATCH, TOO_LARGE, YAML, bodies)


def ops(*operations):
    return json.dumps(list(operations))


def op(operation, path, **more):
    return ops({'op': operation, 'path': path, **more})


JSON_PATCH_ROWS = [
    ('nothing', BAD, '', ''),
    ('null', BAD, '', 'null'),
    ('an object', BAD, '', '{}'),
    ('one operation without its list', BAD, '', '{"op":"remove","path":"/data/k"}'),
    ('a text', BAD, '', '"remove"'),
    ('an open list', BAD, '', '[{"op":"remove","path":"/data/k"}'),
    ('an operation that is a text', BAD, '', '["remove"]'),
    ('an operation that is null', BAD, '', '[null]'),
    ('an operation that is a list', BAD, '', '[[]]'),
    ('an empty operation', BAD, '', '[{}]'),
    ('no op', BAD, 'op', '[{"path":"/data/k"}]'),
    ('an op that is a number', BAD, '', '[{"op":1,"path":"/data/k"}]'),
    ('an unknown op', BAD, 'explode', op('explode', '/data/k')),
    ('an op in capitals', BAD, 'REMOVE', op('REMOVE', '/data/k')),
    ('no path', BAD, 'path', '[{"op":"remove"}]'),
    ('a path that is a number', BAD, 'path', '[{"op":"remove","path":5}]'),
    ('a path that is null', BAD, 'path', '[{"op":"remove","path":null}]'),
    ('a path without a slash', BAD, '', op('remove', 'data/k')),
    ('a path with an open escape', BAD, '', op('remove', '/data/~')),
    ('a path with an unknown escape', BAD, '', op('remove', '/data/~2')),
    ('an add without a value', BAD, 'value', op('add', '/data/x')),
    ('a replace without a value', BAD, 'value', op('replace', '/data/k')),
    ('a test without a value', INVALID, '', op('test', '/data/k')),
    ('a move without from', BAD, 'from', op('move', '/data/x')),
    ('a copy without from', BAD, 'from', op('copy', '/data/x')),
    ('a copy from a number', BAD, 'from', op('copy', '/data/x', **{'from': 5})),
    ('a copy from a bad path', BAD, '', op('copy', '/data/x', **{'from': 'data/k'})),
    ('a move into itself', INVALID, '', op('move', '/metadata/annotations/x', **{'from': '/metadata'})),
    ('a remove of nothing', INVALID, '', op('remove', '/data/nobody')),
    ('a replace of nothing', INVALID, '', op('replace', '/data/nobody', value='x')),
    ('a copy of nothing', INVALID, '', op('copy', '/data/x', **{'from': '/data/nobody'})),
    ('a move of nothing', INVALID, '', op('move', '/data/x', **{'from': '/data/nobody'})),
    ('an add below nothing', INVALID, '', op('add', '/nobody/x/y', value=1)),
    ('an add below a text', INVALID, '', op('add', '/metadata/name/x', value=1)),
    ('a test that fails', INVALID, '', op('test', '/data/k', value='other')),
    ('a test of another type', INVALID, '', op('test', '/data/k', value=1)),
    ('an index beyond the end', INVALID, '', op('add', '/metadata/finalizers/7', value='a/b')),
    ('an index with a leading zero', INVALID, '', op('remove', '/metadata/finalizers/00')),
    ('a negative index', INVALID, '', op('remove', '/metadata/finalizers/-1')),
    ('an index that is a word', INVALID, '', op('remove', '/metadata/finalizers/first')),
    ('an index beyond 64 bits', INVALID, '', op('remove', '/metadata/finalizers/99999999999999999999')),
    ('a remove behind the end', INVALID, '', op('remove', '/metadata/finalizers/-')),
    ('copies that double', TOO_LARGE, '', ops({'op': 'add', 'path': '/data/x', 'value': 'x' * 100_000}, *(
        {'op': 'copy', 'from': '/data', 'path': f'/metadata/annotations/c{i}'} for i in range(64)))),
    ('too many operations', TOO_LARGE, '', ops(*({'op': 'test', 'path': '/data/k', 'value': 'v'},) * 10_001)),
    ('a whole that is a text', BAD, '', op('replace', '', value='x')),
    ('a whole that is removed', INVALID, '', op('remove', '')),
    ('a name that becomes another', BAD, 'name', op('replace', '/metadata/name', value='other')),
    ('a name that becomes a number', BAD, 'metadata.name', op('replace', '/metadata/name', value=5)),
    ('a kind that becomes another', BAD, 'kind', op('replace', '/kind', value='Secret')),
    ('labels that become a list', BAD, 'metadata.labels', op('add', '/metadata/labels', value=[])),
    ('a label that becomes bad', INVALID, 'metadata.labels', op('add', '/metadata/labels', value={'a b': 'x'})),
    ('data that becomes a number', BAD, 'data', op('replace', '/data', value=5)),
    ('a second operation that fails', INVALID, '', ops(
        {'op': 'add', 'path': '/data/x', 'value': 'y'}, {'op': 'remove', 'path': '/data/nobody'})),
]

MERGE_ROWS = [
    ('nothing', BAD, '', ''),
    ('a list', BAD, '', '[]'),
    ('null', BAD, '', 'null'),
    ('a text', BAD, '', '"x"'),
    ('a number', BAD, '', '5'),
    ('an open object', BAD, '', '{"data":'),
    ('YAML', BAD, '', 'data:\n  k: x\n'),
    ('two documents', BAD, '', '{}{}'),
    ('metadata that is a text', BAD, 'metadata', '{"metadata":"x"}'),
    ('labels that are a list', BAD, 'metadata.labels', '{"metadata":{"labels":[]}}'),
    ('a label that is a number', BAD, 'metadata.labels', '{"metadata":{"labels":{"a":1}}}'),
    ('a label that is bad', INVALID, 'metadata.labels', '{"metadata":{"labels":{"a b":"x"}}}'),
    ('another name', BAD, 'name', '{"metadata":{"name":"other"}}'),
    ('another namespace', BAD, 'namespace', '{"metadata":{"namespace":"other"}}'),
    ('another kind', BAD, 'kind', '{"kind":"Secret"}'),
    ('another version of the API', BAD, 'API version', '{"apiVersion":"v9"}'),
    ('another version of the object', (409, 'Conflict'), '', '{"metadata":{"resourceVersion":"1"}}'),
    ('a version that is a word', (409, 'Conflict'), '', '{"metadata":{"resourceVersion":"x"}}'),
    ('another UID', (409, 'Conflict'), 'UID', '{"metadata":{"uid":"00000000-0000-4000-8000-000000000000"}}'),
    ('a deletion', INVALID, 'deletionTimestamp', '{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}'),
    ('a finalizer that is none', INVALID, 'metadata.finalizers', '{"metadata":{"finalizers":["a b"]}}'),
    ('managers that are none', BAD, '', '{"metadata":{"managedFields":"x"}}'),
    ('data that is a text', BAD, 'data', '{"data":"x"}'),
    ('a key that is bad', INVALID, 'data', '{"data":{"a/b":"x"}}'),
    ('deep nesting', BAD, 'nest', '{"a":' * 5_000 + '1' + '}' * 5_000),
    ('bad UTF-8', BAD, '', b'{"data":{"k":"\xff"}}'),
]

STRATEGIC_ROWS = [
    ('nothing', BAD, '', ''),
    ('a list', BAD, '', '[]'),
    ('a text', BAD, '', '"x"'),
    ('an open object', BAD, '', '{'),
    ('an unknown directive', BAD, '$patch', '{"spec":{"$patch":"explode"}}'),
    ('a directive that is a number', BAD, '$patch', '{"spec":{"$patch":5}}'),
    ('volumes that are a text', BAD, 'volumes', '{"spec":{"volumes":"x"}}'),
    ('volumes that are an object', BAD, 'volumes', '{"spec":{"volumes":{}}}'),
    ('a volume that is a text', BAD, '', '{"spec":{"volumes":["root"]}}'),
    ('a volume without its key', BAD, 'name', '{"spec":{"volumes":[{"device":"odb"}]}}'),
    ('a volume with a key that is an object', BAD, '', '{"spec":{"volumes":[{"name":{}}]}}'),
    ('an order that is a text', BAD, '', '{"spec":{"$setElementOrder/volumes":"x"}}'),
    ('an order without keys', BAD, '', '{"spec":{"$setElementOrder/volumes":[{}],"volumes":[]}}'),
    ('retained keys that are a text', BAD, '', '{"spec":{"$retainKeys":"x"}}'),
    ('retained keys that are numbers', BAD, '', '{"spec":{"$retainKeys":[1]}}'),
    ('a deletion from a list that is a text', BAD, '', '{"metadata":{"$deleteFromPrimitiveList/finalizers":"x"}}'),
    ('a class that is a text', BAD, 'machineClassRef', '{"spec":{"machineClassRef":"x"}}'),
    ('a class without a name', INVALID, 'machineClassRef', '{"spec":{"machineClassRef":null}}'),
    ('spec that is a list', BAD, 'spec', '{"spec":[]}'),
    ('a power that is none', INVALID, 'spec.power', '{"spec":{"power":"Perhaps"}}'),
    ('another name', BAD, 'name', '{"metadata":{"name":"other"}}'),
    ('deep nesting', BAD, 'nest', '{"a":' * 5_000 + '1' + '}' * 5_000),
]

APPLY_ROWS = [
    ('nothing', BAD, '', ''),
    ('a list', BAD, '', '[]'),
    ('a word', BAD, '', 'hello'),
    ('bad YAML', BAD, 'YAML', 'kind: {'),
    ('no kind', BAD, 'kind', 'apiVersion: v1\nmetadata: {name: kept}\n'),
    ('no version of the API', BAD, 'apiVersion', 'kind: ConfigMap\nmetadata: {name: kept}\n'),
    ('another kind', BAD, 'kind', 'apiVersion: v1\nkind: Secret\nmetadata: {name: kept}\n'),
    ('another version of the API', BAD, 'API version', 'apiVersion: v2\nkind: ConfigMap\nmetadata: {name: kept}\n'),
    ('another name', BAD, 'name', 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n'),
    ('another namespace', BAD, 'namespace',
     'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, namespace: other}\n'),
    ('managers', BAD, 'managedFields',
     'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, managedFields: []}\n'),
    ('an unknown field', BAD, 'nobody', 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept}\nnobody: 1\n'),
    ('data that is a number', BAD, 'data', 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept}\ndata: {k: 5}\n'),
    ('a key twice', BAD, 'YAML', 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept}\ndata: {k: a, k: b}\n'),
    ('a field of somebody else', (409, 'Conflict'), '.data.k',
     'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept}\ndata: {k: mine}\n'),
    ('a version of the past', (409, 'Conflict'), '',
     'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, resourceVersion: "1"}\n'),
    ('another UID', (409, 'Conflict'), '', 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, uid: "x"}\n'),
    ('a bad label', INVALID, 'metadata.labels',
     'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, labels: {"a b": x}}\n'),
    ('two documents', BAD, '', 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept}\n---\nkind: x\n'),
    ('bad UTF-8', BAD, '', b'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept}\ndata: {a: "\xff"}\n'),
]

APPLY_QUERIES = [
    ('no manager', INVALID, 'fieldManager', ''),
    ('an empty manager', INVALID, 'fieldManager', '?fieldManager='),
    ('a manager of 129 letters', INVALID, 'fieldManager', '?fieldManager=' + 'm' * 129),
    ('a manager with a control character', INVALID, 'fieldManager', '?fieldManager=a%01b'),
    ('force that is neither', BAD, 'force', '?fieldManager=m&force=perhaps'),
    ('a dry run of some', BAD, 'dryRun', '?fieldManager=m&dryRun=Some'),
]

DELETE_ROWS = [
    ('no JSON', BAD, '', '{'),
    ('a list', BAD, '', '[]'),
    ('another kind', BAD, 'DeleteOptions', '{"kind":"ConfigMap"}'),
    ('a policy that is none', INVALID, 'propagationPolicy', '{"propagationPolicy":"Sideways"}'),
    ('a policy that is a number', BAD, 'propagationPolicy', '{"propagationPolicy":1}'),
    ('a policy and orphans', INVALID, 'propagationPolicy',
     '{"propagationPolicy":"Orphan","orphanDependents":true}'),
    ('a negative grace', INVALID, 'gracePeriodSeconds', '{"gracePeriodSeconds":-1}'),
    ('a grace that is a text', BAD, 'gracePeriodSeconds', '{"gracePeriodSeconds":"1"}'),
    ('preconditions that are a list', BAD, 'preconditions', '{"preconditions":[]}'),
    ('another UID', (409, 'Conflict'), '', '{"preconditions":{"uid":"00000000-0000-4000-8000-000000000000"}}'),
    ('another version', (409, 'Conflict'), '', '{"preconditions":{"resourceVersion":"1"}}'),
    ('a dry run of some', INVALID, 'dryRun', '{"dryRun":["Some"]}'),
    ('a dry run that is a text', BAD, 'dryRun', '{"dryRun":"All"}'),
]

FORM_ROWS = [
    ('no type', NO_MEDIA, '', ''),
    ('JSON', NO_MEDIA, '', JSON),
    ('YAML', NO_MEDIA, '', YAML),
    ('a patch of a page', NO_MEDIA, '', 'text/html'),
    ('a patch of a form', NO_MEDIA, '', 'multipart/form-data; boundary=x'),
    ('a patch that is none', NO_MEDIA, '', 'application/other-patch+json'),
]


def cases():
    yield from bodies('json patch', JSON_PATCH, KEPT, JSON_PATCH_ROWS, method='PATCH')
    yield from bodies('merge patch', MERGE_PATCH, KEPT, MERGE_ROWS, method='PATCH')
    yield from bodies('strategic patch', STRATEGIC_PATCH, KEPT_MACHINE, STRATEGIC_ROWS, method='PATCH')
    yield from bodies('apply', APPLY_PATCH, f'{KEPT}?fieldManager=other', APPLY_ROWS, method='PATCH')
    configuration = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept}\n'
    for name, expected, says, query in APPLY_QUERIES:
        yield from bodies('apply', APPLY_PATCH, KEPT + query, [(name, expected, says, configuration)], method='PATCH')
    yield from bodies('delete options', JSON, KEPT, DELETE_ROWS, method='DELETE')
    for name, expected, says, form in FORM_ROWS:
        yield from bodies('patch types', form, KEPT, [(name, expected, says, '{}')], method='PATCH')
    for form in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH):
        yield from bodies('patch types', form, f'{CONFIGMAPS}/nobody', [
            (f'{form} of nothing', NOT_FOUND, '', '[]' if form == JSON_PATCH else '{}')], method='PATCH')
        yield from bodies('patch types', form, f'{KEPT}?force=true', [
            (f'{form} with force', INVALID, 'force', '[]' if form == JSON_PATCH else '{}')], method='PATCH')
        yield from bodies('patch types', form, CONFIGMAPS, [
            (f'{form} of a collection', (405, 'MethodNotAllowed'), '', '{}')], method='PATCH')
