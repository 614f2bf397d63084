# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 and gRPC as no client speaks them, for the ports where gRPC is spoken.

A case of frames is what follows the client's preface, and how the server must end it: ('goaway', code) for the whole
connection, ('reset', code) for the stream, ('answer',) if the stream ends with an answer. A case of gRPC is a method, the
bytes of its message and the status that comes back.
"""

import struct

DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED, WITH_PRIORITY = 1, 4, 8, 0x20
PROTOCOL_ERROR, FLOW_CONTROL_ERROR, STREAM_CLOSED, FRAME_SIZE_ERROR, COMPRESSION_ERROR = 1, 3, 5, 6, 9
ENHANCE_YOUR_CALM = 11

PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'


def frame(kind, flags=0, stream=0, payload=b'', length=None):
    size = len(payload) if length is None else length
    return struct.pack('>I', size)[1:] + bytes([kind, flags]) + struct.pack('>I', stream) + payload


def fields(*pairs):
    """Header fields as HPACK, each literal and without an index."""
    def text(value):
        size, length = bytearray(), len(value)
        if length < 127:
            return bytes([length]) + value
        length -= 127
        while length >= 128:
            size.append(length % 128 + 128)
            length //= 128
        return b'\x7f' + bytes(size) + bytes([length]) + value

    return b''.join(b'\0' + text(name) + text(value) for name, value in pairs)


CALL = ((b':method', b'POST'), (b':scheme', b'https'), (b':path', b'/berth.agent.v1.AgentService/Join'),
        (b':authority', b'x'), (b'te', b'trailers'), (b'content-type', b'application/grpc'))


def call(*changes, flags=END_HEADERS, stream=1, behind=()):
    """The head of a call, with some fields replaced (or left out: None), and more behind them."""
    replaced = dict(changes)
    pairs = [(name, replaced.get(name, value)) for name, value in CALL]
    return frame(HEADERS, flags, stream, fields(*((n, v) for n, v in pairs if v is not None), *behind))


def message(payload, flags=END_STREAM, stream=1, compressed=0, length=None):
    size = len(payload) if length is None else length
    return frame(DATA, flags, stream, struct.pack('>BI', compressed, size) + payload)


def ended_by(kind, flags, payload):
    """How a frame of the server ends what was sent, as cases say it; None if it does not."""
    if kind == GOAWAY:
        return ('goaway', struct.unpack('>II', payload[:8])[1])
    if kind == RST:
        return ('reset', struct.unpack('>I', payload)[0])
    if kind == HEADERS and flags & END_STREAM:
        return ('answer',)
    return None


def goaway(code):
    return ('goaway', code)


def reset(code):
    return ('reset', code)


ANSWER = ('answer',)
HELLO = frame(SETTINGS)

FRAME_CASES = [
    ('no settings first', goaway(PROTOCOL_ERROR), frame(PING, payload=b'12345678')),
    ('settings of five bytes', goaway(FRAME_SIZE_ERROR), frame(SETTINGS, payload=b'12345')),
    ('settings on a stream', goaway(PROTOCOL_ERROR), HELLO + frame(SETTINGS, 0, 1)),
    ('an acknowledgement with settings', goaway(FRAME_SIZE_ERROR), HELLO + frame(SETTINGS, 1, 0, b'123456')),
    ('a window of 2^31', goaway(FLOW_CONTROL_ERROR), frame(SETTINGS, 0, 0, struct.pack('>HI', 4, 1 << 31))),
    ('a frame size of 1', goaway(PROTOCOL_ERROR), frame(SETTINGS, 0, 0, struct.pack('>HI', 5, 1))),
    ('a push that is neither', goaway(PROTOCOL_ERROR), frame(SETTINGS, 0, 0, struct.pack('>HI', 2, 7))),
    ('a ping of seven bytes', goaway(FRAME_SIZE_ERROR), HELLO + frame(PING, payload=b'1234567')),
    ('a ping on a stream', goaway(PROTOCOL_ERROR), HELLO + frame(PING, 0, 1, b'12345678')),
    ('a push by a client', goaway(PROTOCOL_ERROR), HELLO + frame(PUSH, END_HEADERS, 1, struct.pack('>I', 2))),
    ('data on stream 0', goaway(PROTOCOL_ERROR), HELLO + frame(DATA, 0, 0, b'x')),
    ('data on a stream that never began', goaway(PROTOCOL_ERROR), HELLO + frame(DATA, 0, 1, b'x')),
    ('headers on stream 0', goaway(PROTOCOL_ERROR), HELLO + frame(HEADERS, END_HEADERS, 0, fields(*CALL))),
    ('headers on an even stream', goaway(PROTOCOL_ERROR), HELLO + call(stream=2)),
    ('headers that are no HPACK', goaway(COMPRESSION_ERROR), HELLO + frame(HEADERS, END_HEADERS, 1, b'\xff' * 16)),
    ('headers cut short', goaway(COMPRESSION_ERROR), HELLO + frame(HEADERS, END_HEADERS, 1, fields(*CALL)[:-4])),
    ('an index that is nothing', goaway(COMPRESSION_ERROR), HELLO + frame(HEADERS, END_HEADERS, 1, b'\xc0')),
    ('padding beyond the end', goaway(PROTOCOL_ERROR), HELLO + frame(HEADERS, END_HEADERS | PADDED, 1, b'\xff\0')),
    ('a continuation of nothing', goaway(PROTOCOL_ERROR), HELLO + frame(CONTINUATION, END_HEADERS, 1, b'')),
    ('another frame in the middle of headers', goaway(PROTOCOL_ERROR), HELLO + call(flags=0) + frame(PING, payload=b'12345678')),
    ('another stream in the middle of headers', goaway(PROTOCOL_ERROR), HELLO + call(flags=0) + call(stream=3)),
    ('a window update of 0', goaway(PROTOCOL_ERROR), HELLO + frame(WINDOW, 0, 0, struct.pack('>I', 0))),
    ('a window update of three bytes', goaway(FRAME_SIZE_ERROR), HELLO + frame(WINDOW, 0, 0, b'123')),
    ('a window beyond 2^31', goaway(FLOW_CONTROL_ERROR), HELLO + frame(WINDOW, 0, 0, struct.pack('>I', 0x7fffffff))),
    ('a reset of five bytes', goaway(FRAME_SIZE_ERROR), HELLO + call() + frame(RST, 0, 1, b'12345')),
    ('a reset of stream 0', goaway(PROTOCOL_ERROR), HELLO + frame(RST, 0, 0, b'1234')),
    ('a reset of a stream that never began', goaway(PROTOCOL_ERROR), HELLO + frame(RST, 0, 7, b'1234')),
    ('a priority of four bytes', goaway(FRAME_SIZE_ERROR), HELLO + frame(PRIORITY, 0, 1, b'1234')),
    ('a goodbye on a stream', goaway(PROTOCOL_ERROR), HELLO + frame(GOAWAY, 0, 1, b'\0' * 8)),
    ('a goodbye of four bytes', goaway(FRAME_SIZE_ERROR), HELLO + frame(GOAWAY, 0, 0, b'\0' * 4)),
    ('a frame of 16 MiB', goaway(FRAME_SIZE_ERROR), HELLO + frame(DATA, 0, 1, length=0xffffff)),
    ('no method', reset(PROTOCOL_ERROR), HELLO + call((b':method', None))),
    ('no path', reset(PROTOCOL_ERROR), HELLO + call((b':path', None))),
    ('an empty path', reset(PROTOCOL_ERROR), HELLO + call((b':path', b''))),
    ('no scheme', reset(PROTOCOL_ERROR), HELLO + call((b':scheme', None))),
    ('a field in capitals', reset(PROTOCOL_ERROR), HELLO + call(behind=((b'Upper', b'x'),))),
    ('a pseudo field behind others', reset(PROTOCOL_ERROR), HELLO + call(behind=((b':method', b'POST'),))),
    ('an unknown pseudo field', reset(PROTOCOL_ERROR), HELLO + frame(HEADERS, END_HEADERS, 1, fields((b':nobody', b'x'), *CALL))),
    ('a field of connections', reset(PROTOCOL_ERROR), HELLO + call(behind=((b'connection', b'close'),))),
    ('an encoding of transfers', reset(PROTOCOL_ERROR), HELLO + call(behind=((b'transfer-encoding', b'chunked'),))),
    ('trailers that are no trailers', reset(PROTOCOL_ERROR), HELLO + call((b'te', b'gzip'))),
    ('a line break in a value', reset(PROTOCOL_ERROR), HELLO + call(behind=((b'x', b'a\r\nb: c'),))),
    ('a length that the data has not', reset(PROTOCOL_ERROR), HELLO + call(behind=((b'content-length', b'99'),)) + message(b'')),
    ('data behind the end', goaway(STREAM_CLOSED), HELLO + call(flags=END_HEADERS | END_STREAM) + frame(DATA, 0, 1, b'x')),
    ('a stream that depends on itself', goaway(PROTOCOL_ERROR), HELLO + frame(
        HEADERS, END_HEADERS | WITH_PRIORITY, 1, struct.pack('>IB', 1, 0) + fields(*CALL))),
    ('another method', ANSWER, HELLO + call((b':method', b'GET'), flags=END_HEADERS | END_STREAM)),
    ('another type', ANSWER, HELLO + call((b'content-type', b'text/html'), flags=END_HEADERS | END_STREAM)),
    ('no type', ANSWER, HELLO + call((b'content-type', None), flags=END_HEADERS | END_STREAM)),
    ('a path of nothing', ANSWER, HELLO + call((b':path', b'/'), flags=END_HEADERS | END_STREAM)),
    ('a service that is none', ANSWER, HELLO + call((b':path', b'/a/b'), flags=END_HEADERS | END_STREAM)),
    ('a timeout that is a word', ANSWER, HELLO + call(behind=((b'grpc-timeout', b'soon'),)) + message(b'')),
    ('a timeout of nine digits', ANSWER, HELLO + call(behind=((b'grpc-timeout', b'123456789S'),)) + message(b'')),
    ('an encoding that is none', ANSWER, HELLO + call(behind=((b'grpc-encoding', b'nobody'),)) + message(b'', compressed=1)),
    ('no message', ANSWER, HELLO + call(flags=END_HEADERS | END_STREAM)),
    ('two messages', ANSWER, HELLO + call() + message(b'', flags=0) + message(b'')),
    ('a message cut short', ANSWER, HELLO + call() + message(b'abc', length=10)),
    ('half the length of a message', ANSWER, HELLO + call() + frame(DATA, END_STREAM, 1, b'\0\0')),
    ('a message of 4 GiB', ANSWER, HELLO + call() + message(b'', flags=0, length=0xffffffff)),
    ('a compressed message', ANSWER, HELLO + call() + message(b'abc', compressed=1)),
    ('a flag that is none', ANSWER, HELLO + call() + message(b'abc', compressed=7)),
    ('metadata that is no base64', ANSWER, HELLO + call(behind=((b'x-bin', b'***'),)) + message(b'')),
]

AGENT = '/berth.agent.v1.AgentService/'
SCHEDULING = '/berth.scheduler.v1.SchedulingService/'
NAME = b'\x0a\x07default\x12\x06nobody'
GRPC_CASES = [
    ('an unknown method', 'UNIMPLEMENTED', AGENT + 'Nobody', b''),
    ('an unknown service', 'UNIMPLEMENTED', '/a.b.C/D', b''),
    ('a join of nothing', 'INVALID_ARGUMENT', AGENT + 'Join', b''),
    ('a join that is no message', 'INVALID_ARGUMENT', AGENT + 'Join', b'\xff\xff\xff'),
    ('a join with a field cut short', 'INVALID_ARGUMENT', AGENT + 'Join', b'\x0a\x7fabc'),
    ('a join with text that is no UTF-8', 'INVALID_ARGUMENT', AGENT + 'Join', b'\x0a\x02\xff\xfe'),
    ('a join with a token that is none', 'INVALID_ARGUMENT', AGENT + 'Join', b'\x0a\x06nobody\x22\x04\x08\x01\x10\x01'),
    ('a renewal by a person', 'UNAUTHENTICATED', AGENT + 'Renew', b''),
    ('a renewal that is no message', 'INVALID_ARGUMENT', AGENT + 'Renew', b'\x0b'),
    ('a session of a person', 'UNAUTHENTICATED', AGENT + 'Connect', b''),
    ('a schedule of nothing', 'INVALID_ARGUMENT', SCHEDULING + 'Schedule', b''),
    ('a schedule that is no message', 'INVALID_ARGUMENT', SCHEDULING + 'Schedule', b'\x08'),
    ('a schedule with a manifest of garbage', 'INVALID_ARGUMENT', SCHEDULING + 'Schedule', NAME + b'\x1a\x01{'),
    ('a schedule with a bad name', 'INVALID_ARGUMENT', SCHEDULING + 'Schedule', b'\x0a\x07default\x12\x03A B\x1a\x02{}'),
    ('an update of nothing', 'INVALID_ARGUMENT', SCHEDULING + 'Update', b''),
    ('a stop of what is not there', 'NOT_FOUND', SCHEDULING + 'Stop', NAME),
    ('a destroy that is no message', 'INVALID_ARGUMENT', SCHEDULING + 'Destroy', b'\x0c'),
    ('an attach with groups in groups', 'INVALID_ARGUMENT', SCHEDULING + 'Attach', b'\x2b' * 5_000),
    ('a watch that is no message', 'INVALID_ARGUMENT', SCHEDULING + 'Watch', b'\x0a\xff'),
]
