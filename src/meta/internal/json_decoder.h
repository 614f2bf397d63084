// SPDX-License-Identifier: Apache-2.0
// The decoder of described structs, a template over where the tree comes from: simdjson's tape
// (json_read.cc) or a Value (from_value.cc).
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "meta/internal/place.h"
#include "meta/json.h"
#include "meta/quantity.h"
#include "meta/reflect.h"

namespace berth::meta::internal {

enum class Shape : uint8_t { kNull, kBool, kInt, kDouble, kString, kArray, kObject };

inline std::string_view ShapeName(Shape shape) {
  constexpr std::array<std::string_view, 7> kNames = {
      "null", "a boolean", "a number", "a number", "a string", "a list", "an object"};
  return kNames[static_cast<size_t>(shape)];
}

// Base64, times and addresses: reads the text into `out`, and says what is wrong with it; "" if
// nothing is.
std::string DecodeScalarText(std::string_view text, const TypeInfo& type, void* out);

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
      case TypeKind::kRawJson: static_cast<RawJson*>(out)->text = source.ToText(); return true;
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
        if (const std::string why = DecodeScalarText(source.as_string(), type, out); !why.empty()) {
          return Fail(place, why);
        }
        return true;
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

}  // namespace berth::meta::internal
