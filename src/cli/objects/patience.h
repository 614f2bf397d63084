// SPDX-License-Identifier: Apache-2.0
// Waiting for objects: until they are gone, or until something is true of them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "cli/api/api.h"
#include "cli/api/resource.h"
#include "cli/environment.h"
#include "meta/value.h"

namespace berth::cli {

// A time budget that several waits share.
class Patience {
 public:
  // Zero: no limit. Negative: a week, as kubectl has it.
  Patience(const Environment& environment, Duration budget);
  // What is left; nullopt without a limit, zero when it is used up.
  std::optional<Duration> left() const;

 private:
  const Environment& environment_;
  std::optional<Time> end_;
};

struct ObjectAddress {
  Resource resource;
  std::string namespace_;
  std::string name;
};

// Null while the object does not exist. True ends the wait.
using ObjectTest = std::function<Result<bool>(const meta::Value* object)>;

// Looks at the object, then at each of its changes, until `test` says true. Timeout when the
// patience ends; `waiting_for` is part of its message.
Status AwaitObject(Api& api,
                   const ObjectAddress& address,
                   const ObjectTest& test,
                   const Patience& patience,
                   std::string_view waiting_for);

// Until no object of that UID is there; an empty UID stands for the one that is there first.
Status AwaitGone(Api& api,
                 const ObjectAddress& address,
                 const std::string& uid,
                 const Patience& patience);

}  // namespace berth::cli
