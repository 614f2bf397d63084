// SPDX-License-Identifier: Apache-2.0
// Where a watcher of the cluster is: the store's revisions up to which it has seen machines and
// pools, as text "m42.p40". Two, because the two are read side by side, and what is told of one may
// be ahead of the other. To clients it is a word without meaning.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/store.h"

namespace berth::apiserver {

struct Cursor {
  std::optional<store::Revision> machines;  // nullopt: the present state was not told yet
  std::optional<store::Revision> pools;

  // "" if nothing was seen.
  std::string ToString() const;
  static Result<Cursor> Parse(std::string_view text);
  bool operator==(const Cursor&) const = default;
};

}  // namespace berth::apiserver
