# SPDX-License-Identifier: Apache-2.0
"""An unmodified grpcio client against net/h2: PORT, CA, certificate and key (PEM) are its arguments.

Needs no generated code: a message is bytes here, with one field of text.
"""

import sys
import threading

import grpc

SERVICE = '/berth.net.testdata.EchoService/'
MEGABYTE = 1024 * 1024


def encode(text):
    data = text.encode()
    size, prefix = len(data), b'\x0a'
    while size >= 0x80:
        prefix += bytes([size % 0x80 + 0x80])
        size //= 0x80
    return prefix + bytes([size]) + data


def decode(message):
    if not message:
        return ''
    assert message[0] == 0x0a, message[:10]
    position = 1
    while message[position] >= 0x80:
        position += 1
    return message[position + 1:].decode()


def code_of(call):
    try:
        call()
    except grpc.RpcError as error:
        return error.code(), error.details()
    return grpc.StatusCode.OK, ''


def check_unary(channel):
    echo = channel.unary_unary(SERVICE + 'Echo', encode, decode)
    assert echo('hällo') == 'hällo'
    big = 'x' * (3 * MEGABYTE)
    assert echo(big) == big
    assert echo('metadata', metadata=(('x-word', 'one'), ('x-raw-bin', b'\x00\xff'))) == 'one 00ff'
    assert code_of(lambda: echo('missing')) == (grpc.StatusCode.NOT_FOUND, 'no such thing: 100 % ü')
    assert code_of(lambda: echo('slow', timeout=1))[0] == grpc.StatusCode.DEADLINE_EXCEEDED
    nothing = channel.unary_unary(SERVICE + 'Nothing', encode, decode)
    assert code_of(lambda: nothing('x'))[0] == grpc.StatusCode.UNIMPLEMENTED
    calls = [echo.future(str(i)) for i in range(200)]
    assert [call.result() for call in calls] == [str(i) for i in range(200)]


def check_streams(channel):
    chat = channel.stream_stream(SERVICE + 'Chat', encode, decode)
    assert list(chat(iter(str(i) for i in range(500)))) == [str(i) for i in range(500)]
    assert code_of(lambda: list(chat(iter(['fail']))))[0] == grpc.StatusCode.ABORTED
    repeat = channel.unary_stream(SERVICE + 'Repeat', encode, decode)
    assert list(repeat('x')) == [f'x{i}' for i in range(1000)]
    join = channel.stream_unary(SERVICE + 'Join', encode, decode)
    assert join(iter('abc' * 100)) == 'abc' * 100
    assert len(join('y' * 10_000 for _ in range(200))) == 2_000_000


def check_cancellation(channel):
    chat = channel.stream_stream(SERVICE + 'Chat', encode, decode)
    finished = threading.Event()

    def requests():
        yield 'one'
        finished.wait(20)

    call = chat(requests())
    assert next(call) == 'one'
    call.cancel()
    finished.set()
    assert code_of(lambda: next(call))[0] == grpc.StatusCode.CANCELLED


def main():
    port, authority, certificate, key = sys.argv[1:]
    credentials = grpc.ssl_channel_credentials(authority.encode(), key.encode(), certificate.encode())
    with grpc.secure_channel(f'localhost:{port}', credentials) as channel:
        check_unary(channel)
        check_streams(channel)
        check_cancellation(channel)
    print('all is well')


main()
