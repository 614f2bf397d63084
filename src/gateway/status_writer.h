// SPDX-License-Identifier: Apache-2.0
// The StatusWriter brings hosts' reports into the store: the newest of each object, one write per
// object at a time, many objects at once. G3 is checked on the very state that is written.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/result.h"
#include "client/client.h"
#include "gateway/rules/words.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::gateway {

class StatusWriter {
 public:
  // Writes in flight; the store commits them together.
  static constexpr size_t kInFlightMax = 256;

  StatusWriter(rt::Loop& loop, client::Client& client, uint64_t incarnation)
      : loop_(loop), client_(client), incarnation_(incarnation), scope_(loop) {}

  // A report of an object on the pool. It replaces one of the same object that was not written yet:
  // what waits is bounded by the number of objects.
  void Report(const meta::KindInfo& kind,
              const client::ObjectKey& key,
              const std::string& pool_uid,
              agent::ObjectStatus report);

  rt::Task<Status> Close() { return scope_.Close(); }
  size_t waiting() const { return waiting_.size(); }
  size_t in_flight() const { return in_flight_.size(); }
  uint64_t written() const { return written_; }
  uint64_t refused() const { return refused_; }

 private:
  struct Waiting {
    const meta::KindInfo* kind = nullptr;
    client::ObjectKey key;
    std::string pool_uid;
    agent::ObjectStatus report;
  };
  void StartMore();
  rt::Task<Status> WriteOne(Waiting item);
  rt::Task<Status> TryWrite(Waiting item);
  // Ok once the Secret holds what the report says; Forbidden if its name is taken by another's.
  rt::Task<Status> KeepSecret(Waiting item, meta::Object owner);

  rt::Loop& loop_;
  client::Client& client_;
  const uint64_t incarnation_;
  std::map<std::string, Waiting> waiting_;  // by UID
  std::set<std::string> in_flight_;
  uint64_t written_ = 0;
  uint64_t refused_ = 0;
  rt::TaskScope scope_;
};

}  // namespace berth::gateway
