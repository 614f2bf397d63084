#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks on a host with real guests: `berth runtime machine --networks bridge` and a libvirtd of the test's own, both not
root, in a network namespace of the test's own. Nothing of the host's network is touched."""

import json
import os
import pwd
import re
import shutil
import signal
import socket
import tempfile
import unittest

import berth_fixture
import fleet_fixture
import guest_fixture as machines
import network_fixture
from network_fixture import links, rules

DEADLINE_S = machines.DEADLINE_S


class NetworksTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp(prefix='berth-net-')
        cls.addClassCleanup(shutil.rmtree, cls.home, ignore_errors=True)
        network_fixture.make_image(os.path.join(cls.home, 'images', 'demo'))
        with open(os.path.join(cls.home, 'classes.yaml'), 'w', encoding='utf-8') as file:
            file.write(machines.MACHINE_CLASSES)
        cls.libvirt = machines.Libvirt(cls.home)
        cls.berth = [berth_fixture.binary()]
        rights = []
        if os.geteuid() == 0:
            os.chmod(cls.home, 0o755)
            cls.berth = [shutil.copy(berth_fixture.binary(), os.path.join(cls.home, 'berth'))]
            user = pwd.getpwnam(machines.GUEST_USER)
            for folder, _, names in os.walk(cls.home):
                for path in [folder, *(os.path.join(folder, name) for name in names)]:
                    os.chown(path, user.pw_uid, user.pw_gid)
            rights = machines.NETWORK_RIGHTS
        cls.libvirt.start()
        cls.addClassCleanup(cls.libvirt.kill)
        cls.addClassCleanup(lambda: [os.kill(pid, signal.SIGKILL) for pid in cls.libvirt.guests()])
        cls.socket = os.path.join(cls.home, 'sockets', 'machine.sock')
        cls.runtime = fleet_fixture.Process(
            'machine-runtime', cls.home, 'runtime', 'machine', '--socket', cls.socket, '--libvirt', cls.libvirt.uri,
            '--dir', os.path.join(cls.home, 'machines'), '--run-dir', os.path.join(cls.home, 'guests'),
            '--secrets-on-disk', '--classes', os.path.join(cls.home, 'classes.yaml'), '--images', os.path.join(cls.home, 'images'),
            '--local-disk', '64Mi', '--reserve-memory', '64Mi', '--overcommit-cpu', '8', '--acceleration', 'tcg', '--shutdown-grace', '2s',
            '--networks', 'bridge', command=[*machines.as_guest_user(), *rights, *cls.berth])
        cls.addClassCleanup(cls.runtime.kill)
        cls.start()

    @classmethod
    def start(cls):
        cls.runtime.start()
        berth_fixture.eventually(DEADLINE_S, lambda: cls.iri('version', check=False).returncode == 0,
                                 f'the machine runtime; {cls.runtime.log_tail()}')

    @classmethod
    def iri(cls, *words, check=True, input=None):
        return berth_fixture.run([*machines.as_guest_user(), *cls.berth, 'iri', *words, '--endpoint', f'unix:{cls.socket}'],
                                 check=check, input=input)

    def listed(self):
        return json.loads(self.iri('machines', '-o', 'json').stdout).get('machines', [])

    def create(self, uid, network, *ips, check=True):
        root = {'name': 'root', 'device': 'odx', 'localDisk': {'sizeBytes': '1048576', 'image': {'image': 'demo'}}}
        nic = {'name': 'primary', 'networkId': network, 'ips': list(ips)}
        body = {'kind': 'Machine', 'metadata': {'labels': {fleet_fixture.MACHINE_UID_LABEL: uid}},
                'spec': {'class': 'tiny', 'volumes': [root], 'networkInterfaces': [nic]}}
        answer = self.iri('create', '-f', '-', check=check, input=json.dumps(body))
        if not check:
            return answer
        return next(one['metadata']['id'] for one in self.listed()
                    if one['metadata']['labels'][fleet_fixture.MACHINE_UID_LABEL] == uid)

    def console(self, machine):
        try:
            return machines.read(os.path.join(self.home, 'machines', machine, 'console.log')).decode(errors='replace')
        except FileNotFoundError:
            return ''

    def says(self, machine, texts, behind=0):
        """What it has said, with one of the texts in it."""
        def look():
            said = self.console(machine)[behind:]
            return said if any(text in said for text in texts) else None
        return berth_fixture.eventually(
            DEADLINE_S, look,
            f'{machine} says one of {texts}: {self.console(machine)[-300:]!r}; {self.runtime.log_tail()}')

    def ask(self, machine, line, *answers):
        behind = len(self.console(machine))
        with socket.socket(socket.AF_UNIX) as console:
            console.connect(os.path.join(self.home, 'guests', machine, 'console.sock'))
            console.sendall(line.encode() + b'\n')
            return self.says(machine, answers, behind)

    def learns(self, machine, interface, address):
        """Perhaps not at once: without KVM on a busy host everything takes its time."""
        def ask():
            said = self.ask(machine, f'dhcp {interface}', 'told nothing', f'told {interface} ')
            if 'told nothing' in said:
                return False
            self.assertIn(f'told {interface} {address} ', said)
            return True
        berth_fixture.eventually(DEADLINE_S, ask, f'{machine} learns {address}')

    def reaches(self, machine, address):
        return 'not reached' not in self.ask(machine, f'ping {address}', 'reached\r\n')

    def must_reach(self, machine, address):
        berth_fixture.eventually(DEADLINE_S, lambda: self.reaches(machine, address), f'{machine} reaches {address}')

    def tell(self, machine, command):
        return self.ask(machine, f'do {command}', 'done')

    def test_guests_learn_their_addresses_and_reach_their_own_network_alone(self):
        refused = self.create('u-bad', 'net-a', '127.0.0.1', check=False)
        self.assertIn('127.0.0.1', refused.stderr)
        self.assertEqual((links(), rules()), ({}, ''))

        a1 = self.create('u-a1', 'net-a', '10.1.0.1')
        a2 = self.create('u-a2', 'net-a', '10.1.0.2')
        b1 = self.create('u-b1', 'net-b', '10.1.0.3', '192.168.5.1')
        for machine, address in ((a1, '10.1.0.1'), (a2, '10.1.0.2'), (b1, '10.1.0.3')):
            self.says(machine, ['hello from the guest'])
            self.learns(machine, 'eth0', address)
        self.assertEqual(len(links()), 5)

        self.must_reach(a1, '10.1.0.2')
        self.must_reach(a2, '10.1.0.1')
        self.assertFalse(self.reaches(b1, '10.1.0.1'))
        self.assertFalse(self.reaches(a1, '10.1.0.3'))

        self.speak_the_newer_protocol()
        self.spoofs(a1)
        self.tries_the_host(a1)
        self.gets_a_second_interface(a1, b1)
        self.survives_the_runtime(a1, a2)

        for machine in (a1, a2, b1):
            self.iri('delete', machine)
        berth_fixture.eventually(DEADLINE_S, lambda: not self.listed(), 'all are gone')
        self.assertEqual((links(), rules(), self.libvirt.guests()), ({}, '', []))
        # Nothing that guests said of themselves is in the log.
        self.assertNotIn('reboot', machines.read(self.runtime.log_path).decode(errors='replace'))
        self.runtime.stop()

    def speak_the_newer_protocol(self):
        """IPv6 addresses are told by the disk with the first configuration."""
        guests = {address: self.create(f'u-{address}', 'net-c', address) for address in ('fd00::1', 'fd00::2')}
        for address, machine in guests.items():
            self.says(machine, ['hello from the guest'])
            self.ask(machine, 'six eth0', f'configured {address}/64 end')
        self.must_reach(guests['fd00::1'], 'fd00::2')
        for machine in guests.values():
            self.iri('delete', machine)
        berth_fixture.eventually(DEADLINE_S, lambda: len(self.listed()) == 3, 'both are gone')

    def spoofs(self, guest):
        """Another address, then another MAC."""
        self.tell(guest, 'ifconfig eth0:1 10.1.0.77 netmask 255.0.0.0')
        self.assertFalse(self.reaches(guest, '-I 10.1.0.77 10.1.0.2'))
        self.must_reach(guest, '-I 10.1.0.1 10.1.0.2')
        self.tell(guest, 'ifconfig eth0:1 down; cat /sys/class/net/eth0/address >/mac; ifconfig eth0 down')
        self.tell(guest, 'ifconfig eth0 hw ether 52:54:00:00:00:99; ifconfig eth0 10.1.0.1 netmask 255.0.0.0 up')
        self.assertFalse(self.reaches(guest, '10.1.0.2'))
        self.assertIn('told nothing', self.ask(guest, 'dhcp eth0', 'told '))
        self.tell(guest, 'ifconfig eth0 down; ifconfig eth0 hw ether $(cat /mac); ifconfig eth0 up')
        self.learns(guest, 'eth0', '10.1.0.1')
        self.must_reach(guest, '10.1.0.2')

    def tries_the_host(self, guest):
        """An address of the host, at the bridge's own MAC."""
        berth_fixture.run(['ip', 'link', 'set', 'lo', 'up'])
        berth_fixture.run(['ip', 'address', 'add', '10.1.0.99/32', 'dev', 'lo'])
        bridges = [link for name, link in links().items() if name.startswith('bn')]
        with socket.create_server(('0.0.0.0', 0)) as service:
            port = service.getsockname()[1]
            for bridge in bridges:
                berth_fixture.run(['ip', 'route', 'replace', '10.1.0.1/32', 'dev', bridge['ifname']])
                self.tell(guest, f'arp -s 10.1.0.99 {bridge["address"]}')
                self.assertFalse(self.reaches(guest, '10.1.0.99'))
                self.tell(guest, f'echo knock | nc -w 2 10.1.0.99 {port}')
            service.settimeout(0)
            with self.assertRaises(BlockingIOError):
                service.accept()
            with socket.create_connection(('10.1.0.99', port), timeout=5):  # the host itself can
                service.settimeout(5)
                service.accept()[0].close()

    def gets_a_second_interface(self, guest, neighbour):
        """While it runs, in another network; and loses it."""
        before = set(links())
        self.iri('attach', guest, '--nic', 'second', '--network', 'net-b', '--ip', '192.168.5.2')
        self.assertEqual(len(set(links()) - before), 1)
        berth_fixture.eventually(DEADLINE_S, lambda: 'eth1' in self.tell(guest, 'ls /sys/class/net'), 'the guest has it')
        self.learns(guest, 'eth1', '192.168.5.2')
        self.tell(neighbour, 'ifconfig eth0:1 192.168.5.1 netmask 255.255.0.0')  # its second address
        self.must_reach(guest, '192.168.5.1')
        self.iri('detach', guest, '--nic', 'second')
        self.assertEqual(set(links()), before)
        berth_fixture.eventually(DEADLINE_S, lambda: 'eth1' not in self.tell(guest, 'ls /sys/class/net'),
                                 'the guest lets it go')

    def survives_the_runtime(self, guest, neighbour):
        """It is killed; guests do not notice, and what is nobody's goes when it is back."""
        self.runtime.kill()
        before = set(links())
        left = sorted(before)[0][:5] + 'a' * 10
        berth_fixture.run(['ip', 'link', 'add', left, 'type', 'bridge'])
        self.must_reach(guest, '10.1.0.2')
        self.assertFalse(self.reaches(guest, '10.1.0.3'))
        self.start()
        self.assertEqual(set(links()), before)
        self.learns(neighbour, 'eth0', '10.1.0.2')
        self.must_reach(neighbour, '10.1.0.1')


MACHINE = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {{name: {name}}}
spec:
  machineClassRef: {{name: tiny}}
  volumes:
  - {{name: root, device: odx, localDisk: {{sizeLimit: 1Mi, image: demo}}}}
  networkInterfaces:
  - name: primary
    ephemeral:
      networkInterfaceTemplate:
        spec:
          networkRef: {{name: lan}}
          ipFamilies: [IPv4]
          ips: [{{ephemeral: {{prefixTemplate: {{spec: {{ipFamily: IPv4, prefixLength: 32, parentRef: {{name: narrow}}}}}}}}}}]
'''


# An interface that a machine may get later, with an address that is given.
LATER = '''
apiVersion: networking.ironcore.dev/v1alpha1
kind: Network
metadata: {name: office}
spec: {providerID: 'example://rack'}
---
apiVersion: networking.ironcore.dev/v1alpha1
kind: NetworkInterface
metadata: {name: later-second}
spec: {networkRef: {name: office}, ipFamilies: [IPv4], ips: [{value: 10.9.1.7}]}
'''
MACHINE_LATER = '''
---
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {name: later}
spec:
  machineClassRef: {name: tiny}
  volumes:
  - {name: root, device: odx, localDisk: {sizeLimit: 1Mi, image: demo}}
'''


# Somebody who calls their networks as `office` is called, by its provider and by the server. The third interface shows that the
# guest could be heard.
INTRUDER_NIC = '''
---
apiVersion: networking.ironcore.dev/v1alpha1
kind: NetworkInterface
metadata: {{name: intruder-{network}}}
spec:
  networkRef: {{name: {network}}}
  ipFamilies: [IPv4]
  ips: [{{value: {address}}}]
  attributes: {{berth.dev/network-uid: '{uid}'}}
'''
INTRUDER_NETWORK = '''
---
apiVersion: networking.ironcore.dev/v1alpha1
kind: Network
metadata: {{name: {name}}}
spec: {{providerID: '{id}'}}
'''
INTRUDERS = {'same-id': '10.9.1.8', 'id-is-uid': '10.9.1.9', 'office': '10.9.1.10'}


class AddressesOfTheApi(machines.RealHostTestCase):
    """From a Prefix of the API into the guest, and back."""

    HOST = {'networks': True, 'image': network_fixture.make_image}

    def get(self, kind, name):
        return json.loads(self.server.kubectl('get', kind, name, '-o', 'json').stdout)

    def names(self, kind):
        return [item['metadata']['name'] for item in json.loads(self.server.kubectl('get', kind, '-o', 'json').stdout)['items']]

    def learns_its_address(self, name):
        berth_fixture.eventually(DEADLINE_S, lambda: 'hello from the guest' in self.server.berth(
            'logs', name, check=False).stdout, f'{name} boots; {self.get("machine", name).get("status")}')
        self.assertEqual(self.get('networkinterface', f'{name}-primary')['status']['ips'], ['10.9.0.1'])

        def told():
            with machines.Terminal(self.server, name) as terminal:
                said = terminal.ask('dhcp eth0', 'told ').replace('\r', ' ').replace('\n', ' ')
                return f'told eth0 10.9.0.1 255.0.0.0 {name} ' in said
        berth_fixture.eventually(DEADLINE_S, told, f'{name} learns its address and its hostname')

    def condition(self, name):
        found = self.get('machine', name).get('status', {}).get('conditions', [])
        return {c['type']: (c['status'], c.get('message', '')) for c in found}.get('NetworkInterfacesReady', ('', ''))

    def shell(self, name, command):
        with machines.Terminal(self.server, name) as terminal:
            return terminal.ask(f'do {command}', 'done')

    def test_an_interface_comes_and_goes_while_the_guest_runs(self):
        self.server.kubectl('apply', '-f', '-', input=LATER + MACHINE_LATER)
        berth_fixture.eventually(DEADLINE_S, lambda: 'hello from the guest' in self.server.berth(
            'logs', 'later', check=False).stdout, f'it boots; {self.get("machine", "later").get("status")}')
        guests = self.host.libvirt.guests()
        interfaces = [{'name': 'second', 'networkInterfaceRef': {'name': 'later-second'}}]
        self.patch('later', interfaces)
        berth_fixture.eventually(DEADLINE_S, lambda: 'eth0' in self.shell('later', 'ls /sys/class/net'), 'the guest has it')
        berth_fixture.eventually(DEADLINE_S, lambda: [
            (nic['name'], nic['state']) for nic in self.get('machine', 'later')['status'].get('networkInterfaces', [])] == [
                ('second', 'Attached')], f'it is told; {self.get("machine", "later")["status"]}')
        self.assertEqual(self.condition('later')[0], 'True')

        def told():
            with machines.Terminal(self.server, 'later') as terminal:
                return 'told eth0 10.9.1.7 ' in terminal.ask('dhcp eth0', 'told ').replace('\r', ' ').replace('\n', ' ')
        berth_fixture.eventually(DEADLINE_S, told, 'it learns its address')
        self.networks_of_the_same_name_are_apart('10.9.1.7')
        self.patch('later', [])
        berth_fixture.eventually(DEADLINE_S, lambda: 'eth0' not in self.shell('later', 'ls /sys/class/net'),
                                 'the guest lets it go')
        berth_fixture.eventually(DEADLINE_S, lambda: not self.get('machine', 'later')['status'].get('networkInterfaces'),
                                 'it is told')
        berth_fixture.eventually(DEADLINE_S, lambda: (links(), rules()) == ({}, ''), 'nothing of it is left on the host')
        self.assertEqual(self.host.libvirt.guests(), guests, 'it ran all the time')
        self.server.kubectl('delete', 'machine', 'later', '--timeout=60s', timeout=90)
        self.server.kubectl('delete', 'networkinterface', 'later-second', '--timeout=60s', timeout=90)
        self.server.kubectl('delete', 'network', 'office', '--timeout=60s', timeout=90)

    def networks_of_the_same_name_are_apart(self, victim):
        uid = self.get('network', 'office')['metadata']['uid']
        self.server.kubectl('apply', '-f', '-', input=''.join([
            INTRUDER_NETWORK.format(name='same-id', id='example://rack'), INTRUDER_NETWORK.format(name='id-is-uid', id=uid),
            *(INTRUDER_NIC.format(network=network, address=address, uid=uid) for network, address in INTRUDERS.items())]))
        self.server.kubectl('apply', '-f', '-', input=MACHINE_LATER.replace('later', 'intruder') + '  networkInterfaces:\n' + ''.join(
            f'  - {{name: {network}, networkInterfaceRef: {{name: intruder-{network}}}}}\n' for network in INTRUDERS))
        berth_fixture.eventually(DEADLINE_S, lambda: 'hello from the guest' in self.server.berth(
            'logs', 'intruder', check=False).stdout, f'it boots; {self.get("machine", "intruder").get("status")}')
        self.assertEqual(len([name for name in links() if name.startswith('bn')]), 3)
        found = {}

        def told(interface):
            with machines.Terminal(self.server, 'intruder') as terminal:
                match = re.search(r'told eth\d (\S+) ', terminal.ask(f'dhcp {interface}', 'told '))
            if match:
                found[match[1]] = interface
            return bool(match)
        for interface in ('eth0', 'eth1', 'eth2'):
            berth_fixture.eventually(DEADLINE_S, lambda interface=interface: told(interface), f'{interface} learns its address')

        def reaches(network):
            with machines.Terminal(self.server, 'intruder') as terminal:
                return 'not reached' not in terminal.ask(f'ping -I {found[INTRUDERS[network]]} {victim}', 'reached\r\n')
        berth_fixture.eventually(DEADLINE_S, lambda: reaches('office'), 'the guest is reached in its own network')
        self.assertFalse(reaches('same-id'))
        self.assertFalse(reaches('id-is-uid'))
        self.server.kubectl('delete', 'machine', 'intruder', '--timeout=60s', timeout=90)
        for network in INTRUDERS:
            self.server.kubectl('delete', 'networkinterface', f'intruder-{network}', '--timeout=60s', timeout=90)
        self.server.kubectl('delete', 'network', 'same-id', 'id-is-uid', '--timeout=60s', timeout=90)

    def patch(self, name, interfaces):
        self.server.kubectl('patch', 'machine', name, '--type=merge', '-p', json.dumps(
            {'spec': {'networkInterfaces': interfaces}}))

    def test_c25_one_address_for_one_guest_after_the_other(self):
        self.server.kubectl('apply', '-f', '-', input=machines.ONE_ADDRESS)
        self.server.kubectl('apply', '-f', '-', input=MACHINE.format(name='one'))
        self.learns_its_address('one')
        self.server.kubectl('apply', '-f', '-', input=MACHINE.format(name='two'))
        berth_fixture.eventually(DEADLINE_S, lambda: self.condition('two')[0] == 'False' and 'two-primary' in
                                 self.condition('two')[1], f'the second waits; {self.condition("two")}')
        berth_fixture.eventually(DEADLINE_S, lambda: 'narrow' in self.server.kubectl(
            'get', 'events', '--field-selector', 'involvedObject.kind=Machine,involvedObject.name=two').stdout,
                                 'the machine is told which Prefix is full')
        self.assertEqual(len(links()), 2)
        self.server.kubectl('delete', 'machine', 'one', '--timeout=60s', timeout=90)
        self.learns_its_address('two')
        self.server.kubectl('delete', 'machine', 'two', '--timeout=60s', timeout=90)
        berth_fixture.eventually(DEADLINE_S, lambda: (links(), rules(), self.host.leftovers()) == ({}, '', []),
                                 'nothing is left on the host')
        berth_fixture.eventually(DEADLINE_S, lambda: [self.names(kind) for kind in (
            'networkinterfaces', 'prefixallocations', 'prefixes')] == [[], [], ['narrow']], 'the address is given back')


if __name__ == '__main__':
    network_fixture.enter_namespace()
    unittest.main(verbosity=2)
