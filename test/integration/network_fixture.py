# SPDX-License-Identifier: Apache-2.0
"""Guests with networks for tests: a network namespace of the test's own, in which the machine runtime may make bridges although it
is not root, and an image that speaks DHCP."""

import glob
import json
import os
import shutil
import stat
import sys

import berth_fixture
import guest_fixture as machines

INSIDE = 'BERTH_TEST_NETWORK_NAMESPACE'

INIT = '''#!/bin/busybox sh
export PATH=/bin
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev; mount -t proc proc /proc; mount -t sysfs sys /sys
# Which of the first two needs the other depends on the kernel.
for m in virtio virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci failover net_failover virtio_net virtio_blk \
cdrom isofs; do insmod /$m.ko 2>/dev/null; done
stty -F /dev/ttyS0 -echo
ifconfig lo 127.0.0.1 up
echo hello from the guest
while read word rest; do case $word in
dhcp) ifconfig $rest up; udhcpc -i $rest -n -q -t 20 -T 1 -s /dhcp -x hostname:'$(reboot);`id`' >/dev/null 2>&1 || echo told nothing;;
six) for d in /sys/block/vd*; do [ "$(cat $d/serial)" = cidata ] && mount -t iso9660 -o ro /dev/${d##*/} /seed; done
a=$(sed -n 's/.*addresses: \\["\\([^"]*\\)".*/\\1/p' /seed/network-config); umount /seed; ifconfig $rest up
ip -6 address add $a dev $rest && echo configured $a end;;
ping) ping -c 1 -W 2 $rest >/dev/null 2>&1 && echo reached || echo not reached;;
do) eval "$rest"; echo done;;
esac; done </dev/ttyS0
'''

DHCP = '''#!/bin/busybox sh
[ $1 = bound ] || exit 0
ifconfig $interface $ip netmask $subnet
echo told $interface $ip $subnet $hostname >/dev/ttyS0
'''


def make_image(folder):
    kernel = sorted(glob.glob('/boot/vmlinuz-*-cloud-amd64'))[-1]
    version = os.path.basename(kernel).removeprefix('vmlinuz-')
    archive = machines.Archive()
    for name in ('bin', 'dev', 'proc', 'seed', 'sys'):
        archive.add(name, stat.S_IFDIR | 0o755)
    archive.add('bin/busybox', stat.S_IFREG | 0o755, machines.read('/bin/busybox'))
    for name in ('drivers/virtio/virtio', 'drivers/virtio/virtio_ring', 'drivers/virtio/virtio_pci_modern_dev',
                 'drivers/virtio/virtio_pci_legacy_dev', 'drivers/virtio/virtio_pci', 'net/core/failover',
                 'drivers/net/net_failover', 'drivers/net/virtio_net', 'drivers/block/virtio_blk', 'drivers/cdrom/cdrom',
                 'fs/isofs/isofs'):
        archive.add(os.path.basename(name) + '.ko', stat.S_IFREG | 0o644,
                    machines.read(f'/lib/modules/{version}/kernel/{name}.ko'))
    archive.add('dhcp', stat.S_IFREG | 0o755, DHCP.encode())
    archive.add('init', stat.S_IFREG | 0o755, INIT.encode())
    os.makedirs(folder)
    shutil.copy(kernel, os.path.join(folder, 'vmlinuz'))
    with open(os.path.join(folder, 'initramfs'), 'wb') as file:
        file.write(archive.bytes())
    with open(os.path.join(folder, 'cmdline'), 'w', encoding='utf-8') as file:
        file.write('console=ttyS0 quiet tsc=unstable no_timer_check\n')


def links():
    """{name: link} of everything but what every namespace has."""
    listed = json.loads(berth_fixture.run(['ip', '-j', 'link']).stdout)
    return {link['ifname']: link for link in listed if link['ifname'].startswith(('bn', 'bt'))}


def rules():
    return berth_fixture.run(['/usr/sbin/nft', 'list', 'ruleset']).stdout


def enter_namespace():
    """This program again, with a network of its own; returns inside of it."""
    if INSIDE in os.environ:
        berth_fixture.run(['ip', 'link', 'set', 'lo', 'up'])
        return
    berth_fixture.kubectl_paths()  # the first time it is fetched, for which there has to be a network
    rest = ['--net'] if os.geteuid() == 0 else ['--user', '--map-current-user', '--keep-caps', '--net']
    command = ['unshare', *rest, sys.executable, *sys.argv]
    os.execvpe(command[0], command, {**os.environ, INSIDE: '1'})
