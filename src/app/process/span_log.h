// SPDX-License-Identifier: Apache-2.0
// A SpanLog writes down how long a process was with something: one line of JSON per call of libvirt
// or of qemu-img, or per step of its own, and for which machine. `berth bench boot` reads it.
// On-loop only.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::app {

class SpanLog {
 public:
  // Appends to the file.
  static Result<std::unique_ptr<SpanLog>> Open(rt::Loop& loop, const std::string& path);
  ~SpanLog();
  SpanLog(const SpanLog&) = delete;
  SpanLog& operator=(const SpanLog&) = delete;

  // {"span":"libvirt.start","of":"m-x5gt7","begin":1731744000000000,"end":1731744000250000},
  // microseconds since 1970. `of` is the uid of a machine or its ID at the runtime; "" for what is
  // about none. Nothing is said of what cannot be written: figures are no reason to fail.
  void Add(std::string_view span, std::string_view of, WallTime begin, WallTime end);
  // A moment.
  void Mark(std::string_view span, std::string_view of) { Add(span, of, Now(), Now()); }
  WallTime Now() const { return loop_.WallNow(); }

  // The task, with a span around it.
  template <class T>
  rt::Task<T> Around(std::string span, std::string of, rt::Task<T> task) {
    const WallTime begin = Now();
    T result = co_await std::move(task);
    Add(span, of, begin, Now());
    co_return result;
  }

 private:
  SpanLog(rt::Loop& loop, int fd) : loop_(loop), fd_(fd) {}

  rt::Loop& loop_;
  const int fd_;
};

}  // namespace berth::app
