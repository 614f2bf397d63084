// SPDX-License-Identifier: Apache-2.0
// Writes down in a mapped file when commits begin and end, so that a crash test can see from
// outside whether its kill fell inside one: two little-endian counters of 8 bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "store/rocks/rocks_store.h"

namespace berth::app {

class CommitTrace final : public store::CommitObserver {
 public:
  // The file exists and has 16 bytes.
  static Result<std::unique_ptr<CommitTrace>> Open(const std::string& path);
  ~CommitTrace() override;

  void OnCommitBegin(uint64_t number) override;
  void OnCommitEnd(uint64_t number) override;

 private:
  struct Counters {
    std::atomic<uint64_t> begun;
    std::atomic<uint64_t> ended;
  };
  explicit CommitTrace(Counters* counters) : counters_(counters) {}
  Counters* counters_;
};

}  // namespace berth::app
