// SPDX-License-Identifier: Apache-2.0
// The tombstones in the store: /guard/tombstone/<pool UID>/<object UID>.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/tombstones.h"
#include "meta/object.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::apiserver {

constexpr std::string_view kTombstonePrefix = "/guard/tombstone/";

// The operation that leaves a tombstone of a bound object. REQUIRES: apis::IsBound(object).
store::Op MakeTombstone(const meta::Object& object);

class Graveyard final : public client::Tombstones {
 public:
  explicit Graveyard(store::Store& store) : store_(store) {}

  rt::Task<Result<std::vector<client::Tombstone>>> ListTombstones(std::string pool_uid) override;
  rt::Task<Status> ClearTombstones(std::string pool_uid, std::vector<std::string> uids) override;
  // The pool is gone, and with it whoever could confirm.
  rt::Task<Status> ClearAll(std::string pool_uid);

 private:
  store::Store& store_;
};

}  // namespace berth::apiserver
