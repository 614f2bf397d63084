// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <charconv>

#include "apis/berth/machine_set.h"
#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/core/reservation.h"
#include "apis/storage/volume.h"
#include "apiserver/cache/keys.h"
#include "rt/sleep.h"
#include "sim/checkers.h"

namespace berth::sim {
namespace {

constexpr Duration kPause = Duration::Millis(200);  // after an error

int64_t ToRevision(const std::string& text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::span<const meta::KindInfo* const> WatchChecker::Kinds() {
  static constexpr std::array<const meta::KindInfo*, 5> kKinds = {&apis::compute::kMachineKind,
                                                                  &apis::storage::kVolumeKind,
                                                                  &apis::core::kReservationKind,
                                                                  &apis::berth_dev::kMachineSetKind,
                                                                  &apis::compute::kMachinePoolKind};
  return kKinds;
}

WatchChecker::WatchChecker(Sight& sight, const meta::KindInfo& kind, Overwritten overwritten)
    : Checker(sight), kind_(kind), prefix_(apiserver::KeyPrefix(kind)), overwritten_(overwritten) {}

void WatchChecker::OnChange(const Truth::Change& change) {
  if (!change.key.starts_with(prefix_)) return;
  const int64_t revision = change.revision.value;
  if (const auto early = early_.find(revision); early != early_.end()) {
    if (early->second.erase(change.key) > 0) return;
  }
  if (position_ == 0 || revision <= listed_) return;  // a list shows it
  if (revision < position_) {
    Fail(fmt::format(
        "the watch is at revision {} and left out {} of {}", position_, change.key, revision));
    return;
  }
  expected_[revision].insert(change.key);
}

void WatchChecker::OnRestore() {
  position_ = 0;
  listed_ = 0;
  expected_.clear();
  early_.clear();
  shown_.clear();
}

bool WatchChecker::MayBeMissing(const std::string& key, int64_t revision) const {
  if (overwritten_ == Overwritten::kIsShown) return false;
  const auto now = sight_.truth().keys().find(key);
  return now == sight_.truth().keys().end() || now->second.revision.value > revision;
}

void WatchChecker::Pass(int64_t revision) {
  while (!expected_.empty() && expected_.begin()->first < revision) {
    const auto& [left_out, keys] = *expected_.begin();
    for (const std::string& key : keys) {
      if (MayBeMissing(key, left_out)) continue;
      Fail(fmt::format(
          "the watch went on to revision {} and left out {} of {}", revision, key, left_out));
    }
    expected_.erase(expected_.begin());
  }
}

void WatchChecker::OnEvent(const client::WatchEvent& event) {
  const int64_t revision = ToRevision(event.resource_version);
  if (event.type == client::WatchEvent::Type::kBookmark) {
    if (revision > position_) {
      Pass(revision + 1);
      position_ = revision;
    }
    return;
  }
  if (revision < position_) {
    Fail(fmt::format("the watch went back from revision {} to {}", position_, revision));
  }
  Pass(revision);
  const std::string key = apiserver::StoreKey(
      kind_, {event.object.metadata().namespace_, event.object.metadata().name});
  if (revision > position_) shown_.clear();
  position_ = revision;
  if (!shown_.insert(key).second) {
    Fail(fmt::format("the watch showed {} of revision {} twice", key, revision));
  }
  const auto expected = expected_.find(revision);
  if (expected != expected_.end() && expected->second.erase(key) > 0) {
    if (expected->second.empty()) expected_.erase(expected);
    return;
  }
  early_[revision].insert(key);
  // Those of commits whose outcome nobody heard stay: not for ever.
  constexpr size_t kEarlyMax = 1000;
  if (early_.size() > kEarlyMax) early_.erase(early_.begin());
}

rt::Task<Status> WatchChecker::ListAll(client::Client* client) {
  CO_TRY(const client::ObjectList list, co_await client->List(kind_, client::ListOptions()));
  position_ = ToRevision(list.resource_version);
  std::erase_if(expected_, [this](const auto& entry) { return entry.first <= position_; });
  listed_ = position_;
  early_.clear();
  shown_.clear();
  co_return OkStatus();
}

rt::Task<Status> WatchChecker::WatchOn(client::Client* client) {
  client::WatchOptions options;
  options.resource_version = std::to_string(position_);
  CO_TRY(const std::unique_ptr<client::ObjectWatch> watch, co_await client->Watch(kind_, options));
  for (;;) {
    CO_TRY(const std::vector<client::WatchEvent> events, co_await watch->Next());
    for (const client::WatchEvent& event : events) OnEvent(event);
  }
}

rt::Task<Status> WatchChecker::Follow(client::Client* client) {
  for (;;) {
    Status ended;
    if (position_ == 0) ended = co_await ListAll(client);
    if (ended.ok()) ended = co_await WatchOn(client);
    if (ended.Is(Reason::kCancelled)) co_return ended;
    if (ended.Is(Reason::kExpired)) position_ = 0;
    CO_TRY_STATUS(co_await rt::Sleep(kPause));
  }
}

}  // namespace berth::sim
