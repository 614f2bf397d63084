// SPDX-License-Identifier: Apache-2.0
// Whether concurrent clients of a store saw one order of events that agrees with time. Every answer
// of a store has a revision, which names its place in that order; so a history is checked answer by
// answer instead of by search.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::store {

// What one call said about one key.
struct Observation {
  enum class Type : uint8_t {
    kRead,     // `value` is the state at `revision`
    kWrite,    // `value` was written at `revision`
    kUnknown,  // `value` may have been written, once
  };
  Type type = Type::kRead;
  Time begun;
  Time ended;
  std::string key;
  std::string value;  // "": absent. Every written value is different.
  Revision revision;
  Revision changed;             // kRead: the key's mod_revision
  bool is_conditional = false;  // kWrite: only if the key was last changed at `replaces`
  Revision replaces;
};

// Empty, or a line for everything that cannot have happened.
std::vector<std::string> FindViolations(const std::vector<Observation>& history);

// Reads and writes a few keys, `operations` times or until `stop`, and notes everything. Goes on
// after failures. `name` is different for every client of a store.
struct ClientOptions {
  std::string name;
  uint64_t seed = 1;
  int operations = 100;
  const bool* stop = nullptr;
};
rt::Task<Status> RunClient(Store* store, ClientOptions options, std::vector<Observation>* history);

}  // namespace berth::store
