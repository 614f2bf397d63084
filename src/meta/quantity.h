// SPDX-License-Identifier: Apache-2.0
// A Quantity is an exact number with a way of being written, as Kubernetes' resource.Quantity:
// "500m", "16Gi", "1e3". It is kept in billionths; what is finer is rounded away from zero, because
// whoever asks for some resource should get some. Writing a Quantity always gives its canonical
// form: no fraction, the largest suffix that loses nothing.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::meta {

class Quantity {
 public:
  enum class Format : uint8_t {
    kDecimalSi,        // n u m "" k M G T P E
    kBinarySi,         // Ki Mi Gi Ti Pi Ei
    kDecimalExponent,  // 1e3
  };
  __extension__ using Wide = __int128;

  // Longer texts are no quantities.
  static constexpr size_t kTextMax = 256;

  constexpr Quantity() = default;
  constexpr explicit Quantity(int64_t value, Format format = Format::kDecimalSi)
      : nanos_(Wide{value} * kNanosPerUnit), format_(format) {}
  static constexpr Quantity Milli(int64_t value, Format format = Format::kDecimalSi) {
    return FromNanos(Wide{value} * (kNanosPerUnit / 1000), format);
  }
  static constexpr Quantity FromNanos(Wide nanos, Format format = Format::kDecimalSi) {
    Quantity quantity;
    quantity.nanos_ = nanos;
    quantity.format_ = format;
    return quantity;
  }

  // BinarySI is capped at 2^63-1, as Kubernetes does; decimals beyond 1e29 are an error.
  static Result<Quantity> Parse(std::string_view text);

  std::string ToString() const;
  void AppendTo(std::string& out) const;

  // In whole units (thousandths), rounded away from zero, capped at the range of int64.
  int64_t Value() const;
  int64_t MilliValue() const;
  double ToDouble() const;
  constexpr Wide nanos() const { return nanos_; }
  constexpr Format format() const { return format_; }

  constexpr bool IsZero() const { return nanos_ == 0; }
  constexpr int Sign() const { return nanos_ == 0 ? 0 : nanos_ < 0 ? -1 : 1; }

  // Exact, capped at the range of the representation. A zero takes over the other's format.
  Quantity& operator+=(const Quantity& other);
  Quantity& operator-=(const Quantity& other);
  Quantity& operator*=(int64_t factor);
  friend Quantity operator+(Quantity a, const Quantity& b) { return a += b; }
  friend Quantity operator-(Quantity a, const Quantity& b) { return a -= b; }
  friend Quantity operator*(Quantity a, int64_t factor) { return a *= factor; }
  Quantity operator-() const;

  // By value: 1Gi equals 1024Mi and 1073741824.
  constexpr bool operator==(const Quantity& other) const { return nanos_ == other.nanos_; }
  constexpr std::strong_ordering operator<=>(const Quantity& other) const {
    return nanos_ < other.nanos_   ? std::strong_ordering::less
           : nanos_ > other.nanos_ ? std::strong_ordering::greater
                                   : std::strong_ordering::equal;
  }

 private:
  static constexpr int64_t kNanosPerUnit = 1'000'000'000;

  Wide nanos_ = 0;
  Format format_ = Format::kDecimalSi;
};

}  // namespace berth::meta
