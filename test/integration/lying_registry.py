# SPDX-License-Identifier: Apache-2.0
"""A registry for tests that may lie, stop half-way and come back: TLS on loopback, everything in memory."""

import contextlib
import hashlib
import http.server
import json
import os
import ssl
import subprocess
import threading

TYPE = 'application/vnd.ironcore.image.'
MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json'
STALL_S = 300  # at most


def sha256(content):
    return 'sha256:' + hashlib.sha256(content).hexdigest()


def make_certificate(home):
    """An authority and what it has signed for 127.0.0.1."""
    def openssl(*words):
        subprocess.run(['openssl', *words], check=True, capture_output=True, cwd=home, timeout=60)
    key = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes')
    openssl('req', '-x509', *key, '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=test')
    openssl('req', *key, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=registry')
    with open(os.path.join(home, 'names'), 'w', encoding='utf-8') as file:
        file.write('subjectAltName=IP:127.0.0.1')
    openssl('x509', '-req', '-in', 'server.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2',
            '-extfile', 'names', '-out', 'server.pem')


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *unused):
        pass

    def do_GET(self):
        registry = self.server.registry
        registry.seen.append((self.path, self.headers.get('Range')))
        found = registry.items.get(self.path)
        if found is None:
            self.send_response(404)
            self.send_header('Content-Length', '0')
            self.end_headers()
            return
        kind, body = found
        begin = int((self.headers.get('Range') or 'bytes=0-').removeprefix('bytes=').rstrip('-'))
        if begin > 0 and begin >= len(body):
            self.send_response(416)
            self.send_header('Content-Length', '0')
            self.end_headers()
            return
        self.send_response(206 if begin else 200)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(body) - begin))
        if begin:
            self.send_header('Content-Range', f'bytes {begin}-{len(body) - 1}/{len(body)}')
        self.end_headers()
        if self.path == registry.breaks_at:
            # The plug is pulled: half of it is on its way, and nobody answers any more.
            self.wfile.write(body[begin:begin + len(body) // 2])
            self.wfile.flush()
            self.close_connection = True
            registry.shut()
            return
        if self.path == registry.stalls_at:
            middle = (begin + len(body)) // 2
            self.wfile.write(body[begin:middle])
            self.wfile.flush()
            registry.goes_on.wait(STALL_S)
            begin = middle
        self.wfile.write(body[begin:])


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *unused):
        pass  # clients that hang up


class LyingRegistry:
    """What it has is in `items`; what of it is not what its name says is the test's business."""

    def __init__(self, home):
        make_certificate(home)
        self.ca = os.path.join(home, 'ca.pem')
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(os.path.join(home, 'server.pem'), os.path.join(home, 'server.key'))
        self.items, self.seen, self.breaks_at, self._server, self.port = {}, [], None, None, 0
        # Of this, half of what is asked for comes until it goes on.
        self.stalls_at, self.goes_on = None, threading.Event()
        self.start()
        self.host = f'127.0.0.1:{self.port}'

    def start(self):
        self._server = Server(('127.0.0.1', self.port), Handler)
        self._server.registry = self
        self.port = self._server.server_address[1]
        self._server.socket = self._context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def shut(self):
        """Nobody is let in any more; from a handler, too."""
        server, self._server = self._server, None
        if server is not None:
            with contextlib.suppress(OSError):
                server.socket.close()
            threading.Thread(target=server.shutdown, daemon=True).start()

    def blob_path(self, name, content):
        return f'/v2/{name}/blobs/{sha256(content)}'

    def put_blob(self, name, content, sent=None):
        """A blob, or what is sent in its place."""
        self.items[self.blob_path(name, content)] = ('application/octet-stream', content if sent is None else sent)

    def push(self, name, tag, parts):
        """An image of {'rootfs': bytes}, under its tag and its digest."""
        layers = []
        for kind, content in parts.items():
            self.put_blob(name, content)
            layers.append({'mediaType': TYPE + kind, 'digest': sha256(content), 'size': len(content)})
        manifest = json.dumps({'schemaVersion': 2, 'mediaType': MANIFEST_TYPE, 'layers': layers}).encode()
        for each in (tag, sha256(manifest)):
            self.items[f'/v2/{name}/manifests/{each}'] = (MANIFEST_TYPE, manifest)
        return sha256(manifest)
