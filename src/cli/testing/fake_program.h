// SPDX-License-Identifier: Apache-2.0
// FakeProgram runs command lines against a FakeServer, with strings for a terminal and a private
// folder for files.
#pragma once

#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "cli/environment.h"
#include "cli/testing/fake_transport.h"

namespace berth::cli {

// The tests' now: 2023-11-14T22:13:20Z.
inline constexpr WallTime kFakeNow = WallTime::FromSeconds(1'700'000'000);

class FakeProgram {
 public:
  // Has a kubeconfig with the context "test", namespace "default".
  FakeProgram();
  ~FakeProgram();
  FakeProgram(const FakeProgram&) = delete;
  FakeProgram& operator=(const FakeProgram&) = delete;

  struct Ended {
    int code = 0;
    std::string out;
    std::string err;
  };

  // What the program under test does with a line: usually RunProgram on its table.
  using Entry = std::function<int(const std::vector<std::string>& line, Environment& environment)>;
  Ended Run(const Entry& entry, const std::vector<std::string>& line, std::string_view in = "");

  // Writes a file into the private folder and returns its path.
  std::string Write(const std::string& name, std::string_view text) const;
  std::string Read(const std::string& name) const;
  const std::string& folder() const { return folder_; }

  FakeServer server;
  Environment environment;
  Time now;  // every look at the clock takes a millisecond

 private:
  std::string folder_;
};

}  // namespace berth::cli
