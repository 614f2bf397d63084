// SPDX-License-Identifier: Apache-2.0
// BulkCreator makes many copies of one object at once, such as the machines of a set. Copies for
// which a place is found, and whose host has said yes, exist bound from their first moment, many
// per commit; the others are created as anybody would create them and wait for a place.
#pragma once

#include <vector>

#include "base/result.h"
#include "meta/object.h"
#include "rt/task.h"

namespace berth::client {

class BulkCreator {
 public:
  virtual ~BulkCreator() = default;

  // REQUIRES: the objects are of one kind and alike but for their names. One verdict per object, in
  // order, as of Client::CreateBatch.
  virtual rt::Task<std::vector<Result<meta::Object>>> CreateBulk(
      std::vector<meta::Object> copies) = 0;
};

}  // namespace berth::client
