// SPDX-License-Identifier: Apache-2.0
// Ways to a guest's console for poollets that know no Attach: a URL for each conversation.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "iri/attach.h"
#include "rt/task.h"

namespace berth::runtime {

class ConsoleDoors {
 public:
  using Open = std::function<rt::Task<Result<std::unique_ptr<iri::AttachStream>>>()>;

  virtual ~ConsoleDoors() = default;
  // A URL that opens the console once, if it is used soon. TooManyRequests if too many wait to be
  // used.
  virtual Result<std::string> Grant(Open open) = 0;
};

}  // namespace berth::runtime
