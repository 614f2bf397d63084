// SPDX-License-Identifier: Apache-2.0
#include "gateway/rules/settlement.h"

#include <algorithm>
#include <utility>

namespace berth::gateway {
namespace {

constexpr size_t kNamesShown = 3;

std::pair<uint64_t, uint64_t> RankOf(const HeldCopy& copy) {
  return {copy.incarnation, copy.placement};
}

}  // namespace

void Settlement::Know(const std::string& uid, const meta::KindInfo& kind, client::ObjectKey key) {
  Object& object = objects_[uid];
  object.kind = &kind;
  object.key = std::move(key);
}

bool Settlement::IsOpen(std::string_view uid) const {
  return phase_ == Phase::kListing || objects_.contains(uid);
}

Settlement::Object* Settlement::Find(std::string_view uid) {
  const auto found = objects_.find(uid);
  return found == objects_.end() ? nullptr : &found->second;
}

void Settlement::Await(const std::string& pool_uid, std::string name, std::string host) {
  awaited_[pool_uid] = {.name = std::move(name), .host = std::move(host)};
}

void Settlement::HostHeard(const std::string& host) {
  std::erase_if(awaited_, [&host](const auto& pool) { return pool.second.host == host; });
}

std::string Settlement::Awaited() const {
  std::string names;
  size_t shown = 0;
  for (const auto& [uid, pool] : awaited_) {
    if (shown == kNamesShown) {
      return names + " and " + std::to_string(awaited_.size() - shown) + " more";
    }
    if (shown++ > 0) names += ", ";
    names += pool.name;
  }
  return names;
}

void Settlement::Claim(const std::string& uid, HeldCopy copy) {
  std::vector<HeldCopy>& copies = objects_[uid].copies;
  // Said again on a new session.
  std::erase_if(copies, [&copy](const HeldCopy& old) { return old.host == copy.host; });
  copies.push_back(std::move(copy));
}

const HeldCopy* Settlement::LatestOf(const Object& object) {
  const auto latest = std::ranges::max_element(object.copies, {}, RankOf);
  return latest == object.copies.end() ? nullptr : &*latest;
}

std::vector<std::string> Settlement::OpenUids() const {
  std::vector<std::string> uids;
  uids.reserve(objects_.size());
  for (const auto& [uid, object] : objects_) uids.push_back(uid);
  std::ranges::sort(uids);
  return uids;
}

void Settlement::Finish() {
  phase_ = Phase::kSettled;
  awaited_.clear();
}

}  // namespace berth::gateway
