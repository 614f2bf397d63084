// SPDX-License-Identifier: Apache-2.0
// JSON, both ways: text to described structs and back, text to Value and back, and between the two.
//
// Reading is strict about JSON itself and about types, and says where: "invalid JSON at byte 17:
// ...", "spec.power: expected a string, got a number". null means absent everywhere. Quantities may
// be numbers. Unknown and duplicate fields are ignored, reported or refused as FieldValidation
// says; of duplicates the last wins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "meta/type.h"
#include "meta/value.h"

namespace berth::meta {

// What a request may carry, as in Kubernetes.
constexpr size_t kMaxJsonBytes = 3 * 1024 * 1024;
// Our deepest kind has a dozen levels; patches and apply sets a few more.
constexpr size_t kMaxJsonDepth = 256;
// Unknown and duplicate fields beyond this many are not told.
constexpr size_t kMaxFieldWarnings = 64;

enum class FieldValidation : uint8_t { kIgnore, kWarn, kStrict };

// The two members of an object that say what it is.
struct TypeMeta {
  std::string api_version;
  std::string kind;
  bool operator==(const TypeMeta&) const = default;
};

struct DecodeOptions {
  FieldValidation field_validation = FieldValidation::kIgnore;
  size_t max_bytes = kMaxJsonBytes;
  // Not null: apiVersion and kind are accepted on the top level and stored here.
  TypeMeta* type_meta = nullptr;
};

// Decodes into `out`, a new value of `type`. With kWarn every unknown or duplicate field is one
// text in `warnings`; with kStrict all of them are one BadRequest: strict decoding error: unknown
// field "spec.foo", duplicate field "spec.a". After an error `out` holds something valid but
// unspecified.
Status DecodeJson(std::string_view json,
                  const TypeInfo& type,
                  void* out,
                  const DecodeOptions& options = {},
                  std::vector<std::string>* warnings = nullptr);
// The same from a tree.
Status FromValue(const Value& value,
                 const TypeInfo& type,
                 void* out,
                 const DecodeOptions& options = {},
                 std::vector<std::string>* warnings = nullptr);
template <class T>
Result<T> DecodeJsonAs(std::string_view json, const DecodeOptions& options = {}) {
  T out{};
  TRY_STATUS(DecodeJson(json, TypeInfoOf<T>(), &out, options));
  return out;
}
template <class T>
Result<T> FromValueAs(const Value& value, const DecodeOptions& options = {}) {
  T out{};
  TRY_STATUS(FromValue(value, TypeInfoOf<T>(), &out, options));
  return out;
}

// Appends compact JSON: fields in order of declaration, map keys sorted, only the
// fields that IsWritten() names. The output is valid UTF-8 whatever the strings hold.
void EncodeJson(const TypeInfo& type, const void* value, std::string& out);
// The members of a struct without the braces around them, and without the field `skip`; false if
// there was nothing to write.
bool EncodeJsonMembers(const TypeInfo& type,
                       const void* value,
                       std::string& out,
                       std::string_view skip = {});
Value ToValue(const TypeInfo& type, const void* value);
template <class T>
std::string EncodeJsonOf(const T& value) {
  std::string out;
  EncodeJson(TypeInfoOf<T>(), &value, out);
  return out;
}
template <class T>
Value ToValueOf(const T& value) {
  return ToValue(TypeInfoOf<T>(), &value);
}

// Of duplicate keys the last wins. Integers beyond 64 bits are an error, those beyond int64 become
// doubles.
Result<Value> ParseJson(std::string_view json, size_t max_bytes = kMaxJsonBytes);

void WriteJson(const Value& value, std::string& out);
std::string WriteJson(const Value& value);
// As kubectl prints: members sorted by key, 4 spaces per level, no final newline.
std::string WriteJsonPretty(const Value& value);

// Appends `text` as a JSON string, quotes included.
void AppendJsonString(std::string_view text, std::string& out);
// Appends a number as Go's encoding/json writes it; what is not finite is null.
void AppendJsonDouble(double value, std::string& out);

}  // namespace berth::meta
