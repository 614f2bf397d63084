// SPDX-License-Identifier: Apache-2.0
#include "sim/broken.h"

#include <algorithm>
#include <array>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/core/placement.h"
#include "apis/core/reservation.h"
#include "apis/core/well_known.h"
#include "apis/object_references.h"
#include "apis/placement.h"
#include "apiserver/cache/keys.h"
#include "meta/at_rest.h"

namespace berth::sim {
namespace {

constexpr std::array kNames = {
    BrokenName{Broken::kCapacity, "capacity", "capacity", "runtimes say and take twice their room"},
    BrokenName{.broken = Broken::kOverPromise,
               .name = "over-promise",
               .checker = "capacity",
               .help = "poollets promise twice the room of their runtimes",
               .words = "the server promised"},
    BrokenName{.broken = Broken::kOversize,
               .name = "oversize",
               .checker = "capacity",
               .help = "poollets make machines larger than they are",
               .words = "on it"},
    BrokenName{Broken::kRebind, "rebind", "bound-once", "the store changes the pool of a binding"},
    BrokenName{.broken = Broken::kKeptNumber,
               .name = "kept-number",
               .checker = "bound-once",
               .help = "an unbinding keeps the placement number",
               .words = "is bound to pool"},
    BrokenName{.broken = Broken::kLostNumber,
               .name = "lost-number",
               .checker = "bound-once",
               .help = "an unbinding forgets the placement number",
               .words = "went back from placement"},
    BrokenName{Broken::kLeases, "leases", "one-copy", "poollets stretch leases"},
    BrokenName{.broken = Broken::kLostWrite,
               .name = "lost-write",
               .checker = "durable",
               .help = "a crash takes back the last writes",
               .words = "was acknowledged at revision"},
    BrokenName{.broken = Broken::kLostEdit,
               .name = "lost-edit",
               .checker = "durable",
               .help = "machines are written over what has changed meanwhile",
               .scenario = "broken-edits",
               .words = "was overwritten"},
    BrokenName{Broken::kWatchGap, "watch-gap", "watch", "the store's watch leaves out events"},
    BrokenName{.broken = Broken::kWatchHole,
               .name = "watch-hole",
               .checker = "watch",
               .help = "a watch through the API leaves out events",
               .words = "left out"},
    BrokenName{.broken = Broken::kWatchEcho,
               .name = "watch-echo",
               .checker = "watch",
               .help = "a watch through the API shows events twice",
               .words = "twice"},
    BrokenName{Broken::kSilence, "silence", "reason", "why an object waits is not written"},
    BrokenName{.broken = Broken::kRogue,
               .name = "rogue",
               .checker = "asked",
               .help = "somebody deletes a machine unasked",
               .words = "nobody asked for it"},
    BrokenName{.broken = Broken::kPurge,
               .name = "purge",
               .checker = "asked",
               .help = "poollets delete what they are to keep",
               .words = "where it belongs"},
    BrokenName{.broken = Broken::kUsedDisk,
               .name = "used-disk",
               .checker = "asked",
               .help = "hosts delete volumes that machines still use",
               .scenario = "broken-leavings",
               .words = "though a machine uses it"},
    BrokenName{Broken::kNoBoot, "no-boot", "converges", "poollets switch no machine on"},
    BrokenName{.broken = Broken::kTies,
               .name = "ties",
               .checker = "leaves",
               .help = "machines are sent away from their disks",
               .words = "and is asked to leave it"},
    BrokenName{.broken = Broken::kLingers,
               .name = "lingers",
               .checker = "leaves",
               .help = "nobody is asked to leave for a taint",
               .scenario = "broken-leavings",
               .words = "is not asked to leave"},
    BrokenName{Broken::kSpoiltRecord, "spoilt-record", "record", "a record is damaged inside"},
    BrokenName{Broken::kCutRecord, "cut-record", "record", "poollets write half of a change"},
    BrokenName{.broken = Broken::kKeptRoom,
               .name = "kept-room",
               .checker = "converges",
               .help = "what is reserved is not counted when it is bound",
               .scenario = "broken-rooms",
               .words = "has no pool though"},
    BrokenName{.broken = Broken::kNamedRoom,
               .name = "named-room",
               .checker = "capacity",
               .help = "machines do not go into the room that is kept for them",
               .scenario = "broken-rooms",
               .words = "which keeps no room of reservation"},
    BrokenName{.broken = Broken::kEarlyFarewell,
               .name = "early-farewell",
               .checker = "leaves",
               .help = "a host may go with machines that could have left it",
               .scenario = "broken-rooms",
               .words = "which left drained"},
    BrokenName{.broken = Broken::kNoReplace,
               .name = "no-replace",
               .checker = "converges",
               .help = "machines of sets stay on hosts that are lost",
               .scenario = "broken-losses",
               .words = "is not replaced on"},
    BrokenName{.broken = Broken::kFence,
               .name = "fence",
               .checker = "one-leader",
               .help = "a deposed leader's writes count",
               .servers = BrokenServers::kSeveral,
               .scenario = "servers",
               .words = {}},
    BrokenName{.broken = Broken::kSluggish,
               .name = "sluggish",
               .checker = "failover",
               .help = "a new leader waits before it begins",
               .servers = BrokenServers::kSeveral,
               .scenario = "servers",
               .words = {}},
};

// What the keys of all machines begin with.
std::string_view MachinePrefix() {
  static const auto* const kPrefix =
      new std::string(apiserver::KeyPrefix(apis::compute::kMachineKind));
  return *kPrefix;
}

bool PutsMachine(const store::Op& op) {
  return op.type == store::Op::Type::kPut && op.key.starts_with(MachinePrefix());
}

constexpr std::string_view kPoolUidMark = "\"poolUID\":\"";
constexpr size_t kUidLength = 36;
// The disk that nobody has asked for (kEarlyFarewell).
constexpr std::string_view kImaginedDisk = "imagined";

void Tie(apis::compute::Machine& machine) {
  apis::compute::MachineVolume disk;
  disk.name = std::string(kImaginedDisk);
  disk.local_disk.emplace();
  machine.spec.volumes.push_back(std::move(disk));
}

void Untie(apis::compute::Machine& machine) {
  std::erase_if(machine.spec.volumes, [](const auto& disk) { return disk.name == kImaginedDisk; });
}

// As if the machine that uses it were gone (kUsedDisk).
void HideUse(meta::Object& object) {
  std::erase(object.metadata().finalizers, apis::core::kInUseFinalizer);
}

// Whether that is written which asks a machine to leave for a taint (kLingers).
bool AsksToLeave(const meta::Object& object) {
  if (&object.kind() != &apis::compute::kMachineKind) return false;
  const auto& placement = apis::PlacementOf(object);
  return placement && placement->release == apis::core::kReleaseTaint;
}

// The UID of the pool in a machine at rest; npos if it has none.
size_t FindPoolUid(std::string_view text) {
  const size_t mark = text.find(kPoolUidMark);
  if (mark == std::string_view::npos) return mark;
  const size_t at = mark + kPoolUidMark.size();
  return at + kUidLength < text.size() && text[at + kUidLength] == '"' ? at
                                                                       : std::string_view::npos;
}

// Of the batches of a watch that have events: every how many is not as it should be.
constexpr int kWrongBatch = 50;

// Leaves out the whole of a batch now and then.
class GapWatch final : public store::Watch {
 public:
  explicit GapWatch(std::unique_ptr<store::Watch> inner) : inner_(std::move(inner)) {}
  rt::Task<Result<store::WatchBatch>> Next() override {
    CO_TRY(store::WatchBatch batch, co_await inner_->Next());
    if (!batch.events.empty() && ++batches_ % kWrongBatch == 0) batch.events.clear();
    co_return batch;
  }

 private:
  std::unique_ptr<store::Watch> inner_;
  int batches_ = 0;
};

// Leaves out the whole of a batch now and then (kWatchHole), or shows its last event twice
// (kWatchEcho); or shows nothing as used (kUsedDisk).
class BrokenWatch final : public client::ObjectWatch {
 public:
  BrokenWatch(std::unique_ptr<client::ObjectWatch> inner, Broken broken)
      : inner_(std::move(inner)), broken_(broken) {}
  rt::Task<Result<std::vector<client::WatchEvent>>> Next() override {
    CO_TRY(std::vector<client::WatchEvent> events, co_await inner_->Next());
    if (broken_ == Broken::kUsedDisk) co_return Unused(std::move(events));
    if (++batches_ % kWrongBatch != 0) co_return events;
    if (broken_ == Broken::kWatchHole) co_return co_await inner_->Next();
    const client::WatchEvent last = events.back();
    events.push_back(last);
    co_return events;
  }

 private:
  static std::vector<client::WatchEvent> Unused(std::vector<client::WatchEvent> events) {
    for (client::WatchEvent& event : events) {
      if (event.object.empty() || !apis::IsKeptForUser(event.object.metadata())) continue;
      meta::Object object = event.object;
      HideUse(object);
      event.object = std::move(object);
    }
    return events;
  }

  std::unique_ptr<client::ObjectWatch> inner_;
  const Broken broken_;
  int batches_ = 0;
};

// Whether it writes a machine without a place.
bool PutsWaiting(const store::Op& op) {
  if (!PutsMachine(op)) return false;
  const auto machine = meta::DecodeAtRest(apis::compute::kMachineKind, op.value.view(), "");
  return machine.ok() && !apis::IsBound(*machine);
}

}  // namespace

std::span<const BrokenName> BrokenNames() { return kNames; }

std::optional<Broken> BrokenByName(std::string_view name) {
  for (const BrokenName& known : kNames) {
    if (known.name == name) return known.broken;
  }
  return std::nullopt;
}

void BrokenStore::Rebind(store::Op& op) {
  if (!PutsMachine(op)) return;
  std::string text(op.value.view());
  const size_t at = FindPoolUid(text);
  if (at == std::string::npos) return;
  const std::string pool = text.substr(at, kUidLength);
  if (other_pool_.empty()) other_pool_ = pool;
  std::string& known = bound_[op.key];
  // The first write is the binding itself; a later one that repeats it is spoilt.
  if (known == pool && pool != other_pool_) {
    text.replace(at, kUidLength, other_pool_);
    op.value = Bytes(text);
  }
  known = pool;
}

// Two writes of one machine are an unbinding if only the first of them has a pool.
void BrokenStore::Renumber(store::Op& op) {
  if (!PutsMachine(op)) return;
  auto machine = meta::DecodeAtRest(apis::compute::kMachineKind, op.value.view(), "");
  if (!machine.ok()) return;
  auto& placement = apis::PlacementOf(*machine);
  const std::string before =
      std::exchange(bound_[op.key], placement ? placement->pool_uid : std::string());
  if (before.empty() || !placement || !placement->pool_uid.empty()) return;
  placement->epoch = broken_ == Broken::kKeptNumber ? placement->epoch - 1 : 0;
  op.value = meta::EncodeAtRest(*machine);
}

void BrokenStore::Spoil(store::Txn& txn) {
  for (store::Op& op : txn.ops) {
    if (broken_ == Broken::kRebind) Rebind(op);
    if (broken_ == Broken::kKeptNumber || broken_ == Broken::kLostNumber) Renumber(op);
  }
  // Who writes over a machine that waits may take its new place away, which is another defect.
  if (broken_ != Broken::kLostEdit || std::ranges::any_of(txn.ops, PutsWaiting)) return;
  std::erase_if(txn.conditions, [](const store::Condition& condition) {
    return condition.mod_revision.value != 0 && condition.key.starts_with(MachinePrefix());
  });
}

rt::Task<Result<store::TxnResult>> BrokenStore::Commit(store::Txn txn) {
  Spoil(txn);
  co_return co_await inner().Commit(std::move(txn));
}

rt::Task<Result<std::unique_ptr<store::Watch>>> BrokenStore::StartWatch(
    store::WatchRequest request) {
  CO_TRY(std::unique_ptr<store::Watch> watch, co_await inner().StartWatch(std::move(request)));
  if (broken_ != Broken::kWatchGap) co_return watch;
  co_return std::unique_ptr<store::Watch>(std::make_unique<GapWatch>(std::move(watch)));
}

rt::Task<Result<meta::Object>> BrokenClient::Get(const meta::KindInfo& kind,
                                                 client::ObjectKey key) {
  const bool is_machine = &kind == &apis::compute::kMachineKind;
  auto found = co_await inner().Get(kind, std::move(key));
  if (broken_ == Broken::kTies && is_machine && found.ok()) {
    std::erase_if(found->as<apis::compute::Machine>().spec.volumes,
                  [](const auto& disk) { return disk.local_disk.has_value(); });
  }
  if (broken_ == Broken::kEarlyFarewell && is_machine && found.ok()) {
    Tie(found->as<apis::compute::Machine>());
  }
  co_return found;
}

rt::Task<Result<client::ObjectList>> BrokenClient::List(const meta::KindInfo& kind,
                                                        client::ListOptions options) {
  auto list = co_await inner().List(kind, std::move(options));
  if (broken_ == Broken::kUsedDisk && list.ok()) std::ranges::for_each(list->items, HideUse);
  co_return list;
}

rt::Task<Result<std::unique_ptr<client::ObjectWatch>>> BrokenClient::Watch(
    const meta::KindInfo& kind, client::WatchOptions options) {
  CO_TRY(std::unique_ptr<client::ObjectWatch> watch,
         co_await inner().Watch(kind, std::move(options)));
  const bool is_wrong = broken_ == Broken::kWatchHole || broken_ == Broken::kWatchEcho ||
                        broken_ == Broken::kUsedDisk;
  if (!is_wrong) co_return watch;
  co_return std::unique_ptr<client::ObjectWatch>(
      std::make_unique<BrokenWatch>(std::move(watch), broken_));
}

rt::Task<Result<meta::Object>> BrokenClient::Update(meta::Object object,
                                                    client::WriteOptions options) {
  const bool is_report = options.subresource == client::Subresource::kStatus &&
                         apis::IsPlaceable(object.kind()) && !apis::IsBound(object);
  if (broken_ == Broken::kSilence && is_report) co_return object;
  if (broken_ == Broken::kLingers && AsksToLeave(object)) co_return object;
  const bool is_machine = &object.kind() == &apis::compute::kMachineKind;
  if (broken_ == Broken::kEarlyFarewell && is_machine) Untie(object.as<apis::compute::Machine>());
  co_return co_await inner().Update(std::move(object), options);
}

rt::Task<Status> BrokenClient::Delete(const meta::KindInfo& kind,
                                      client::ObjectKey key,
                                      client::DeleteOptions options) {
  if (broken_ == Broken::kNoReplace && &kind == &apis::compute::kMachineKind) co_return OkStatus();
  co_return co_await inner().Delete(kind, std::move(key), std::move(options));
}

rt::Task<std::vector<Result<std::vector<meta::Object>>>> BrokenBinder::BindBatch(
    std::vector<client::BindRequest> requests) {
  for (client::BindRequest& request : requests) {
    for (client::BindItem& item : request.items) {
      const bool is_reservation = item.kind == &apis::core::kReservationKind;
      if (broken_ == Broken::kKeptRoom && is_reservation) item.resources.clear();
      if (broken_ == Broken::kNamedRoom) {
        item.reservation.clear();
        item.reservation_uid.clear();
      }
    }
  }
  return inner_.BindBatch(std::move(requests));
}

}  // namespace berth::sim
