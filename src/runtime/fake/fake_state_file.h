// SPDX-License-Identifier: Apache-2.0
// Keeps a FakeHostState in a file, so that a runtime process can be killed at any moment and finds
// its objects and guests again: one JSON line per change, the last line of an object counts.
//
// It survives the process, not the host: nothing is synced. What was acknowledged is in the file.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "runtime/fake/fake_host_state.h"

namespace berth::runtime {

class FakeStateFile {
 public:
  // Reads what is there into `state`, rewrites it without what is outdated, and from then on writes
  // every change. `host_boot` names this start of the real machine: if it is another one than in
  // the file, all guests are dead. A torn last line is dropped; any other damage is BadRequest. The
  // file holds secrets: mode 0600.
  static Result<std::unique_ptr<FakeStateFile>> Open(std::string path,
                                                     std::shared_ptr<FakeHostState> state,
                                                     std::string host_boot);
  ~FakeStateFile();
  FakeStateFile(const FakeStateFile&) = delete;
  FakeStateFile& operator=(const FakeStateFile&) = delete;

 private:
  FakeStateFile(std::string path, std::shared_ptr<FakeHostState> state, std::string host_boot);
  Status Load();
  Status Rewrite();
  void Append(const FakeHostState::Touched& touched);

  const std::string path_;
  const std::shared_ptr<FakeHostState> state_;
  const std::string host_boot_;
  int file_ = -1;
  size_t appended_ = 0;  // bytes since the file was rewritten
};

}  // namespace berth::runtime
