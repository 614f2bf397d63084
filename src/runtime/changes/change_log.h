// SPDX-License-Identifier: Apache-2.0
// A ChangeLog is the history behind HostRuntime::Watch: what changed, in order, as far back as is
// remembered. A cursor names a place in the history of one life of the runtime; one of another life
// is answered with a resync.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "iri/host.h"
#include "iri/object.h"
#include "rt/waiters.h"

namespace berth::runtime {

// About 200 bytes each: less than 1 MiB. Whoever is further behind lists everything again.
constexpr size_t kChangesMax = 4096;

class ChangeLog {
 public:
  // `epoch` differs from life to life and has no '.'.
  explicit ChangeLog(std::string epoch) : epoch_(std::move(epoch)) {}

  void Add(iri::ObjectKind kind,
           iri::ChangeType type,
           const iri::ObjectMetadata& metadata,
           std::string_view what);

  // For HostRuntime::Watch. The log outlives the stream.
  std::unique_ptr<iri::ChangeStream> Watch(std::string_view cursor);
  // Every stream ends with Unavailable. Idempotent.
  void End();

 private:
  class Stream;
  std::string CursorAt(uint64_t number) const { return epoch_ + "." + std::to_string(number); }

  const std::string epoch_;
  uint64_t last_ = 0;
  bool ended_ = false;
  std::deque<iri::Change> changes_;  // the last has number last_
  rt::Waiters<Status> watchers_;
};

}  // namespace berth::runtime
