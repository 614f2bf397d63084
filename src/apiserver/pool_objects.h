// SPDX-License-Identifier: Apache-2.0
// What the rights of a pool depend on: which objects are bound to it, and what those say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/client.h"
#include "meta/kind.h"
#include "meta/object.h"

namespace berth::apiserver {

class PoolObjects {
 public:
  virtual ~PoolObjects() = default;

  // Nullopt if there is none.
  virtual std::optional<meta::Object> Find(const meta::KindInfo& kind,
                                           const client::ObjectKey& key) const = 0;
  // The machines, volumes or buckets of a namespace that name the pool.
  virtual std::vector<meta::Object> OnPool(const meta::KindInfo& kind,
                                           const std::string& namespace_,
                                           const std::string& pool) const = 0;
};

}  // namespace berth::apiserver
