// SPDX-License-Identifier: Apache-2.0
// Twins are objects that have one UID, or none: somebody has copied one in the store by hand. Who
// files objects by UID takes the first that comes; the others wait here until it is gone, so that
// the end of one is not taken for the end of the other (ADR 0038).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "client/cache/informer.h"
#include "client/client.h"
#include "meta/kind.h"
#include "rt/chaos.h"

namespace berth::client {

// Whether another object of these has its UID. `by_uid` holds what has a `key`.
template <class ByUid>
bool IsTwin(const ByUid& by_uid, const meta::Object& object) {
  const auto first = by_uid.find(object.metadata().uid);
  return first != by_uid.end() && first->second.key != KeyOf(object);
}

// T is what is kept of each.
template <class T>
class Twins {
 public:
  // `who` passes them over, for the log: a literal.
  explicit Twins(std::string_view who) : who_(who) {}

  // Adds it, or brings it up to date. `first` is the name of who has its UID; "" if nobody can.
  void Put(
      const meta::KindInfo& kind, ObjectKey key, std::string uid, T kept, std::string_view first) {
    Name name(kind.kind, std::move(key));
    if (!waiting_.contains(name)) {
      REACHED("client.twin");
      LOG_ERROR("{}: {} {} is passed over: {}",
                who_,
                kind.kind,
                Quote(name.second.namespace_ + '/' + name.second.name),
                first.empty() ? "it has no UID" : "its UID is that of " + Quote(first));
    }
    waiting_.insert_or_assign(std::move(name), Twin{std::move(uid), std::move(kept)});
  }
  // False: it does not wait here.
  bool Remove(const meta::KindInfo& kind, const ObjectKey& key) {
    return !waiting_.empty() && waiting_.erase({kind.kind, key}) > 0;
  }
  // They are listed anew.
  void RemoveAllOf(const meta::KindInfo& kind) {
    std::erase_if(waiting_, [&kind](const auto& one) { return one.first.first == kind.kind; });
  }
  // The UID is free: takes out the first by kind and key that has it.
  std::optional<T> Take(std::string_view uid) {
    for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
      if (at->second.uid == uid) return std::move(waiting_.extract(at).mapped().kept);
    }
    return std::nullopt;
  }
  template <class Visit>  // visit(key, uid)
  void ForEachOf(const meta::KindInfo& kind, const Visit& visit) const {
    for (const auto& [name, twin] : waiting_) {
      if (name.first == kind.kind) visit(name.second, twin.uid);
    }
  }

 private:
  using Name = std::pair<std::string_view, ObjectKey>;  // of the kind, of the object
  struct Twin {
    std::string uid;
    T kept;
  };
  const std::string_view who_;
  std::map<Name, Twin> waiting_;
};

}  // namespace berth::client
