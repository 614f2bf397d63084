# SPDX-License-Identifier: Apache-2.0
"""What is no HTTP, or what two readers of HTTP would not read alike: framing, smuggling, heads without bounds."""

from malformed import CONFIGMAPS, KEPT, Case

MIB = 1 << 20
SMUGGLED = b'DELETE ' + KEPT.encode() + b' HTTP/1.1\r\nHost: x\r\n\r\n'
BODY = b'{"metadata":{"name":"bad"}}'
POST = b'POST ' + CONFIGMAPS.encode() + b' HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
GET = b'GET ' + KEPT.encode() + b' HTTP/1.1\r\n'


def get(fields, line=GET):
    return line + fields + b'\r\n'


def chunked(chunks):
    return POST + b'Transfer-Encoding: chunked\r\n\r\n' + chunks


def framed(fields, body=BODY):
    return POST + fields + b'\r\n' + body


SMUGGLING_ROWS = [
    ('a length and chunks', 400, framed(b'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', b'0\r\n\r\n' + SMUGGLED)),
    ('chunks and a length', 400, framed(b'Transfer-Encoding: chunked\r\nContent-Length: 5\r\n', b'0\r\n\r\n' + SMUGGLED)),
    ('two lengths that differ', 400, framed(b'Content-Length: 0\r\nContent-Length: 27\r\n', BODY + SMUGGLED)),
    ('two lengths that agree', 400, framed(b'Content-Length: 27\r\nContent-Length: 27\r\n')),
    ('two lengths in one field', 400, framed(b'Content-Length: 27, 27\r\n')),
    ('two lengths in one field that differ', 400, framed(b'Content-Length: 27, 0\r\n')),
    ('a length with a plus', 400, framed(b'Content-Length: +27\r\n')),
    ('a length with a minus', 400, framed(b'Content-Length: -27\r\n')),
    ('a length in hex', 400, framed(b'Content-Length: 0x1b\r\n')),
    ('a length with a fraction', 400, framed(b'Content-Length: 27.0\r\n')),
    ('a length with an exponent', 400, framed(b'Content-Length: 1e1\r\n')),
    ('a length with a blank in it', 400, framed(b'Content-Length: 2 7\r\n')),
    ('a length with an underscore', 400, framed(b'Content-Length: 2_7\r\n')),
    ('a length in quotes', 400, framed(b'Content-Length: "27"\r\n')),
    ('an empty length', 400, framed(b'Content-Length: \r\n')),
    ('a length that is a word', 400, framed(b'Content-Length: long\r\n')),
    ('a length of 2^64', 400, framed(b'Content-Length: 18446744073709551616\r\n')),
    ('a length of 2^63', 413, framed(b'Content-Length: 9223372036854775808\r\n')),
    ('a length of 4 GiB', 413, framed(b'Content-Length: 4294967296\r\n')),
    ('a field name with a blank behind it', 400, framed(b'Content-Length : 27\r\n')),
    ('chunks with a blank behind the name', 400, framed(b'Transfer-Encoding : chunked\r\n', b'0\r\n\r\n' + SMUGGLED)),
    ('chunks with a tab in the name', 400, framed(b'Transfer-Encoding\t: chunked\r\n', b'0\r\n\r\n' + SMUGGLED)),
    ('chunks with a control character first', 400, framed(b'Transfer-Encoding: \x0bchunked\r\n', b'0\r\n\r\n' + SMUGGLED)),
    ('a folded line', 400, framed(b'Transfer-Encoding:\r\n chunked\r\n', b'0\r\n\r\n' + SMUGGLED)),
    ('a line folded with a tab', 400, framed(b'X: a\r\n\tb\r\nContent-Length: 27\r\n')),
    ('a folded first line', 400, b'GET ' + KEPT.encode() + b'\r\n HTTP/1.1\r\nHost: x\r\n\r\n'),
    ('two encodings', 400, framed(b'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', b'0\r\n\r\n')),
    ('two encodings that differ', 400, framed(b'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n', b'0\r\n\r\n')),
    ('chunks inside of gzip', 501, framed(b'Transfer-Encoding: gzip, chunked\r\n', b'0\r\n\r\n')),
    ('gzip inside of chunks', 501, framed(b'Transfer-Encoding: chunked, gzip\r\n', b'0\r\n\r\n')),
    ('chunks twice', 501, framed(b'Transfer-Encoding: chunked, chunked\r\n', b'0\r\n\r\n')),
    ('an encoding that is none', 501, framed(b'Transfer-Encoding: nobody\r\n', b'0\r\n\r\n')),
    ('an encoding with a letter before', 501, framed(b'Transfer-Encoding: xchunked\r\n', b'0\r\n\r\n')),
    ('an identity', 501, framed(b'Transfer-Encoding: identity\r\nContent-Length: 27\r\n'.replace(
        b'Content-Length: 27\r\n', b''), b'')),
    ('chunks in HTTP/1.0', 400, framed(b'Transfer-Encoding: chunked\r\n', b'0\r\n\r\n').replace(b'/1.1', b'/1.0', 1)),
    ('a line that ends without CR', 400, framed(b'X: a\nContent-Length: 27\r\n')),
    ('a head that ends without CR', 400, POST.replace(b'\r\n', b'\n') + b'\n'),
    ('a CR without LF', 400, framed(b'X: a\rContent-Length: 27\r\n')),
    ('a zero byte in a value', 400, framed(b'X: a\0b\r\nContent-Length: 27\r\n')),
    ('a zero byte in a name', 400, framed(b'X\0: a\r\nContent-Length: 27\r\n')),
]

CHUNK_ROWS = [
    ('a size that is a word', 400, chunked(b'long\r\n')),
    ('an empty size', 400, chunked(b'\r\n')),
    ('a negative size', 400, chunked(b'-1\r\n')),
    ('a size with a plus', 400, chunked(b'+1\r\na\r\n0\r\n\r\n')),
    ('a size with 0x', 400, chunked(b'0x1b\r\n' + BODY + b'\r\n0\r\n\r\n')),
    ('a size with a blank before', 400, chunked(b' 1b\r\n' + BODY + b'\r\n0\r\n\r\n')),
    ('a size of 2^64', 400, chunked(b'10000000000000000\r\n')),
    ('a size over the limit', 413, chunked(b'40000000\r\n')),
    ('a size that ends without CR', 400, chunked(b'1b\n' + BODY + b'\r\n0\r\n\r\n')),
    ('a size that ends with two CR', 400, chunked(b'1b\r\r\n' + BODY + b'\r\n0\r\n\r\n')),
    ('data longer than its size', 400, chunked(b'5\r\n' + BODY + b'\r\n0\r\n\r\n')),
    ('data without an end', 400, chunked(b'1b\r\n' + BODY + b'0\r\n\r\n')),
    ('an extension without an end', 400, chunked(b'1b;' + b'a' * 70_000)),
    ('an extension with a control character', 400, chunked(b'1b;a=\x01\r\n' + BODY + b'\r\n0\r\n\r\n')),
    ('an extension that ends without CR', 400, chunked(b'1b;a=b\n' + BODY + b'\r\n0\r\n\r\n')),
    ('a trailer without a colon', 400, chunked(b'1\r\n \r\n0\r\nnobody\r\n\r\n')),
    ('trailers without an end', 400, chunked(b'1\r\n \r\n0\r\n' + b'a: b\r\n' * 12_000)),
    ('many chunks over the limit', 413, chunked((b'ffff\r\n' + b' ' * 65_535 + b'\r\n') * 50)),
]

HEAD_ROWS = [
    ('no host', 400, get(b'')),
    ('two hosts', 400, get(b'Host: a\r\nHost: b\r\n')),
    ('two hosts that agree', 400, get(b'Host: a\r\nHost: a\r\n')),
    ('another version', 505, get(b'Host: x\r\n', b'GET /livez HTTP/3.0\r\n')),
    ('version 0.9', 400, b'GET /livez\r\n\r\n'),
    ('version 1.2', 505, get(b'Host: x\r\n', b'GET /livez HTTP/1.2\r\n')),
    ('a version in small letters', 505, get(b'Host: x\r\n', b'GET /livez http/1.1\r\n')),
    ('a version that is a word', 505, get(b'Host: x\r\n', b'GET /livez HTTP/one\r\n')),
    ('no version', 505, get(b'Host: x\r\n', b'GET /livez \r\n')),
    ('no target', 400, get(b'Host: x\r\n', b'GET HTTP/1.1\r\n')),
    ('two blanks behind the method', 400, get(b'Host: x\r\n', b'GET  /livez HTTP/1.1\r\n')),
    ('a blank in the target', 505, get(b'Host: x\r\n', b'GET /live z HTTP/1.1\r\n')),
    ('a tab for a blank', 400, get(b'Host: x\r\n', b'GET\t/livez\tHTTP/1.1\r\n')),
    ('a target without a slash', 400, get(b'Host: x\r\n', b'GET livez HTTP/1.1\r\n')),
    ('a target with a zero byte', 400, get(b'Host: x\r\n', b'GET /live\0z HTTP/1.1\r\n')),
    ('a target of another scheme', 400, get(b'Host: x\r\n', b'GET ftp://a/b HTTP/1.1\r\n')),
    ('a method with a bracket', 400, get(b'Host: x\r\n', b'G[T /livez HTTP/1.1\r\n')),
    ('no method', 400, get(b'Host: x\r\n', b' /livez HTTP/1.1\r\n')),
    ('a field without a colon', 400, get(b'Host: x\r\nnobody\r\n')),
    ('a field without a name', 400, get(b'Host: x\r\n: a\r\n')),
    ('a field name with a blank', 400, get(b'Host: x\r\na b: c\r\n')),
    ('a field name with a bracket', 400, get(b'Host: x\r\na[]: c\r\n')),
    ('a field name that is no ASCII', 400, get(b'Host: x\r\n\xc3\xa4: c\r\n')),
    ('a control character in a value', 400, get(b'Host: x\r\na: b\x07\r\n')),
    ('a delete character in a value', 400, get(b'Host: x\r\na: b\x7f\r\n')),
    ('too many fields', 431, get(b'Host: x\r\n' + b'a: b\r\n' * 1_000)),
    ('a field over the limit', 431, get(b'Host: x\r\na: ' + b'b' * 70_000 + b'\r\n')),
    ('a field name over the limit', 431, get(b'Host: x\r\n' + b'a' * 70_000 + b': b\r\n')),
    ('a target over the limit', 431, get(b'Host: x\r\n', b'GET /' + b'a' * 70_000 + b' HTTP/1.1\r\n')),
    ('a head that never ends', 431, GET + b'Host: x\r\n' + b'a: bbbbbbbb\r\n' * 6_000),
    ('an expectation that is none', 417, framed(b'Expect: miracles\r\nContent-Length: 27\r\n')),
    ('a shell', 400, b'ls -la\r\n\r\n'),
    ('a mail', 400, b'EHLO example.org\r\n'),
    ('a TLS hello', 400, b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' + b'\r\n' * 4),
    ('HTTP/2 on this port', 505, b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + b'\0\0\0\4\0\0\0\0\0'),
    ('redis', 400, b'*1\r\n$4\r\nPING\r\n'),
    ('zero bytes', 400, b'\0' * 64 + b'\r\n\r\n'),
    ('lines without anything', 400, b'\r\n' * 100),
]


# What is said in the words of a metav1.Status, although it never was a request.
REASONS = {400: 'BadRequest', 413: 'RequestEntityTooLarge', 417: 'ExpectationFailed', 431: 'RequestHeaderFieldsTooLarge',
           501: 'NotImplemented', 505: 'HTTPVersionNotSupported'}


def cases():
    for kind, rows in (('smuggling', SMUGGLING_ROWS), ('chunks', CHUNK_ROWS), ('heads', HEAD_ROWS)):
        for name, status, raw in rows:
            yield Case(kind, name, status, REASONS[status], raw=raw)
