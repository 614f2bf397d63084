// SPDX-License-Identifier: Apache-2.0
// Who is connected: at most one session per host, and each pool by its session.
#pragma once

#include <string>
#include <string_view>

#include "base/text_map.h"
#include "gateway/session.h"

namespace berth::gateway {

class SessionTable {
 public:
  Session* OfHost(std::string_view host) const { return Find(hosts_, host); }
  // Only pools that were admitted.
  Session* OfPool(std::string_view pool_uid) const { return Find(pools_, pool_uid); }
  const TextMap<Session*>& hosts() const { return hosts_; }

  // REQUIRES: the host has no session.
  void Add(Session& session) {
    hosts_.emplace(session.host(), &session);
    session.is_listed = true;
  }
  void AddPool(const std::string& pool_uid, Session& session) { pools_[pool_uid] = &session; }
  // Forgets the session and its pools. Idempotent.
  void Remove(Session& session) {
    if (!session.is_listed) return;
    session.is_listed = false;
    hosts_.erase(session.host());
    for (const auto& [uid, pool] : session.pools) {
      const auto found = pools_.find(uid);
      if (found != pools_.end() && found->second == &session) pools_.erase(found);
    }
  }
  size_t size() const { return hosts_.size(); }

 private:
  using Sessions = TextMap<Session*>;
  static Session* Find(const Sessions& sessions, std::string_view key) {
    const auto found = sessions.find(key);
    return found == sessions.end() ? nullptr : found->second;
  }
  Sessions hosts_;
  Sessions pools_;
};

}  // namespace berth::gateway
