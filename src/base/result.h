// SPDX-License-Identifier: Apache-2.0
// A Result<T> is either a value or the Status that says why there is none.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace berth {

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  // Implicit on purpose: `return value;` and `return NotFound(...);` both read well.
  template <class U = T>
    requires(std::is_constructible_v<T, U &&> && !std::is_same_v<std::remove_cvref_t<U>, Status> &&
             !std::is_same_v<std::remove_cvref_t<U>, Result>)
  Result(U&& value) : value_(std::in_place, std::forward<U>(value)) {}
  Result(Status status) : status_(std::move(status)) {
    CHECK(!status_.ok()) << "a Result without a value needs an error";
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  // REQUIRES: ok().
  T& value() & {
    CHECK(ok()) << status_;
    return *value_;
  }
  const T& value() const& {
    CHECK(ok()) << status_;
    return *value_;
  }
  T&& value() && {
    CHECK(ok()) << status_;
    return *std::move(value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  Status status_;  // ok if and only if value_ is there
  std::optional<T> value_;
};

namespace internal {
inline const Status& StatusOf(const Status& status) { return status; }
template <class T>
const Status& StatusOf(const Result<T>& result) {
  return result.status();
}
}  // namespace internal

}  // namespace berth

#define BERTH_CAT_(a, b) a##b
#define BERTH_CAT(a, b) BERTH_CAT_(a, b)
#define BERTH_TRY_(temporary, keyword, lhs, ...)   \
  auto temporary = (__VA_ARGS__);                  \
  if (!temporary.ok()) keyword temporary.status(); \
  lhs = *std::move(temporary)

// TRY(auto object, Parse(bytes)) takes the value or returns the error. CO_TRY is the same inside a
// coroutine.
#define TRY(lhs, ...) BERTH_TRY_(BERTH_CAT(try_, __LINE__), return, lhs, __VA_ARGS__)
#define CO_TRY(lhs, ...) BERTH_TRY_(BERTH_CAT(try_, __LINE__), co_return, lhs, __VA_ARGS__)

// For calls that give a plain Status, or a Result whose value is not wanted.
#define TRY_STATUS(...)                                                   \
  do {                                                                    \
    auto try_status = (__VA_ARGS__);                                      \
    if (!try_status.ok()) return ::berth::internal::StatusOf(try_status); \
  } while (false)
#define CO_TRY_STATUS(...)                                                   \
  do {                                                                       \
    auto try_status = (__VA_ARGS__);                                         \
    if (!try_status.ok()) co_return ::berth::internal::StatusOf(try_status); \
  } while (false)
