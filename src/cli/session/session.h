// SPDX-License-Identifier: Apache-2.0
// A Session is one run of one command: its environment, its global flags and, once a command needs
// it, its connection to the server.
#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>

#include "base/result.h"
#include "cli/api/api.h"
#include "cli/api/discovery.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/environment.h"
#include "cli/kubeconfig/connection.h"

namespace berth::cli {

// --kubeconfig, --context, -n ... : known to every command.
std::span<const Flag> GlobalFlags();

class Session {
 public:
  // All three outlive the session. `root` is the whole command table, for help and completion.
  Session(Environment& environment, const Command& root, const Arguments& arguments)
      : environment_(environment), root_(root), arguments_(arguments) {}

  Environment& environment() { return environment_; }
  const Command& root() const { return root_; }
  std::ostream& out() { return *environment_.out; }
  std::ostream& err() { return *environment_.err; }

  KubeconfigFiles kubeconfig_files() const;
  Result<Kubeconfig> LoadConfig() const;
  // What kubeconfig and flags come to. Reads the files on first use.
  Result<Connection> GetConnection();
  // The namespace to work in: -n, the context's, or "default".
  Result<std::string> Namespace();
  // Whether -n was typed.
  bool namespace_was_given() const { return arguments_.Given("namespace"); }

  // Connected on first use; both stay valid as long as the session.
  Result<Api*> GetApi();
  Result<Discovery*> GetDiscovery();

 private:
  Environment& environment_;
  const Command& root_;
  const Arguments& arguments_;
  std::optional<Connection> connection_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<Discovery> discovery_;
};

}  // namespace berth::cli
