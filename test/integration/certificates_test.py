#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Certificate requests: asked for, approved by who may, signed, and worth what they say; pools renew theirs by themselves."""

import base64
import os
import unittest

import berth_fixture

REQUESTS = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
RBAC = '/apis/rbac.authorization.k8s.io/v1'
CLIENT = 'kubernetes.io/kube-apiserver-client'
POOL = 'compute.ironcore.dev:system:machinepool:'
POOLS = 'compute.ironcore.dev:system:machinepools'


class CertificatesTestCase(berth_fixture.ServerTestCase):
    """Asks for certificates and takes them."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.root = cls.server.client()
        cls.bind('bootstrapper', 'berth:pool-bootstrapper')

    @classmethod
    def role(cls, name, rule):
        made = cls.root.post(f'{RBAC}/clusterroles', {'metadata': {'name': name}, 'rules': [rule]})
        assert made.status == 201, made

    @classmethod
    def bind(cls, user, role):
        made = cls.root.post(f'{RBAC}/clusterrolebindings', {
            'metadata': {'name': f'{user}-{role.replace(":", "-")}'},
            'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'ClusterRole', 'name': role},
            'subjects': [{'kind': 'User', 'apiGroup': 'rbac.authorization.k8s.io', 'name': user}]})
        assert made.status == 201, made

    def client_of(self, who):
        return self.server.client(headers={'Impersonate-User': who})

    def file(self, name):
        return os.path.join(self.server.home, name)

    def request(self, name, subject):
        """A PEM request with a key of its own."""
        berth_fixture.run(['openssl', 'req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
                           '-subj', subject, '-keyout', self.file(f'{name}.key'), '-out', self.file(f'{name}.csr')])
        with open(self.file(f'{name}.csr'), 'rb') as file:
            return base64.b64encode(file.read()).decode()

    def ask(self, name, subject, *, who='asker', signer=CLIENT, **more):
        return self.client_of(who).post(REQUESTS, {
            'metadata': {'name': name},
            'spec': {'request': self.request(name, subject), 'signerName': signer, 'usages': ['client auth'],
                     'username': 'forged', **more}})

    def decide(self, who, name, decision):
        found = self.root.get(f'{REQUESTS}/{name}').json()
        found.setdefault('status', {}).setdefault('conditions', []).append(
            {'type': decision, 'status': 'True', 'reason': 'Test'})
        return self.client_of(who).put(f'{REQUESTS}/{name}/approval', found)

    def signed(self, name):
        """(certificate file, key file) once it is signed."""
        def look():
            return self.root.get(f'{REQUESTS}/{name}').json().get('status', {}).get('certificate')
        pem = berth_fixture.eventually(10, look, f'the certificate of {name}')
        path = self.file(f'{name}.crt')
        with open(path, 'wb') as file:
            file.write(base64.b64decode(pem))
        return path, self.file(f'{name}.key')


class Certificates(CertificatesTestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.role('asker', {'apiGroups': ['certificates.k8s.io'], 'resources': ['certificatesigningrequests'],
                           'verbs': ['create', 'get']})
        cls.bind('asker', 'asker')
        cls.bind('approver', 'asker')
        cls.bind('signless', 'asker')
        cls.role('approver', {'apiGroups': ['certificates.k8s.io'], 'resources': ['certificatesigningrequests/approval'],
                              'verbs': ['update']})
        cls.role('of-clients', {'apiGroups': ['certificates.k8s.io'], 'resources': ['signers'],
                                'resourceNames': ['kubernetes.io/*'], 'verbs': ['approve']})
        cls.bind('approver', 'approver')
        cls.bind('approver', 'of-clients')
        cls.bind('signless', 'approver')

    def test_a_person_gets_a_certificate_that_says_who_they_are(self):
        made = self.ask('jane', '/O=devs/CN=jane', expirationSeconds=3600)
        self.assertEqual(made.status, 201, made)
        self.assertEqual(made.json()['spec']['username'], 'asker', 'the server says who asked')
        self.assertEqual(self.decide('asker', 'jane', 'Approved').status, 403)
        refused = self.decide('signless', 'jane', 'Approved')
        self.assertEqual(refused.status, 403, refused)
        self.assertIn('signers', refused.json()['message'])
        self.assertEqual(self.decide('approver', 'jane', 'Approved').status, 200)
        jane = self.server.client(certificate=self.signed('jane'))
        who = jane.post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {}).json()['status']['userInfo']
        self.assertEqual(who, {'username': 'jane', 'groups': ['devs', 'system:authenticated']})
        self.assertEqual(self.decide('approver', 'jane', 'Denied').status, 422, 'what is approved is not denied')

    def test_a_certificate_that_is_revoked_opens_nothing(self):
        path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'

        def holder(name, user):
            self.assertEqual(self.ask(name, f'/CN={user}').status, 201)
            self.assertEqual(self.decide('approver', name, 'Approved').status, 200)
            client = self.server.client(certificate=self.signed(name))
            self.assertEqual(client.post(path, {}).status, 201)
            return client

        lost, other = holder('lost-1', 'lost@example.org'), holder('lost-2', 'kept')
        self.server.berth('certificate', 'revoke', 'lost@example.org')
        # On the connection that was open all the time.
        berth_fixture.eventually(10, lambda: lost.post(path, {}).status == 401, 'the end of the certificate')
        self.assertEqual(other.post(path, {}).status, 201)
        serial = berth_fixture.run(['openssl', 'x509', '-in', self.file('lost-2.crt'), '-noout', '-serial']).stdout
        self.server.berth('certificate', 'revoke', '--serial', serial.strip().split('=')[1])
        berth_fixture.eventually(10, lambda: other.post(path, {}).status == 401, 'the end of the other one')
        # A restart does not forget, and removing the entries takes it back.
        for client in (lost, other, self.root):
            client.close()
        self.server.restart()
        self.assertEqual(lost.post(path, {}).status, 401)
        self.server.kubectl('delete', 'configmap', 'revoked-users', '-n', 'berth-system')
        berth_fixture.eventually(10, lambda: lost.post(path, {}).status == 201, 'the certificate is good again')

    def test_a_watch_ends_with_the_credentials_that_it_was_opened_with(self):
        """Of a certificate and of a token: an ERROR event that says 401, and the end, long before the watch's own."""
        self.role('watcher', {'apiGroups': [''], 'resources': ['configmaps'], 'verbs': ['list', 'watch']})
        self.bind('seen', 'watcher')
        self.bind('unseen', 'watcher')
        self.assertEqual(self.ask('seen', '/CN=seen').status, 201)
        self.assertEqual(self.decide('approver', 'seen', 'Approved').status, 200)
        made = self.server.berth('token', 'create', 'unseen')
        token, number = made.stdout.strip(), made.stderr.split('berth token revoke ')[1].split()[0]
        path = '/api/v1/namespaces/berth-system/configmaps'
        clients = {'seen': self.server.client(certificate=self.signed('seen')), 'unseen': self.server.client(token=token)}
        watches = {user: client.watch(path, idle_s=30) for user, client in clients.items()}
        for watch in watches.values():
            self.assertEqual(next(watch)['type'], 'ADDED')
        self.server.berth('certificate', 'revoke', 'seen')
        self.server.berth('token', 'revoke', number)
        for user, watch in watches.items():
            last = list(watch)[-1]
            self.assertEqual((last['type'], last['object'].get('code')), ('ERROR', 401), f'{user}: {last}')

    def test_approval_decides_and_nothing_else(self):
        self.assertEqual(self.ask('more', '/CN=more').status, 201)
        found = self.root.get(f'{REQUESTS}/more').json()
        found['status'] = {'certificate': base64.b64encode(b'mine').decode(),
                           'conditions': [{'type': 'Approved', 'status': 'True'}]}
        refused = self.client_of('approver').put(f'{REQUESTS}/more/approval', found)
        self.assertEqual(refused.status, 403, refused)
        found['status'] = {'conditions': [{'type': 'Approved', 'status': 'True'}]}
        refused = self.root.put(f'{REQUESTS}/more/status', found)
        self.assertEqual(refused.status, 403, refused)
        self.assertEqual(self.decide('approver', 'more', 'Denied').status, 200)
        self.assertNotIn('certificate', self.root.get(f'{REQUESTS}/more').json()['status'])

    def test_nobody_asks_for_more_than_a_client(self):
        for name, subject, spec in (('a', '/O=system:masters/CN=a', {}), ('b', '/CN=system:admin', {}),
                                    ('c', '/O=berth:hosts/CN=berth:host:x', {}), ('d', '/O=devs', {}),
                                    ('e', '/CN=e', {'usages': ['client auth', 'cert sign']}),
                                    ('f', '/CN=f', {'expirationSeconds': 60}),
                                    ('g', '/CN=g', {'usages': ['nonsense']}),
                                    ('h', '/CN=h', {'signerName': 'nowhere'}),
                                    ('i', f'/O={POOLS}/O=devs/CN={POOL}x', {})):
            refused = self.ask(f'bad-{name}', subject, **spec)
            self.assertEqual(refused.status, 422, f'{name}: {refused}')
        refused = self.root.post(REQUESTS, {'metadata': {'name': 'none'}, 'spec': {
            'request': base64.b64encode(b'nothing').decode(), 'signerName': CLIENT, 'usages': ['client auth']}})
        self.assertEqual(refused.status, 422, refused)
        self.assertEqual(self.ask('not-allowed', '/CN=x', who='nobody').status, 403)
        # Signers of others have rules of their own.
        self.assertEqual(self.ask('others', '/CN=system:node:x', signer='example.com/nodes').status, 201)

    def test_a_pool_is_bootstrapped_by_right_and_renews_itself(self):
        asked = self.ask('alpha', f'/O={POOLS}/CN={POOL}alpha', who='bootstrapper', signer='berth.dev/pool-client')
        self.assertEqual(asked.status, 201, asked)
        alpha = self.server.client(certificate=self.signed('alpha'))
        who = alpha.post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {}).json()['status']['userInfo']
        self.assertEqual(who['username'], f'{POOL}alpha')
        # With its certificate it gets the next one, of its own name only, and sees nobody else's.
        body = {'metadata': {'name': 'alpha-2'}, 'spec': {
            'request': self.request('alpha-2', f'/O={POOLS}/CN={POOL}alpha'), 'signerName': CLIENT,
            'usages': ['digital signature', 'client auth']}}
        made = alpha.post(REQUESTS, body)
        self.assertEqual(made.status, 201, made)
        self.signed('alpha-2')
        self.assertEqual(alpha.get(f'{REQUESTS}/alpha-2').status, 200)
        self.assertEqual(alpha.get(f'{REQUESTS}/alpha').status, 403)
        self.assertEqual(alpha.get(REQUESTS).status, 403)
        body['metadata']['name'] = 'beta'
        body['spec']['request'] = self.request('beta', f'/O={POOLS}/CN={POOL}beta')
        self.assertEqual(alpha.post(REQUESTS, body).status, 403)
        # Who may only ask waits for a person.
        self.assertEqual(self.ask('gamma', f'/O={POOLS}/CN={POOL}gamma').status, 201)
        self.assertEqual(self.ask('delta', '/CN=delta').status, 201)
        self.assertEqual(self.decide('approver', 'delta', 'Approved').status, 200)
        self.signed('delta')  # which came after gamma
        self.assertEqual(self.root.get(f'{REQUESTS}/gamma').json()['status'], {})

    def test_kubectl_decides_and_learns_who_it_is(self):
        for version in berth_fixture.kubectl_paths():
            name = 'kubectl-' + version.replace('.', '-')
            self.assertEqual(self.ask(name, f'/CN={name}').status, 201)
            self.assertIn('approved', self.server.kubectl('certificate', 'approve', name, version=version).stdout)
            self.signed(name)
        said = self.server.kubectl('auth', 'whoami', check=False)
        if 'unknown command' not in said.stderr:  # before 1.26
            self.assertRegex(said.stdout, r'Username +berth-admin')

    def test_berth_certificate_decides(self):
        for name in ('cli-1', 'cli-2'):
            self.assertEqual(self.ask(name, f'/CN={name}').status, 201)
        self.assertEqual(self.server.berth('certificate', 'approve', 'cli-1', '-m', 'known').stdout,
                         'certificatesigningrequest/cli-1 approved\n')
        self.assertEqual(self.server.berth('certificate', 'deny', 'cli-2').stdout,
                         'certificatesigningrequest/cli-2 denied\n')
        self.signed('cli-1')
        wrong = self.server.berth('certificate', 'deny', 'cli-1', check=False)
        self.assertEqual(wrong.returncode, 4, 'a conflict')
        self.assertIn('is approved already', wrong.stderr)
        table = self.server.berth('get', 'csr', 'cli-1', 'cli-2').stdout
        self.assertRegex(table, r'cli-1 +kubernetes.io/kube-apiserver-client +asker +<none> +Approved,Issued')
        self.assertRegex(table, r'cli-2 +kubernetes.io/kube-apiserver-client +asker +<none> +Denied')


class CertificatesOfOtherDomains(CertificatesTestCase):
    """Pools are known by the canonical domain, whatever it is, and by its aliases, in any spelling."""

    SERVER_ARGUMENTS = ('--domains', 'Example.org,ironcore.dev')

    def test_a_pool_joins_and_renews_under_each_domain(self):
        group, pools = '/apis/compute.example.org/v1alpha1/machinepools', {}
        for number, domain in enumerate(('Example.org', 'example.org', 'ironcore.dev')):
            name = f'pool-{number}'
            user, subject = (f'compute.{domain}:system:machinepool:{name}',
                             f'/O=compute.{domain}:system:machinepools/CN=compute.{domain}:system:machinepool:{name}')
            asked = self.ask(name, subject, who='bootstrapper', signer='berth.dev/pool-client')
            self.assertEqual(asked.status, 201, asked)
            made = self.root.post(group, {'metadata': {'name': name}, 'spec': {'providerID': f'test://{name}'}})
            self.assertEqual(made.status, 201, made)
            pools[name] = self.server.client(certificate=self.signed(name))
            who = pools[name].post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {}).json()['status']['userInfo']
            self.assertEqual(who['username'], user)
            body = {'metadata': {'name': f'{name}-2'}, 'spec': {
                'request': self.request(f'{name}-2', subject), 'signerName': CLIENT, 'usages': ['client auth']}}
            made = pools[name].post(REQUESTS, body)
            self.assertEqual(made.status, 201, made)
            pools[name] = self.server.client(certificate=self.signed(f'{name}-2'))
        for name, client in pools.items():
            for domain in ('example.org', 'ironcore.dev'):
                path = f'/apis/compute.{domain}/v1alpha1/machinepools'
                seen = {other: client.get(f'{path}/{other}').status for other in pools}
                self.assertEqual(seen, {other: 200 if other == name else 403 for other in pools}, f'{name}, {domain}')

    def test_the_name_of_a_pool_of_no_domain_of_ours_is_reserved(self):
        refused = self.ask('stranger', '/O=compute.example.com:system:machinepools/CN=compute.example.com:system:machinepool:a',
                           who='bootstrapper')
        self.assertEqual(refused.status, 422, refused)
        self.assertIn('compute.Example.org:system:machinepool:NAME', refused.json()['message'])


if __name__ == '__main__':
    unittest.main()
