// SPDX-License-Identifier: Apache-2.0
// Reading JSON: text or a Value into described structs, text into Values. One decoder, a template
// over where the tree comes from: simdjson's tape or a Value.
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/strings.h"
#include "meta/internal/json_scan.h"
#include "meta/internal/place.h"
#include "meta/ip.h"
#include "meta/json.h"
#include "meta/quantity.h"
#include "meta/reflect.h"

namespace berth::meta {
namespace {

namespace dom = simdjson::dom;
using internal::Place;

enum class Shape : uint8_t { kNull, kBool, kInt, kDouble, kString, kArray, kObject };

std::string_view ShapeName(Shape shape) {
  constexpr std::array<std::string_view, 7> kNames = {
      "null", "a boolean", "a number", "a number", "a string", "a list", "an object"};
  return kNames[static_cast<size_t>(shape)];
}

// ---- Where a tree comes from ----

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

 private:
  dom::element element_;
};

class ValueSource {
 public:
  explicit ValueSource(const Value& value) : value_(value) {}

  Shape shape() const {
    switch (value_.type()) {
      case Value::Type::kNull: return Shape::kNull;
      case Value::Type::kBool: return Shape::kBool;
      case Value::Type::kInt: return Shape::kInt;
      case Value::Type::kDouble: return Shape::kDouble;
      case Value::Type::kString: return Shape::kString;
      case Value::Type::kArray: return Shape::kArray;
      case Value::Type::kObject: return Shape::kObject;
    }
    return Shape::kNull;
  }
  bool as_bool() const { return value_.as_bool(); }
  int64_t as_int() const { return value_.as_int(); }
  double as_double() const { return value_.as_double(); }
  std::string NumberText() const {
    std::string text;
    AppendJsonDouble(as_double(), text);
    return text;
  }
  std::string_view as_string() const { return value_.as_string(); }
  template <class Visit>
  bool ForEachItem(const Visit& visit) const {
    for (const Value& item : value_.items()) {
      if (!visit(ValueSource(item))) return false;
    }
    return true;
  }
  template <class Visit>
  bool ForEachMember(const Visit& visit) const {
    for (const auto& member : value_.members()) {
      if (!visit(std::string_view(member.key), ValueSource(member.value))) return false;
    }
    return true;
  }
  Value ToValue() const { return value_; }

 private:
  const Value& value_;
};

// ---- The decoder ----

// More fields than this in one struct and duplicates among the rest are not noticed.
constexpr size_t kFieldsMax = 256;

template <class Source>
class Decoder {
 public:
  Decoder(const DecodeOptions& options, std::vector<std::string>* warnings)
      : validation_(options.field_validation), type_meta_(options.type_meta), warnings_(warnings) {}

  Status Run(const Source& source, const TypeInfo& type, void* out) {
    const Place root;
    if (source.shape() == Shape::kNull) {
      return BadRequest("expected " + std::string(Wanted(type)) + ", got null");
    }
    if (!Decode(source, type, out, root)) return std::move(error_);
    if (problems_.empty()) return OkStatus();
    if (validation_ == FieldValidation::kStrict) {
      return BadRequest("strict decoding error: " + Join(problems_, ", "));
    }
    if (warnings_ != nullptr) {
      for (auto& problem : problems_) warnings_->push_back(std::move(problem));
    }
    return OkStatus();
  }

 private:
  static std::string_view Wanted(const TypeInfo& type) {
    switch (type.kind) {
      case TypeKind::kBool: return "a boolean";
      case TypeKind::kInt32:
      case TypeKind::kInt64: return "an integer";
      case TypeKind::kDouble: return "a number";
      case TypeKind::kIntOrString: return "an integer or a string";
      case TypeKind::kQuantity: return "a quantity";
      case TypeKind::kStruct:
      case TypeKind::kMap: return "an object";
      case TypeKind::kList: return "a list";
      case TypeKind::kOptional: return Wanted(*type.element);
      default: return "a string";
    }
  }

  bool Fail(const Place& place, const std::string& why) {
    std::string text = place.ToString();
    if (!text.empty()) text += ": ";
    error_ = BadRequest(text + why);
    return false;
  }
  bool Mismatch(const Place& place, const TypeInfo& type, Shape got) {
    return Fail(place,
                "expected " + std::string(Wanted(type)) + ", got " + std::string(ShapeName(got)));
  }
  bool FailText(const Place& place, std::string_view wanted, std::string_view got) {
    return Fail(place, "expected " + std::string(wanted) + ", got " + Quote(got.substr(0, 64)));
  }

  void Problem(std::string_view what, const Place& place) {
    if (validation_ == FieldValidation::kIgnore || problems_.size() == kMaxFieldWarnings) return;
    problems_.push_back(std::string(what) + " field " + Quote(place.ToString()));
  }

  // REQUIRES: the source is not null.
  bool Decode(const Source& source, const TypeInfo& type, void* out, const Place& place) {
    const Shape shape = source.shape();
    switch (type.kind) {
      case TypeKind::kBool:
        if (shape != Shape::kBool) return Mismatch(place, type, shape);
        *static_cast<bool*>(out) = source.as_bool();
        return true;
      case TypeKind::kInt32:
      case TypeKind::kInt64: return Integer(source, type, out, place);
      case TypeKind::kDouble:
        if (shape != Shape::kInt && shape != Shape::kDouble) return Mismatch(place, type, shape);
        *static_cast<double*>(out) = source.as_double();
        return true;
      case TypeKind::kString:
        if (shape != Shape::kString) return Mismatch(place, type, shape);
        static_cast<std::string*>(out)->assign(source.as_string());
        return true;
      case TypeKind::kQuantity:
        return DecodeQuantity(source, type, static_cast<Quantity*>(out), place);
      case TypeKind::kIntOrString:
        return Either(source, type, static_cast<IntOrString*>(out), place);
      case TypeKind::kValue: *static_cast<Value*>(out) = source.ToValue(); return true;
      case TypeKind::kStruct:
        if (shape != Shape::kObject) return Mismatch(place, type, shape);
        return Struct(source, type, out, place);
      case TypeKind::kOptional:
        return Decode(source, *type.element, type.optional->emplace(out), place);
      case TypeKind::kList:
        if (shape != Shape::kArray) return Mismatch(place, type, shape);
        return List(source, type, out, place);
      case TypeKind::kMap:
        if (shape != Shape::kObject) return Mismatch(place, type, shape);
        return Map(source, type, out, place);
      case TypeKind::kBase64:
      case TypeKind::kTime:
      case TypeKind::kMicroTime:
      case TypeKind::kIp:
      case TypeKind::kIpPrefix:
        if (shape != Shape::kString) return Mismatch(place, type, shape);
        return FromText(source.as_string(), type, out, place);
    }
    return false;
  }

  bool Integer(const Source& source, const TypeInfo& type, void* out, const Place& place) {
    const Shape shape = source.shape();
    if (shape == Shape::kDouble) {
      return Fail(place, "expected an integer of 64 bits, got " + source.NumberText());
    }
    if (shape != Shape::kInt) return Mismatch(place, type, shape);
    const int64_t value = source.as_int();
    if (type.kind == TypeKind::kInt64) {
      *static_cast<int64_t*>(out) = value;
      return true;
    }
    if (value < std::numeric_limits<int32_t>::min() ||
        value > std::numeric_limits<int32_t>::max()) {
      return Fail(place, "expected an integer of 32 bits, got " + std::to_string(value));
    }
    *static_cast<int32_t*>(out) = static_cast<int32_t>(value);
    return true;
  }

  bool DecodeQuantity(const Source& source,
                      const TypeInfo& type,
                      Quantity* out,
                      const Place& place) {
    const Shape shape = source.shape();
    if (shape == Shape::kInt) {
      *out = Quantity(source.as_int());
      return true;
    }
    if (shape != Shape::kString && shape != Shape::kDouble) return Mismatch(place, type, shape);
    auto parsed = shape == Shape::kString ? Quantity::Parse(Trim(source.as_string()))
                                          : Quantity::Parse(source.NumberText());
    if (!parsed.ok()) return Fail(place, std::string(parsed.status().message()));
    *out = *std::move(parsed);
    return true;
  }

  bool Either(const Source& source, const TypeInfo& type, IntOrString* out, const Place& place) {
    const Shape shape = source.shape();
    if (shape == Shape::kInt) {
      *out = {.is_int = true, .number = source.as_int(), .text = {}};
      return true;
    }
    if (shape != Shape::kString) return Mismatch(place, type, shape);
    *out = {.is_int = false, .number = 0, .text = std::string(source.as_string())};
    return true;
  }

  bool FromText(std::string_view text, const TypeInfo& type, void* out, const Place& place) {
    switch (type.kind) {
      case TypeKind::kBase64: {
        auto bytes = Base64Decode(text);
        if (!bytes) return Fail(place, "expected base64");  // the text may be a secret
        static_cast<Base64*>(out)->bytes = *std::move(bytes);
        return true;
      }
      case TypeKind::kTime:
      case TypeKind::kMicroTime: {
        const auto time = ParseRfc3339(text);
        if (!time.ok()) return FailText(place, "an RFC 3339 time", text);
        if (type.kind == TypeKind::kMicroTime) {
          static_cast<MicroTime*>(out)->time = *time;
        } else {
          // metav1.Time has whole seconds only.
          *static_cast<WallTime*>(out) = WallTime::FromSeconds(time->seconds());
        }
        return true;
      }
      case TypeKind::kIp: {
        const auto address = text.empty() ? IpAddress() : IpAddress::Parse(text);
        if (!address) return FailText(place, "an IP address", text);
        *static_cast<IpAddress*>(out) = *address;
        return true;
      }
      default: {
        const auto prefix = text.empty() ? IpPrefix() : IpPrefix::Parse(text);
        if (!prefix) return FailText(place, "an IP prefix", text);
        *static_cast<IpPrefix*>(out) = *prefix;
        return true;
      }
    }
  }

  bool List(const Source& source, const TypeInfo& type, void* out, const Place& place) {
    type.list->clear(out);
    Place item_place{.parent = &place, .step = Place::Step::kIndex};
    return source.ForEachItem([&](const Source& item) {
      void* element = type.list->append(out);
      const bool ok =
          item.shape() == Shape::kNull || Decode(item, *type.element, element, item_place);
      ++item_place.index;
      return ok;
    });
  }

  bool Map(const Source& source, const TypeInfo& type, void* out, const Place& place) {
    type.map->clear(out);
    return source.ForEachMember([&](std::string_view key, const Source& item) {
      const Place item_place{.parent = &place, .step = Place::Step::kKey, .name = key};
      const size_t size = type.map->size(out);
      void* element = type.map->insert(out, std::string(key));
      if (type.map->size(out) == size) Problem("duplicate", item_place);
      return item.shape() == Shape::kNull || Decode(item, *type.element, element, item_place);
    });
  }

  bool Struct(const Source& source, const TypeInfo& type, void* out, const Place& place) {
    std::bitset<kFieldsMax> seen;
    bool seen_api_version = false;
    bool seen_kind = false;
    size_t next = 0;  // clients mostly send fields in our order
    return source.ForEachMember([&](std::string_view key, const Source& item) {
      const Place item_place{.parent = &place, .step = Place::Step::kField, .name = key};
      const FoundField found = Find(type, key, next);
      if (found.field == nullptr) {
        if (place.parent == nullptr && type_meta_ != nullptr) {
          if (key == "apiVersion") {
            return TypeMember(item, type_meta_->api_version, seen_api_version, item_place);
          }
          if (key == "kind") return TypeMember(item, type_meta_->kind, seen_kind, item_place);
        }
        Problem("unknown", item_place);
        return true;
      }
      const size_t ordinal = found.ordinal % kFieldsMax;
      void* at = static_cast<char*>(out) + found.offset;
      if (seen[ordinal]) {
        Problem("duplicate", item_place);
        found.field->type->ops->reset(at);
      }
      seen[ordinal] = true;
      return item.shape() == Shape::kNull || Decode(item, *found.field->type, at, item_place);
    });
  }

  bool TypeMember(const Source& item, std::string& out, bool& seen, const Place& place) {
    if (seen) Problem("duplicate", place);
    seen = true;
    if (item.shape() == Shape::kNull) return true;
    return Decode(item, TypeInfoOf<std::string>(), &out, place);
  }

  static FoundField Find(const TypeInfo& type, std::string_view key, size_t& next) {
    const size_t count = type.fields.size();
    for (size_t i = next; i < count; ++i) {
      const Field& field = type.fields[i];
      if (field.options.inlined) break;  // from here on ordinals shift
      if (field.name == key) {
        next = i + 1;
        return {.field = &field, .offset = field.offset, .ordinal = i};
      }
    }
    return FindField(type, key);
  }

  FieldValidation validation_;
  TypeMeta* type_meta_;
  std::vector<std::string>* warnings_;
  std::vector<std::string> problems_;
  Status error_;
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
  return Decoder<DomSource>(options, warnings).Run(DomSource(root), type, out);
}

Status FromValue(const Value& value,
                 const TypeInfo& type,
                 void* out,
                 const DecodeOptions& options,
                 std::vector<std::string>* warnings) {
  return Decoder<ValueSource>(options, warnings).Run(ValueSource(value), type, out);
}

Result<Value> ParseJson(std::string_view json, size_t max_bytes) {
  TRY(const dom::element root, ParseDom(json, max_bytes));
  return DomSource(root).ToValue();
}

}  // namespace berth::meta
