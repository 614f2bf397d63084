// SPDX-License-Identifier: Apache-2.0
// Reading JSON with simdjson: text into described structs and into Values.
#include <simdjson.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "meta/internal/json_decoder.h"
#include "meta/internal/json_scan.h"
#include "meta/json.h"

namespace berth::meta {
namespace {

namespace dom = simdjson::dom;
using internal::Shape;

class DomSource {
 public:
  explicit DomSource(dom::element element) : element_(element) {}

  Shape shape() const {
    switch (element_.type()) {
      case dom::element_type::NULL_VALUE: return Shape::kNull;
      case dom::element_type::BOOL: return Shape::kBool;
      case dom::element_type::INT64: return Shape::kInt;
      case dom::element_type::UINT64:  // only what is beyond int64
      case dom::element_type::DOUBLE: return Shape::kDouble;
      case dom::element_type::STRING: return Shape::kString;
      case dom::element_type::ARRAY: return Shape::kArray;
      case dom::element_type::OBJECT: return Shape::kObject;
    }
    return Shape::kNull;
  }
  bool as_bool() const { return element_.get_bool().value_unsafe(); }
  int64_t as_int() const { return element_.get_int64().value_unsafe(); }
  double as_double() const { return element_.get_double().value_unsafe(); }
  // The number's digits where a double would lose some.
  std::string NumberText() const {
    if (element_.type() == dom::element_type::UINT64) {
      return std::to_string(element_.get_uint64().value_unsafe());
    }
    std::string text;
    AppendJsonDouble(as_double(), text);
    return text;
  }
  std::string_view as_string() const { return element_.get_string().value_unsafe(); }
  template <class Visit>  // visit(DomSource): false stops
  bool ForEachItem(const Visit& visit) const {
    for (const dom::element item : element_.get_array().value_unsafe()) {
      if (!visit(DomSource(item))) return false;
    }
    return true;
  }
  template <class Visit>  // visit(key, DomSource): false stops
  bool ForEachMember(const Visit& visit) const {
    for (const auto& [key, item] : element_.get_object().value_unsafe()) {
      if (!visit(key, DomSource(item))) return false;
    }
    return true;
  }
  Value ToValue() const;
  std::string ToText() const { return simdjson::minify(element_); }

 private:
  dom::element element_;
};

// Numbers keys in the order of their first appearance. Few are compared one by one; a hash keeps a
// hostile object with very many harmless.
class UniqueKeys {
 public:
  explicit UniqueKeys(size_t expected) { keys_.reserve(expected); }
  // REQUIRES: the text outlives this.
  size_t Add(std::string_view key) {
    constexpr size_t kLinear = 16;
    if (keys_.size() < kLinear) {
      for (size_t i = 0; i < keys_.size(); ++i) {
        if (keys_[i] == key) return i;
      }
    } else {
      if (index_.empty()) {
        for (size_t i = 0; i < keys_.size(); ++i) index_.emplace(keys_[i], i);
      }
      const auto [found, is_new] = index_.emplace(key, keys_.size());
      if (!is_new) return found->second;
    }
    keys_.push_back(key);
    return keys_.size() - 1;
  }

 private:
  std::vector<std::string_view> keys_;
  std::unordered_map<std::string_view, size_t> index_;
};

// Keys are made unique: of duplicates the last value stays, at the first place.
Value DomSource::ToValue() const {
  switch (element_.type()) {
    case dom::element_type::NULL_VALUE: return {};
    case dom::element_type::BOOL: return as_bool();
    case dom::element_type::INT64: return as_int();
    case dom::element_type::UINT64:
    case dom::element_type::DOUBLE: return as_double();
    case dom::element_type::STRING: return Value(as_string());
    case dom::element_type::ARRAY: {
      std::vector<Value> items;
      items.reserve(element_.get_array().value_unsafe().size());
      ForEachItem([&](const DomSource& item) {
        items.push_back(item.ToValue());
        return true;
      });
      return Value::Array(std::move(items));
    }
    case dom::element_type::OBJECT: break;
  }
  std::vector<Value::Member> members;
  const size_t size = element_.get_object().value_unsafe().size();
  members.reserve(size);
  UniqueKeys keys(size);
  ForEachMember([&](std::string_view key, const DomSource& item) {
    const size_t at = keys.Add(key);
    if (at == members.size()) {
      members.push_back({std::string(key), item.ToValue()});
    } else {
      members[at].value = item.ToValue();
    }
    return true;
  });
  return Value::Object(std::move(members));
}

// A parser and a padded copy of the text, kept per thread so that a small object costs no
// allocation. What a huge text made them grow to is given back.
struct Workspace {
  dom::parser parser;
  std::string padded;
};
constexpr size_t kKeptBytes = 256 * 1024;

Workspace& ThreadWorkspace() {
  thread_local std::unique_ptr<Workspace> workspace;
  if (workspace == nullptr || workspace->padded.capacity() > kKeptBytes) {
    workspace = std::make_unique<Workspace>();
  }
  return *workspace;
}

// The element lives until the next call on this thread.
Result<dom::element> ParseDom(std::string_view json, size_t max_bytes) {
  if (json.size() > max_bytes) {
    return Status(Reason::kRequestTooLarge,
                  "JSON of " + std::to_string(json.size()) + " bytes is larger than the limit of " +
                      std::to_string(max_bytes));
  }
  Workspace& workspace = ThreadWorkspace();
  workspace.padded.clear();
  workspace.padded.reserve(json.size() + simdjson::SIMDJSON_PADDING);
  workspace.padded.append(json).append(simdjson::SIMDJSON_PADDING, '\0');
  auto error = simdjson::SUCCESS;
  if (workspace.parser.capacity() < json.size() || workspace.parser.max_depth() != kMaxJsonDepth) {
    error = workspace.parser.allocate(std::max<size_t>(json.size(), 4096), kMaxJsonDepth);
  }
  dom::element root;
  if (error == simdjson::SUCCESS) {
    error = workspace.parser.parse(workspace.padded.data(), json.size(), false).get(root);
  }
  if (error == simdjson::SUCCESS) return root;
  const auto fault = internal::FindJsonFault(json, kMaxJsonDepth);
  return BadRequest("invalid JSON at byte " + std::to_string(fault.offset) + ": " +
                    (fault.why.empty() ? simdjson::error_message(error) : fault.why));
}

}  // namespace

Status DecodeJson(std::string_view json,
                  const TypeInfo& type,
                  void* out,
                  const DecodeOptions& options,
                  std::vector<std::string>* warnings) {
  TRY(const dom::element root, ParseDom(json, options.max_bytes));
  return internal::Decoder<DomSource>(options, warnings).Run(DomSource(root), type, out);
}

Result<Value> ParseJson(std::string_view json, size_t max_bytes) {
  TRY(const dom::element root, ParseDom(json, max_bytes));
  return DomSource(root).ToValue();
}

}  // namespace berth::meta
