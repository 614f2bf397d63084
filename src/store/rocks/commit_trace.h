// SPDX-License-Identifier: Apache-2.0
// A CommitTrace keeps the numbers of the last group begun and the last group ended in a file of 16
// bytes (two little-endian counters) that is mapped into memory. After kill -9 they are still
// there: begun > ended means that the kill fell inside a commit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "store/rocks/rocks_store.h"

namespace berth::store {

class CommitTrace final : public CommitObserver {
 public:
  // Makes the file, or empties it.
  static Result<std::unique_ptr<CommitTrace>> Create(const std::string& path);
  ~CommitTrace() override;
  CommitTrace(const CommitTrace&) = delete;
  CommitTrace& operator=(const CommitTrace&) = delete;

  void OnCommitBegin(uint64_t number) override;
  void OnCommitEnd(uint64_t number) override;

  struct Counters {
    uint64_t begun = 0;
    uint64_t ended = 0;
  };
  // What a process, perhaps a dead one, left in the file.
  static Result<Counters> Read(const std::string& path);

 private:
  explicit CommitTrace(uint64_t* counters) : counters_(counters) {}
  uint64_t* const counters_;
};

}  // namespace berth::store
