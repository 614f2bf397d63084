// SPDX-License-Identifier: Apache-2.0
#include "controller/ephemeral/ephemeral_maker.h"

#include <algorithm>
#include <vector>

#include "apis/compute/machine_class.h"
#include "apis/core/well_known.h"
#include "apis/networking/network_interface.h"
#include "apis/storage/volume.h"
#include "base/log.h"
#include "client/cache/informer.h"
#include "rt/join_all.h"

namespace berth::controller {
namespace {

using apis::compute::kMachineKind;
using apis::compute::Machine;
using apis::networking::kNetworkInterfaceKind;
using apis::storage::kVolumeKind;

constexpr size_t kWorkers = 4;
// A quota may have room again, and nobody tells.
constexpr Duration kRefusedPause = Duration::Seconds(30);

std::string NameOf(const meta::KindInfo& kind, const client::ObjectKey& key) {
  return std::string(kind.kind) + '/' + key.namespace_ + '/' + key.name;
}
std::string QueueKey(const client::ObjectKey& key) { return key.namespace_ + '/' + key.name; }

}  // namespace

void EphemeralMaker::Follower::Put(const meta::Object& object) {
  const std::string uid = object.metadata().uid;
  unseen_.erase(uid);
  if (changed_(object) == Interest::kKept) {
    kept_.insert(uid);
  } else {
    kept_.erase(uid);
  }
}
void EphemeralMaker::Follower::OnListBegin() { unseen_ = kept_; }
void EphemeralMaker::Follower::OnListed(meta::Object object) { Put(object); }
void EphemeralMaker::Follower::OnListEnd() {
  for (const std::string& uid : std::exchange(unseen_, {})) {
    kept_.erase(uid);
    lost_(uid);
  }
}
void EphemeralMaker::Follower::OnEvent(client::WatchEvent event) {
  if (event.type != client::WatchEvent::Type::kDeleted) {
    Put(event.object);
    return;
  }
  kept_.erase(event.object.metadata().uid);
  gone_(event.object);
}

EphemeralMaker::EphemeralMaker(rt::Loop& loop, client::Client& client, const meta::Scheme& scheme)
    : client_(client),
      events_(loop, client, scheme, "berth-ephemeral"),
      // The parts of a machine that is gone go with it.
      machine_sink_([this](const meta::Object& machine) { return OnMachine(machine); },
                    [this](const meta::Object& machine) { keys_.erase(machine.metadata().uid); },
                    [this](const std::string& uid) { keys_.erase(uid); }),
      volume_sink_([this](const meta::Object& part) { return OnPart(part); },
                   [this](const meta::Object& part) { OnPartGone(part); },
                   [this](const std::string& uid) { ForgetPart(uid); }),
      nic_sink_([this](const meta::Object& part) { return OnPart(part); },
                [this](const meta::Object& part) { OnPartGone(part); },
                [this](const std::string& uid) { ForgetPart(uid); }),
      machines_(loop, client, kMachineKind, machine_sink_, {}),
      volumes_(loop, client, kVolumeKind, volume_sink_, {.detail = client::Detail::kMetadata}),
      nics_(loop, client, kNetworkInterfaceKind, nic_sink_, {.detail = client::Detail::kMetadata}),
      runner_(loop, "ephemeral parts", *this, kWorkers) {}

rt::Task<Status> EphemeralMaker::Run() {
  std::vector<rt::Task<Status>> tasks;
  tasks.push_back(machines_.Run());
  tasks.push_back(volumes_.Run());
  tasks.push_back(nics_.Run());
  tasks.push_back(events_.Run());
  tasks.push_back(runner_.Run());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  co_return ends.front();
}

EphemeralMaker::Interest EphemeralMaker::OnMachine(const meta::Object& object) {
  const auto& machine = object.as<Machine>();
  const std::string& uid = machine.metadata.uid;
  // One that lost its last template still has parts to give up.
  if (!HasEphemeralParts(machine) && !keys_.contains(uid) && !parts_.contains(uid)) {
    return Interest::kNone;
  }
  keys_[uid] = QueueKey(client::KeyOf(object));
  runner_.queue().Add(keys_[uid]);
  return Interest::kKept;
}

EphemeralMaker::Interest EphemeralMaker::OnPart(const meta::Object& object) {
  const meta::ObjectMeta& metadata = object.metadata();
  const std::string machine_uid = EphemeralOwnerOf(metadata);
  const auto before = machine_of_.find(metadata.uid);
  if (before != machine_of_.end() && before->second != machine_uid) ForgetPart(metadata.uid);
  if (machine_uid.empty()) return Interest::kNone;
  machine_of_[metadata.uid] = machine_uid;
  Part& part = parts_[machine_uid][metadata.uid];
  part.kind = &object.kind();
  part.key = client::KeyOf(object);
  part.is_deleting = metadata.deletion_timestamp.has_value();
  return Interest::kKept;
}

void EphemeralMaker::OnPartGone(const meta::Object& object) {
  const auto waiting = in_the_way_.find(NameOf(object.kind(), client::KeyOf(object)));
  if (waiting != in_the_way_.end()) {
    runner_.queue().Add(waiting->second);
    in_the_way_.erase(waiting);
  }
  ForgetPart(object.metadata().uid);
}

void EphemeralMaker::ForgetPart(const std::string& uid) {
  const auto found = machine_of_.find(uid);
  if (found == machine_of_.end()) return;
  const std::string machine_uid = found->second;
  machine_of_.erase(found);
  Parts& parts = parts_[machine_uid];
  parts.erase(uid);
  if (parts.empty()) parts_.erase(machine_uid);
  WakeUid(machine_uid);
}

void EphemeralMaker::WakeUid(const std::string& machine_uid) {
  const auto key = keys_.find(machine_uid);
  if (key != keys_.end()) runner_.queue().Add(key->second);
}

bool EphemeralMaker::IsThere(const EphemeralPart& part, const std::string& machine_uid) const {
  const client::ObjectKey key = client::KeyOf(part.object);
  const auto parts = parts_.find(machine_uid);
  return parts != parts_.end() && std::ranges::any_of(parts->second, [&](const auto& known) {
           return known.second.kind == &part.object.kind() && known.second.key == key;
         });
}

rt::Task<Result<std::string>> EphemeralMaker::ArchitectureOf(std::string machine_class) {
  const client::ObjectKey key{.namespace_ = "", .name = std::move(machine_class)};
  const auto found = co_await client_.Get(apis::compute::kMachineClassKind, key);
  if (found.status().Is(Reason::kNotFound)) co_return std::string();
  CO_TRY_STATUS(found.status());
  const auto& labels = found->metadata().labels;
  const auto label = labels.find(std::string(apis::core::kArchitectureLabel));
  co_return label == labels.end() ? std::string() : label->second;
}

rt::Task<Result<std::optional<Duration>>> EphemeralMaker::Reconcile(std::string key) {
  // Nothing is made or deleted before everything that is there is known.
  if (!volumes_.synced() || !nics_.synced()) co_return Duration::Millis(50);
  const size_t slash = key.find('/');
  const client::ObjectKey name{.namespace_ = key.substr(0, slash), .name = key.substr(slash + 1)};
  const auto found = co_await client_.Get(kMachineKind, name);
  if (found.status().Is(Reason::kNotFound)) co_return std::optional<Duration>();
  CO_TRY_STATUS(found.status());
  const meta::Object object = *found;
  const auto& machine = object.as<Machine>();
  if (machine.metadata.deletion_timestamp) co_return std::optional<Duration>();
  CO_TRY(const std::string architecture,
         co_await ArchitectureOf(machine.spec.machine_class_ref.name));
  std::vector<EphemeralPart> wanted = EphemeralPartsOf(machine, architecture);
  std::optional<Duration> again;
  for (const EphemeralPart& part : wanted) {
    if (IsThere(part, machine.metadata.uid)) continue;
    const Status made = co_await Make(object, part);
    if (made.Is(Reason::kForbidden) || made.Is(Reason::kInvalid)) {
      again = kRefusedPause;  // said on the machine
    } else {
      CO_TRY_STATUS(made);
    }
  }
  CO_TRY_STATUS(co_await Prune(machine, std::move(wanted)));
  co_return again;
}

rt::Task<Status> EphemeralMaker::Make(meta::Object machine, EphemeralPart part) {
  const meta::KindInfo& kind = part.object.kind();
  const client::ObjectKey key = client::KeyOf(part.object);
  const std::string what = std::string(kind.kind) + ' ' + part.name;
  const std::string reason = std::string(kind.kind) + "NotReady";
  const client::EventSubject subject = client::EventSubject::Of(machine);
  const client::WriteOptions options;
  const auto made = co_await client_.Create(part.object, options);
  if (made.ok()) {
    OnPart(*made);  // known at once: the next look must not make it again
    co_return OkStatus();
  }
  if (!made.status().Is(Reason::kAlreadyExists)) {
    std::string text = part.field + ": " + what + ": " + std::string(made.status().message());
    events_.Record(subject, client::EventType::kWarning, reason, "MakingParts", std::move(text));
    co_return made.status();
  }
  const auto there = co_await client_.Get(kind, key);
  if (there.status().Is(Reason::kNotFound)) co_return Conflict(what + " has just gone");
  CO_TRY_STATUS(there.status());
  if (IsEphemeralPartOf(there->metadata(), machine.metadata().uid)) {
    OnPart(*there);
    co_return OkStatus();
  }
  in_the_way_[NameOf(kind, key)] = QueueKey(client::KeyOf(machine));
  events_.Record(subject,
                 client::EventType::kWarning,
                 reason,
                 "MakingParts",
                 part.field + ": " + what +
                     " exists and is not of this machine; it is left alone, and the machine waits "
                     "until it is gone");
  co_return Forbidden(what + " is not ours");
}

rt::Task<Status> EphemeralMaker::Prune(Machine machine, std::vector<EphemeralPart> wanted) {
  std::vector<std::pair<std::string, Part>> surplus;
  const auto parts = parts_.find(machine.metadata.uid);
  if (parts == parts_.end()) co_return OkStatus();
  for (const auto& [uid, part] : parts->second) {
    if (part.is_deleting) continue;
    const bool is_wanted = std::ranges::any_of(wanted, [&](const EphemeralPart& one) {
      return &one.object.kind() == part.kind && client::KeyOf(one.object) == part.key;
    });
    if (!is_wanted) surplus.emplace_back(uid, part);
  }
  for (const auto& [uid, part] : surplus) {
    client::DeleteOptions options;
    options.uid = uid;
    const Status deleted = co_await client_.Delete(*part.kind, part.key, options);
    if (!deleted.ok() && !deleted.Is(Reason::kNotFound) && !deleted.Is(Reason::kConflict)) {
      co_return deleted;
    }
  }
  co_return OkStatus();
}

}  // namespace berth::controller
