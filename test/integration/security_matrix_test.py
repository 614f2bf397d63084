#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nobody gets in without right credentials, and nobody does more than its roles say: who x verb x kind x domain."""

import base64
import datetime
import glob
import hashlib
import http.client
import json
import os
import secrets
import socket
import ssl
import stat
import unittest

import berth_fixture

RBAC = '/apis/rbac.authorization.k8s.io/v1'
TOKENS = '/api/v1/namespaces/berth-system/secrets'
LIST_ROLES = '/apis/rbac.authorization.k8s.io/v1/namespaces/blue/roles'
REFUSED = (401, 429)

CA_CONFIG = '''
[ca]
default_ca = berth
[berth]
new_certs_dir = {folder}
database = {folder}/index.txt
serial = {folder}/serial
default_md = sha256
policy = anything
x509_extensions = client
unique_subject = no
[anything]
organizationName = optional
commonName = supplied
[client]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = {usage}
'''


class Authority:
    """Signs certificates with the openssl program: with the server's own key, or with one made here."""

    def __init__(self, folder, pem=None):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.pem = pem or self.file('ca.pem')
        if pem is None:
            self.openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '30',
                         '-subj', '/CN=foreign', '-keyout', self.pem, '-out', self.file('ca.crt'))
            with open(self.pem, 'a') as out, open(self.file('ca.crt')) as certificate:
                out.write(certificate.read())
        open(self.file('index.txt'), 'w').close()

    def file(self, name):
        return os.path.join(self.folder, name)

    @staticmethod
    def openssl(*arguments):
        return berth_fixture.run(['openssl', *arguments])

    def issue(self, name, subject, *, begin=-300, end=3600, usage='clientAuth'):
        """(certificate file, key file), valid from now + begin to now + end, in seconds."""
        def at(seconds):
            moment = datetime.datetime.utcnow() + datetime.timedelta(seconds=seconds)
            return moment.strftime('%Y%m%d%H%M%SZ')

        key, request, certificate, config = (self.file(name + suffix) for suffix in ('.key', '.csr', '.crt', '.cnf'))
        with open(config, 'w') as file:
            file.write(CA_CONFIG.format(folder=self.folder, usage=usage))
        with open(self.file('serial'), 'w') as file:
            file.write(secrets.token_hex(8).upper() + '\n')
        self.openssl('req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
                     '-subj', subject, '-keyout', key, '-out', request)
        self.openssl('ca', '-batch', '-notext', '-config', config, '-cert', self.pem, '-keyfile', self.pem,
                     '-startdate', at(begin), '-enddate', at(end), '-in', request, '-out', certificate)
        return certificate, key


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def token_secret(user, groups='', expires=None):
    """A token's text and its Secret, as `berth token create` makes them."""
    identifier = ''.join(secrets.choice('bcdfghjkmnpqrstvwxz2456789') for _ in range(10))
    text = f'berth_{identifier}_{secrets.token_urlsafe(32)}'
    data = {'hash': hashlib.sha256(text.encode()).hexdigest(), 'user': user, 'groups': groups}
    if expires:
        data['expires'] = expires
    return text, {
        'apiVersion': 'v1',
        'kind': 'Secret',
        'metadata': {'name': f'token-{identifier}', 'namespace': 'berth-system'},
        'type': 'berth.dev/token',
        'data': {key: encoded(value) for key, value in data.items()},
    }


class SecurityMatrix(berth_fixture.ServerTestCase):
    """One server; people with roles in the namespace blue: view, edit, admin, and one without any."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.root = cls.server.client()
        pem = glob.glob(os.path.join(cls.server.data_dir, '**', 'ca.pem'), recursive=True)
        cls.ours = Authority(os.path.join(cls.server.home, 'ours'), pem[0])
        for namespace in ('blue', 'red'):
            cls.make('/api/v1/namespaces', {'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': namespace}})
        cls.tokens = {who: cls.make_token(who) for who in ('view', 'edit', 'admin', 'nobody')}
        for who in ('view', 'edit', 'admin'):
            cls.make(f'{RBAC}/namespaces/blue/rolebindings', cls.binding(who, who))
        cls.people = {who: cls.server.client(token=token) for who, token in cls.tokens.items()}
        cls.people['root'] = cls.root
        cls.people['anonymous'] = cls.server.client(anonymous=True)
        for who in ('view', 'edit', 'admin'):
            berth_fixture.eventually(10, lambda who=who: cls.people[who].get(
                '/api/v1/namespaces/blue/configmaps').status == 200, f'the rights of {who}')

    @classmethod
    def make(cls, path, body):
        answer = cls.root.post(path, body)
        if answer.status not in (201, 409):
            raise berth_fixture.Failure(f'{path}: {answer}')

    @classmethod
    def make_token(cls, user, **more):
        text, secret = token_secret(user, **more)
        cls.make(TOKENS, secret)
        return text

    @staticmethod
    def binding(name, role, user=None):
        return {
            'apiVersion': 'rbac.authorization.k8s.io/v1',
            'kind': 'RoleBinding',
            'metadata': {'name': name, 'namespace': 'blue'},
            'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'ClusterRole', 'name': role},
            'subjects': [{'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'User', 'name': user or name}],
        }

    def refused(self, client, path=LIST_ROLES):
        """401, or no TLS connection at all. 429 tells an address that fails often to slow down."""
        try:
            answer = client.get(path)
        except (OSError, http.client.HTTPException):
            return
        self.assertIn(answer.status, REFUSED, answer)
        if answer.status == 401:
            self.assertEqual(answer.json()['message'], 'Unauthorized')

    # Transport

    def test_nothing_answers_without_tls(self):
        with socket.create_connection(('127.0.0.1', self.server.port), 10) as plain:
            plain.sendall(b'GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n')
            plain.settimeout(10)
            try:
                answer = plain.recv(100)
            except ConnectionError:
                answer = b''
        self.assertNotIn(b'200', answer)

    def test_tls_before_1_3_is_refused(self):
        context = ssl.create_default_context(cadata=self.server.kubeconfig.ca_pem)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with socket.create_connection(('127.0.0.1', self.server.port), 10) as plain:
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                context.wrap_socket(plain, server_hostname='127.0.0.1')

    # Who

    def test_anonymous_sees_health_and_version_only(self):
        client = self.people['anonymous']
        for path in ('/livez', '/readyz', '/healthz', '/version'):
            self.assertEqual(client.get(path).status, 200, path)
        for path in ('/api', '/apis', '/metrics', '/openapi/v2', '/api/v1/namespaces', LIST_ROLES):
            self.assertIn(client.get(path).status, REFUSED, path)

    def test_malformed_and_wrong_tokens_are_refused_alike(self):
        good = self.tokens['view']
        wrong = good[:-1] + ('A' if good[-1] != 'A' else 'B')
        for token in ('x', 'berth_', good[:-1], good + 'x', wrong, good.upper(), 'berth_bcdfghjkmn_' + good[-43:],
                      hashlib.sha256(good.encode()).hexdigest()):
            with self.subTest(token[:20]):
                self.refused(self.server.client(token=token))
        for header in ('Basic eDp4', good, 'Bearer', 'Token ' + good):
            with self.subTest(header[:20]):
                self.refused(self.server.client(anonymous=True, headers={'Authorization': header}))

    def test_an_expired_token_is_refused(self):
        token = self.make_token('root', groups='system:masters', expires='2020-01-01T00:00:00Z')
        self.refused(self.server.client(token=token))

    def test_a_revoked_token_stops_working_within_a_second(self):
        text, secret = token_secret('root', groups='system:masters')
        self.make(TOKENS, secret)
        client = self.server.client(token=text)
        berth_fixture.eventually(10, lambda: client.get(LIST_ROLES).status == 200, 'the new token')
        self.assertEqual(self.root.delete(f'{TOKENS}/{secret["metadata"]["name"]}').status, 200)
        berth_fixture.eventually(1, lambda: client.get(LIST_ROLES).status in REFUSED, 'revocation')

    def test_certificates(self):
        theirs = Authority(os.path.join(self.server.home, 'theirs'))
        masters = '/O=system:masters/CN=eve'
        table = (
            ('ours', self.ours.issue('good', masters), True),
            ('foreign authority', theirs.issue('foreign', masters), False),
            ('expired', self.ours.issue('expired', masters, begin=-7200, end=-3600), False),
            ('not yet valid', self.ours.issue('early', masters, begin=3600, end=7200), False),
            ('for servers', self.ours.issue('server', masters, usage='serverAuth'), False),
        )
        for what, certificate, good in table:
            with self.subTest(what):
                client = self.server.client(certificate=certificate)
                if good:
                    self.assertEqual(client.get(LIST_ROLES).status, 200)
                else:
                    self.refused(client)

    def test_groups_of_a_certificate_count(self):
        client = self.server.client(certificate=self.ours.issue('plain', '/O=dev/CN=ann'))
        answer = client.get(LIST_ROLES)
        self.assertEqual(answer.status, 403)
        self.assertIn('User "ann" cannot list resource "roles"', answer.json()['message'])

    # What: 403 exactly where the table says no, through every spelling of every domain.

    DOMAINS = ('ironcore.dev', 'OpenKCM.dev', 'openkcm.dev')
    ROLES = ('nobody', 'view', 'edit', 'admin', 'root')

    def collections(self, namespace):
        for domain in self.DOMAINS:
            yield 'object', f'/apis/compute.{domain}/v1alpha1/namespaces/{namespace}/machines'
            yield 'object', f'/apis/storage.{domain}/v1alpha1/namespaces/{namespace}/volumes'
        yield 'object', f'/api/v1/namespaces/{namespace}/configmaps'
        yield 'secret', f'/api/v1/namespaces/{namespace}/secrets'
        yield 'policy', f'{RBAC}/namespaces/{namespace}/roles'

    def least_role(self, kind, verb, namespace):
        """The least powerful of ROLES that may; an independent reading of what the roles promise."""
        if namespace != 'blue':
            return 'root'
        if kind == 'policy':
            return 'admin'
        if kind == 'secret':
            return 'edit'
        return 'view' if verb in ('get', 'list') else 'edit'

    def attempt(self, client, verb, collection):
        """A request that changes nothing, whatever its answer."""
        thing = collection + '/there-is-none'
        if verb == 'list':
            return client.get(collection)
        if verb == 'get':
            return client.get(thing)
        if verb == 'create':
            return client.post(collection, {}, dryRun='All')
        if verb == 'update':
            return client.put(thing, {}, dryRun='All')
        if verb == 'patch':
            return client.patch(thing, {}, dryRun='All')
        if verb == 'delete':
            return client.delete(thing, dryRun='All')
        return client.delete(collection, dryRun='All', labelSelector='there=is-none')

    def test_who_verb_kind_domain(self):
        for namespace in ('blue', 'red'):
            for kind, collection in self.collections(namespace):
                for verb in ('list', 'get', 'create', 'update', 'patch', 'delete', 'deletecollection'):
                    least = self.ROLES.index(self.least_role(kind, verb, namespace))
                    for who, client in self.people.items():
                        status = self.attempt(client, verb, collection).status
                        what = f'{who} {verb} {collection}: {status}'
                        if who == 'anonymous':
                            self.assertIn(status, REFUSED, what)
                        elif self.ROLES.index(who) >= least:
                            self.assertNotIn(status, (401, 403), what)
                            self.assertLess(status, 500, what)
                        else:
                            self.assertEqual(status, 403, what)

    def test_forbidden_names_the_canonical_group(self):
        answer = self.people['nobody'].get('/apis/compute.OpenKCM.dev/v1alpha1/namespaces/blue/machines')
        self.assertEqual(answer.json()['message'],
                         'machines.compute.ironcore.dev is forbidden: User "nobody" cannot list resource "machines" '
                         'in API group "compute.ironcore.dev" in the namespace "blue"')

    def test_a_forged_continue_leads_to_no_other_namespace(self):
        """A token is only text. Its author sees and deletes in the namespace of the request, or nothing."""
        classes = '/apis/compute.ironcore.dev/v1alpha1/machineclasses'
        self.make(classes, {'metadata': {'name': 'forged'}, 'capabilities': {'cpu': '1', 'memory': '1Gi'}})
        for namespace in ('aaa', 'zzz'):
            self.make('/api/v1/namespaces', {'metadata': {'name': namespace}})
            self.make(f'/api/v1/namespaces/{namespace}/secrets', {'metadata': {'name': f'of-{namespace}'}})
            self.make(f'/apis/compute.ironcore.dev/v1alpha1/namespaces/{namespace}/machines', {
                'metadata': {'name': f'of-{namespace}'}, 'spec': {'machineClassRef': {'name': 'forged'}, 'power': 'Off'}})
        eve = self.server.client(token=self.make_token('eve'))
        binding = self.binding('eve', 'edit')
        binding['metadata']['namespace'] = 'zzz'
        self.make(f'{RBAC}/namespaces/zzz/rolebindings', binding)
        own = '/api/v1/namespaces/zzz/secrets'
        berth_fixture.eventually(10, lambda: eve.get(own).status == 200, 'the rights of eve')
        version = eve.get(own).json()['metadata']['resourceVersion']
        # Something newer of each kind, so that the token's state is one of the past.
        self.assertEqual(eve.post(own, {'metadata': {'name': 'newer'}}).status, 201)
        machines = [f'/apis/compute.{domain}/v1alpha1/namespaces/zzz/machines' for domain in self.DOMAINS]
        self.assertEqual(eve.post(machines[0], {'metadata': {'name': 'newer'}, 'spec': {
            'machineClassRef': {'name': 'forged'}, 'power': 'Off'}}).status, 201)
        for collection in (own, *machines):
            for revision in (version, '0', eve.get(collection).json()['metadata']['resourceVersion']):
                for after in ('a', 'aaa/a', 'blue/z', 'zzz', 'zzzz/a', '~'):
                    token = base64.urlsafe_b64encode(f'1:{revision}:{after}'.encode()).decode()
                    for answer in (eve.get(collection, **{'continue': token}),
                                   eve.get(collection, **{'continue': token}, limit='1'),
                                   eve.delete(collection, **{'continue': token})):
                        self.assertEqual(answer.status, 400, f'{collection} {revision}:{after}: {answer}')
                        self.assertNotIn('items', answer.json())
            # Where the token may lead: further in its own namespace.
            token = base64.urlsafe_b64encode(f'1:{version}:zzz/a'.encode()).decode()
            names = {item['metadata']['name'] for item in eve.get(collection, **{'continue': token}).json()['items']}
            self.assertEqual(names, {'of-zzz'}, collection)
        # A watch has no pages, and all namespaces are a right of their own.
        token = base64.urlsafe_b64encode(f'1:{version}:a'.encode()).decode()
        for event in eve.watch(own, **{'continue': token}, timeoutSeconds='1'):
            self.assertEqual(event['object']['metadata']['namespace'], 'zzz')
        self.assertEqual(eve.get('/api/v1/secrets', **{'continue': token}).status, 403)
        self.assertEqual(eve.delete('/api/v1/namespaces/aaa/secrets', **{'continue': token}).status, 403)
        everything = self.root.get('/api/v1/secrets', **{'continue': token}).json()['items']
        self.assertLessEqual({'of-aaa', 'of-zzz'}, {item['metadata']['name'] for item in everything})

    def everywhere(self, role):
        """Somebody who has the role in the whole cluster."""
        user = 'wide-' + role.replace(':', '-')
        client = self.server.client(token=self.make_token(user))
        binding = self.binding(user, role)
        del binding['metadata']['namespace']
        self.make(f'{RBAC}/clusterrolebindings', {**binding, 'kind': 'ClusterRoleBinding'})
        berth_fixture.eventually(10, lambda: client.get(TOKENS).status == 200, f'the rights of {user}')
        return client

    def test_the_servers_own_records_are_not_for_everybody_who_edits(self):
        """Who may write every ConfigMap and Lease takes no revocation back and deposes no leader."""
        wide = self.everywhere('edit')
        maps, leases = ('/api/v1/namespaces/berth-system/configmaps',
                        '/apis/coordination.k8s.io/v1/namespaces/berth-system/leases')
        self.make(maps, {'metadata': {'name': 'revoked-users'}})
        for name in ('revoked-hosts', 'authority', 'cluster', 'cluster-status', 'host-x'):
            self.assertEqual(wide.post(maps, {'metadata': {'name': name}}, dryRun='All').status, 403, name)
        # Whether they are there or not: the keys of a host, and what releases the brake.
        for name in ('host-x', 'cluster-status'):
            for answer in (wide.patch(f'{maps}/{name}', {'data': {'override': 'x'}}), wide.delete(f'{maps}/{name}')):
                self.assertEqual(answer.status, 403, f'{name}: {answer}')
        for path in (f'{maps}/cluster', f'{leases}/scheduler'):
            berth_fixture.eventually(10, lambda path=path: self.root.get(path).status == 200, path)
        for path in (f'{maps}/revoked-users', f'{maps}/cluster', f'{leases}/scheduler'):
            held = self.root.get(path).json()
            for answer in (wide.put(path, held), wide.patch(path, {'metadata': {'labels': {'a': 'b'}}}), wide.delete(path)):
                self.assertEqual(answer.status, 403, f'{path}: {answer}')
                self.assertIn('cannot administer', answer.json()['message'])
            self.assertNotEqual(self.root.patch(path, {'metadata': {'labels': {'a': 'b'}}}, dryRun='All').status, 403, path)
        for collection in (maps, leases):
            self.assertEqual(wide.delete(collection).status, 403, collection)
        self.assertEqual(wide.post(maps, {'metadata': {'name': 'mine'}}).status, 201)
        self.assertEqual(wide.delete(f'{maps}/mine').status, 200)

    def test_who_writes_secrets_lets_no_host_in(self):
        """A join token says which hosts it makes, and whose names they take."""
        made = json.loads(self.server.berth('pool', 'join-token', 'alpha', '-o', 'json').stdout)['name']
        path = f'{TOKENS}/{made}'
        held = self.root.get(path).json()
        fresh = {'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': 'join-token-bcdfghjkmn'},
                 'type': held['type'], 'data': held['data']}
        self.make(TOKENS, {'metadata': {'name': 'plain'}, 'stringData': {'a': 'b'}})
        self.addCleanup(self.root.delete, f'{TOKENS}/plain')
        for role in ('edit', 'admin', 'berth:legacy-poollet'):
            who = self.everywhere(role)
            for what, answer in (
                    ('create', who.post(TOKENS, fresh)),
                    ('try', who.post(TOKENS, fresh, dryRun='All')),
                    ('create under another name', who.post(TOKENS, {**fresh, 'metadata': {'name': 'other'}})),
                    ('create under any name', who.post(TOKENS, {**fresh, 'metadata': {'generateName': 'join-token-'}})),
                    ('create without the type', who.post(TOKENS, {**fresh, 'type': 'Opaque'})),
                    ('apply', who.patch(f'{TOKENS}/join-token-bcdfghjkmn', fresh, fieldManager='x',
                                        content_type='application/apply-patch+yaml')),
                    ('patch', who.patch(path, {'stringData': {'replacement': 'allowed'}})),
                    ('update', who.put(path, held)),
                    ('delete', who.delete(path)),
                    ('delete all', who.delete(TOKENS))):
                self.assertEqual(answer.status, 403, f'{role} {what}: {answer}')
            self.assertIn('cannot administer', who.post(TOKENS, fresh).json()['message'])
            # The type of a Secret cannot change at all.
            self.assertIn(who.patch(f'{TOKENS}/plain', {'type': held['type']}).status, (403, 422), role)
            self.assertEqual(who.patch(f'{TOKENS}/plain', {'stringData': {'by': 'x'}}).status, 200, role)
        self.assertEqual(self.root.get(path).json(), held)
        self.assertEqual(self.root.patch(path, {'metadata': {'labels': {'a': 'b'}}}, dryRun='All').status, 200)
        self.assertEqual(self.root.delete(path).status, 200)

    def test_health_tells_each_check(self):
        client = self.people['anonymous']
        self.assertEqual(client.get('/readyz', verbose='').text, '[+]ping ok\n[+]store ok\nreadyz check passed\n')
        self.assertEqual(client.get('/livez', verbose='true').text, '[+]ping ok\nlivez check passed\n')
        self.assertEqual(client.get('/readyz/store').text, 'ok')
        self.assertEqual(client.get('/readyz/nobody').status, 404)

    def test_a_quota_holds_through_every_domain(self):
        """A limit written in one spelling stops machines that are created through any other."""
        self.make('/api/v1/namespaces', {'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': 'narrow'}})
        self.make('/apis/compute.ironcore.dev/v1alpha1/machineclasses', {
            'metadata': {'name': 'any'}, 'capabilities': {'cpu': '1', 'memory': '1Gi'}})
        for written in (*self.DOMAINS, 'OPENKCM.DEV'):
            quotas = f'/apis/core.{written}/v1alpha1/namespaces/narrow/resourcequotas'
            self.assertEqual(self.root.post(quotas, {
                'metadata': {'name': 'none'}, 'spec': {'hard': {f'count/machines.compute.{written}': '0'}}}).status, 201)
            used = {'count/machines.compute.ironcore.dev': '0'}
            berth_fixture.eventually(10, lambda quotas=quotas, used=used: self.root.get(
                f'{quotas}/none').json()['status'].get('used') == used, f'the count of {written}')
            for domain in self.DOMAINS:
                answer = self.root.post(f'/apis/compute.{domain}/v1alpha1/namespaces/narrow/machines', {
                    'metadata': {'name': 'one'}, 'spec': {'machineClassRef': {'name': 'any'}}})
                self.assertEqual(answer.status, 403, f'{written} {domain}: {answer}')
            self.assertEqual(self.root.delete(f'{quotas}/none').status, 200)
        refused = self.root.post('/apis/core.ironcore.dev/v1alpha1/namespaces/narrow/resourcequotas', {
            'metadata': {'name': 'none'}, 'spec': {'hard': {'count/machines.compute.example.com': '0'}}})
        self.assertEqual(refused.status, 422, refused)

    def test_a_review_says_no_in_so_many_words(self):
        """Clients read status.allowed without asking whether there is a status."""
        reviews = '/apis/authorization.k8s.io/v1'
        attributes = {'verb': 'delete', 'group': 'compute.ironcore.dev', 'resource': 'machines', 'namespace': 'blue'}
        for path, spec in (
                (f'{reviews}/subjectaccessreviews', {'user': 'nobody', 'resourceAttributes': attributes}),
                (f'{reviews}/namespaces/blue/localsubjectaccessreviews',
                 {'user': 'nobody', 'resourceAttributes': attributes}),
                (f'{reviews}/selfsubjectaccessreviews', {'resourceAttributes': attributes}),
                (f'{reviews}/selfsubjectaccessreviews', {'nonResourceAttributes': {'verb': 'get', 'path': '/none'}})):
            for body in ({'spec': spec}, {'spec': spec, 'status': {'allowed': True}}):
                who = self.root if 'user' in spec else self.people['nobody']
                answer = who.post(path, body)
                self.assertEqual(answer.status, 201, answer)
                self.assertIs(answer.json()['status']['allowed'], False, answer)
        answer = self.people['nobody'].post(f'{reviews}/selfsubjectrulesreviews', {'spec': {'namespace': 'red'}})
        for rules in ('resourceRules', 'nonResourceRules'):
            self.assertIsInstance(answer.json()['status'][rules], list, answer)
        self.assertIs(answer.json()['status']['incomplete'], False, answer)

    def test_everybody_learns_who_they_are_and_delegates_whose_token_this_is(self):
        authentication = '/apis/authentication.k8s.io/v1'
        answer = self.people['nobody'].post(f'{authentication}/selfsubjectreviews', {})
        self.assertEqual(answer.status, 201, answer)
        nobody = {'username': 'nobody', 'groups': ['system:authenticated']}
        self.assertEqual(answer.json()['status'], {'userInfo': nobody})
        answer = self.people['anonymous'].post(f'{authentication}/selfsubjectreviews', {})
        self.assertIn(answer.status, REFUSED, answer)

        def review(token, **more):
            made = self.root.post(f'{authentication}/tokenreviews', {'spec': {'token': token, **more}})
            self.assertEqual(made.status, 201, made)
            self.assertNotIn(token, str(made), 'an answer shows no token')
            return made.json().get('status', {})

        token = self.tokens['nobody']
        self.assertEqual(review(token), {'authenticated': True, 'user': nobody})
        self.assertEqual(review(token, audiences=['other', 'berth']),
                         {'authenticated': True, 'user': nobody, 'audiences': ['berth']})
        self.assertIn('"berth" only', review(token, audiences=['other'])['error'])
        self.assertEqual(review(token[:-1] + ('a' if token[-1] != 'a' else 'b')), {})
        self.assertEqual(review('nonsense'), {})
        self.assertEqual(self.root.post(f'{authentication}/tokenreviews', {'spec': {}}).status, 422)
        answer = self.people['admin'].post(f'{authentication}/tokenreviews', {'spec': {'token': token}})
        self.assertEqual(answer.status, 403, answer)

    # Growing more powerful

    def test_nobody_hands_out_more_than_it_has(self):
        bindings = f'{RBAC}/namespaces/blue/rolebindings'
        admin = self.people['admin']
        self.assertEqual(admin.post(bindings, self.binding('more', 'cluster-admin', 'admin')).status, 403)
        self.assertEqual(admin.post(bindings, self.binding('same', 'view', 'carl')).status, 201)
        role = {'apiVersion': 'rbac.authorization.k8s.io/v1', 'kind': 'Role',
                'metadata': {'name': 'all', 'namespace': 'blue'},
                'rules': [{'apiGroups': ['*'], 'resources': ['*'], 'verbs': ['*']}]}
        self.assertEqual(admin.post(f'{RBAC}/namespaces/blue/roles', role).status, 403)

    def test_writing_secrets_is_not_enough_to_make_tokens(self):
        self.make(f'{RBAC}/namespaces/berth-system/rolebindings', {
            **self.binding('token-writer', 'edit', 'nobody'),
            'metadata': {'name': 'token-writer', 'namespace': 'berth-system'}})
        self.addCleanup(self.root.delete, f'{RBAC}/namespaces/berth-system/rolebindings/token-writer')
        client = self.people['nobody']
        berth_fixture.eventually(10, lambda: client.get(TOKENS).status == 200, 'the right to read')
        _, stolen = token_secret('root', groups='system:masters')
        self.assertEqual(client.post(TOKENS, stolen).status, 403)
        # Nor by bending an existing one, in any way of writing.
        text, mine = token_secret('victim')
        self.make(TOKENS, mine)
        path = f'{TOKENS}/{mine["metadata"]["name"]}'
        self.assertEqual(client.patch(path, {'stringData': {'user': 'nobody2'}}).status, 403)
        self.assertEqual(client.patch(path, {'data': {'groups': encoded('system:masters')}}).status, 403)
        self.assertEqual(client.put(path, {**mine, 'stringData': {'groups': 'system:masters'}}).status, 403)

    def test_impersonation_is_honoured_or_refused(self):
        machines = '/apis/compute.ironcore.dev/v1alpha1/namespaces/blue/machines'
        for user, status in (('view', 200), ('nobody', 403)):
            client = self.server.client(headers={'Impersonate-User': user})
            self.assertEqual(client.get(machines).status, status, user)
        for headers in ({'Impersonate-User': 'root'}, {'impersonate-user': 'view'},
                        {'Impersonate-User': 'view', 'Impersonate-Group': 'system:masters'}):
            client = self.server.client(token=self.tokens['view'], headers=headers)
            self.assertEqual(client.get(machines).status, 403, headers)
        client = self.server.client(headers={'Impersonate-Group': 'system:masters'})
        self.assertEqual(client.get(machines).status, 400)

    def test_berth_impersonates_as_kubectl_does(self):
        for flags, allowed in ((['--as=view'], True), (['--as=nobody'], False),
                               (['--as=nobody', '--as-group=system:masters'], True)):
            ended = self.server.berth('get', 'machines', '-n', 'blue', *flags, check=False)
            self.assertEqual(ended.returncode == 0, allowed, f'{flags}: {ended}')
        self.assertIn('User "nobody" cannot list resource "machines"',
                      self.server.berth('get', 'machines', '-n', 'blue', '--as=nobody', check=False).stderr)

    # What is left behind

    def test_files_are_for_their_owner_only(self):
        found = 0
        for folder, _, files in os.walk(self.server.data_dir):
            for name in files:
                path = os.path.join(folder, name)
                if name == 'kubeconfig' or name.startswith('audit.log') or name.endswith(('.pem', '.crt', '.key')):
                    self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600, path)
                    found += 1
                if name == 'ca.pem':
                    self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700, folder)
        self.assertGreaterEqual(found, 5)

    def test_secrets_and_tokens_never_reach_logs(self):
        value = 'moonlight-' + secrets.token_hex(8)
        path = '/api/v1/namespaces/blue/secrets'
        self.make(path, {'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': 'quiet'},
                         'stringData': {'password': value}})
        self.assertEqual(self.people['edit'].get(f'{path}/quiet').status, 200)
        self.root.post(path, {'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': 'NOT VALID'},
                              'stringData': {'password': value}})
        audit = glob.glob(os.path.join(self.server.data_dir, '**', 'audit.log'), recursive=True)[0]

        def audited():
            with open(audit) as file:
                return [line for line in file if '"name":"quiet"' in line and '"verb":"get"' in line]

        self.assertIn('"user":"edit"', berth_fixture.eventually(5, audited, 'the record of the read')[0])
        with open(audit) as file:
            texts = {'audit': file.read(), 'log': self.server.log()}
        for where, text in texts.items():
            for secret in (value, encoded(value), *self.tokens.values()):
                self.assertNotIn(secret, text, where)


if __name__ == '__main__':
    unittest.main()
