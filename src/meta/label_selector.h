// SPDX-License-Identifier: Apache-2.0
// Selecting objects by their labels. LabelSelector is the struct that objects carry; Selector is
// what both it and the text form ("app=web,tier in (a,b),!old") become, ready for matching.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "meta/field_errors.h"
#include "meta/type.h"

namespace berth::meta {

struct LabelSelectorRequirement {
  std::string key;
  std::string operator_;  // In, NotIn, Exists, DoesNotExist
  std::vector<std::string> values;
  bool operator==(const LabelSelectorRequirement&) const = default;
};
BERTH_DESCRIBE(
    LabelSelectorRequirement,
    "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement",
    "A condition on one label.",
    BERTH_FIELD(key, "key", "The label's key.", {.required = true}),
    BERTH_FIELD(operator_, "operator", "In, NotIn, Exists or DoesNotExist.", {.required = true}),
    BERTH_FIELD(values,
                "values",
                "The values of In and NotIn; empty for the others.",
                {.list_type = "atomic"}))

struct LabelSelector {
  std::map<std::string, std::string> match_labels;
  std::vector<LabelSelectorRequirement> match_expressions;
  bool operator==(const LabelSelector&) const = default;
};
BERTH_DESCRIBE_ATOMIC(
    LabelSelector,
    "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector",
    "Selects objects by labels; all conditions must hold. An empty selector selects everything.",
    BERTH_FIELD(match_labels, "matchLabels", "Labels that must have exactly these values."),
    BERTH_FIELD(
        match_expressions, "matchExpressions", "Further conditions.", {.list_type = "atomic"}))

void ValidateLabelSelector(const FieldPath& path,
                           const LabelSelector& selector,
                           FieldErrors& errors);

class Selector {
 public:
  enum class Operator : uint8_t {
    kIn,  // also = and ==
    kNotIn,
    kExists,
    kDoesNotExist,
    kGreaterThan,
    kLessThan,
  };
  struct Requirement {
    std::string key;
    Operator op = Operator::kExists;
    std::vector<std::string> values;  // sorted, unique
    bool operator==(const Requirement&) const = default;
    bool Matches(std::optional<std::string_view> value) const;
  };
  // Longer texts are refused: a selector is parsed for every list and watch.
  static constexpr size_t kTextMax = 64 * 1024;

  // Selects everything.
  Selector() = default;
  static Result<Selector> Parse(std::string_view text);
  // REQUIRES: nothing; an unknown operator is an error.
  static Result<Selector> From(const LabelSelector& selector);
  static Selector FromLabels(const std::map<std::string, std::string>& labels);

  bool empty() const { return requirements_.empty(); }
  const std::vector<Requirement>& requirements() const { return requirements_; }
  bool Matches(const std::map<std::string, std::string>& labels) const;
  // `find` gives the value of a label as optional<string_view>.
  template <class Find>
  bool MatchesWith(const Find& find) const {
    for (const auto& requirement : requirements_) {
      if (!requirement.Matches(find(std::string_view(requirement.key)))) return false;
    }
    return true;
  }
  // The value that `key` must have, if the selector asks for exactly one.
  std::optional<std::string_view> RequiredValue(std::string_view key) const;

  // Kubernetes' form, sorted by key: "app=web,tier in (a,b),!old".
  std::string ToString() const;
  bool operator==(const Selector&) const = default;

 private:
  explicit Selector(std::vector<Requirement> requirements);
  std::vector<Requirement> requirements_;  // sorted by key
};

}  // namespace berth::meta
