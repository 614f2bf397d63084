# SPDX-License-Identifier: Apache-2.0
"""Bodies that are no JSON, no YAML, no protobuf: their syntax, depth, size and encoding."""

import struct

from malformed import BAD, CONFIGMAPS, INVALID, JSON, KEPT, LEASES, MACHINES, NO_MEDIA, PROTOBUF, TOO_LARGE, YAML, bodies

MIB = 1 << 20

JSON_ROWS = [
    ('nothing', BAD, 'JSON', ''),
    ('a blank', BAD, 'JSON', ' '),
    ('a comma', BAD, 'JSON', ','),
    ('a word', BAD, 'JSON', 'hello'),
    ('half a literal', BAD, 'JSON', 'nul'),
    ('a literal in capitals', BAD, 'JSON', 'TRUE'),
    ('null', BAD, '', 'null'),
    ('a string', BAD, 'expected an object', '"text"'),
    ('a number', BAD, 'expected an object', '42'),
    ('a boolean', BAD, 'expected an object', 'true'),
    ('a list', BAD, 'expected an object', '[]'),
    ('a list of objects', BAD, 'expected an object', '[{"metadata":{"name":"bad"}}]'),
    ('an open object', BAD, 'JSON', '{'),
    ('an open member', BAD, 'JSON', '{"metadata"'),
    ('a member without a value', BAD, 'JSON', '{"metadata":}'),
    ('a member without a colon', BAD, 'JSON', '{"metadata" {}}'),
    ('two colons', BAD, 'JSON', '{"metadata"::{}}'),
    ('a last comma', BAD, 'JSON', '{"metadata":{"name":"bad"},}'),
    ('a first comma', BAD, 'JSON', '{,"metadata":{"name":"bad"}}'),
    ('two commas', BAD, 'JSON', '{"metadata":{"name":"bad"},,"data":{}}'),
    ('no comma', BAD, 'JSON', '{"metadata":{"name":"bad"}"data":{}}'),
    ('a last comma in a list', BAD, 'JSON', '{"metadata":{"name":"bad","finalizers":["a/b",]}}'),
    ('one brace too many', BAD, 'JSON', '{"metadata":{"name":"bad"}}}'),
    ('two documents', BAD, 'JSON', '{"metadata":{"name":"bad"}}{"metadata":{"name":"worse"}}'),
    ('two documents on lines', BAD, 'JSON', '{"metadata":{"name":"bad"}}\n{"metadata":{"name":"worse"}}'),
    ('a word behind the end', BAD, 'JSON', '{"metadata":{"name":"bad"}} more'),
    ('a zero byte behind the end', BAD, 'JSON', '{"metadata":{"name":"bad"}}\0'),
    ('a bracket that closes a brace', BAD, 'JSON', '{"metadata":{"name":"bad"]}'),
    ('a key without quotes', BAD, 'JSON', '{metadata:{"name":"bad"}}'),
    ('a key in single quotes', BAD, 'JSON', "{'metadata':{'name':'bad'}}"),
    ('a key that is a number', BAD, 'JSON', '{1:{}}'),
    ('a key that is null', BAD, 'JSON', '{null:{}}'),
    ('a comment', BAD, 'JSON', '{/* who */"metadata":{"name":"bad"}}'),
    ('a comment to the end of the line', BAD, 'JSON', '// who\n{"metadata":{"name":"bad"}}'),
    ('a comment with a hash', BAD, 'JSON', '# who\n{"metadata":{"name":"bad"}}'),
    ('an open string', BAD, 'JSON', '{"metadata":{"name":"bad}}'),
    ('a line break in a string', BAD, 'JSON', '{"metadata":{"name":"b\nad"}}'),
    ('a tab in a string', BAD, 'JSON', '{"metadata":{"name":"b\tad"}}'),
    ('a zero byte in a string', BAD, 'JSON', '{"metadata":{"name":"b\0ad"}}'),
    ('an escape that is none', BAD, 'JSON', r'{"metadata":{"name":"b\qad"}}'),
    ('an escape in hex', BAD, 'JSON', r'{"metadata":{"name":"\x62ad"}}'),
    ('an escape with three digits', BAD, 'JSON', r'{"metadata":{"name":"\u006"}}'),
    ('an escape with a letter', BAD, 'JSON', r'{"metadata":{"name":"\u00zz"}}'),
    ('a backslash at the end', BAD, 'JSON', '{"metadata":{"name":"bad\\'),
    ('a lone high surrogate', BAD, '', r'{"metadata":{"name":"bad"},"data":{"k":"\ud800"}}'),
    ('a lone low surrogate', BAD, '', r'{"metadata":{"name":"bad"},"data":{"k":"\udc00"}}'),
    ('two high surrogates', BAD, '', r'{"metadata":{"name":"bad"},"data":{"k":"\ud800\ud800"}}'),
    ('NaN', BAD, 'JSON', '{"metadata":{"name":"bad","generation":NaN}}'),
    ('Infinity', BAD, 'JSON', '{"metadata":{"name":"bad","generation":-Infinity}}'),
    ('a leading zero', BAD, 'JSON', '{"metadata":{"name":"bad","generation":01}}'),
    ('a leading plus', BAD, 'JSON', '{"metadata":{"name":"bad","generation":+1}}'),
    ('a leading point', BAD, 'JSON', '{"metadata":{"name":"bad","generation":.5}}'),
    ('a point at the end', BAD, 'JSON', '{"metadata":{"name":"bad","generation":1.}}'),
    ('an exponent without digits', BAD, 'JSON', '{"metadata":{"name":"bad","generation":1e}}'),
    ('a minus alone', BAD, 'JSON', '{"metadata":{"name":"bad","generation":-}}'),
    ('a hexadecimal number', BAD, 'JSON', '{"metadata":{"name":"bad","generation":0x10}}'),
    ('a number with underscores', BAD, 'JSON', '{"metadata":{"name":"bad","generation":1_000}}'),
    ('two minus signs', BAD, 'JSON', '{"metadata":{"name":"bad","generation":--1}}'),
    ('a form', BAD, 'JSON', 'name=bad&data=x'),
    ('a page', BAD, 'JSON', '<html><body>bad</body></html>'),
    ('YAML', BAD, 'JSON', 'metadata:\n  name: bad\n'),
    ('a vertical tab between tokens', BAD, 'JSON', '{\v"metadata":{"name":"bad"}}'),
    ('a non-breaking space between tokens', BAD, 'JSON', '{\u00a0"metadata":{"name":"bad"}}'),
]

YAML_ROWS = [
    ('nothing', BAD, '', ''),
    ('a comment alone', BAD, '', '# nothing\n'),
    ('null', BAD, '', '~\n'),
    ('a word', BAD, '', 'hello\n'),
    ('a list', BAD, '', '- a\n- b\n'),
    ('two documents', BAD, 'document', 'metadata: {name: bad}\n---\nmetadata: {name: worse}\n'),
    ('a tab as indentation', BAD, 'YAML', 'metadata:\n\tname: bad\n'),
    ('an indentation that fits nothing', BAD, 'YAML', 'metadata:\n    name: bad\n  labels: {}\n'),
    ('an open flow mapping', BAD, 'YAML', 'metadata: {name: bad\n'),
    ('an open flow list', BAD, 'YAML', 'metadata: {name: bad, finalizers: [a/b\n'),
    ('an open double quote', BAD, 'YAML', 'metadata: {name: "bad}\n'),
    ('an open single quote', BAD, 'YAML', "metadata: {name: 'bad}\n"),
    ('a bracket that closes a brace', BAD, 'YAML', 'metadata: {name: bad]\n'),
    ('a key twice', BAD, 'name', 'metadata:\n  name: bad\n  name: worse\n'),
    ('a top key twice', BAD, 'metadata', 'metadata: {name: bad}\nmetadata: {name: worse}\n'),
    ('a merge of a scalar', BAD, 'YAML', 'metadata: {<<: 5, name: bad}\n'),
    ('a merge of an unknown anchor', BAD, 'YAML', 'metadata: {<<: *nobody, name: bad}\n'),
    ('an alias of nothing', BAD, 'YAML', 'metadata: *nobody\n'),
    ('an alias of itself', BAD, 'YAML', 'metadata: &a {name: bad, labels: *a}\n'),
    ('a billion laughs', BAD, 'YAML', 'a: &a [x,x,x,x,x,x,x,x,x]\n' + ''.join(
        f'{chr(c + 1)}: &{chr(c + 1)} [{",".join([f"*{chr(c)}"] * 9)}]\n' for c in range(ord('a'), ord('i')))),
    ('a directive of another version', BAD, '', '%YAML 9.9\n---\nmetadata: {name: 5}\n'),
    ('a directive that is none', BAD, '', '%NONSENSE\nmetadata: {name: 5}\n'),
    ('a mapping as a key', BAD, '', '? {a: b}\n: c\n'),
    ('a list as a key', BAD, '', '? [a, b]\n: c\n'),
    ('a colon too many', BAD, 'YAML', 'metadata: name: bad\n'),
    ('a value and a mapping', BAD, 'YAML', 'metadata: bad\n  name: worse\n'),
    ('an item in a mapping', BAD, 'YAML', 'metadata:\n  name: bad\n- item\n'),
    ('an escape that is none', BAD, 'YAML', 'metadata: {name: "b\\qad"}\n'),
    ('an escape with too few digits', BAD, 'YAML', 'metadata: {name: "\\x6"}\n'),
    ('a percent sign first', BAD, 'YAML', 'metadata:\n  name: %bad\n'),
    ('an at sign first', BAD, 'YAML', 'metadata:\n  name: @bad\n'),
    ('a backtick first', BAD, 'YAML', 'metadata:\n  name: `bad`\n'),
    ('an unknown tag on the name', BAD, '', 'metadata: {name: !!python/object bad, labels: 5}\n'),
    ('a name that is a number', BAD, 'metadata.name', 'metadata: {name: 5}\n'),
    ('a name that is a boolean', BAD, 'metadata.name', 'metadata: {name: yes}\n'),
    ('a name that is a float', BAD, 'metadata.name', 'metadata: {name: 1e3}\n'),
    ('data that is a number', BAD, 'data', 'metadata: {name: bad}\ndata: {replicas: 3}\n'),
    ('data that is a boolean', BAD, 'data', 'metadata: {name: bad}\ndata: {flag: on}\n'),
    ('JSON with a last comma', BAD, '', '{"metadata":{"name":5},}'),
    ('a zero byte', BAD, 'YAML', 'metadata: {name: b\0ad}\n'),
    ('a control character', BAD, '', 'metadata: {name: b\x01ad, labels: 5}\n'),
    ('a block scalar with a bad header', BAD, 'YAML', 'metadata: {name: bad}\ndata:\n  k: |x\n    text\n'),
]

UTF8_ROWS = [
    ('a byte that never occurs', BAD, '', b'{"metadata":{"name":"b\xffad"}}'),
    ('a lone continuation', BAD, '', b'{"metadata":{"name":"b\x80ad"}}'),
    ('a sequence cut short', BAD, '', b'{"metadata":{"name":"bad\xe2\x82"}}'),
    ('an overlong slash', BAD, '', b'{"metadata":{"name":"\xc0\xaf"}}'),
    ('an overlong zero', BAD, '', b'{"metadata":{"name":"\xc0\x80"}}'),
    ('an overlong sequence of three', BAD, '', b'{"metadata":{"name":"\xe0\x80\xaf"}}'),
    ('a surrogate', BAD, '', b'{"metadata":{"name":"\xed\xa0\x80"}}'),
    ('beyond the last plane', BAD, '', b'{"metadata":{"name":"\xf4\x90\x80\x80"}}'),
    ('five bytes', BAD, '', b'{"metadata":{"name":"\xf8\x88\x80\x80\x80"}}'),
    ('in a key', BAD, '', b'{"metadata":{"name":"bad"},"data":{"\xff":"x"}}'),
    ('in a value', BAD, '', b'{"metadata":{"name":"bad"},"data":{"k":"\xc3"}}'),
    ('in an unknown field', BAD, '', b'{"metadata":{"name":"bad"},"nobody":"\xfe"}'),
    ('between tokens', BAD, '', b'{"metadata":\xff{"name":"bad"}}'),
    ('Latin-1', BAD, '', '{"metadata":{"name":"bad","annotations":{"a":"Gr\u00fc\u00dfe"}}}'.encode('latin-1')),
    ('UTF-16', BAD, '', '{"metadata":{"name":"bad"}}'.encode('utf-16')),
    ('UTF-16 without a mark', BAD, '', '{"metadata":{"name":"bad"}}'.encode('utf-16-le')),
    ('UTF-32', BAD, '', '{"metadata":{"name":"bad"}}'.encode('utf-32')),
]


def nested(depth, left, right, core='1'):
    return left * depth + core + right * depth


DEEP_ROWS = [
    ('lists', BAD, 'nest', nested(10_000, '[', ']')),
    ('lists that never end', BAD, '', '[' * 100_000),
    ('objects', BAD, 'nest', nested(10_000, '{"a":', '}')),
    ('objects that never end', BAD, '', '{"a":' * 100_000),
    ('lists and objects', BAD, 'nest', nested(5_000, '[{"a":', '}]')),
    ('in an unknown field', BAD, 'nest', '{"metadata":{"name":"bad"},"nobody":' + nested(5_000, '[', ']') + '}'),
    ('in a field that is a text', BAD, '', '{"metadata":{"name":' + nested(5_000, '[', ']') + '}}'),
    ('in data', BAD, '', '{"metadata":{"name":"bad"},"data":' + nested(5_000, '{"a":', '}', '"x"') + '}'),
    ('in managed fields', BAD, '', '{"metadata":{"name":"bad","managedFields":[{"manager":"m","operation":"Update",'
     '"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":' + nested(5_000, '{"f:a":', '}', '{}') + '}]}}'),
    ('just over the limit', BAD, 'nest', '{"metadata":{"name":"bad"},"nobody":' + nested(300, '[', ']') + '}'),
]
DEEP_YAML_ROWS = [
    ('flow lists in YAML', BAD, '', nested(10_000, '[', ']') + '\n'),
    ('flow mappings in YAML', BAD, '', nested(10_000, '{a: ', '}') + '\n'),
    ('block lists in YAML', BAD, '', '- ' * 10_000 + 'x\n'),
    ('block mappings in YAML', BAD, '', ''.join(' ' * i + 'a:\n' for i in range(1_000)) + ' ' * 1_000 + 'x\n'),
]

LARGE_ROWS = [
    ('a body over the limit', (413, 'RequestEntityTooLarge'), 'bytes', b'{"metadata":{"name":"bad"},"data":{"k":"' + b'x' * (3 * MIB) + b'"}}'),
    ('a body of one byte too many', (413, 'RequestEntityTooLarge'), 'bytes', b' ' * (3 * MIB + 1)),
    ('an object over its limit', INVALID, 'data', b'{"metadata":{"name":"bad"},"data":{"k":"' + b'x' * (2 * MIB) + b'"}}'),
    ('many small keys', TOO_LARGE, '', ('{"metadata":{"name":"bad"},"data":{' + ','.join(
        f'"k{i}":"0123456789"' for i in range(90_000)) + '}}').encode()),
]

RAW = b'k8s\0'


def field(number, payload):
    """One field of protobuf with a length."""
    def varint(value):
        out = b''
        while value > 127:
            out, value = out + bytes([value & 127 | 128]), value >> 7
        return out + bytes([value])
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def unknown(object_bytes, *, version=b'v1', kind=b'ConfigMap', encoding=b'', content_type=b''):
    """runtime.Unknown, as clients wrap what they send."""
    return RAW + field(1, field(1, version) + field(2, kind)) + field(2, object_bytes) + field(3, encoding) + field(
        4, content_type)


META = field(1, field(1, b'bad'))

PROTOBUF_ROWS = [
    ('nothing', BAD, '', b''),
    ('half the magic', BAD, '', b'k8'),
    ('the magic alone', INVALID, 'metadata.name', RAW),
    ('another magic', BAD, '', b'k9s\0' + unknown(META)[4:]),
    ('no magic', BAD, '', unknown(META)[4:]),
    ('JSON', BAD, '', b'{"metadata":{"name":"bad"}}'),
    ('the magic and JSON', BAD, '', RAW + b'{"metadata":{"name":"bad"}}'),
    ('another kind', BAD, 'kind', unknown(META, kind=b'Secret')),
    ('another version', BAD, 'version', unknown(META, version=b'v2')),
    ('another group', BAD, 'version', unknown(META, version=b'apps/v1')),
    ('a length beyond the end', BAD, '', RAW + b'\x12\x7fabc'),
    ('a length of 2^63', BAD, '', RAW + b'\x12' + b'\xff' * 8 + b'\x7f'),
    ('a varint of eleven bytes', BAD, '', RAW + b'\x12' + b'\xff' * 10 + b'\x01'),
    ('a varint without an end', BAD, '', RAW + b'\x12\xff\xff'),
    ('a tag without a value', BAD, '', unknown(META) + b'\x0a'),
    ('field number 0', BAD, '', RAW + b'\x02\x01a'),
    ('wire type 6', BAD, '', RAW + b'\x0e'),
    ('wire type 7', BAD, '', RAW + b'\x0f'),
    ('a group that never ends', BAD, '', RAW + b'\x0b'),
    ('the end of a group that never began', BAD, '', RAW + b'\x0c'),
    ('groups in groups', BAD, '', RAW + b'\x2b' * 5_000 + b'\x2c' * 5_000),
    ('a text where a message is', BAD, '', unknown(field(1, b'\xff\xff'))),
    ('a number where a message is', BAD, '', unknown(b'\x08\x05')),
    ('a name that is no UTF-8', BAD, '', unknown(field(1, field(1, b'b\xffd')))),
    ('data that is no UTF-8', BAD, '', unknown(META + field(2, field(1, b'k') + field(2, b'\xff')))),
    ('an entry that is a number', BAD, '', unknown(META + b'\x10\x05')),
    ('a message cut in the middle', BAD, '', RAW + field(1, field(1, b'v1') + field(2, b'ConfigMap')) + field(
        2, META[:-2])),
    ('a content encoding', BAD, '', unknown(META, encoding=b'gzip')),
    ('JSON inside', BAD, '', unknown(b'{"metadata":{"name":"bad"}}', content_type=b'application/json')),
    ('fixed bytes cut short', BAD, '', unknown(b'\x09\x01\x02')),
    ('deep nesting', BAD, '', unknown(field(1, field(1, b'bad') + b'\x62' + b'\x62' * 3_000))),
    ('random bytes', BAD, '', RAW + bytes(i * 73 % 256 for i in range(512))),
]


def cases():
    yield from bodies('json', JSON, CONFIGMAPS, JSON_ROWS)
    yield from bodies('yaml', YAML, CONFIGMAPS, YAML_ROWS)
    yield from bodies('utf-8', JSON, CONFIGMAPS, UTF8_ROWS)
    yield from bodies('utf-8', YAML, CONFIGMAPS, [
        (f'{name}, in YAML', status, says, body.replace(b'"metadata":', b'metadata: '))
        for name, status, says, body in UTF8_ROWS[:9]])
    yield from bodies('deep', JSON, CONFIGMAPS, DEEP_ROWS)
    yield from bodies('deep', YAML, CONFIGMAPS, DEEP_YAML_ROWS)
    yield from bodies('large', JSON, CONFIGMAPS, LARGE_ROWS)
    yield from bodies('large', JSON, f'{CONFIGMAPS}/kept', [
        (f'{name}, as an update', status, says, body.replace(b'"bad"', b'"kept"'))
        for name, status, says, body in LARGE_ROWS if b'"bad"' in body], method='PUT')
    yield from bodies('protobuf', PROTOBUF, CONFIGMAPS, PROTOBUF_ROWS)
    lease = field(1, field(1, b'bad'))
    yield from bodies('protobuf', PROTOBUF, LEASES, [
        ('a Lease as another kind', BAD, 'kind', unknown(lease, version=b'coordination.k8s.io/v1')),
        ('a Lease with a bad time', BAD, '', unknown(
            lease + field(2, b'\x1a\x02\x0a\xff'), version=b'coordination.k8s.io/v1', kind=b'Lease')),
        ('a Lease with a double', BAD, '', unknown(
            lease + field(2, b'\x11' + struct.pack('<d', 1.5)), version=b'coordination.k8s.io/v1', kind=b'Lease')),
    ])
    yield from bodies('protobuf', PROTOBUF, MACHINES, [
        ('a kind without that form', NO_MEDIA, 'protobuf', unknown(META, kind=b'Machine'))])
    yield from bodies('protobuf', PROTOBUF, KEPT, [
        ('delete options that are none', BAD, '', b'k8s\0\xff'),
        ('delete options of another kind', BAD, 'kind', unknown(b'', kind=b'ConfigMap'))], method='DELETE')
