#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A whole host with the libvirtd of a system (qemu:///system), where everything of ours is root and QEMU is another user: a
machine of the API with a disk, an interface and a configuration, an encrypted disk that comes, grows and goes while the guest
runs, a snapshot of a disk in use, what the guest uses, and in the end nothing is left."""

import glob
import json
import os
import pwd
import stat
import unittest

import berth_fixture
import guest_fixture
import network_fixture
from guest_fixture import DEADLINE_S

MI = 1 << 20
LUKS_DEADLINE_S = 300  # hardening a key is seconds of computing, several times

VOLUME = '''
apiVersion: storage.ironcore.dev/v1alpha1
kind: Volume
metadata: {{name: {name}}}
spec:
  volumeClassRef: {{name: plain}}
  resources: {{storage: {size}}}
'''
SECRETS = '''
apiVersion: v1
kind: Secret
metadata: {name: config}
stringData: {ignition.yaml: "#cloud-config\\nmotd: it is configured\\n"}
---
apiVersion: v1
kind: Secret
metadata: {name: crypt}
stringData: {encryptionKey: correct-horse-battery}
'''
MACHINE = '''
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {name: web}
spec:
  machineClassRef: {name: tiny}
  ignitionRef: {name: config}
  guestConfig: {hostname: other}
  networkInterfaces:
  - name: primary
    ephemeral:
      networkInterfaceTemplate:
        spec:
          networkRef: {name: lan}
          ipFamilies: [IPv4]
          ips: [{ephemeral: {prefixTemplate: {spec: {ipFamily: IPv4, prefixLength: 32, parentRef: {name: narrow}}}}}]
  volumes:
  - {name: root, device: odx, localDisk: {sizeLimit: 1Mi, image: demo}}
  - {name: data, device: oda, volumeRef: {name: data}}
'''
SNAPSHOT = '''
apiVersion: storage.ironcore.dev/v1alpha1
kind: VolumeSnapshot
metadata: {name: kept}
spec: {volumeRef: {name: data}}
'''
LATE = '  - {name: late, device: odb, volumeRef: {name: late}}\n'

# What it types into its guest.
DISKS = 'for d in /sys/block/vd*; do echo disk ${d##*/} $(cat $d/size) $(cat $d/serial); done'
SEED = ('for d in /sys/block/vd*; do [ "$(cat $d/serial)" = cidata ] && mount -t iso9660 -o ro /dev/${d##*/} /seed; done; '
        'cat /seed/*; umount /seed')
ON_DISK = 'for d in /sys/block/vd*; do [ "$(cat $d/serial)" = {name} ] && {command}; done'


@unittest.skipUnless(os.geteuid() == 0, 'a libvirtd of a system is root')
class SystemHost(guest_fixture.RealHostTestCase):
    HOST = {'system': True, 'networks': True, 'image': network_fixture.make_image}

    def get(self, kind, name):
        return json.loads(self.server.kubectl('get', kind, name, '-o', 'json').stdout)

    def apply(self, text):
        self.server.kubectl('apply', '-f', '-', input=text)

    def delete(self, kind, name):
        self.server.kubectl('delete', kind, name, '--timeout=60s', timeout=90)

    def shell(self, command, answer='done'):
        with guest_fixture.Terminal(self.server, 'web') as terminal:
            return terminal.ask(f'do {command}', answer)

    def on_disk(self, name, command):
        return self.shell(ON_DISK.format(name=name, command=command))

    def sees(self, text):
        berth_fixture.eventually(LUKS_DEADLINE_S, lambda: text in self.shell(DISKS),
                                 f'the guest sees {text}; {self.get("machine", "web").get("status")}\n{self.host.logs()}')

    def test_1_a_machine_of_the_api_runs_as_it_was_asked_for(self):
        self.apply(guest_fixture.ONE_ADDRESS)
        self.apply(SECRETS)
        self.apply(VOLUME.format(name='data', size='8Mi'))
        self.apply(MACHINE)
        berth_fixture.eventually(DEADLINE_S, lambda: 'hello from the guest' in self.server.berth(
            'logs', 'web', check=False).stdout, f'it boots\n{self.host.logs()}')
        berth_fixture.eventually(DEADLINE_S, lambda: self.get('machine', 'web')['status']['state'] == 'Running', 'it is told')
        (guest,) = self.host.libvirt.guests()
        self.assertEqual(pwd.getpwuid(os.stat(f'/proc/{guest}').st_uid).pw_name, guest_fixture.GUEST_USER)
        self.assertEqual({process: pwd.getpwuid(os.stat(f'/proc/{process.process.pid}').st_uid).pw_name
                          for process in self.host.processes}, dict.fromkeys(self.host.processes, 'root'))
        said = self.shell(SEED)
        for part in ('local-hostname: "other"', '#cloud-config', 'motd: it is configured'):
            self.assertIn(part, said)
        self.sees(f' {8 * MI // 512} data')
        self.on_disk('data', 'echo something-to-keep | dd of=/dev/${d##*/} conv=fsync')

        def told():
            with guest_fixture.Terminal(self.server, 'web') as terminal:
                return 'told eth0 10.9.0.1 ' in terminal.ask('dhcp eth0', 'told ').replace('\r', ' ').replace('\n', ' ')
        berth_fixture.eventually(DEADLINE_S, told, 'it learns its address')

    def test_2_an_encrypted_disk_comes_grows_and_goes_while_the_guest_runs(self):
        pids = self.host.libvirt.guests()
        self.apply(VOLUME.format(name='late', size='4Mi') + '  encryption: {secretRef: {name: crypt}}\n')
        self.apply(MACHINE + LATE)
        self.sees(f' {4 * MI // 512} late')
        self.on_disk('late', 'echo something-else | dd of=/dev/${d##*/} conv=fsync')
        self.server.kubectl('patch', 'volume', 'late', '--type=merge', '-p', '{"spec": {"resources": {"storage": "6Mi"}}}')
        self.sees(f' {6 * MI // 512} late')
        self.assertIn('something-else', self.on_disk('late', 'head -n 1 /dev/${d##*/}'))
        self.apply(MACHINE)
        berth_fixture.eventually(DEADLINE_S, lambda: 'late' not in self.shell(DISKS), 'the guest lets it go')
        self.assertIn('something-to-keep', self.on_disk('data', 'head -n 1 /dev/${d##*/}'))
        self.assertEqual(self.host.libvirt.guests(), pids)

    def test_3_its_disk_is_copied_while_it_runs_and_the_copy_is_ours_again(self):
        pids = self.host.libvirt.guests()
        self.apply(SNAPSHOT)
        berth_fixture.eventually(DEADLINE_S, lambda: self.get('volumesnapshot', 'kept').get('status', {}).get(
            'state') == 'Ready', f'it is taken; {self.get("volumesnapshot", "kept")}\n{self.host.logs()}')
        (copy,) = glob.glob(self.host.path('disks', 'snapshots', '*', 'disk.*'))
        seen = os.stat(copy)
        self.assertEqual((seen.st_uid, seen.st_gid, stat.S_IMODE(seen.st_mode)), (0, 0, 0o600))
        self.assertIn(b'something-to-keep', guest_fixture.read(copy))
        self.assertEqual(self.host.libvirt.guests(), pids)
        self.delete('volumesnapshot', 'kept')

    def test_4_what_the_guest_uses_is_told(self):
        berth_fixture.eventually(DEADLINE_S, lambda: all(self.used('web').get(what, 0) > 0 for what in (
            'cpu', 'memory', 'disk', 'networkReceivedBytes', 'networkSentBytes')), f'all of it; {self.used("web")}')

    def test_5_whoever_looks_after_it_may_be_killed(self):
        pids = self.host.libvirt.guests()

        def contacts():
            return guest_fixture.read(self.host.poollet.log_path).count(b'in contact')
        before = contacts()
        for process in (self.host.poollet, self.host.machine_runtime, self.host.volume_runtime, self.host.libvirt):
            process.kill()
        self.host.start()
        # Until then the server shows what it knew before, and finds nobody to ask for a console.
        berth_fixture.eventually(DEADLINE_S, lambda: contacts() > before, f'its host is back\n{self.host.logs()}')
        berth_fixture.eventually(DEADLINE_S, lambda: self.host.is_ready() and self.get('machine', 'web')['status'][
            'state'] == 'Running', f'it is found again\n{self.host.logs()}')
        self.assertIn('something-to-keep', self.on_disk('data', 'head -n 1 /dev/${d##*/}'))
        self.assertEqual(self.host.libvirt.guests(), pids)

    def test_6_nothing_is_left(self):
        self.delete('machine', 'web')
        for name in ('data', 'late'):
            self.delete('volume', name)

        def left():
            secrets = [line for line in self.host.libvirt.virsh('secret-list').splitlines()[2:] if line]
            return [*self.host.leftovers(), *network_fixture.links(), *network_fixture.rules().splitlines(), *secrets]
        berth_fixture.eventually(DEADLINE_S, lambda: not left(), f'nothing is left; {left()}')
        self.assertEqual([], json.loads(self.server.kubectl('get', 'networkinterfaces', '-o', 'json').stdout)['items'])
        for process in self.host.processes:
            process.stop()


if __name__ == '__main__':
    network_fixture.enter_namespace()
    unittest.main(verbosity=2)
