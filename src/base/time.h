// SPDX-License-Identifier: Apache-2.0
// Strong types for time. Duration and Time (monotonic, of a loop) order events; WallTime is what
// objects show. None of them reads a clock: clocks come in through rt::Loop.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result_fwd.h"

namespace berth {

class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration Nanos(int64_t n) { return Duration(n); }
  static constexpr Duration Micros(int64_t n) { return Duration(n * 1'000); }
  static constexpr Duration Millis(int64_t n) { return Duration(n * 1'000'000); }
  static constexpr Duration Seconds(int64_t n) { return Duration(n * 1'000'000'000); }
  static constexpr Duration Minutes(int64_t n) { return Seconds(n * 60); }
  static constexpr Duration Hours(int64_t n) { return Seconds(n * 3600); }

  constexpr int64_t nanos() const { return nanos_; }
  constexpr int64_t micros() const { return nanos_ / 1'000; }
  constexpr int64_t millis() const { return nanos_ / 1'000'000; }
  constexpr int64_t seconds() const { return nanos_ / 1'000'000'000; }
  constexpr double to_seconds() const { return static_cast<double>(nanos_) / 1e9; }

  constexpr auto operator<=>(const Duration&) const = default;
  constexpr Duration operator+(Duration d) const { return Duration(nanos_ + d.nanos_); }
  constexpr Duration operator-(Duration d) const { return Duration(nanos_ - d.nanos_); }
  constexpr Duration operator*(int64_t n) const { return Duration(nanos_ * n); }
  constexpr Duration operator/(int64_t n) const { return Duration(nanos_ / n); }
  constexpr Duration& operator+=(Duration d) {
    nanos_ += d.nanos_;
    return *this;
  }

 private:
  explicit constexpr Duration(int64_t nanos) : nanos_(nanos) {}
  int64_t nanos_ = 0;
};

// "1h30m", "250ms", "0s": what flags and tables use. Parse accepts a sum of numbers with units ns,
// us, ms, s, m, h, d.
std::string FormatDuration(Duration duration);
Result<Duration> ParseDuration(std::string_view text);
// Kubernetes' AGE column: "5s", "3m12s", "2h", "4d3h", "1y20d".
std::string FormatAge(Duration age);

// A point on a loop's monotonic clock. Only differences mean anything.
class Time {
 public:
  constexpr Time() = default;
  static constexpr Time FromNanos(int64_t n) { return Time(n); }
  constexpr int64_t nanos() const { return nanos_; }
  constexpr auto operator<=>(const Time&) const = default;
  constexpr Time operator+(Duration d) const { return Time(nanos_ + d.nanos()); }
  constexpr Time operator-(Duration d) const { return Time(nanos_ - d.nanos()); }
  constexpr Duration operator-(Time t) const { return Duration::Nanos(nanos_ - t.nanos_); }

 private:
  explicit constexpr Time(int64_t nanos) : nanos_(nanos) {}
  int64_t nanos_ = 0;
};

// A point in civil time, UTC, in microseconds since 1970. Zero means "not set", as in metav1.Time.
class WallTime {
 public:
  constexpr WallTime() = default;
  static constexpr WallTime FromMicros(int64_t n) { return WallTime(n); }
  static constexpr WallTime FromSeconds(int64_t n) { return WallTime(n * 1'000'000); }
  constexpr int64_t micros() const { return micros_; }
  constexpr int64_t seconds() const {
    return (micros_ - ((micros_ % 1'000'000) + 1'000'000) % 1'000'000) / 1'000'000;
  }
  constexpr bool is_zero() const { return micros_ == 0; }
  constexpr auto operator<=>(const WallTime&) const = default;
  constexpr WallTime operator+(Duration d) const { return WallTime(micros_ + d.micros()); }
  constexpr WallTime operator-(Duration d) const { return WallTime(micros_ - d.micros()); }
  constexpr Duration operator-(WallTime t) const { return Duration::Micros(micros_ - t.micros_); }

 private:
  explicit constexpr WallTime(int64_t micros) : micros_(micros) {}
  int64_t micros_ = 0;
};

// RFC 3339 in UTC: "2026-08-22T10:00:00Z" (metav1.Time), with six digits for metav1.MicroTime.
// Parse accepts any offset and up to nine digits, years 0001 to 9999.
std::string FormatRfc3339(WallTime time);
std::string FormatRfc3339Micro(WallTime time);
Result<WallTime> ParseRfc3339(std::string_view text);

}  // namespace berth
