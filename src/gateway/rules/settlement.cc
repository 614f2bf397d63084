// SPDX-License-Identifier: Apache-2.0
#include "gateway/rules/settlement.h"

#include <algorithm>
#include <utility>

#include "apis/placement.h"
#include "base/strings.h"

namespace berth::gateway {
namespace {

constexpr size_t kNamesShown = 3;

std::pair<uint64_t, uint64_t> RankOf(const HeldCopy& copy) {
  return {copy.incarnation, copy.placement};
}

std::string NameOf(const meta::KindInfo& kind, const client::ObjectKey& key) {
  return std::string(kind.plural) + "/" + key.namespace_ + "/" + key.name;
}

}  // namespace

Settlement::Unreads& Settlement::UnreadOf(const meta::KindInfo& kind) {
  return apis::IsPool(kind) ? unread_pools_ : unread_objects_;
}

void Settlement::NoteUnread(const meta::KindInfo& kind, const client::ObjectKey& key) {
  UnreadOf(kind)[NameOf(kind, key)] = {.kind = &kind, .key = key};
}

bool Settlement::ForgetUnread(const meta::KindInfo& kind, const client::ObjectKey& key) {
  // Most changes come while there is none.
  Unreads& unreads = UnreadOf(kind);
  return !unreads.empty() && unreads.erase(NameOf(kind, key)) > 0;
}

std::vector<Settlement::Unread> Settlement::AllUnread() const {
  std::vector<Unread> all;
  for (const Unreads* unreads : {&unread_objects_, &unread_pools_}) {
    for (const auto& [name, unread] : *unreads) all.push_back(unread);
  }
  return all;
}

bool Settlement::HasDoubt() const {
  return std::ranges::any_of(objects_, [this](const auto& entry) {
    const bool is_unknown = entry.second.kind == nullptr && HasUnread();
    return is_unknown || entry.second.is_unread;
  });
}

bool Settlement::MayHide(std::string_view host) const {
  if (is_open() && !all_heard()) return true;
  return std::ranges::any_of(objects_, [host](const auto& entry) {
    return std::ranges::any_of(entry.second.copies,
                               [host](const HeldCopy& copy) { return copy.host == host; });
  });
}

std::string Settlement::UidAt(const meta::KindInfo& kind, const client::ObjectKey& key) const {
  const auto found = std::ranges::find_if(objects_, [&](const auto& entry) {
    return entry.second.kind == &kind && entry.second.key == key;
  });
  return found == objects_.end() ? "" : std::string(found->first);
}

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
  std::vector<std::string> all;
  for (const auto& [name, unread] : unread_pools_) {
    all.push_back(unread.key.name + " (cannot be read)");
  }
  for (const auto& [uid, pool] : awaited_) all.push_back(pool.name);
  const size_t shown = std::min(all.size(), kNamesShown);
  std::string names =
      Join(std::vector(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shown)), ", ");
  if (all.size() > shown) names += " and " + std::to_string(all.size() - shown) + " more";
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
  unread_objects_.clear();
  // What nobody in the store can be is left alone where it is.
  for (const std::string& uid : OpenUids()) {
    if (Find(uid)->kind == nullptr) Close(uid);
  }
}

}  // namespace berth::gateway
