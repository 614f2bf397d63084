// SPDX-License-Identifier: Apache-2.0
// kubectl's JSONPath templates: text with expressions in braces.
//
//   {.items[*].metadata.name}                      fields, wildcards
//   {range .items[*]}{.metadata.name}{"\n"}{end}   loops, text
//   {.items[?(@.status.phase=="Running")].spec}    filters: == != < <= > >=, or existence
//   {.a[0]} {.a[-1]} {.a[1:3]} {.a[0,2]} {..name}  indexes, slices, unions, recursive descent
//   {.metadata.labels.example\.com/app}            escaped dots; also ['example.com/app']
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "meta/value.h"

namespace berth::meta {

class JsonPath {
 public:
  static constexpr size_t kTextMax = 64 * 1024;
  // What one expression may give, and one template may print.
  static constexpr size_t kResultsMax = 1'000'000;
  static constexpr size_t kOutputMax = 64 * 1024 * 1024;

  // BadRequest names the position of what is wrong.
  static Result<JsonPath> Parse(std::string_view text);
  // The same for what people write without braces or the leading dot: "metadata.name",
  // ".status.phase", "{.status.phase}" (custom columns, sort-by, wait).
  static Result<JsonPath> ParseRelaxed(std::string_view text);

  // Prints as kubectl: results of one expression separated by spaces, objects and lists as JSON,
  // what is absent as nothing. BadRequest if it becomes too much.
  Result<std::string> Render(const Value& value) const;
  // All results of all expressions outside of loops; they point into `value`.
  Result<std::vector<const Value*>> Find(const Value& value) const;

  JsonPath(JsonPath&&) noexcept;
  JsonPath& operator=(JsonPath&&) noexcept;
  ~JsonPath();

 private:
  struct Node;
  struct Step;
  class Parser;
  class Evaluator;
  explicit JsonPath(std::vector<Node> nodes);
  std::vector<Node> nodes_;
};

}  // namespace berth::meta
