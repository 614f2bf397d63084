// SPDX-License-Identifier: Apache-2.0
// YAML, read and written as kubectl does: YAML 1.1 words and numbers (yes, on, 0x1f, 010, 1_000)
// are what they look like unless they are quoted; keys become strings; merge keys and aliases are
// expanded, within limits. A key that stands twice in one mapping is an error.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "meta/value.h"

namespace berth::meta {

constexpr size_t kMaxYamlBytes = 3 * 1024 * 1024;
constexpr size_t kMaxYamlDocuments = 10'000;
// What aliases may add in all, in characters and nodes: no billion laughs.
constexpr size_t kMaxYamlExpansion = 1024 * 1024;

struct YamlLimits {
  size_t bytes = kMaxYamlBytes;
  size_t documents = kMaxYamlDocuments;
};

// One document; null if there is none, BadRequest if there are several. JSON is read as JSON.
// Errors name line and column: "invalid YAML at line 3, column 5: ...".
Result<Value> ParseYaml(std::string_view text);
// All documents, empty ones as null.
Result<std::vector<Value>> ParseYamlDocuments(std::string_view text, YamlLimits limits = {});

// As `kubectl get -o yaml`: keys sorted (k2 before k10), two spaces, list items not indented,
// quotes only where needed, block literals for several lines. Ends with a newline.
std::string WriteYaml(const Value& value);

}  // namespace berth::meta
