// SPDX-License-Identifier: Apache-2.0
// Selecting objects by the values of a few fields: "metadata.name=a,status.phase!=Running". Which
// fields a kind offers is in KindInfo::field_selectors.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::meta {

class FieldSelector {
 public:
  struct Term {
    std::string field;
    std::string value;
    bool equal = true;  // false: !=
    bool operator==(const Term&) const = default;
  };
  static constexpr size_t kTextMax = 64 * 1024;

  // Selects everything.
  FieldSelector() = default;
  explicit FieldSelector(std::vector<Term> terms) : terms_(std::move(terms)) {}
  // Values escape '\', ',' and '=' with '\'.
  static Result<FieldSelector> Parse(std::string_view text);

  bool empty() const { return terms_.empty(); }
  const std::vector<Term>& terms() const { return terms_; }
  // `find` gives the value of a field as something that compares with a string; absent is "".
  template <class Find>
  bool MatchesWith(const Find& find) const {
    for (const auto& term : terms_) {
      if ((find(std::string_view(term.field)) == term.value) != term.equal) return false;
    }
    return true;
  }
  // The value that a field must have, if the selector asks for one.
  std::optional<std::string_view> RequiredValue(std::string_view field) const;

  std::string ToString() const;
  bool operator==(const FieldSelector&) const = default;

 private:
  std::vector<Term> terms_;
};

}  // namespace berth::meta
