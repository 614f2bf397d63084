// SPDX-License-Identifier: Apache-2.0
// RelatedDrafts are the manifests of one command that decide about the place of one of them: the
// volumes, the class and the reservation that a machine names, the machine that names a volume, the
// members of a group, and what all of these name.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands/placement.h"
#include "meta/value.h"

namespace berth::cli {

class RelatedDrafts {
 public:
  // Whether a place may depend on an object of this kind.
  static bool Matters(std::string_view kind);

  // One that matters. Of two of one name the first counts.
  void Add(const Placement& draft);

  // Without the object itself, in the order of adding.
  std::vector<meta::Value> Of(const Placement& object) const;

 private:
  struct Name {
    std::string kind;
    std::string namespace_;  // "" for machine classes
    std::string name;
    auto operator<=>(const Name&) const = default;
  };
  using Named = std::vector<std::pair<std::string_view, std::string>>;  // kind and name

  static Name NameOf(const Placement& draft);
  // Adds what the value names, however deep.
  static void Collect(const meta::Value& value, Named& named);

  std::vector<Placement> drafts_;
  std::map<Name, size_t> by_name_;
  std::multimap<Name, size_t> machines_of_;  // by the group or the volume that they name
};

}  // namespace berth::cli
