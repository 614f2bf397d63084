// SPDX-License-Identifier: Apache-2.0
// Environment is everything that a command may see of the world besides the API server: variables,
// the terminal, clocks, other programs. main fills it once; tests fill it with what they like.
#pragma once

#include <functional>
#include <istream>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/arguments.h"
#include "cli/transport.h"

namespace berth::cli {

struct Connection;  // cli/kubeconfig/connection.h

struct Terminal {
  bool out_is_terminal = false;
  bool in_is_terminal = false;
  size_t columns = 80;
};

struct Environment {
  Variables variables;
  std::istream* in = nullptr;
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
  Terminal terminal;
  std::function<WallTime()> wall_now;
  std::function<Time()> now;  // monotonic
  // Connects to the server lazily: this only fails on unusable credentials.
  std::function<Result<std::unique_ptr<Transport>>(const Connection& connection)> connect;
  // Runs a program in the foreground and waits for it; fails if it cannot start or ends with other
  // than 0.
  std::function<Status(const std::vector<std::string>& arguments)> run_program;

  // "" if it is not set.
  std::string_view Variable(std::string_view name) const {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string_view() : std::string_view(found->second);
  }
};

}  // namespace berth::cli
