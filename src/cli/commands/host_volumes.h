// SPDX-License-Identifier: Apache-2.0
// What ties machines to their host beside its disks: volumes that no other host reaches. Such a
// machine fits nowhere else, as apis/compute/host_tie.h has it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/status.h"
#include "cli/session/session.h"
#include "meta/value.h"

namespace berth::cli {

// The name of the volume behind a machine's disk; "" for a disk of the host.
std::string VolumeNameOf(const meta::Value& machine, const meta::Value& disk);

class HostVolumes {
 public:
  // For machines of one namespace, or of all (""). Reads two lists, once, when the first machine
  // with volumes is asked about. The session outlives this.
  HostVolumes(Session& session, std::string namespace_)
      : session_(session), namespace_(std::move(namespace_)) {}

  // Names of the machine's volumes that only one host reaches. None for whoever may not see volumes
  // or their pools: who may move machines need not be allowed to.
  Result<std::vector<std::string>> Of(const meta::Value& machine);

 private:
  Status Read();

  Session& session_;
  const std::string namespace_;
  // Namespaces and names.
  std::optional<std::set<std::pair<std::string, std::string>>> found_;
};

}  // namespace berth::cli
