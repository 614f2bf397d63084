// SPDX-License-Identifier: Apache-2.0
// BulkCreator makes many copies of one object at once, such as the machines of a set. Copies for
// which a place is found, and whose host has said yes, exist bound from their first moment, many
// per commit; the others are created as anybody would create them and wait for a place.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "meta/object.h"
#include "rt/task.h"

namespace berth::client {

class BulkCreator {
 public:
  virtual ~BulkCreator() = default;

  // One copy of the model per name. One verdict per name, in order, as of Client::CreateBatch: the
  // UID of the copy.
  virtual rt::Task<std::vector<Result<std::string>>> CreateBulk(meta::Object model,
                                                                std::vector<std::string> names) = 0;
};

// The copies themselves.
inline std::vector<meta::Object> CopiesOf(const meta::Object& model,
                                          std::span<const std::string> names) {
  std::vector<meta::Object> copies;
  copies.reserve(names.size());
  for (const std::string& name : names) copies.emplace_back(model).metadata().name = name;
  return copies;
}

}  // namespace berth::client
