// SPDX-License-Identifier: Apache-2.0
// Start, stop, and what the host tells about itself.
#include "runtime/volume/volume_host.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "base/version.h"
#include "iri/labels.h"
#include "iri/local_disk.h"

namespace berth::runtime {
namespace {

constexpr int kEpochLength = 8;
constexpr std::string_view kRuntimeName = "berth-volume";

Status NoGuests() { return {Reason::kMethodNotSupported, "a volume runtime has no guests"}; }

}  // namespace

VolumeHost::VolumeHost(Deps deps, Options options)
    : deps_(deps),
      options_(std::move(options)),
      changes_(deps.loop.random().NameSuffix(kEpochLength)),
      work_(deps.loop) {}

rt::Task<Result<std::unique_ptr<VolumeHost>>> VolumeHost::Start(Deps deps, Options options) {
  auto host = std::unique_ptr<VolumeHost>(new VolumeHost(deps, std::move(options)));
  CO_TRY_STATUS(co_await host->LoadAll());
  CO_TRY_STATUS(co_await host->SettleBudget());
  for (const auto& [id, entry] : host->volumes_) host->Tend(entry);
  for (const auto& [id, entry] : host->snapshots_) host->Tend(entry);
  co_return host;
}

rt::Task<Status> VolumeHost::LoadAll() {
  CO_TRY(const std::vector<ShelfItem> items, co_await deps_.shelf.Load());
  for (const ShelfItem& item : items) {
    Status read;
    if (item.kind == ShelfKind::kVolume) {
      Result<VolumeRecord> record = VolumeRecordOf(item.record);
      read = record.status();
      if (record.ok() && record->object.metadata.id == item.id) {
        auto entry = std::make_shared<VolumeEntry>(options_.retry);
        entry->record = *std::move(record);
        volumes_.emplace(item.id, std::move(entry));
        continue;
      }
    } else {
      Result<SnapshotRecord> record = SnapshotRecordOf(item.record);
      read = record.status();
      if (record.ok() && record->object.metadata.id == item.id) {
        auto entry = std::make_shared<SnapshotEntry>(options_.retry);
        entry->record = *std::move(record);
        snapshots_.emplace(item.id, std::move(entry));
        continue;
      }
    }
    // It stays, counts as what it takes, and is for a person to look at.
    LOG_ERROR("the record of {} cannot be read and is left alone: {}",
              item.id,
              read.ok() ? std::string_view("it is another's") : read.message());
  }
  co_return OkStatus();
}

rt::Task<Status> VolumeHost::Stop() {
  changes_.End();
  co_return co_await work_.Close();
}

rt::Task<Result<iri::RuntimeVersion>> VolumeHost::Version() {
  iri::RuntimeVersion version;
  version.runtime_name = kRuntimeName;
  version.runtime_version = std::string(kVersion);
  co_return version;
}

rt::Task<Result<std::vector<iri::Event>>> VolumeHost::ListEvents(iri::EventFilter filter) {
  co_return events_.List(filter);
}

rt::Task<Result<std::vector<iri::VolumeClassStatus>>> VolumeHost::ClassStatus() {
  std::vector<iri::VolumeClassStatus> classes;
  for (const OfferedVolumeClass& offered : options_.classes) {
    classes.push_back({.volume_class = offered.volume_class, .quantity = options_.total_bytes});
  }
  co_return classes;
}

rt::Task<Result<std::unique_ptr<iri::ChangeStream>>> VolumeHost::Watch(std::string cursor) {
  co_return changes_.Watch(cursor);
}

rt::Task<Result<iri::HostCapacity>> VolumeHost::Capacity() {
  CO_TRY(const ShelfRoom room, co_await deps_.shelf.Room());
  CO_TRY(const int64_t images, co_await deps_.images.TakenBytes());
  const std::string storage(iri::kStorage);
  Budget budget = CountBudget(room, images);
  if (deps_.budget != nullptr) {
    CO_TRY_STATUS(co_await SettleBudget());
    CO_TRY(const OtherShares others, co_await deps_.budget->Others());
    // Local disks are promised by whoever places machines, too.
    budget.elsewhere = others.in_all() - others.promised;
  }
  iri::HostCapacity capacity;
  capacity.total = {{storage, budget.total}};
  capacity.used = {{storage, budget.used()}};
  capacity.kept = {{storage, budget.images + budget.arriving + budget.unknown + budget.elsewhere}};
  capacity.load = {{storage, room.taken_in_all() + images}};
  capacity.facts = options_.facts;
  capacity.facts[std::string(iri::kVolumeReachFact)] = iri::kHostReach;
  capacity.boot_id = options_.boot_id;
  for (const auto& [id, entry] : volumes_) {
    const auto taken = room.taken.find({ShelfKind::kVolume, id});
    iri::InstanceStatistics statistics;
    statistics.kind = iri::ObjectKind::kVolume;
    statistics.id = id;
    statistics.uid = LabelOf(entry->record.object.metadata, iri::kVolumeUidLabel);
    statistics.disk_bytes = taken == room.taken.end() ? 0 : taken->second;
    capacity.instances.push_back(std::move(statistics));
  }
  co_return capacity;
}

rt::Task<Result<std::vector<iri::LeaseState>>> VolumeHost::RenewLease(iri::LeaseRenewal) {
  co_return NoGuests();
}
rt::Task<Status> VolumeHost::SetReservations(std::vector<iri::Reservation>) {
  co_return NoGuests();
}
rt::Task<Result<std::vector<iri::Reservation>>> VolumeHost::ListReservations() {
  co_return NoGuests();
}

Budget VolumeHost::CountBudget(const ShelfRoom& room, int64_t images) const {
  Budget budget;
  budget.total = options_.total_bytes;
  budget.images = images;
  budget.arriving = arriving_.bytes();
  for (const auto& [id, entry] : volumes_) budget.volumes += ChargeOf(entry->record);
  for (const auto& [id, entry] : snapshots_) budget.snapshots += ChargeOf(entry->record);
  for (const auto& [place, bytes] : room.taken) {
    const bool known = place.first == ShelfKind::kVolume ? volumes_.contains(place.second)
                                                         : snapshots_.contains(place.second);
    if (!known) budget.unknown += bytes;
  }
  return budget;
}

FileSystemRoom VolumeHost::CountRoom(const ShelfRoom& room) const {
  FileSystemRoom left;
  left.available = room.available;
  left.unwritten = arriving_.bytes();
  const auto unwritten = [&room](ShelfKind kind, const std::string& id, int64_t charge) {
    const auto taken = room.taken.find({kind, id});
    return std::max<int64_t>(charge - (taken == room.taken.end() ? 0 : taken->second), 0);
  };
  for (const auto& [id, entry] : volumes_) {
    left.unwritten += unwritten(ShelfKind::kVolume, id, ChargeOf(entry->record));
  }
  for (const auto& [id, entry] : snapshots_) {
    left.unwritten += unwritten(ShelfKind::kSnapshot, id, ChargeOf(entry->record));
  }
  return left;
}

Status VolumeHost::CheckCount() const {
  if (volumes_.size() + snapshots_.size() < kVolumeObjectsMax) return OkStatus();
  return {Reason::kTooManyRequests,
          fmt::format("{} volumes and snapshots are the most", kVolumeObjectsMax)};
}

iri::ObjectMetadata VolumeHost::NewMetadata(iri::ObjectMetadata metadata, std::string_view prefix) {
  constexpr int kIdLength = 16;
  do {
    metadata.id = std::string(prefix) + deps_.loop.random().NameSuffix(kIdLength);
  } while (volumes_.contains(metadata.id) || snapshots_.contains(metadata.id));
  metadata.generation = 1;
  metadata.created_at = deps_.loop.WallNow();
  metadata.deleted_at = WallTime();
  return metadata;
}

void VolumeHost::Say(iri::ObjectKind kind,
                     const iri::ObjectMetadata& metadata,
                     iri::EventType type,
                     std::string_view reason,
                     std::string_view action,
                     std::string message) {
  constexpr size_t kMessageMax = 1024;
  LOG_INFO("{} {}: {}: {}", iri::ObjectKindName(kind), metadata.id, reason, message);
  iri::Event event;
  event.involved = metadata;
  event.type = type;
  event.reason = reason;
  event.action = action;
  event.message = message.substr(0, kMessageMax);
  event.time = deps_.loop.WallNow();
  events_.Add(std::move(event));
}

void VolumeHost::Failed(Worked& worked,
                        iri::ObjectKind kind,
                        const iri::ObjectMetadata& metadata,
                        std::string_view action,
                        const Status& status) {
  if (worked.error == status.message()) return;  // said already
  worked.error = status.message();
  worked.image_problem = ImageProblem(status);
  const std::string_view reason = status.Is(Reason::kTooManyRequests) ? "NoRoom"
                                  : status.Is(Reason::kNotFound)      ? "NotFound"
                                  : status.Is(Reason::kForbidden)     ? "WrongKey"
                                  : status.Is(Reason::kConflict)      ? "InUse"
                                  : status.Is(Reason::kBadRequest)    ? "Refused"
                                                                      : "Failed";
  Say(kind, metadata, iri::EventType::kWarning, reason, action, worked.error);
  changes_.Add(kind, iri::ChangeType::kChanged, metadata, "state");
}

}  // namespace berth::runtime
