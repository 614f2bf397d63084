// SPDX-License-Identifier: Apache-2.0
// CHECK stops the process when the program itself is wrong. It stays on in release builds. Data
// from outside (a request, a disk, a peer) never goes through CHECK: that is a Status.
#pragma once

#include <ostream>

namespace berth::internal {

// Collects the message of a failed check and aborts in its destructor. The stream itself is not in
// here: a coroutine keeps room for every check that it contains in its frame for as long as it
// lives, and there are two in each co_await.
class CheckFailure {
 public:
  CheckFailure(const char* condition, const char* file, int line);
  [[noreturn]] ~CheckFailure();
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;
  std::ostream& stream() { return stream_; }

 private:
  std::ostream& stream_;
};

// Makes `cond ? (void)0 : Voidify() & stream` well-formed: & binds weaker than << and stronger than
// ?:.
struct Voidify {
  void operator&(std::ostream&) const {}
};

}  // namespace berth::internal

#define CHECK(condition)                       \
  (condition) ? (void)0                        \
              : ::berth::internal::Voidify() & \
                    ::berth::internal::CheckFailure(#condition, __FILE__, __LINE__).stream()

#ifdef NDEBUG
#define DCHECK(condition) CHECK(true || (condition))
#else
#define DCHECK(condition) CHECK(condition)
#endif
