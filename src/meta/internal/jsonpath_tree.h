// SPDX-License-Identifier: Apache-2.0
// What a JSONPath template is once it is read: made by jsonpath_parse.cc, walked by jsonpath.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meta/jsonpath.h"
#include "meta/value.h"

namespace berth::meta {

// One step of a path: what it takes from a value.
struct JsonPath::Step {
  enum class Kind : uint8_t { kField, kWildcard, kRecursive, kIndexes, kFields, kSlice, kFilter };
  Kind kind = Kind::kField;
  std::string name;                           // kField
  std::vector<int64_t> indexes;               // kIndexes
  std::vector<std::string> names;             // kFields
  std::optional<int64_t> start, end, stride;  // kSlice
  // kFilter: left op right; no op means that left exists.
  struct Operand {
    bool is_path = false;
    bool from_root = false;
    std::vector<Step> path;
    Value literal;
  };
  Operand left, right;
  std::string op;
};

// A piece of the template: text, an expression, or a loop over one.
struct JsonPath::Node {
  enum class Kind : uint8_t { kText, kPath, kRange };
  Kind kind = Kind::kText;
  std::string text;
  std::vector<Step> path;
  bool from_root = false;
  std::vector<Node> body;
};

}  // namespace berth::meta
