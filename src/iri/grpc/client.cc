// SPDX-License-Identifier: Apache-2.0
#include "iri/grpc/client.h"

#include <grpcpp/channel.h>
#include <grpcpp/create_channel_posix.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "base/strings.h"
#include "berth/iri/v1/host.grpc.pb.h"
#include "bucket/v1alpha1/api.grpc.pb.h"
#include "iri/grpc/boot_clock.h"
#include "iri/grpc/endpoint.h"
#include "iri/wire/wire.h"
#include "machine/v1alpha1/api.grpc.pb.h"
#include "net/grpc_bridge.h"
#include "net/grpc_client_reader.h"
#include "net/grpc_client_stream.h"
#include "volume/v1alpha1/api.grpc.pb.h"

namespace berth::iri {

namespace {

using MachineCalls = machine_pb::MachineRuntime::StubInterface::async_interface;
using VolumeCalls = volume_pb::VolumeRuntime::StubInterface::async_interface;
using BucketCalls = bucket_pb::BucketRuntime::StubInterface::async_interface;
using HostCalls = host_pb::HostRuntime::StubInterface::async_interface;

// One connected socket. gRPC never reconnects it: who is behind the next one is checked again.
struct Link {
  Link(std::shared_ptr<grpc::Channel> channel, int watched_socket)
      : machine(machine_pb::MachineRuntime::NewStub(channel)),
        volume(volume_pb::VolumeRuntime::NewStub(channel)),
        bucket(bucket_pb::BucketRuntime::NewStub(channel)),
        host(host_pb::HostRuntime::NewStub(channel)),
        watched(watched_socket) {}
  ~Link() { ::close(watched); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  std::unique_ptr<machine_pb::MachineRuntime::Stub> machine;
  std::unique_ptr<volume_pb::VolumeRuntime::Stub> volume;
  std::unique_ptr<bucket_pb::BucketRuntime::Stub> bucket;
  std::unique_ptr<host_pb::HostRuntime::Stub> host;
  const int watched;  // a second descriptor of the socket, to notice that it was hung up
};

MachineCalls* CallsOf(const Link& link, const MachineCalls*) { return link.machine->async(); }
VolumeCalls* CallsOf(const Link& link, const VolumeCalls*) { return link.volume->async(); }
BucketCalls* CallsOf(const Link& link, const BucketCalls*) { return link.bucket->async(); }
HostCalls* CallsOf(const Link& link, const HostCalls*) { return link.host->async(); }

template <class Async, class Request, class Response>
using Method = void (Async::*)(grpc::ClientContext*,
                               const Request*,
                               Response*,
                               std::function<void(grpc::Status)>);

template <class Parts>
auto AllFromProto(const Parts& parts) {
  std::vector<decltype(FromProto(*parts.begin()))> all;
  all.reserve(static_cast<size_t>(parts.size()));
  for (const auto& part : parts) all.push_back(FromProto(part));
  return all;
}

}  // namespace

class RuntimeClient::Connection {
 public:
  Connection(rt::Loop& loop, std::string path, RuntimeClientOptions options)
      : loop_(loop), path_(std::move(path)), options_(std::move(options)) {}

  rt::Loop& loop() { return loop_; }
  const std::string& path() const { return path_; }

  // Connects if there is no living connection.
  Result<std::shared_ptr<Link>> Connect() {
    if (link_ != nullptr && !HasHungUp(link_->watched)) return link_;
    link_.reset();
    TRY(const int socket, ConnectSocket(path_, options_.allowed_uids));
    const int watched = ::dup(socket);
    if (watched < 0) {
      ::close(socket);
      return Unavailable("socket " + path_ + ": no descriptor left");
    }
    grpc::ChannelArguments arguments = net::GrpcChannelArguments();
    arguments.SetMaxReceiveMessageSize(static_cast<int>(kAnswerBytesMax));
    arguments.SetMaxSendMessageSize(static_cast<int>(kAnswerBytesMax));
    link_ = std::make_shared<Link>(
        grpc::CreateCustomInsecureChannelFromFd("localhost", socket, arguments), watched);
    return link_;
  }

  // What the runtime's error means to us: it may be anything.
  Status Judge(const Status& status) const {
    constexpr size_t kTextMax = 1024;
    std::string text(status.message().substr(0, kTextMax));
    if (status.Is(Reason::kTooManyRequests) && text.find("larger than max") != std::string::npos) {
      return Internal("the runtime behind " + path_ + " answered more than " +
                      std::to_string(kAnswerBytesMax) + " bytes");
    }
    if (text.empty()) {
      text = status.Is(Reason::kMethodNotSupported) ? "it does not serve this"
                                                    : "it failed without a word";
      return {status.reason(), "the runtime behind " + path_ + ": " + text};
    }
    return {status.reason(), Printable(text)};
  }
  Status CheckAnswer(const google::protobuf::Message& answer) const {
    const Status status = CheckMessage(answer);
    if (status.ok()) return status;
    return Internal("the runtime behind " + path_ +
                    " answered what it must not: " + std::string(status.message()));
  }

  template <class Async, class Request, class Response>
  rt::Task<Result<Response>> Call(Method<Async, Request, Response> method, Request request) {
    return CallWithin(options_.ask_limit, method, std::move(request));
  }
  // The same of one that changes something.
  template <class Async, class Request, class Response>
  rt::Task<Result<Response>> Change(Method<Async, Request, Response> method, Request request) {
    return CallWithin(options_.change_limit, method, std::move(request));
  }
  // A change whose answer is empty.
  template <class Async, class Request, class Response>
  rt::Task<Status> Do(Method<Async, Request, Response> method, Request request) {
    const Result<Response> answer = co_await Change(method, std::move(request));
    co_return answer.status();
  }

 private:
  template <class Async, class Request, class Response>
  rt::Task<Result<Response>> CallWithin(Duration limit,
                                        Method<Async, Request, Response> method,
                                        Request request) {
    CO_TRY(const std::shared_ptr<Link> link, Connect());
    net::GrpcCallOptions call;
    call.deadline = limit;
    Async* const async = CallsOf(*link, static_cast<const Async*>(nullptr));
    Result<Response> answer = co_await net::CallUnary<Async, Request, Response>(
        async, method, std::move(request), std::move(call));
    if (!answer.ok()) {
      if (answer.status().Is(Reason::kUnavailable) && link_ == link) link_.reset();
      co_return Judge(answer.status());
    }
    CO_TRY_STATUS(CheckAnswer(*answer));
    co_return answer;
  }

  rt::Loop& loop_;
  const std::string path_;
  const RuntimeClientOptions options_;
  std::shared_ptr<Link> link_;
};

class RuntimeClient::Machines final : public MachineRuntime {
 public:
  explicit Machines(Connection& connection) : connection_(connection) {}

  rt::Task<Result<RuntimeVersion>> Version() override {
    CO_TRY(const auto answer,
           co_await connection_.Call(&MachineCalls::Version, machine_pb::VersionRequest()));
    RuntimeVersion version;
    version.runtime_name = answer.runtime_name();
    version.runtime_version = answer.runtime_version();
    co_return version;
  }
  rt::Task<Result<std::vector<Event>>> ListEvents(EventFilter filter) override {
    machine_pb::ListEventsRequest request;
    *request.mutable_filter() = EventFilterToProto<machine_pb::EventFilter>(filter);
    CO_TRY(const auto answer,
           co_await connection_.Call(&MachineCalls::ListEvents, std::move(request)));
    co_return AllFromProto(answer.events());
  }
  rt::Task<Result<std::vector<Machine>>> ListMachines(ObjectFilter filter) override {
    machine_pb::ListMachinesRequest request;
    *request.mutable_filter() = FilterToProto<machine_pb::MachineFilter>(filter);
    CO_TRY(const auto answer,
           co_await connection_.Call(&MachineCalls::ListMachines, std::move(request)));
    co_return AllFromProto(answer.machines());
  }
  rt::Task<Result<Machine>> CreateMachine(Machine machine) override {
    machine_pb::CreateMachineRequest request;
    *request.mutable_machine() = ToProto(machine);
    CO_TRY(const auto answer,
           co_await connection_.Change(&MachineCalls::CreateMachine, std::move(request)));
    co_return FromProto(answer.machine());
  }
  rt::Task<Status> DeleteMachine(std::string id) override {
    machine_pb::DeleteMachineRequest request;
    request.set_machine_id(id);
    return connection_.Do(&MachineCalls::DeleteMachine, std::move(request));
  }
  rt::Task<Status> UpdateMachineAnnotations(std::string id, StringMap annotations) override {
    machine_pb::UpdateMachineAnnotationsRequest request;
    request.set_machine_id(id);
    request.mutable_annotations()->insert(annotations.begin(), annotations.end());
    return connection_.Do(&MachineCalls::UpdateMachineAnnotations, std::move(request));
  }
  rt::Task<Status> UpdateMachinePower(std::string id, Power power) override {
    machine_pb::UpdateMachinePowerRequest request;
    request.set_machine_id(id);
    request.set_power(ToProto(power));
    return connection_.Do(&MachineCalls::UpdateMachinePower, std::move(request));
  }
  rt::Task<Status> AttachVolume(std::string id, MachineVolume volume) override {
    machine_pb::AttachVolumeRequest request;
    request.set_machine_id(id);
    *request.mutable_volume() = ToProto(volume);
    return connection_.Do(&MachineCalls::AttachVolume, std::move(request));
  }
  rt::Task<Status> DetachVolume(std::string id, std::string name) override {
    machine_pb::DetachVolumeRequest request;
    request.set_machine_id(id);
    request.set_name(name);
    return connection_.Do(&MachineCalls::DetachVolume, std::move(request));
  }
  rt::Task<Status> UpdateVolume(std::string id, MachineVolume volume) override {
    machine_pb::UpdateVolumeRequest request;
    request.set_machine_id(id);
    *request.mutable_volume() = ToProto(volume);
    return connection_.Do(&MachineCalls::UpdateVolume, std::move(request));
  }
  rt::Task<Status> AttachNetworkInterface(std::string id, MachineNic nic) override {
    machine_pb::AttachNetworkInterfaceRequest request;
    request.set_machine_id(id);
    *request.mutable_network_interface() = ToProto(nic);
    return connection_.Do(&MachineCalls::AttachNetworkInterface, std::move(request));
  }
  rt::Task<Status> DetachNetworkInterface(std::string id, std::string name) override {
    machine_pb::DetachNetworkInterfaceRequest request;
    request.set_machine_id(id);
    request.set_name(name);
    return connection_.Do(&MachineCalls::DetachNetworkInterface, std::move(request));
  }
  rt::Task<Result<std::vector<MachineClassStatus>>> ClassStatus() override {
    CO_TRY(const auto answer,
           co_await connection_.Call(&MachineCalls::Status, machine_pb::StatusRequest()));
    co_return AllFromProto(answer.machine_class_status());
  }
  rt::Task<Result<std::string>> Exec(std::string id) override {
    machine_pb::ExecRequest request;
    request.set_machine_id(id);
    CO_TRY(const auto answer, co_await connection_.Call(&MachineCalls::Exec, std::move(request)));
    co_return answer.url();
  }

 private:
  Connection& connection_;
};

class RuntimeClient::Volumes final : public VolumeRuntime {
 public:
  explicit Volumes(Connection& connection) : connection_(connection) {}

  rt::Task<Result<RuntimeVersion>> Version() override {
    CO_TRY(const auto answer,
           co_await connection_.Call(&VolumeCalls::Version, volume_pb::VersionRequest()));
    RuntimeVersion version;
    version.runtime_name = answer.runtime_name();
    version.runtime_version = answer.runtime_version();
    co_return version;
  }
  rt::Task<Result<std::vector<Event>>> ListEvents(EventFilter filter) override {
    volume_pb::ListEventsRequest request;
    *request.mutable_filter() = EventFilterToProto<volume_pb::EventFilter>(filter);
    CO_TRY(const auto answer,
           co_await connection_.Call(&VolumeCalls::ListEvents, std::move(request)));
    co_return AllFromProto(answer.events());
  }
  rt::Task<Result<std::vector<Volume>>> ListVolumes(ObjectFilter filter) override {
    volume_pb::ListVolumesRequest request;
    *request.mutable_filter() = FilterToProto<volume_pb::VolumeFilter>(filter);
    CO_TRY(const auto answer,
           co_await connection_.Call(&VolumeCalls::ListVolumes, std::move(request)));
    co_return AllFromProto(answer.volumes());
  }
  rt::Task<Result<Volume>> CreateVolume(Volume volume) override {
    volume_pb::CreateVolumeRequest request;
    *request.mutable_volume() = ToProto(volume);
    CO_TRY(const auto answer,
           co_await connection_.Change(&VolumeCalls::CreateVolume, std::move(request)));
    co_return FromProto(answer.volume());
  }
  rt::Task<Status> ExpandVolume(std::string id, int64_t storage_bytes) override {
    volume_pb::ExpandVolumeRequest request;
    request.set_volume_id(id);
    request.mutable_resources()->set_storage_bytes(storage_bytes);
    return connection_.Do(&VolumeCalls::ExpandVolume, std::move(request));
  }
  rt::Task<Status> DeleteVolume(std::string id) override {
    volume_pb::DeleteVolumeRequest request;
    request.set_volume_id(id);
    return connection_.Do(&VolumeCalls::DeleteVolume, std::move(request));
  }
  rt::Task<Result<std::vector<VolumeSnapshot>>> ListVolumeSnapshots(ObjectFilter filter) override {
    volume_pb::ListVolumeSnapshotsRequest request;
    *request.mutable_filter() = FilterToProto<volume_pb::VolumeSnapshotFilter>(filter);
    CO_TRY(const auto answer,
           co_await connection_.Call(&VolumeCalls::ListVolumeSnapshots, std::move(request)));
    co_return AllFromProto(answer.volume_snapshots());
  }
  rt::Task<Result<VolumeSnapshot>> CreateVolumeSnapshot(VolumeSnapshot snapshot) override {
    volume_pb::CreateVolumeSnapshotRequest request;
    *request.mutable_volume_snapshot() = ToProto(snapshot);
    CO_TRY(const auto answer,
           co_await connection_.Change(&VolumeCalls::CreateVolumeSnapshot, std::move(request)));
    co_return FromProto(answer.volume_snapshot());
  }
  rt::Task<Status> DeleteVolumeSnapshot(std::string id) override {
    volume_pb::DeleteVolumeSnapshotRequest request;
    request.set_volume_snapshot_id(id);
    return connection_.Do(&VolumeCalls::DeleteVolumeSnapshot, std::move(request));
  }
  rt::Task<Result<std::vector<VolumeClassStatus>>> ClassStatus() override {
    CO_TRY(const auto answer,
           co_await connection_.Call(&VolumeCalls::Status, volume_pb::StatusRequest()));
    co_return AllFromProto(answer.volume_class_status());
  }

 private:
  Connection& connection_;
};

class RuntimeClient::Buckets final : public BucketRuntime {
 public:
  explicit Buckets(Connection& connection) : connection_(connection) {}

  rt::Task<Result<RuntimeVersion>> Version() override {
    CO_TRY(const auto answer,
           co_await connection_.Call(&BucketCalls::Version, bucket_pb::VersionRequest()));
    RuntimeVersion version;
    version.runtime_name = answer.runtime_name();
    version.runtime_version = answer.runtime_version();
    co_return version;
  }
  rt::Task<Result<std::vector<Event>>> ListEvents(EventFilter filter) override {
    bucket_pb::ListEventsRequest request;
    *request.mutable_filter() = EventFilterToProto<bucket_pb::EventFilter>(filter);
    CO_TRY(const auto answer,
           co_await connection_.Call(&BucketCalls::ListEvents, std::move(request)));
    co_return AllFromProto(answer.events());
  }
  rt::Task<Result<std::vector<Bucket>>> ListBuckets(ObjectFilter filter) override {
    bucket_pb::ListBucketsRequest request;
    *request.mutable_filter() = FilterToProto<bucket_pb::BucketFilter>(filter);
    CO_TRY(const auto answer,
           co_await connection_.Call(&BucketCalls::ListBuckets, std::move(request)));
    co_return AllFromProto(answer.buckets());
  }
  rt::Task<Result<Bucket>> CreateBucket(Bucket bucket) override {
    bucket_pb::CreateBucketRequest request;
    *request.mutable_bucket() = ToProto(bucket);
    CO_TRY(const auto answer,
           co_await connection_.Change(&BucketCalls::CreateBucket, std::move(request)));
    co_return FromProto(answer.bucket());
  }
  rt::Task<Status> DeleteBucket(std::string id) override {
    bucket_pb::DeleteBucketRequest request;
    request.set_bucket_id(id);
    return connection_.Do(&BucketCalls::DeleteBucket, std::move(request));
  }
  rt::Task<Result<std::vector<BucketClass>>> ListBucketClasses() override {
    CO_TRY(const auto answer,
           co_await connection_.Call(&BucketCalls::ListBucketClasses,
                                     bucket_pb::ListBucketClassesRequest()));
    co_return AllFromProto(answer.bucket_classes());
  }

 private:
  Connection& connection_;
};

class RuntimeClient::Stream final : public ChangeStream {
 public:
  Stream(Connection& connection, std::shared_ptr<Link> link, const std::string& cursor)
      : connection_(connection), link_(std::move(link)) {
    request_.set_cursor(cursor);
    reader_.emplace(connection.loop(), [this](auto* context, auto* reactor) {
      link_->host->async()->Watch(context, &request_, reactor);
    });
  }

  rt::Task<Result<Change>> Next() override {
    Result<std::optional<host_pb::Change>> message = co_await reader_->Read();
    if (!message.ok()) co_return connection_.Judge(message.status());
    if (!message->has_value()) co_return Unavailable("the runtime ended the watch");
    CO_TRY_STATUS(connection_.CheckAnswer(**message));
    co_return FromProto(**message);
  }
  rt::Task<Status> Close() override { return reader_->Close(); }

 private:
  Connection& connection_;
  const std::shared_ptr<Link> link_;
  host_pb::WatchRequest request_;
  std::optional<net::GrpcClientReader<host_pb::Change>> reader_;
};

// The client's end of a conversation with a guest.
class RuntimeClient::Attached final : public AttachStream {
 public:
  using Frames = net::GrpcClientStream<host_pb::AttachFrame, host_pb::AttachFrame>;

  Attached(Connection& connection, std::shared_ptr<Link> link)
      : connection_(connection), link_(std::move(link)) {
    net::GrpcStreamOptions options;
    options.outbox_max = kAttachOutboxMax;
    frames_.emplace(
        connection.loop(),
        [this](auto* context, auto* reactor) { link_->host->async()->Attach(context, reactor); },
        std::move(options));
  }

  rt::Task<Status> Begin(AttachRequest request) {
    host_pb::AttachFrame first;
    first.mutable_request()->set_machine_uid(request.machine_uid);
    first.mutable_request()->set_what(request.what);
    for (const auto& [name, value] : request.options) {
      (*first.mutable_request()->mutable_options())[name] = value;
    }
    CO_TRY_STATUS(co_await frames_->Write(std::move(first)));
    const auto answer = co_await frames_->Read();
    if (!answer.ok()) co_return connection_.Judge(answer.status());
    if (!answer->has_value()) co_return Unavailable("the runtime ended it at once");
    co_return OkStatus();
  }
  rt::Task<Result<std::optional<AttachFrame>>> Read() override {
    auto message = co_await frames_->Read();
    if (!message.ok()) co_return connection_.Judge(message.status());
    if (!message->has_value()) co_return std::optional<AttachFrame>();
    if ((*message)->channel() > kAttachChannelMax ||
        (*message)->data().size() > kAttachFrameBytesMax) {
      co_return Internal("the runtime behind " + connection_.path() + " sent a frame that is none");
    }
    AttachFrame frame;
    frame.channel = static_cast<AttachFrame::Channel>((*message)->channel());
    frame.data = std::move(*(*message)->mutable_data());
    co_return std::optional<AttachFrame>(std::move(frame));
  }
  rt::Task<Status> Write(AttachFrame frame) override {
    host_pb::AttachFrame message;
    message.set_channel(static_cast<uint32_t>(frame.channel));
    message.set_data(std::move(frame.data));
    co_return co_await frames_->Write(std::move(message));
  }
  rt::Task<Status> Close() override { return frames_->Close(); }

 private:
  static constexpr size_t kAttachOutboxMax = 8;
  Connection& connection_;
  const std::shared_ptr<Link> link_;
  std::optional<Frames> frames_;
};

class RuntimeClient::Host final : public HostRuntime {
 public:
  explicit Host(Connection& connection) : connection_(connection) {}

  rt::Task<Result<std::unique_ptr<ChangeStream>>> Watch(std::string cursor) override {
    CO_TRY(std::shared_ptr<Link> link, connection_.Connect());
    co_return std::unique_ptr<ChangeStream>(new Stream(connection_, std::move(link), cursor));
  }
  rt::Task<Result<HostCapacity>> Capacity() override {
    CO_TRY(const auto answer,
           co_await connection_.Call(&HostCalls::Capacity, host_pb::CapacityRequest()));
    co_return FromProto(answer);
  }
  rt::Task<Result<std::vector<LeaseState>>> RenewLease(LeaseRenewal renewal) override {
    host_pb::RenewLeaseRequest request;
    request.set_deadline_boottime_nanos(ToBootNanos(renewal.deadline, connection_.loop().Now()));
    for (const std::string& uid : renewal.machine_uids) request.add_machine_uids(uid);
    for (const std::string& uid : renewal.released_uids) request.add_released_uids(uid);
    CO_TRY(const auto answer,
           co_await connection_.Call(&HostCalls::RenewLease, std::move(request)));
    const Time now = connection_.loop().Now();
    std::vector<LeaseState> leases;
    for (const auto& lease : answer.leases()) {
      LeaseState state;
      state.machine_uid = lease.machine_uid();
      state.deadline = FromBootNanos(lease.deadline_boottime_nanos(), now);
      state.fenced = lease.fenced();
      leases.push_back(std::move(state));
    }
    co_return leases;
  }
  rt::Task<Status> SetReservations(std::vector<Reservation> reservations) override {
    host_pb::SetReservationsRequest request;
    for (const Reservation& reservation : reservations) {
      *request.add_reservations() = ToProto(reservation);
    }
    return connection_.Do(&HostCalls::SetReservations, std::move(request));
  }
  rt::Task<Result<std::vector<Reservation>>> ListReservations() override {
    CO_TRY(const auto answer,
           co_await connection_.Call(&HostCalls::ListReservations,
                                     host_pb::ListReservationsRequest()));
    co_return AllFromProto(answer.reservations());
  }
  rt::Task<Result<std::vector<GuestProcess>>> ListGuests() override {
    CO_TRY(const auto answer,
           co_await connection_.Call(&HostCalls::ListGuests, host_pb::ListGuestsRequest()));
    std::vector<GuestProcess> guests;
    for (const auto& guest : answer.guests()) {
      GuestProcess process;
      process.machine_uid = guest.machine_uid();
      process.pid = guest.pid();
      process.start_ticks = guest.start_ticks();
      process.held = guest.held();
      guests.push_back(std::move(process));
    }
    co_return guests;
  }
  rt::Task<Status> ResumeGuest(std::string machine_uid) override {
    host_pb::ResumeGuestRequest request;
    request.set_machine_uid(machine_uid);
    return connection_.Do(&HostCalls::ResumeGuest, std::move(request));
  }
  rt::Task<Status> SetPullSecret(PullSecret secret) override {
    host_pb::SetPullSecretRequest request;
    request.set_uid(std::move(secret.uid));
    request.set_docker_config(std::move(secret.docker_config));
    return connection_.Do(&HostCalls::SetPullSecret, std::move(request));
  }
  rt::Task<Status> SetIgnition(Ignition ignition) override {
    host_pb::SetIgnitionRequest request;
    request.set_machine_uid(std::move(ignition.machine_uid));
    request.set_data(std::move(ignition.data));
    return connection_.Do(&HostCalls::SetIgnition, std::move(request));
  }
  rt::Task<Result<std::unique_ptr<AttachStream>>> Attach(AttachRequest request) override {
    CO_TRY(std::shared_ptr<Link> link, connection_.Connect());
    auto stream = std::make_unique<Attached>(connection_, std::move(link));
    const Status begun = co_await stream->Begin(std::move(request));
    if (!begun.ok()) {
      const Status closed = co_await stream->Close();
      CHECK(closed.ok());
      co_return begun;
    }
    co_return std::unique_ptr<AttachStream>(std::move(stream));
  }

 private:
  Connection& connection_;
};

RuntimeClient::RuntimeClient(rt::Loop& loop, std::string path, RuntimeClientOptions options)
    : connection_(std::make_unique<Connection>(loop, std::move(path), std::move(options))),
      machines_(std::make_unique<Machines>(*connection_)),
      volumes_(std::make_unique<Volumes>(*connection_)),
      buckets_(std::make_unique<Buckets>(*connection_)),
      host_(std::make_unique<Host>(*connection_)) {}
RuntimeClient::~RuntimeClient() = default;

MachineRuntime& RuntimeClient::machine() { return *machines_; }
VolumeRuntime& RuntimeClient::volume() { return *volumes_; }
BucketRuntime& RuntimeClient::bucket() { return *buckets_; }
HostRuntime& RuntimeClient::host() { return *host_; }
const std::string& RuntimeClient::path() const { return connection_->path(); }

namespace {

// Whether a service is there; an error if that is not known.
template <class Answer>
Result<bool> IsServed(const Result<Answer>& answer) {
  if (answer.ok()) return true;
  if (answer.status().Is(Reason::kMethodNotSupported)) return false;
  return answer.status();
}

}  // namespace

rt::Task<Result<Runtimes>> RuntimeClient::Discover() {
  Runtimes runtimes;
  CO_TRY(const bool machine, IsServed(co_await machines_->Version()));
  CO_TRY(const bool volume, IsServed(co_await volumes_->Version()));
  CO_TRY(const bool bucket, IsServed(co_await buckets_->Version()));
  CO_TRY(const bool host, IsServed(co_await host_->Capacity()));
  if (machine) runtimes.machine = machines_.get();
  if (volume) runtimes.volume = volumes_.get();
  if (bucket) runtimes.bucket = buckets_.get();
  if (host) runtimes.host = host_.get();
  co_return runtimes;
}

}  // namespace berth::iri
