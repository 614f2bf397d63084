# SPDX-License-Identifier: Apache-2.0
"""Well-formed documents with wrong contents: types, names, numbers, quantities, references."""

import base64
import json

from malformed import (BAD, CLASSES, CONFIGMAPS, INVALID, JSON, LEASES, MACHINES, REQUESTS, SECRETS, SETS, VOLUMES,
                       bodies)


def config(**metadata):
    return json.dumps({'metadata': {'name': 'bad', **metadata}})


def data(**members):
    return json.dumps({'metadata': {'name': 'bad'}, **members})


TYPE_ROWS = [
    ('metadata is a list', BAD, 'metadata', '{"metadata":[]}'),
    ('metadata is a text', BAD, 'metadata', '{"metadata":"bad"}'),
    ('metadata is a number', BAD, 'metadata', '{"metadata":7}'),
    ('the name is a number', BAD, 'metadata.name', config(name=7)),
    ('the name is a list', BAD, 'metadata.name', config(name=['bad'])),
    ('the name is an object', BAD, 'metadata.name', config(name={'a': 'b'})),
    ('the name is a boolean', BAD, 'metadata.name', config(name=True)),
    ('labels are a list', BAD, 'metadata.labels', config(labels=['a'])),
    ('labels are a text', BAD, 'metadata.labels', config(labels='a=b')),
    ('a label is a number', BAD, 'metadata.labels', config(labels={'a': 1})),
    ('a label is a boolean', BAD, 'metadata.labels', config(labels={'a': False})),
    ('a label is an object', BAD, 'metadata.labels', config(labels={'a': {}})),
    ('an annotation is a list', BAD, 'metadata.annotations', config(annotations={'a': []})),
    ('finalizers are an object', BAD, 'metadata.finalizers', config(finalizers={})),
    ('a finalizer is a number', BAD, 'metadata.finalizers', config(finalizers=[1])),
    ('owners are an object', BAD, 'metadata.ownerReferences', config(ownerReferences={})),
    ('an owner is a text', BAD, 'metadata.ownerReferences', config(ownerReferences=['x'])),
    ('an owner with a controller that is a text', BAD, 'metadata.ownerReferences', config(ownerReferences=[
        {'apiVersion': 'v1', 'kind': 'ConfigMap', 'name': 'kept', 'uid': 'x', 'controller': 'yes'}])),
    ('the generation is a text', BAD, 'metadata.generation', config(generation='1')),
    ('the generation has a fraction', BAD, 'metadata.generation', config(generation=1.5)),
    ('the creation time is a number', BAD, 'metadata.creationTimestamp', config(creationTimestamp=0)),
    ('the creation time is a word', BAD, 'metadata.creationTimestamp', config(creationTimestamp='yesterday')),
    ('the creation time has no zone', BAD, 'metadata.creationTimestamp',
     config(creationTimestamp='2026-01-01T00:00:00')),
    ('the creation time has a month 13', BAD, 'metadata.creationTimestamp',
     config(creationTimestamp='2026-13-01T00:00:00Z')),
    ('the creation time has a 30th of February', BAD, 'metadata.creationTimestamp',
     config(creationTimestamp='2026-02-30T00:00:00Z')),
    ('the version is a number', BAD, 'metadata.resourceVersion', config(resourceVersion=5)),
    ('managed fields are an object', BAD, 'metadata.managedFields', config(managedFields={})),
    ('data is a list', BAD, 'data', data(data=[])),
    ('data is a text', BAD, 'data', data(data='x')),
    ('a value of data is a number', BAD, 'data', data(data={'k': 1})),
    ('a value of data is an object', BAD, 'data', data(data={'k': {'a': 'b'}})),
    ('immutable is a text', BAD, 'immutable', data(immutable='true')),
    ('immutable is a number', BAD, 'immutable', data(immutable=1)),
    ('binary data is no base64', BAD, 'binaryData', data(binaryData={'k': '!!!'})),
    ('binary data is a number', BAD, 'binaryData', data(binaryData={'k': 1})),
    ('the kind is a number', BAD, 'kind', data(kind=1)),
    ('the version of the API is a list', BAD, 'apiVersion', data(apiVersion=[])),
    ('another kind', BAD, 'kind', data(kind='Secret', apiVersion='v1')),
    ('the kind in small letters', BAD, 'kind', data(kind='configmap', apiVersion='v1')),
    ('a list of the kind', BAD, 'kind', data(kind='ConfigMapList', apiVersion='v1', items=[])),
    ('another version', BAD, 'API version', data(kind='ConfigMap', apiVersion='v2')),
    ('another group', BAD, 'API version', data(kind='ConfigMap', apiVersion='apps/v1')),
    ('a version with three parts', BAD, 'API version', data(kind='ConfigMap', apiVersion='a/b/c')),
]

STRICT_ROWS = [
    ('an unknown field', BAD, 'nobody', data(nobody=1)),
    ('an unknown field of metadata', BAD, 'metadata.nobody', config(nobody=1)),
    ('a field in other letters', BAD, 'Data', data(Data={'k': 'v'})),
    ('a field twice', BAD, 'duplicate', '{"metadata":{"name":"bad"},"data":{},"data":{}}'),
    ('a key twice', BAD, 'duplicate', '{"metadata":{"name":"bad"},"data":{"k":"1","k":"2"}}'),
    ('the name twice', BAD, 'duplicate', '{"metadata":{"name":"bad","name":"worse"}}'),
]

NAME_ROWS = [
    ('no metadata', INVALID, 'metadata.name', '{}'),
    ('no name', INVALID, 'metadata.name', '{"metadata":{}}'),
    ('an empty name', INVALID, 'metadata.name', config(name='')),
    ('a name that is null', INVALID, 'metadata.name', config(name=None)),
    ('capitals', INVALID, 'metadata.name', config(name='Bad')),
    ('an underscore', INVALID, 'metadata.name', config(name='b_ad')),
    ('a blank', INVALID, 'metadata.name', config(name='b ad')),
    ('a slash', INVALID, 'metadata.name', config(name='b/ad')),
    ('a percent sign', INVALID, 'metadata.name', config(name='b%2fad')),
    ('a dot first', INVALID, 'metadata.name', config(name='.bad')),
    ('a dot last', INVALID, 'metadata.name', config(name='bad.')),
    ('two dots', INVALID, 'metadata.name', config(name='b..ad')),
    ('the parent folder', INVALID, 'metadata.name', config(name='..')),
    ('a hyphen first', INVALID, 'metadata.name', config(name='-bad')),
    ('a hyphen last', INVALID, 'metadata.name', config(name='bad-')),
    ('a hyphen beside a dot', INVALID, 'metadata.name', config(name='b-.ad')),
    ('a letter that is not ASCII', INVALID, 'metadata.name', config(name='b\u00e4d')),
    ('a zero byte', INVALID, 'metadata.name', config(name='b\0ad')),
    ('a line break', INVALID, 'metadata.name', config(name='b\nad')),
    ('254 letters', INVALID, 'metadata.name', config(name='b' * 254)),
    ('100,000 letters', BAD, 'too long', config(name='b' * 100_000)),
    ('a generated name with capitals', INVALID, 'metadata.generateName',
     json.dumps({'metadata': {'generateName': 'Bad-'}})),
    ('a generated name with a blank', INVALID, 'metadata.generateName',
     json.dumps({'metadata': {'generateName': 'b ad-'}})),
    ('another namespace', BAD, 'namespace', config(namespace='other')),
    ('a label without a name', INVALID, 'metadata.labels', config(labels={'': 'x'})),
    ('a label with a blank', INVALID, 'metadata.labels', config(labels={'a b': 'x'})),
    ('a label with two slashes', INVALID, 'metadata.labels', config(labels={'a/b/c': 'x'})),
    ('a label with a prefix in capitals', INVALID, 'metadata.labels', config(labels={'A.com/b': 'x'})),
    ('a label with an empty prefix', INVALID, 'metadata.labels', config(labels={'/b': 'x'})),
    ('a label with a key of 64 letters', INVALID, 'metadata.labels', config(labels={'a' * 64: 'x'})),
    ('a label with a prefix of 254 letters', INVALID, 'metadata.labels', config(labels={'a' * 254 + '/b': 'x'})),
    ('a label with a value of 64 letters', INVALID, 'metadata.labels', config(labels={'a': 'x' * 64})),
    ('a label with a blank in its value', INVALID, 'metadata.labels', config(labels={'a': 'x y'})),
    ('a label with a value that ends in a dot', INVALID, 'metadata.labels', config(labels={'a': 'x.'})),
    ('a label with a value in other letters', INVALID, 'metadata.labels', config(labels={'a': '\u4e2d'})),
    ('an annotation without a name', INVALID, 'metadata.annotations', config(annotations={'': 'x'})),
    ('an annotation with a bad key', INVALID, 'metadata.annotations', config(annotations={'a b': 'x'})),
    ('annotations over their limit', INVALID, 'metadata.annotations', config(annotations={'a': 'x' * 263_000})),
    ('a finalizer with a blank', INVALID, 'metadata.finalizers', config(finalizers=['a b'])),
    ('an empty finalizer', INVALID, 'metadata.finalizers', config(finalizers=[''])),
    ('an owner without anything', INVALID, 'metadata.ownerReferences', config(ownerReferences=[{}])),
    ('an owner without a UID', INVALID, 'metadata.ownerReferences.uid', config(ownerReferences=[
        {'apiVersion': 'v1', 'kind': 'ConfigMap', 'name': 'kept'}])),
    ('an owner without a kind', INVALID, 'metadata.ownerReferences.kind', config(ownerReferences=[
        {'apiVersion': 'v1', 'name': 'kept', 'uid': 'x'}])),
    ('an owner without a name', INVALID, 'metadata.ownerReferences.name', config(ownerReferences=[
        {'apiVersion': 'v1', 'kind': 'ConfigMap', 'uid': 'x'}])),
    ('an owner of a bad version', INVALID, 'metadata.ownerReferences', config(ownerReferences=[
        {'apiVersion': 'a/b/c', 'kind': 'ConfigMap', 'name': 'kept', 'uid': 'x'}])),
    ('two controllers', INVALID, 'metadata.ownerReferences', config(ownerReferences=[
        {'apiVersion': 'v1', 'kind': 'ConfigMap', 'name': name, 'uid': name, 'controller': True}
        for name in ('a', 'b')])),
    ('a version on a create', BAD, 'resourceVersion', config(resourceVersion='5')),
    ('a key of data with a slash', INVALID, 'data', data(data={'a/b': 'x'})),
    ('a key of data that is the parent folder', INVALID, 'data', data(data={'..': 'x'})),
    ('an empty key of data', INVALID, 'data', data(data={'': 'x'})),
    ('a key of data with 254 letters', INVALID, 'data', data(data={'k' * 254: 'x'})),
    ('a key in data and in binary data', INVALID, 'binaryData', data(data={'k': 'x'}, binaryData={'k': 'eA=='})),
]

LEASE_NUMBERS = [
    ('a text', BAD, '"5"'),
    ('a fraction', BAD, '1.5'),
    ('zero', INVALID, '0'),
    ('a negative number', INVALID, '-1'),
    ('2^31', BAD, '2147483648'),
    ('-2^31-1', BAD, '-2147483649'),
    ('2^63', BAD, '9223372036854775808'),
    ('2^64', BAD, '18446744073709551616'),
    ('a number of 400 digits', BAD, '9' * 400),
    ('a number of 100,000 digits', BAD, '9' * 100_000),
    ('an exponent of 400', BAD, '1e400'),
    ('a negative exponent', BAD, '1e-5'),
    ('an exponent beyond 64 bits', BAD, '1e99999999999999999999'),
    ('a fraction of 100,000 digits', BAD, '0.' + '1' * 100_000),
    ('a list', BAD, '[5]'),
    ('an object', BAD, '{"value":5}'),
    ('a boolean', BAD, 'true'),
]

QUANTITIES = [
    ('an empty text', '""'), ('a blank', '" "'), ('a word', '"much"'),
    ('a blank between', '"1 Gi"'), ('an unknown suffix', '"1Q"'),
    ('a suffix in other letters', '"1gi"'), ('a suffix twice', '"1GiGi"'), ('a suffix alone', '"Gi"'),
    ('a suffix of bytes', '"1GB"'), ('two points', '"1.2.3"'), ('a point alone', '"."'),
    ('a comma', '"1,5"'), ('two signs', '"--1"'), ('a sign alone', '"-"'), ('a sign behind', '"1-"'),
    ('an exponent without digits', '"1e"'), ('an exponent with a fraction', '"1e1.5"'),
    ('an exponent and a suffix', '"1e3Gi"'), ('an exponent of 1000', '"1e1000"'),
    ('an exponent beyond 64 bits', '"1e99999999999999999999"'), ('a hexadecimal number', '"0x10"'),
    ('an underscore', '"1_000"'), ('NaN', '"NaN"'), ('infinity', '"inf"'), ('300 digits', '"' + '9' * 300 + '"'),
    ('a zero byte', '"1\\u0000"'), ('digits of another script', '"\\u0661"'), ('a list', '[1]'), ('an object', '{}'),
    ('a boolean', 'true'),
]

MACHINE_ROWS = [
    ('no spec', INVALID, 'spec', {}),
    ('spec is a list', BAD, 'spec', {'spec': []}),
    ('spec is a text', BAD, 'spec', {'spec': 'small'}),
    ('no class', INVALID, 'spec.machineClassRef', {'spec': {}}),
    ('a class without a name', INVALID, 'spec.machineClassRef', {'spec': {'machineClassRef': {}}}),
    ('a class with a bad name', INVALID, 'spec.machineClassRef', {'spec': {'machineClassRef': {'name': 'A B'}}}),
    ('a class that is a text', BAD, 'spec.machineClassRef', {'spec': {'machineClassRef': 'small'}}),
    ('power that is no power', INVALID, 'spec.power', {'spec': {'power': 'Maybe'}}),
    ('power that is a boolean', BAD, 'spec.power', {'spec': {'power': True}}),
    ('volumes that are an object', BAD, 'spec.volumes', {'spec': {'volumes': {}}}),
    ('a volume without a name', INVALID, 'spec.volumes[0].name',
     {'spec': {'volumes': [{'device': 'oda', 'localDisk': {}}]}}),
    ('a volume of no kind', INVALID, 'spec.volumes[0]', {'spec': {'volumes': [{'name': 'root', 'device': 'oda'}]}}),
    ('a volume of two kinds', INVALID, 'spec.volumes[0]', {'spec': {'volumes': [
        {'name': 'root', 'device': 'oda', 'localDisk': {}, 'volumeRef': {'name': 'x'}}]}}),
    ('two volumes of one name', INVALID, 'spec.volumes[1].name', {'spec': {'volumes': [
        {'name': 'a', 'device': 'oda', 'localDisk': {}}, {'name': 'a', 'device': 'odb', 'localDisk': {}}]}}),
    ('two volumes of one device', INVALID, 'spec.volumes[1].device', {'spec': {'volumes': [
        {'name': 'a', 'device': 'oda', 'localDisk': {}}, {'name': 'b', 'device': 'oda', 'localDisk': {}}]}}),
    ('a device that is none', INVALID, 'spec.volumes[0].device', {'spec': {'volumes': [
        {'name': 'a', 'device': '/dev/sda', 'localDisk': {}}]}}),
    ('a negative size', INVALID, 'spec.volumes[0].localDisk.sizeLimit', {'spec': {'volumes': [
        {'name': 'a', 'device': 'oda', 'localDisk': {'sizeLimit': '-1Gi'}}]}}),
    ('tolerations that are an object', BAD, 'spec.tolerations', {'spec': {'tolerations': {}}}),
    ('a toleration with an unknown operator', INVALID, 'spec.tolerations[0].operator',
     {'spec': {'tolerations': [{'key': 'a', 'operator': 'Like'}]}}),
    ('a pool selector that is a list', BAD, 'spec.machinePoolSelector', {'spec': {'machinePoolSelector': []}}),
    ('a pool selector with a bad label', INVALID, 'spec.machinePoolSelector',
     {'spec': {'machinePoolSelector': {'a b': 'x'}}}),
    ('interfaces that are a text', BAD, 'spec.networkInterfaces', {'spec': {'networkInterfaces': 'eth0'}}),
    ('an interface of no kind', INVALID, 'spec.networkInterfaces[0]',
     {'spec': {'networkInterfaces': [{'name': 'nic'}]}}),
]

LONG = 'x' * 70_000
LENGTH = 'Too long: 70000 bytes: may not be more than 65536 bytes'

# Texts without rules of their own; LENGTH is what is said about them.
LONG_MACHINE_ROWS = [
    ('the image of a disk', 'spec.volumes[0].localDisk.image', {'volumes': [
        {'name': 'root', 'device': 'oda', 'localDisk': {'image': LONG}}]}),
    ('a variable of the firmware', 'spec.efiVars[0].value', {'efiVars': [
        {'name': 'a', 'uuid': '0b1d0b1d-0b1d-0b1d-0b1d-0b1d0b1d0b1d', 'value': LONG}]}),
    ('a text of few values', 'spec.power', {'power': LONG}),
    ('the key of a selector', 'spec.machinePoolSelector', {'machinePoolSelector': {LONG: 'x'}}),
]

SET_ROWS = [
    ('replicas that are a text', BAD, 'spec.replicas', {'replicas': 'three'}),
    ('replicas below zero', INVALID, 'spec.replicas', {'replicas': -1}),
    ('replicas beyond 32 bits', BAD, 'spec.replicas', {'replicas': 1 << 40}),
    ('no selector', INVALID, 'spec', {'replicas': 1}),
    ('a selector with an unknown operator', INVALID, 'spec.selector',
     {'selector': {'matchExpressions': [{'key': 'a', 'operator': 'Like', 'values': ['x']}]}}),
    ('a selector in no set of values', INVALID, 'spec.selector',
     {'selector': {'matchExpressions': [{'key': 'a', 'operator': 'In'}]}}),
    ('a selector that exists with values', INVALID, 'spec.selector',
     {'selector': {'matchExpressions': [{'key': 'a', 'operator': 'Exists', 'values': ['x']}]}}),
    ('a selector with a bad label', INVALID, 'spec.selector', {'selector': {'matchLabels': {'a b': 'x'}}}),
    ('a template that the selector does not select', INVALID, 'spec.template', {
        'selector': {'matchLabels': {'a': 'x'}},
        'template': {'metadata': {'labels': {'a': 'y'}}, 'spec': {'machineClassRef': {'name': 'small'}}}}),
    ('a template that is a list', BAD, 'spec.template', {'template': []}),
]


def cases():
    yield from bodies('types', JSON, CONFIGMAPS, TYPE_ROWS)
    yield from bodies('strict', JSON, f'{CONFIGMAPS}?fieldValidation=Strict', STRICT_ROWS)
    yield from bodies('names', JSON, CONFIGMAPS, NAME_ROWS)
    yield from bodies('numbers', JSON, LEASES, [
        (name, expected, 'leaseDurationSeconds' if len(number) < 20 and number != '1e400' else '',
         f'{{"metadata":{{"name":"bad"}},"spec":{{"leaseDurationSeconds":{number}}}}}')
        for name, expected, number in LEASE_NUMBERS])
    yield from bodies('numbers', JSON, CONFIGMAPS, [
        ('a generation of 2^63', BAD, 'generation',
         '{"metadata":{"name":"bad","generation":9223372036854775808}}'),
        ('a generation of 1e30', BAD, 'generation', '{"metadata":{"name":"bad","generation":1e30}}'),
        ('an unknown number of 500 digits', BAD, '', '{"metadata":{"name":"bad"},"nobody":' + '7' * 500 + '}')])
    yield from bodies('quantities', JSON, VOLUMES, [
        (name, BAD, 'spec.resources', '{"metadata":{"name":"bad"},"spec":{"volumeClassRef":{"name":"plain"},'
         f'"resources":{{"storage":{text}}}}}}}') for name, text in QUANTITIES])
    yield from bodies('quantities', JSON, CLASSES, [
        ('a negative processor', INVALID, 'capabilities', data(capabilities={'cpu': '-1', 'memory': '1Gi'})),
        ('no memory at all', INVALID, 'capabilities', data(capabilities={'cpu': '1', 'memory': '0'})),
        ('capabilities that are a list', BAD, 'capabilities', data(capabilities=['cpu'])),
        ('capabilities that are a text', BAD, 'capabilities', data(capabilities='2'))])
    yield from bodies('machines', JSON, MACHINES, [
        (name, expected, says, data(**document)) for name, expected, says, document in MACHINE_ROWS])
    yield from bodies('strings', JSON, MACHINES, [
        (name, INVALID, f'{field}: {LENGTH}', data(spec={'machineClassRef': {'name': 'small'}, **spec}))
        for name, field, spec in LONG_MACHINE_ROWS])
    yield from bodies('strings', JSON, LEASES, [
        ('a holder', INVALID, f'spec.holderIdentity: {LENGTH}', data(spec={'holderIdentity': LONG})),
        ('a holder of one byte too many', INVALID, 'spec.holderIdentity: Too long: 65537 bytes',
         data(spec={'holderIdentity': '\u00e4' + 'x' * 65_535}))])
    yield from bodies('strings', JSON, CONFIGMAPS, [
        ('the name of an owner', INVALID, f'metadata.ownerReferences.name: {LENGTH}', config(ownerReferences=[
            {'apiVersion': 'v1', 'kind': 'ConfigMap', 'name': LONG, 'uid': 'x'}]))])
    yield from bodies('strings', JSON, REQUESTS, [
        ('a request for a certificate', INVALID, f'spec.request: {LENGTH}', data(spec={
            'request': base64.b64encode(LONG.encode()).decode(), 'signerName': 'example.org/nobody',
            'usages': ['client auth']}))])
    yield from bodies('strings', JSON, SECRETS, [('a type', INVALID, f'type: {LENGTH}', data(type=LONG))])
    yield from bodies('machines', JSON, SETS, [
        (name, expected, says, data(spec=spec)) for name, expected, says, spec in SET_ROWS])
    yield from bodies('secrets', JSON, SECRETS, [
        ('data that is no base64', BAD, 'data', data(data={'k': '***'})),
        ('data with a padding too short', BAD, 'data', data(data={'k': 'YQ='})),
        ('data that is a number', BAD, 'data', data(data={'k': 5})),
        ('a key with a blank', INVALID, 'data', data(data={'a b': 'YQ=='})),
        ('text that is an object', BAD, 'stringData', data(stringData={'k': {}})),
        ('text under a bad key', INVALID, 'data', data(stringData={'a/b': 'x'})),
        ('a type that is a number', BAD, 'type', data(type=5))])
