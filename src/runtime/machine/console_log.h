// SPDX-License-Identifier: Apache-2.0
// What a guest's console said, out of its log.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "iri/attach.h"
#include "rt/blocking_pool.h"
#include "rt/task.h"

namespace berth::runtime {

// How much of the end of a log is shown. A guest writes what it likes: it is never kept whole.
constexpr size_t kLogTailMax = size_t{1} << 20;

struct LogRequest {
  std::string path;
  size_t lines = SIZE_MAX;  // the last ones
  bool follow = false;      // and what is written from now on
};
// Of the options of an AttachRequest: "tailLines", "follow". BadRequest names the option.
Result<LogRequest> LogRequestOf(std::string path, const iri::StringMap& options);

// `is_over`: nothing more will be written. Whoever follows a log and was overtaken by its end is
// told in a frame of errors how many bytes are gone. The pool outlives the stream.
rt::Task<Result<std::unique_ptr<iri::AttachStream>>> OpenLog(rt::BlockingPool* files,
                                                             LogRequest request,
                                                             std::function<bool()> is_over);

// The last lines of a text; an end without a line break is a line too.
std::string_view LastLines(std::string_view text, size_t lines);

}  // namespace berth::runtime
