// SPDX-License-Identifier: Apache-2.0
// What a guest says on its console after a start: the first line that begins as somebody expects.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "cli/api/api.h"
#include "cli/objects/patience.h"

namespace berth::cli {

// How much of what is heard of a log was in it `before`; nullopt if that shows when more is heard.
// A log tells only its end: what is heard may begin anywhere in what was there before. Takes time
// and memory in proportion to both.
std::optional<size_t> KnownWords(std::string_view before, std::string_view heard);

class FirstWords {
 public:
  // An empty `beginning` is that of any line with something in it. The Api outlives this.
  FirstWords(Api& api, ObjectAddress address, std::string beginning)
      : api_(api), address_(std::move(address)), beginning_(std::move(beginning)) {}

  // Before the start: what its log has by now does not count. One that cannot be read has nothing.
  void NoteBefore();
  // Once it runs. The line, without control characters; Timeout when the patience ends.
  Result<std::string> Await(const Patience& patience);

 private:
  std::string path() const;

  Api& api_;
  const ObjectAddress address_;
  const std::string beginning_;
  std::string before_;
};

}  // namespace berth::cli
