// SPDX-License-Identifier: Apache-2.0
#include "runtime/fake/fake_host.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "base/version.h"

namespace berth::runtime {

namespace {

// How long the death of a process may go unnoticed.
constexpr Duration kProcessLook = Duration::Millis(50);

constexpr auto kCreate = FakeHost::CallKind::kCreate;
constexpr auto kOther = FakeHost::CallKind::kOther;

template <class T>
using Act = std::function<T(const FakeClock&)>;

iri::RuntimeVersion VersionOf(const FakeHostState& state) {
  const bool foreign = state.options().flavor == FakeFlavor::kForeign;
  return {.runtime_name = foreign ? "foreign-fake" : "berth-fake",
          .runtime_version = std::string(kVersion)};
}

}  // namespace

class FakeHost::Machines final : public iri::MachineRuntime {
 public:
  explicit Machines(FakeHost& host) : host_(host), state_(host.state()) {}

  rt::Task<Result<iri::RuntimeVersion>> Version() override {
    return host_.Call<Result<iri::RuntimeVersion>>(
        [this](const FakeClock&) { return VersionOf(state_); }, kOther);
  }
  rt::Task<Result<std::vector<iri::Event>>> ListEvents(iri::EventFilter filter) override {
    return host_.Call<Result<std::vector<iri::Event>>>(
        [this, filter = std::move(filter)](const FakeClock& clock) {
          state_.Advance(clock);
          return state_.ShowEvents(iri::ObjectKind::kMachine, filter);
        },
        kOther);
  }
  rt::Task<Result<std::vector<iri::Machine>>> ListMachines(iri::ObjectFilter filter) override {
    return host_.Call<Result<std::vector<iri::Machine>>>(
        [this, filter = std::move(filter)](const FakeClock& clock) {
          return state_.ShowMachines(clock, filter);
        },
        kOther);
  }
  rt::Task<Result<iri::Machine>> CreateMachine(iri::Machine machine) override {
    return host_.Call<Result<iri::Machine>>(
        [this, machine = std::move(machine)](const FakeClock& clock) {
          return state_.CreateMachine(clock, machine);
        },
        kCreate);
  }
  rt::Task<Status> DeleteMachine(std::string id) override {
    return host_.Call<Status>(
        [this, id](const FakeClock& clock) { return state_.DeleteMachine(clock, id); }, kOther);
  }
  rt::Task<Status> UpdateMachineAnnotations(std::string id, iri::StringMap annotations) override {
    return host_.Call<Status>(
        [this, id, annotations = std::move(annotations)](const FakeClock& clock) {
          return state_.SetAnnotations(clock, id, annotations);
        },
        kOther);
  }
  rt::Task<Status> UpdateMachinePower(std::string id, iri::Power power) override {
    return host_.Call<Status>(
        [this, id, power](const FakeClock& clock) { return state_.SetPower(clock, id, power); },
        kOther);
  }
  rt::Task<Status> AttachVolume(std::string id, iri::MachineVolume volume) override {
    return host_.Call<Status>(
        [this, id, volume = std::move(volume)](const FakeClock& clock) {
          return state_.AttachVolume(clock, id, volume);
        },
        kOther);
  }
  rt::Task<Status> DetachVolume(std::string id, std::string name) override {
    return host_.Call<Status>(
        [this, id, name](const FakeClock& clock) { return state_.DetachVolume(clock, id, name); },
        kOther);
  }
  rt::Task<Status> UpdateVolume(std::string id, iri::MachineVolume volume) override {
    return host_.Call<Status>(
        [this, id, volume = std::move(volume)](const FakeClock& clock) {
          return state_.ResizeVolume(clock, id, volume);
        },
        kOther);
  }
  rt::Task<Status> AttachNetworkInterface(std::string id, iri::MachineNic nic) override {
    return host_.Call<Status>(
        [this, id, nic = std::move(nic)](const FakeClock& clock) {
          return state_.AttachNic(clock, id, nic);
        },
        kOther);
  }
  rt::Task<Status> DetachNetworkInterface(std::string id, std::string name) override {
    return host_.Call<Status>(
        [this, id, name](const FakeClock& clock) { return state_.DetachNic(clock, id, name); },
        kOther);
  }
  rt::Task<Result<std::vector<iri::MachineClassStatus>>> ClassStatus() override {
    return host_.Call<Result<std::vector<iri::MachineClassStatus>>>(
        [this](const FakeClock&) { return state_.MachineClasses(); }, kOther);
  }
  rt::Task<Result<std::string>> Exec(std::string id) override {
    return host_.Call<Result<std::string>>(
        [this, id](const FakeClock& clock) { return state_.Exec(clock, id); }, kOther);
  }

 private:
  FakeHost& host_;
  FakeHostState& state_;
};

class FakeHost::Volumes final : public iri::VolumeRuntime {
 public:
  explicit Volumes(FakeHost& host) : host_(host), state_(host.state()) {}

  rt::Task<Result<iri::RuntimeVersion>> Version() override {
    return host_.Call<Result<iri::RuntimeVersion>>(
        [this](const FakeClock&) { return VersionOf(state_); }, kOther);
  }
  rt::Task<Result<std::vector<iri::Event>>> ListEvents(iri::EventFilter filter) override {
    return host_.Call<Result<std::vector<iri::Event>>>(
        [this, filter = std::move(filter)](const FakeClock& clock) {
          state_.Advance(clock);
          return state_.ShowEvents(iri::ObjectKind::kVolume, filter);
        },
        kOther);
  }
  rt::Task<Result<std::vector<iri::Volume>>> ListVolumes(iri::ObjectFilter filter) override {
    return host_.Call<Result<std::vector<iri::Volume>>>(
        [this, filter = std::move(filter)](const FakeClock& clock) {
          return state_.ShowVolumes(clock, filter);
        },
        kOther);
  }
  rt::Task<Result<iri::Volume>> CreateVolume(iri::Volume volume) override {
    return host_.Call<Result<iri::Volume>>(
        [this, volume = std::move(volume)](const FakeClock& clock) {
          return state_.CreateVolume(clock, volume);
        },
        kCreate);
  }
  rt::Task<Status> ExpandVolume(std::string id, int64_t storage_bytes) override {
    return host_.Call<Status>(
        [this, id, storage_bytes](const FakeClock& clock) {
          return state_.ExpandVolume(clock, id, storage_bytes);
        },
        kOther);
  }
  rt::Task<Status> DeleteVolume(std::string id) override {
    return host_.Call<Status>(
        [this, id](const FakeClock& clock) { return state_.DeleteVolume(clock, id); }, kOther);
  }
  rt::Task<Result<std::vector<iri::VolumeSnapshot>>> ListVolumeSnapshots(
      iri::ObjectFilter filter) override {
    return host_.Call<Result<std::vector<iri::VolumeSnapshot>>>(
        [this, filter = std::move(filter)](const FakeClock& clock) {
          return state_.ShowSnapshots(clock, filter);
        },
        kOther);
  }
  rt::Task<Result<iri::VolumeSnapshot>> CreateVolumeSnapshot(
      iri::VolumeSnapshot snapshot) override {
    return host_.Call<Result<iri::VolumeSnapshot>>(
        [this, snapshot = std::move(snapshot)](const FakeClock& clock) {
          return state_.CreateSnapshot(clock, snapshot);
        },
        kCreate);
  }
  rt::Task<Status> DeleteVolumeSnapshot(std::string id) override {
    return host_.Call<Status>(
        [this, id](const FakeClock& clock) { return state_.DeleteSnapshot(clock, id); }, kOther);
  }
  rt::Task<Result<std::vector<iri::VolumeClassStatus>>> ClassStatus() override {
    return host_.Call<Result<std::vector<iri::VolumeClassStatus>>>(
        [this](const FakeClock&) { return state_.VolumeClasses(); }, kOther);
  }

 private:
  FakeHost& host_;
  FakeHostState& state_;
};

class FakeHost::Buckets final : public iri::BucketRuntime {
 public:
  explicit Buckets(FakeHost& host) : host_(host), state_(host.state()) {}

  rt::Task<Result<iri::RuntimeVersion>> Version() override {
    return host_.Call<Result<iri::RuntimeVersion>>(
        [this](const FakeClock&) { return VersionOf(state_); }, kOther);
  }
  rt::Task<Result<std::vector<iri::Event>>> ListEvents(iri::EventFilter filter) override {
    return host_.Call<Result<std::vector<iri::Event>>>(
        [this, filter = std::move(filter)](const FakeClock& clock) {
          state_.Advance(clock);
          return state_.ShowEvents(iri::ObjectKind::kBucket, filter);
        },
        kOther);
  }
  rt::Task<Result<std::vector<iri::Bucket>>> ListBuckets(iri::ObjectFilter filter) override {
    return host_.Call<Result<std::vector<iri::Bucket>>>(
        [this, filter = std::move(filter)](const FakeClock& clock) {
          return state_.ShowBuckets(clock, filter);
        },
        kOther);
  }
  rt::Task<Result<iri::Bucket>> CreateBucket(iri::Bucket bucket) override {
    return host_.Call<Result<iri::Bucket>>(
        [this, bucket = std::move(bucket)](const FakeClock& clock) {
          return state_.CreateBucket(clock, bucket);
        },
        kCreate);
  }
  rt::Task<Status> DeleteBucket(std::string id) override {
    return host_.Call<Status>(
        [this, id](const FakeClock& clock) { return state_.DeleteBucket(clock, id); }, kOther);
  }
  rt::Task<Result<std::vector<iri::BucketClass>>> ListBucketClasses() override {
    return host_.Call<Result<std::vector<iri::BucketClass>>>(
        [this](const FakeClock&) { return state_.options().bucket_classes; }, kOther);
  }

 private:
  FakeHost& host_;
  FakeHostState& state_;
};

// One watch: reads the state's history from a place on.
class FakeHost::Stream final : public iri::ChangeStream {
 public:
  // No place: the first change is a resync.
  Stream(FakeHost& host, std::optional<uint64_t> place)
      : host_(host), life_(host.life_), place_(place) {}

  rt::Task<Result<iri::Change>> Next() override {
    while (host_.lives(life_) && !closed_) {
      const uint64_t last = host_.state_->last_change();
      std::optional<std::vector<iri::Change>> changes;
      if (place_.has_value()) changes = host_.state_->ChangesAfter(*place_);
      if (!changes.has_value()) {
        place_ = last;
        iri::Change resync;
        resync.cursor = host_.CursorAt(last);
        co_return resync;
      }
      if (!changes->empty()) {
        iri::Change change = std::move(changes->front());
        change.cursor = host_.CursorAt(++*place_);
        co_return change;
      }
      CO_TRY_STATUS(co_await host_.watchers_.Wait());
    }
    co_return Unavailable("the watch has ended");
  }
  rt::Task<Status> Close() override {
    closed_ = true;
    co_return OkStatus();
  }

 private:
  FakeHost& host_;
  const uint64_t life_;
  std::optional<uint64_t> place_;  // the change that was told last
  bool closed_ = false;
};

class FakeHost::Host final : public iri::HostRuntime {
 public:
  explicit Host(FakeHost& host) : host_(host), state_(host.state()) {}

  rt::Task<Result<std::unique_ptr<iri::ChangeStream>>> Watch(std::string cursor) override {
    using Answer = Result<std::unique_ptr<iri::ChangeStream>>;
    return host_.Call<Answer>(
        [this, cursor = std::move(cursor)](const FakeClock& clock) -> Answer {
          if (foreign()) return NotServed();
          state_.Advance(clock);
          return std::unique_ptr<iri::ChangeStream>(new Stream(host_, PlaceOf(cursor)));
        },
        kOther);
  }
  rt::Task<Result<iri::HostCapacity>> Capacity() override {
    return host_.Call<Result<iri::HostCapacity>>(
        [this](const FakeClock& clock) -> Result<iri::HostCapacity> {
          if (foreign()) return NotServed();
          return state_.Capacity(clock);
        },
        kOther);
  }
  rt::Task<Result<std::vector<iri::LeaseState>>> RenewLease(iri::LeaseRenewal renewal) override {
    using Answer = Result<std::vector<iri::LeaseState>>;
    return host_.Call<Answer>(
        [this, renewal = std::move(renewal)](const FakeClock& clock) -> Answer {
          if (foreign()) return NotServed();
          if (state_.has_processes()) {
            return Status(Reason::kMethodNotSupported, "leases are for a fencer to keep");
          }
          return state_.Renew(clock, renewal);
        },
        kOther);
  }
  rt::Task<Status> SetReservations(std::vector<iri::Reservation> reservations) override {
    return host_.Call<Status>(
        [this, reservations = std::move(reservations)](const FakeClock& clock) {
          if (foreign()) return NotServed();
          return state_.SetReservations(clock, reservations);
        },
        kOther);
  }
  rt::Task<Result<std::vector<iri::Reservation>>> ListReservations() override {
    using Answer = Result<std::vector<iri::Reservation>>;
    return host_.Call<Answer>(
        [this](const FakeClock&) -> Answer {
          if (foreign()) return NotServed();
          return state_.reservations();
        },
        kOther);
  }
  rt::Task<Result<std::vector<iri::GuestProcess>>> ListGuests() override {
    using Answer = Result<std::vector<iri::GuestProcess>>;
    return host_.Call<Answer>(
        [this](const FakeClock& clock) -> Answer {
          if (foreign()) return NotServed();
          if (!state_.has_processes()) return NoProcesses();
          return state_.Guests(clock);
        },
        kOther);
  }
  rt::Task<Status> ResumeGuest(std::string machine_uid) override {
    return host_.Call<Status>(
        [this, machine_uid = std::move(machine_uid)](const FakeClock& clock) {
          if (foreign()) return NotServed();
          if (!state_.has_processes()) return NoProcesses();
          return state_.ResumeGuest(clock, machine_uid);
        },
        kOther);
  }
  rt::Task<Status> SetPullSecret(iri::PullSecret secret) override {
    return host_.Call<Status>(
        [this, secret = std::move(secret)](const FakeClock&) {
          if (foreign()) return NotServed();
          state_.SetPullSecret(secret.uid, secret.docker_config);
          return OkStatus();
        },
        kOther);
  }
  rt::Task<Status> SetIgnition(iri::Ignition ignition) override {
    return host_.Call<Status>(
        [this, ignition = std::move(ignition)](const FakeClock& clock) {
          if (foreign()) return NotServed();
          return state_.SetIgnition(clock, ignition);
        },
        kOther);
  }
  rt::Task<Result<std::unique_ptr<iri::AttachStream>>> Attach(iri::AttachRequest request) override {
    using Answer = Result<std::unique_ptr<iri::AttachStream>>;
    return host_.Call<Answer>(
        [this, request = std::move(request)](const FakeClock& clock) -> Answer {
          if (foreign()) return NotServed();
          if (!IsFakeConversation(request.what)) {
            return Status(Reason::kMethodNotSupported, "this runtime offers no " + request.what);
          }
          TRY(const std::vector<std::string> logs, state_.LogsOf(clock, request.machine_uid));
          auto conversation = std::make_shared<FakeConversation>(request, logs);
          std::erase_if(host_.conversations_, [](const auto& known) { return known.expired(); });
          host_.conversations_.push_back(conversation);
          return std::unique_ptr<iri::AttachStream>(
              std::make_unique<FakeAttachStream>(std::move(conversation)));
        },
        kOther);
  }

 private:
  static Status NoProcesses() {
    return {Reason::kMethodNotSupported, "the guests of this runtime are no processes"};
  }
  bool foreign() const { return state_.options().flavor == FakeFlavor::kForeign; }
  static Status NotServed() {
    return {Reason::kMethodNotSupported, "this runtime has no berth.iri.v1.HostRuntime"};
  }
  // The change that a cursor of this life stands for.
  std::optional<uint64_t> PlaceOf(std::string_view cursor) const {
    const std::string prefix = host_.epoch_ + ".";
    if (!cursor.starts_with(prefix)) return std::nullopt;
    return ParseUint(cursor.substr(prefix.size()));
  }

  FakeHost& host_;
  FakeHostState& state_;
};

FakeHost::FakeHost(rt::Loop& loop, std::shared_ptr<FakeHostState> state)
    : loop_(loop),
      state_(std::move(state)),
      machines_(std::make_unique<Machines>(*this)),
      volumes_(std::make_unique<Volumes>(*this)),
      buckets_(std::make_unique<Buckets>(*this)),
      host_(std::make_unique<Host>(*this)) {
  if (state_->has_processes()) {
    const bool last = state_->options().guests == FakeGuests::kLastingProcesses;
    processes_ = std::make_unique<GuestProcesses>(last ? GuestProcesses::Lifetime::kOutliveUs
                                                       : GuestProcesses::Lifetime::kWithUs);
  }
  Restart(Memory::kKept);
}

FakeHost::~FakeHost() {
  if (timer_due_.has_value()) loop_.CancelTimer(timer_);
  for (const rt::TimerId timer : late_) loop_.CancelTimer(timer);
}

iri::Runtimes FakeHost::runtimes() {
  iri::Runtimes runtimes;
  runtimes.machine = machines_.get();
  runtimes.volume = volumes_.get();
  runtimes.bucket = buckets_.get();
  if (state_->options().flavor == FakeFlavor::kBerth) runtimes.host = host_.get();
  return runtimes;
}

void FakeHost::EndConversations() {
  for (const auto& known : conversations_) {
    const auto conversation = known.lock();
    if (conversation == nullptr || conversation->is_over()) continue;
    if (!state_->LogsOf(clock(), conversation->machine_uid()).ok()) {
      conversation->End("the guest is gone");
    }
  }
}

void FakeHost::Crash() {
  crashed_ = true;
  for (const auto& known : conversations_) {
    if (const auto conversation = known.lock()) conversation->Break();
  }
  watchers_.CompleteAll(OkStatus());
}

void FakeHost::Restart(Memory memory) {
  constexpr int kEpochLength = 8;
  ++life_;
  crashed_ = false;
  epoch_ = state_->random().NameSuffix(kEpochLength);
  if (memory == Memory::kLost) state_->Forget(clock());
  watchers_.CompleteAll(OkStatus());  // those of the old life end
  Refresh();
}

void FakeHost::Refresh() {
  state_->Advance(clock());
  if (processes_ != nullptr) processes_->Match(*state_, clock());
  Arm();
  EndConversations();
  if (std::exchange(told_, state_->last_change()) != state_->last_change()) {
    watchers_.CompleteAll(OkStatus());
  }
}

// One timer, for the next thing that happens by itself.
void FakeHost::Arm() {
  std::optional<Time> due = state_->NextDue();
  if (processes_ != nullptr && !processes_->empty()) {
    const Time look = loop_.Now() + kProcessLook;
    if (!due.has_value() || *due > look) due = look;
  }
  if (due == timer_due_) return;
  if (timer_due_.has_value()) loop_.CancelTimer(timer_);
  timer_due_ = due;
  if (!due.has_value()) return;
  const Duration wait = std::max(*due - loop_.Now(), Duration());
  timer_ = loop_.After("fake_host.due", wait, [this] {
    timer_due_.reset();
    Refresh();
  });
}

rt::Task<Status> FakeHost::Travel(uint64_t life) {
  const FakeTimes& times = state_->options().times;
  if (times.call_max > Duration()) {
    const int64_t nanos = state_->random().Between(times.call_min.nanos(), times.call_max.nanos());
    CO_TRY_STATUS(co_await rt::Sleep(Duration::Nanos(nanos)));
  }
  if (!lives(life)) co_return Unavailable("the runtime died");
  co_return OkStatus();
}

void FakeHost::LandLate(uint64_t life, std::function<void(const FakeClock&)> act) {
  const Duration late = state_->options().times.late_create;
  if (late <= Duration()) return;
  late_until_ = loop_.Now() + late;
  late_.push_back(loop_.After("fake.late_create", late, [this, life, act = std::move(act)] {
    if (!lives(life)) return;
    act(clock());
    Refresh();
  }));
}

rt::Task<Status> FakeHost::Queue(uint64_t life) {
  while (loop_.Now() < late_until_) {
    CO_TRY_STATUS(co_await rt::Sleep(late_until_ - loop_.Now()));
    if (!lives(life)) co_return Unavailable("the runtime died");
  }
  co_return OkStatus();
}

Status FakeHost::Refuse(CallKind kind) {
  const FakeFaults& faults = state_->options().faults;
  if (state_->random().Chance(faults.call_fails)) {
    return Unavailable("the runtime did not take the call");
  }
  if (kind == CallKind::kCreate && state_->random().Chance(faults.create_fails)) {
    return Internal("the runtime failed to create it");
  }
  return OkStatus();
}

bool FakeHost::LosesAnswer(CallKind kind) {
  const FakeFaults& faults = state_->options().faults;
  return state_->random().Chance(kind == CallKind::kCreate ? faults.create_answer_lost
                                                           : faults.answer_lost);
}

std::string FakeHost::CursorAt(uint64_t change) const {
  return epoch_ + "." + std::to_string(change);
}

}  // namespace berth::runtime
