#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client of the IRI that somebody else wrote: Python's gRPC as it comes, and messages made at run time from IronCore's
published field numbers below, not from our .proto files. The real runtimes answer it with the documented states and codes."""

import os
import re
import shutil
import sys
import tempfile
import time
import unittest
import urllib.parse
from http.client import HTTPConnection

try:
    import grpc
except ImportError:  # Debian's package belongs to Debian's interpreter
    if sys.executable == '/usr/bin/python3':
        raise
    os.execv('/usr/bin/python3', ['/usr/bin/python3', *sys.argv])

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import berth_fixture
import fleet_fixture
import guest_fixture
import network_fixture
import volume_runtime_test
import web_socket
from guest_fixture import DEADLINE_S

MI = 1 << 20
UID = 'machinepoollet.ironcore.dev/machine-uid'
VOLUME_UID = 'volumepoollet.ironcore.dev/volume-uid'
SNAPSHOT_UID = 'volumepoollet.ironcore.dev/volume-snapshot-uid'

# package: messages as `Name { field:type=number, ... }`; enums are int32 on the wire as well.
PUBLISHED = {
    'meta.v1alpha1': '''
ObjectMetadata { id:string=1, annotations:map<string,string>=2, labels:map<string,string>=3, generation:int64=4,
  created_at:int64=5, deleted_at:int64=6 }''',
    'event.v1alpha1': '''
EventSpec { involved_object_meta:meta.v1alpha1.ObjectMetadata=1, reason:string=2, message:string=3, type:string=4,
  event_time:int64=5, action:string=6 }
Event { spec:EventSpec=2 }''',
    'machine.v1alpha1': '''
MachineFilter { id:string=1, label_selector:map<string,string>=2 }
EventFilter { id:string=1, label_selector:map<string,string>=2, events_from_time:int64=3, events_to_time:int64=4 }
ImageSpec { image:string=1 }
LocalDisk { size_bytes:int64=1, image:ImageSpec=2 }
VolumeConnection { driver:string=1, handle:string=2, attributes:map<string,string>=3, secret_data:map<string,bytes>=4,
  encryption_data:map<string,bytes>=5, effective_storage_bytes:int64=6 }
Volume { name:string=1, device:string=2, local_disk:LocalDisk=4, connection:VolumeConnection=5 }
NetworkInterface { name:string=1, network_id:string=2, ips:repeated string=3, attributes:map<string,string>=4 }
GuestConfig { hostname:string=1 }
MachineSpec { power:int32=1, class:string=2, ignition_data:bytes=3, volumes:repeated Volume=4,
  network_interfaces:repeated NetworkInterface=5, guest_config:GuestConfig=6 }
VolumeStatus { name:string=1, handle:string=2, state:int32=3 }
NetworkInterfaceStatus { name:string=1, handle:string=2, state:int32=3 }
Conditions { type:string=1, status:string=2, reason:string=3, message:string=4, last_transition_time:int64=5 }
MachineStatus { observed_generation:int64=1, state:int32=2, image_ref:string=3, volumes:repeated VolumeStatus=4,
  network_interfaces:repeated NetworkInterfaceStatus=5, machine_conditions:repeated Conditions=6 }
Machine { metadata:meta.v1alpha1.ObjectMetadata=1, spec:MachineSpec=2, status:MachineStatus=3 }
MachineClassCapabilities { resources:map<string,int64>=1 }
MachineClass { name:string=1, capabilities:MachineClassCapabilities=2 }
MachineClassStatus { machine_class:MachineClass=1, quantity:int64=2 }
VersionRequest { version:string=1 }
VersionResponse { runtime_name:string=1, runtime_version:string=2 }
ListMachinesRequest { filter:MachineFilter=1 }
ListMachinesResponse { machines:repeated Machine=1 }
ListEventsRequest { filter:EventFilter=1 }
ListEventsResponse { events:repeated event.v1alpha1.Event=1 }
CreateMachineRequest { machine:Machine=1 }
CreateMachineResponse { machine:Machine=1 }
DeleteMachineRequest { machine_id:string=1 }
DeleteMachineResponse { }
UpdateMachineAnnotationsRequest { machine_id:string=1, annotations:map<string,string>=2 }
UpdateMachineAnnotationsResponse { }
UpdateMachinePowerRequest { machine_id:string=1, power:int32=2 }
UpdateMachinePowerResponse { }
AttachVolumeRequest { machine_id:string=1, volume:Volume=2 }
AttachVolumeResponse { }
DetachVolumeRequest { machine_id:string=1, name:string=2 }
DetachVolumeResponse { }
UpdateVolumeRequest { machine_id:string=1, volume:Volume=2 }
UpdateVolumeResponse { }
AttachNetworkInterfaceRequest { machine_id:string=1, network_interface:NetworkInterface=2 }
AttachNetworkInterfaceResponse { }
DetachNetworkInterfaceRequest { machine_id:string=1, name:string=2 }
DetachNetworkInterfaceResponse { }
StatusRequest { }
StatusResponse { machine_class_status:repeated MachineClassStatus=1 }
ExecRequest { machine_id:string=1 }
ExecResponse { url:string=1 }''',
    'volume.v1alpha1': '''
VolumeFilter { id:string=1, label_selector:map<string,string>=2 }
VolumeResources { storage_bytes:int64=1 }
EncryptionSpec { secret_data:map<string,bytes>=1 }
ImageDataSource { image:string=1, architecture:string=2 }
SnapshotDataSource { snapshot_id:string=1 }
VolumeDataSource { image_data_source:ImageDataSource=1, snapshot_data_source:SnapshotDataSource=2 }
VolumeSpec { class:string=2, resources:VolumeResources=3, encryption:EncryptionSpec=4, volume_data_source:VolumeDataSource=5 }
VolumeAccess { driver:string=1, handle:string=2, attributes:map<string,string>=3, secret_data:map<string,bytes>=4 }
VolumeStatus { state:int32=1, access:VolumeAccess=2, resources:VolumeResources=3 }
Volume { metadata:meta.v1alpha1.ObjectMetadata=1, spec:VolumeSpec=2, status:VolumeStatus=3 }
VolumeClassCapabilities { tps:int64=1, iops:int64=2 }
VolumeClass { name:string=1, capabilities:VolumeClassCapabilities=2 }
VolumeClassStatus { volume_class:VolumeClass=1, quantity:int64=2 }
VersionRequest { version:string=1 }
VersionResponse { runtime_name:string=1, runtime_version:string=2 }
ListVolumesRequest { filter:VolumeFilter=1 }
ListVolumesResponse { volumes:repeated Volume=1 }
CreateVolumeRequest { volume:Volume=1 }
CreateVolumeResponse { volume:Volume=1 }
ExpandVolumeRequest { volume_id:string=1, resources:VolumeResources=2 }
ExpandVolumeResponse { }
DeleteVolumeRequest { volume_id:string=1 }
DeleteVolumeResponse { }
EventFilter { id:string=1, label_selector:map<string,string>=2, events_from_time:int64=3, events_to_time:int64=4 }
ListEventsRequest { filter:EventFilter=1 }
ListEventsResponse { events:repeated event.v1alpha1.Event=1 }
VolumeSnapshotSpec { volume_id:string=1 }
VolumeSnapshotStatus { state:int32=1, size:int64=2 }
VolumeSnapshot { metadata:meta.v1alpha1.ObjectMetadata=1, spec:VolumeSnapshotSpec=2, status:VolumeSnapshotStatus=3 }
VolumeSnapshotFilter { id:string=1, label_selector:map<string,string>=2 }
ListVolumeSnapshotsRequest { filter:VolumeSnapshotFilter=1 }
ListVolumeSnapshotsResponse { volume_snapshots:repeated VolumeSnapshot=1 }
CreateVolumeSnapshotRequest { volume_snapshot:VolumeSnapshot=1 }
CreateVolumeSnapshotResponse { volume_snapshot:VolumeSnapshot=1 }
DeleteVolumeSnapshotRequest { volume_snapshot_id:string=1 }
DeleteVolumeSnapshotResponse { }
StatusRequest { }
StatusResponse { volume_class_status:repeated VolumeClassStatus=1 }''',
}
ON, OFF = 0, 1
PENDING, RUNNING, STOPPED = 0, 1, 5  # of machines
ATTACHED = 1  # of volumes and interfaces of machines
AVAILABLE = 1  # of volumes
READY = 1  # of snapshots

SCALARS = {'string': 9, 'bytes': 12, 'int64': 3, 'int32': 5}


def add_field(message, name, kind, number, package):
    field = message.field.add(name=name, number=number, label=1)
    if kind.startswith('repeated '):
        field.label, kind = 3, kind.removeprefix('repeated ')
    if kind.startswith('map<'):
        key, value = kind[4:-1].split(',')
        entry = message.nested_type.add(name=''.join(word.title() for word in name.split('_')) + 'Entry')
        entry.options.map_entry = True
        add_field(entry, 'key', key, 1, package)
        add_field(entry, 'value', value, 2, package)
        field.label, field.type, field.type_name = 3, 11, f'.{package}.{message.name}.{entry.name}'
    elif kind in SCALARS:
        field.type = SCALARS[kind]
    else:
        field.type, field.type_name = 11, f'.{kind}' if '.' in kind else f'.{package}.{kind}'


def load_messages():
    """{'machine.v1alpha1.Machine': class}."""
    pool = descriptor_pool.DescriptorPool()
    for package, text in PUBLISHED.items():
        file = descriptor_pb2.FileDescriptorProto(name=f'{package}.published', package=package, syntax='proto3')
        file.dependency.extend(f'{other}.published' for other in PUBLISHED if f'{other}.' in text)
        for name, fields in re.findall(r'(\w+) \{([^}]*)\}', text):
            message = file.message_type.add(name=name)
            for field, kind, number in re.findall(r'(\w+):([\w.]+(?: [\w.]+)?(?:<[^>]*>)?)=(\d+)', fields):
                add_field(message, field, kind, int(number), package)
        pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return {f'{package}.{name}': factory.GetPrototype(pool.FindMessageTypeByName(f'{package}.{name}'))
            for package, text in PUBLISHED.items() for name in re.findall(r'(\w+) \{', text)}


MESSAGES = load_messages()


class Runtime:
    """A service of the IRI on a unix socket."""

    def __init__(self, package, service, socket):
        self.package, self.service = package, service
        self.channel = grpc.insecure_channel(f'unix:{socket}')

    def make(self, message, /, **fields):
        return MESSAGES[f'{self.package}.{message}'](**fields)

    def call(self, method, /, **fields):
        answer = MESSAGES[f'{self.package}.{method}Response']
        ask = self.channel.unary_unary(f'/{self.package}.{self.service}/{method}',
                                       lambda request: request.SerializeToString(), answer.FromString)
        return ask(self.make(f'{method}Request', **fields), timeout=DEADLINE_S)

    def code(self, method, /, **fields):
        try:
            self.call(method, **fields)
        except grpc.RpcError as error:
            return error.code()
        return grpc.StatusCode.OK


class Plain:
    """What web_socket.WebSocket needs of a client."""

    headers = {}

    def __init__(self, host, port):
        self.host, self.port = host, port

    def connect(self):
        return HTTPConnection(self.host, self.port, timeout=DEADLINE_S)


def chosen_by_filter(test, events, involved, labels, begun):
    """Those of an object that are listed for its id, its labels and their time, and none for others."""
    listed = events(id=involved)
    test.assertTrue(listed)
    for one in listed:
        test.assertTrue(int(begun) <= one.spec.event_time <= time.time(), f'seconds: {one.spec.event_time}')
    test.assertEqual({one.spec.involved_object_meta.id for one in listed}, {involved})
    test.assertEqual({one.spec.involved_object_meta.id for one in events(label_selector=labels)}, {involved})
    test.assertEqual(list(events(id='nobody')), [])
    test.assertEqual(list(events(label_selector={**labels, 'team': 'of nobody'})), [])
    first, last = listed[0].spec.event_time, listed[-1].spec.event_time
    test.assertEqual(list(events(id=involved, events_from_time=first, events_to_time=last)), list(listed), 'both ends count')
    test.assertEqual(list(events(id=involved, events_from_time=last + 1)), [])
    test.assertEqual(list(events(id=involved, events_to_time=first - 1)), [])


class MachineRuntime(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp(prefix='berth-iri-')
        cls.addClassCleanup(shutil.rmtree, cls.home, ignore_errors=True)
        guest_fixture.make_image(os.path.join(cls.home, 'images', 'demo'))
        with open(os.path.join(cls.home, 'classes.yaml'), 'w', encoding='utf-8') as file:
            file.write(guest_fixture.MACHINE_CLASSES)
        cls.libvirt = guest_fixture.Libvirt(cls.home)
        guest_fixture.give_to_guest_user(cls.home)
        cls.libvirt.start()
        cls.addClassCleanup(cls.libvirt.end)
        socket = os.path.join(cls.home, 'sockets', 'machine.sock')
        cls.process = fleet_fixture.Process(
            'machine-runtime', cls.home, 'runtime', 'machine', '--socket', socket, '--libvirt', cls.libvirt.uri,
            '--dir', os.path.join(cls.home, 'machines'), '--run-dir', os.path.join(cls.home, 'guests'),
            '--secrets-on-disk', '--classes', os.path.join(cls.home, 'classes.yaml'), '--images', os.path.join(cls.home, 'images'),
            '--local-disk', '64Mi', '--reserve-memory', '64Mi', '--acceleration', 'tcg', '--shutdown-grace', '2s', '--disk-budget',
            os.path.join(cls.home, 'budget'), '--networks', 'bridge')
        *user, berth = guest_fixture.berth_of_guest_user(cls.home)
        cls.process.command = [*user, *guest_fixture.NETWORK_RIGHTS, berth]
        cls.addClassCleanup(cls.process.kill)
        cls.process.start()
        berth_fixture.eventually(DEADLINE_S, lambda: os.path.exists(socket), f'the runtime; {cls.process.log_tail()}')
        cls.runtime = Runtime('machine.v1alpha1', 'MachineRuntime', socket)

    def list(self, **filter_):
        return self.runtime.call('ListMachines', filter=filter_).machines

    def becomes(self, machine_id, state):
        berth_fixture.eventually(DEADLINE_S, lambda: [one.status.state for one in self.list(id=machine_id)] == [state],
                                 f'{machine_id} is in state {state}; {self.list(id=machine_id)}')

    def spec(self, **more):
        root = {'name': 'root', 'device': 'oda', 'local_disk': {'size_bytes': MI, 'image': {'image': 'demo'}}}
        return {'class': 'tiny', 'volumes': [root], **more}

    def test_a_machine_is_made_listed_switched_and_deleted(self):
        begun = time.time()
        version = self.runtime.call('Version', version='')
        self.assertTrue(version.runtime_name)
        self.assertRegex(version.runtime_version, r'^\d+\.\d+\.\d+')
        (tiny,) = self.runtime.call('Status').machine_class_status
        self.assertEqual((tiny.machine_class.name, dict(tiny.machine_class.capabilities.resources)),
                         ('tiny', {'cpu': 1, 'memory': 96 * MI}))
        self.assertGreater(tiny.quantity, 0)

        labels = {UID: 'u-1', 'team': 'a'}
        made = self.runtime.call('CreateMachine', machine={
            'metadata': {'labels': labels, 'annotations': {'note': 'first'}}, 'spec': self.spec(network_interfaces=[
                {'name': 'primary', 'network_id': 'net-a', 'ips': ['10.1.0.1']}])}).machine
        machine_id = made.metadata.id
        self.assertTrue(machine_id)
        self.assertTrue(int(begun) * 10**9 <= made.metadata.created_at <= time.time_ns(), 'nanoseconds')
        self.assertEqual((made.metadata.deleted_at, made.status.state), (0, PENDING))
        self.becomes(machine_id, RUNNING)
        (there,) = self.list(label_selector={'team': 'a'})
        self.assertEqual((dict(there.metadata.labels), dict(there.metadata.annotations)), (labels, {'note': 'first'}))
        self.assertEqual([(one.name, one.state) for one in there.status.volumes], [('root', 1)])
        self.assertEqual(list(self.list(label_selector={'team': 'b'})), [])
        self.assertEqual(list(self.list(id='nobody')), [])

        self.runtime.call('UpdateMachineAnnotations', machine_id=machine_id, annotations={'other': 'second'})
        self.assertEqual(dict(self.list(id=machine_id)[0].metadata.annotations), {'other': 'second'})
        log = os.path.join(self.home, 'machines', machine_id, 'console.log')
        berth_fixture.eventually(DEADLINE_S, lambda: b'hello from the guest' in guest_fixture.read(log), 'it boots')
        self.runtime.call('AttachVolume', machine_id=machine_id, volume={
            'name': 'data', 'device': 'odb', 'local_disk': {'size_bytes': MI}})
        self.assertEqual([one.name for one in self.list(id=machine_id)[0].spec.volumes], ['root', 'data'])
        self.grows(machine_id, log)
        self.joins_networks(machine_id)
        self.runtime.call('DetachVolume', machine_id=machine_id, name='data')
        self.assertEqual([one.name for one in self.list(id=machine_id)[0].spec.volumes], ['root'])
        self.runtime.call('UpdateMachinePower', machine_id=machine_id, power=OFF)
        self.becomes(machine_id, STOPPED)

        # OK says that it has begun; NotFound that it is gone.
        self.assertEqual(self.runtime.code('DeleteMachine', machine_id=machine_id), grpc.StatusCode.OK)
        berth_fixture.eventually(
            DEADLINE_S, lambda: self.runtime.code('DeleteMachine', machine_id=machine_id) == grpc.StatusCode.NOT_FOUND,
            'it is gone')
        self.assertEqual(list(self.list(id=machine_id)), [])
        self.assertLessEqual({'Started', 'Removed'}, {event.spec.reason for event in self.events()})
        chosen_by_filter(self, self.events, machine_id, {'team': 'a'}, begun)
        self.assertEqual((network_fixture.links(), network_fixture.rules()), ({}, ''))

    def events(self, **filter_):
        return self.runtime.call('ListEvents', filter=filter_).events

    def grows(self, machine_id, log):
        """A connected volume, while its guest runs: OK says that the guest has it, also the second time."""
        folder = os.path.join(self.home, 'disks')
        os.mkdir(folder)
        path = os.path.join(folder, 'more.raw')
        with open(path, 'wb') as file:
            file.truncate(MI)
        guest_fixture.give_to_guest_user(folder)

        def more(size):
            return {'name': 'more', 'connection': {'driver': 'file', 'handle': 'v-more', 'effective_storage_bytes': size,
                                                   'attributes': {'path': path, 'format': 'raw'}}}

        def sees(size):
            behind = len(guest_fixture.read(log))
            with guest_fixture.typed(os.path.join(self.home, 'guests', machine_id, 'console.sock'), 'disks'):
                berth_fixture.eventually(DEADLINE_S, lambda: b'that is all' in guest_fixture.read(log)[behind:], 'it answers')
            return f' {size // 512} more'.encode() in guest_fixture.read(log)[behind:]
        self.runtime.call('AttachVolume', machine_id=machine_id, volume={**more(MI), 'device': 'odc'})
        berth_fixture.eventually(DEADLINE_S, lambda: sees(MI), 'the guest has it')
        for _ in range(2):
            self.assertEqual(self.runtime.code('UpdateVolume', machine_id=machine_id, volume=more(2 * MI)), grpc.StatusCode.OK)
        (there,) = (one for one in self.list(id=machine_id)[0].spec.volumes if one.name == 'more')
        self.assertEqual((there.connection.effective_storage_bytes, os.path.getsize(path)), (2 * MI, 2 * MI))
        berth_fixture.eventually(DEADLINE_S, lambda: sees(2 * MI), 'the guest sees it')
        self.assertEqual(self.runtime.code('UpdateVolume', machine_id=machine_id, volume=more(MI)),
                         grpc.StatusCode.INVALID_ARGUMENT, 'a disk never shrinks')
        self.runtime.call('DetachVolume', machine_id=machine_id, name='more')

    def joins_networks(self, machine_id):
        """An interface that comes and goes while its guest runs, beside the one that it began with."""
        def now():
            (machine,) = self.list(id=machine_id)
            self.assertEqual([one.state for one in machine.status.network_interfaces],
                             [ATTACHED] * len(machine.spec.network_interfaces))
            self.assertEqual([one.name for one in machine.status.network_interfaces],
                             [one.name for one in machine.spec.network_interfaces])
            return [(one.name, one.network_id, list(one.ips)) for one in machine.spec.network_interfaces]

        def wires():
            """Those of the guest, as libvirt says, and of the host: bridges and taps."""
            listed = self.libvirt.virsh('domiflist', f'berth-{machine_id}')
            return len(re.findall(r'([0-9a-f]{2}:){5}', listed)), len(network_fixture.links())
        first, second = ('primary', 'net-a', ['10.1.0.1']), ('second', 'net-b', ['10.2.0.1', 'fd00::1'])
        more = dict(zip(('name', 'network_id', 'ips'), second))
        self.assertEqual((now(), wires()), ([first], (1, 2)))
        self.runtime.call('AttachNetworkInterface', machine_id=machine_id, network_interface=more)
        self.assertEqual((now(), wires()), ([first, second], (2, 4)))
        self.assertEqual(self.runtime.code('AttachNetworkInterface', machine_id=machine_id, network_interface=more),
                         grpc.StatusCode.ALREADY_EXISTS)
        self.runtime.call('DetachNetworkInterface', machine_id=machine_id, name='second')
        self.assertEqual((now(), wires()), ([first], (1, 2)))
        # What it has not is not found, and that is all.
        for name in ('second', 'never'):
            self.assertEqual(self.runtime.code('DetachNetworkInterface', machine_id=machine_id, name=name),
                             grpc.StatusCode.NOT_FOUND)
        self.assertEqual(self.runtime.code('DetachVolume', machine_id=machine_id, name='never'), grpc.StatusCode.NOT_FOUND)
        bad = {'name': 'bad', 'network_id': 'net-b', 'ips': ['127.0.0.1']}
        self.assertEqual(self.runtime.code('AttachNetworkInterface', machine_id=machine_id, network_interface=bad),
                         grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual((now(), wires()), ([first], (1, 2)))

    def exec(self, machine_id):
        return self.runtime.call('Exec', machine_id=machine_id).url

    def open(self, url, protocols='v4.channel.k8s.io', **options):
        where = urllib.parse.urlsplit(url)
        opened = web_socket.WebSocket(Plain(where.hostname, where.port), where.path, protocols, **options)
        self.addCleanup(opened.close)
        return opened

    def test_a_console_is_opened_by_a_url_that_does_once(self):
        machine_id = self.runtime.call('CreateMachine', machine={
            'metadata': {'labels': {UID: 'u-exec'}}, 'spec': self.spec()}).machine.metadata.id
        self.addCleanup(self.remove, machine_id)
        self.becomes(machine_id, RUNNING)
        log = os.path.join(self.home, 'machines', machine_id, 'console.log')
        berth_fixture.eventually(DEADLINE_S, lambda: b'hello from the guest' in guest_fixture.read(log), 'it boots')
        url = self.exec(machine_id)
        self.assertRegex(url, r'^http://127\.0\.0\.1:\d+/exec/[\w-]{40,}$')
        where = urllib.parse.urlsplit(url)
        plain = Plain(where.hostname, where.port)
        for path, headers, status in ((where.path, {}, 400), (where.path, {'Upgrade': 'SPDY/3.1', 'Connection': 'Upgrade'}, 400)):
            connection = plain.connect()
            connection.request('POST', path, headers=headers)
            self.assertEqual(connection.getresponse().status, status, headers)
            connection.close()
        self.assertEqual(self.open(url, 'v9.channel.k8s.io').status, 400)
        self.assertEqual(self.open(url, headers={'Origin': 'https://elsewhere'}).status, 403)
        self.assertEqual(self.open(url[:-1] + ('A' if url[-1] != 'A' else 'B')).status, 404)
        if os.geteuid() == 0:
            code = f'''import os, socket
os.setgid(65534); os.setuid(65534)
with socket.create_connection(({where.hostname!r}, {where.port})) as s:
    s.sendall(b"GET {where.path} HTTP/1.1\\r\\nHost: x\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
              b"Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\\r\\n\\r\\n")
    print(s.recv(4096).split()[1].decode())'''
            self.assertEqual(berth_fixture.run([sys.executable, '-c', code]).stdout.strip(), '403', 'not for other users')

        # None of that used it up.
        console = self.open(url)
        self.assertEqual((console.status, console.headers['sec-websocket-protocol']), (101, 'v4.channel.k8s.io'))
        self.assertEqual(self.open(url).status, 404, 'it does once')
        console.send(b'\x04{"Width":80,"Height":24}')
        console.send(b'\x00disks\n')
        said = b''
        for message in console.messages():
            self.assertEqual(message[:1], b'\x01')
            said += message[1:]
            if b'that is all' in said:
                break
        second = self.open(self.exec(machine_id))
        second.send(b'\x01not a channel of clients')
        self.assertEqual(list(second.messages()), [])
        self.assertEqual(second.close_code, 1008)

        # As many as there may be, and none for a guest that is off.
        late = self.exec(machine_id)
        codes = [self.runtime.code('Exec', machine_id=machine_id) for _ in range(65)]
        self.assertEqual((codes[0], codes[-1]), (grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED))
        self.runtime.call('UpdateMachinePower', machine_id=machine_id, power=OFF)
        self.becomes(machine_id, STOPPED)
        rest = list(console.messages())
        self.assertIn(b'"status":"Success"', rest[-1])
        self.assertEqual(self.runtime.code('Exec', machine_id=machine_id), grpc.StatusCode.ABORTED)
        (end,) = self.open(late).messages()
        self.assertEqual(end[:1], b'\x03')
        self.assertIn(b'is off', end)
        self.assertEqual(self.runtime.code('Exec', machine_id='nobody'), grpc.StatusCode.NOT_FOUND)

    def test_P6_6_local_disks_and_volumes_share_one_disk(self):
        home = tempfile.mkdtemp(prefix='berth-iri-')
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        volumes = volume_runtime_test.VolumeRuntime(home, '--capacity', '256Mi', '--disk-budget',
                                                    os.path.join(self.home, 'budget'))
        volumes.process.command = guest_fixture.berth_of_guest_user(home)
        guest_fixture.give_to_guest_user(home)
        self.addCleanup(volumes.process.kill)

        def started():
            """Another channel each time: one that was refused waits before it tries again."""
            volumes.process.start()
            berth_fixture.eventually(DEADLINE_S, lambda: Runtime('volume.v1alpha1', 'VolumeRuntime', volumes.socket).code(
                'Version', version='') == grpc.StatusCode.OK, f'the volume runtime; {volumes.process.log_tail()}')
            return Runtime('volume.v1alpha1', 'VolumeRuntime', volumes.socket)
        disks = started()

        def volume(uid):
            return disks.call('CreateVolume', volume={
                'metadata': {'labels': {VOLUME_UID: uid}},
                'spec': {'class': 'fast', 'resources': {'storage_bytes': 200 * MI}}}).volume.metadata.id

        def machine():
            spec = self.spec(power=OFF)
            spec['volumes'][0]['local_disk']['size_bytes'] = 60 * MI
            return self.runtime.call('CreateMachine', machine={
                'metadata': {'labels': {UID: 'u-budget'}}, 'spec': spec}).machine.metadata.id

        def refused(make, *words):
            with self.assertRaises(grpc.RpcError) as raised:
                make()
            self.assertEqual(raised.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED, raised.exception)
            for word in words:
                self.assertIn(word, raised.exception.details())
        first = volume('u-1')
        refused(machine, f'local disks of {60 * MI} bytes', f'of {256 * MI} bytes are promised', f'volumes and snapshots {200 * MI}')
        # What a dead runtime has promised is there nevertheless.
        volumes.process.kill()
        refused(machine, f'volumes and snapshots {200 * MI}')
        disks = started()
        disks.call('DeleteVolume', volume_id=first)

        def made():
            try:
                return machine()
            except grpc.RpcError as error:
                self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        machine_id = berth_fixture.eventually(DEADLINE_S, made, 'the volume is gone, and there is room')
        refused(lambda: volume('u-2'), 'local disks of machines')
        self.remove(machine_id)
        berth_fixture.eventually(DEADLINE_S, lambda: disks.code('CreateVolume', volume={
            'metadata': {'labels': {VOLUME_UID: 'u-3'}}, 'spec': {'class': 'fast', 'resources': {'storage_bytes': 200 * MI}}})
            == grpc.StatusCode.OK, 'the machine is gone, and there is room')

    def remove(self, machine_id):
        self.runtime.call('DeleteMachine', machine_id=machine_id)
        berth_fixture.eventually(DEADLINE_S, lambda: not self.list(id=machine_id), 'it is gone')

    def test_refusals_have_the_documented_codes(self):
        code = self.runtime.code
        for method, fields in (('DeleteMachine', {}), ('UpdateMachinePower', {'power': ON}),
                               ('UpdateMachineAnnotations', {}), ('DetachVolume', {'name': 'x'}),
                               ('DetachNetworkInterface', {'name': 'x'}),
                               ('AttachNetworkInterface', {'network_interface': {'name': 'x', 'network_id': 'n'}}),
                               ('UpdateVolume', {'volume': {'name': 'x', 'connection': {'driver': 'd', 'handle': 'h'}}}),
                               ('AttachVolume', {'volume': {'name': 'x', 'device': 'odb',
                                                            'local_disk': {'size_bytes': MI}}})):
            self.assertEqual(code(method, machine_id='nobody', **fields), grpc.StatusCode.NOT_FOUND, method)
        bad = grpc.StatusCode.INVALID_ARGUMENT
        self.assertEqual(code('CreateMachine', machine={'spec': {'class': 'huge'}}), bad)
        self.assertEqual(code('CreateMachine', machine={'spec': self.spec(power=7)}), bad)
        twice = self.spec()
        twice['volumes'] *= 2
        self.assertEqual(code('CreateMachine', machine={'spec': twice}), bad)
        large = self.spec()
        large['volumes'][0]['local_disk']['size_bytes'] = 1 << 40
        self.assertEqual(code('CreateMachine', machine={'spec': large}), grpc.StatusCode.RESOURCE_EXHAUSTED)
        nothing = self.runtime.channel.unary_unary('/machine.v1alpha1.MachineRuntime/Nothing', lambda r: r, lambda r: r)
        with self.assertRaises(grpc.RpcError) as raised:
            nothing(b'', timeout=DEADLINE_S)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        garbage = self.runtime.channel.unary_unary('/machine.v1alpha1.MachineRuntime/ListMachines', lambda r: r, lambda r: r)
        with self.assertRaises(grpc.RpcError):
            garbage(b'\xff\xff\xff', timeout=DEADLINE_S)
        self.assertEqual(list(self.list()), [])


class VolumeRuntime(unittest.TestCase):

    def setUp(self):
        self.home = tempfile.mkdtemp(prefix='berth-iri-')
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.server = volume_runtime_test.VolumeRuntime(self.home, '--capacity', '64Mi').start()
        self.addCleanup(self.server.process.kill)
        self.runtime = Runtime('volume.v1alpha1', 'VolumeRuntime', self.server.socket)

    def list(self, **filter_):
        return self.runtime.call('ListVolumes', filter=filter_).volumes

    def test_a_volume_is_made_grown_and_deleted(self):
        classes = {one.volume_class.name: one for one in self.runtime.call('Status').volume_class_status}
        self.assertEqual(set(classes), {'fast', 'plain'})
        self.assertEqual(classes['fast'].volume_class.capabilities.iops, 5000)
        self.assertEqual(classes['fast'].quantity, 64 * MI, 'bytes')
        made = self.runtime.call('CreateVolume', volume={
            'metadata': {'labels': {VOLUME_UID: 'u-1'}},
            'spec': {'class': 'fast', 'resources': {'storage_bytes': 4 * MI}}}).volume
        volume_id = made.metadata.id
        berth_fixture.eventually(DEADLINE_S, lambda: [one.status.state for one in self.list(id=volume_id)] == [AVAILABLE],
                                 'it is available')
        (there,) = self.list(label_selector={VOLUME_UID: 'u-1'})
        self.assertTrue(there.status.access.driver and there.status.access.handle)
        self.runtime.call('ExpandVolume', volume_id=volume_id, resources={'storage_bytes': 8 * MI})
        berth_fixture.eventually(
            DEADLINE_S, lambda: self.list(id=volume_id)[0].status.resources.storage_bytes == 8 * MI, 'it has grown')
        self.assertEqual(self.runtime.code('DeleteVolume', volume_id=volume_id), grpc.StatusCode.OK)
        berth_fixture.eventually(
            DEADLINE_S, lambda: self.runtime.code('DeleteVolume', volume_id=volume_id) == grpc.StatusCode.NOT_FOUND,
            'it is gone')
        self.assertEqual(self.server.files(), [])

    def test_a_volume_begins_with_an_image(self):
        begun = time.time()
        content = guest_fixture.boot_sector()
        with open(os.path.join(self.server.images, 'tiny.raw'), 'wb') as file:
            file.write(content)
        spec = {'class': 'plain', 'resources': {'storage_bytes': MI},
                'volume_data_source': {'image_data_source': {'image': 'tiny.raw'}}}
        volume_id = self.runtime.call('CreateVolume', volume={
            'metadata': {'labels': {VOLUME_UID: 'u-1'}}, 'spec': spec}).volume.metadata.id
        berth_fixture.eventually(DEADLINE_S, lambda: [one.status.state for one in self.list(id=volume_id)] == [AVAILABLE],
                                 'it is available')
        (there,) = self.list(id=volume_id)
        self.assertEqual(there.spec.volume_data_source.image_data_source.image, 'tiny.raw')
        disk = guest_fixture.read(there.status.access.attributes['path'])
        self.assertEqual((len(disk), disk[:len(content)]), (MI, content))
        chosen_by_filter(self, lambda **filter_: self.runtime.call('ListEvents', filter=filter_).events, volume_id,
                         {VOLUME_UID: 'u-1'}, begun)

    def test_a_snapshot_is_taken_outlives_its_volume_and_is_restored(self):
        self.assertTrue(self.runtime.call('Version', version='').runtime_name)

        def make(uid, **more):
            return self.runtime.call('CreateVolume', volume={
                'metadata': {'labels': {VOLUME_UID: uid}},
                'spec': {'class': 'fast', 'resources': {'storage_bytes': 4 * MI}, **more}}).volume.metadata.id

        def snapshots(**filter_):
            return self.runtime.call('ListVolumeSnapshots', filter=filter_).volume_snapshots

        def available(volume):
            berth_fixture.eventually(DEADLINE_S, lambda: self.list(id=volume)[0].status.state == AVAILABLE, 'it is available')
        first = make('u-1')
        available(first)
        snapshot = self.runtime.call('CreateVolumeSnapshot', volume_snapshot={
            'metadata': {'labels': {SNAPSHOT_UID: 's-1'}}, 'spec': {'volume_id': first}}).volume_snapshot.metadata.id
        berth_fixture.eventually(DEADLINE_S, lambda: [one.status.state for one in snapshots(id=snapshot)] == [READY], 'it is taken')
        self.assertEqual([one.spec.volume_id for one in snapshots(label_selector={SNAPSHOT_UID: 's-1'})], [first])
        self.assertEqual(snapshots()[0].status.size, 4 * MI)
        self.runtime.call('DeleteVolume', volume_id=first)
        second = make('u-2', volume_data_source={'snapshot_data_source': {'snapshot_id': snapshot}})
        available(second)
        for volume in (first, second):
            berth_fixture.eventually(DEADLINE_S, lambda volume=volume: self.runtime.code(
                'DeleteVolume', volume_id=volume) == grpc.StatusCode.NOT_FOUND, 'it is gone')
        berth_fixture.eventually(DEADLINE_S, lambda: self.runtime.code(
            'DeleteVolumeSnapshot', volume_snapshot_id=snapshot) == grpc.StatusCode.NOT_FOUND, 'the snapshot is gone')
        self.assertEqual(list(snapshots()), [])
        self.assertEqual(self.server.files(), [])
        self.assertTrue(self.runtime.call('ListEvents').events)

    def test_refusals_have_the_documented_codes(self):
        code, bad = self.runtime.code, grpc.StatusCode.INVALID_ARGUMENT
        self.assertEqual(code('DeleteVolumeSnapshot', volume_snapshot_id='nobody'), grpc.StatusCode.NOT_FOUND)
        self.assertEqual(code('CreateVolumeSnapshot', volume_snapshot={'spec': {'volume_id': 'nobody'}}),
                         grpc.StatusCode.NOT_FOUND)
        self.assertEqual(code('ExpandVolume', volume_id='nobody', resources={'storage_bytes': MI}),
                         grpc.StatusCode.NOT_FOUND)
        self.assertEqual(code('CreateVolume', volume={'spec': {'class': 'huge', 'resources': {'storage_bytes': MI}}}), bad)
        self.assertEqual(code('CreateVolume', volume={'spec': {'class': 'fast', 'resources': {'storage_bytes': -1}}}), bad)
        self.assertEqual(code('CreateVolume', volume={'spec': {'class': 'fast', 'resources': {'storage_bytes': 1 << 40}}}),
                         grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertEqual(list(self.list()), [])


if __name__ == '__main__':
    network_fixture.enter_namespace()
    unittest.main(verbosity=2)
