// SPDX-License-Identifier: Apache-2.0
// Reading a Value into described structs, and the scalars that JSON carries as text.
#include <string>
#include <utility>

#include "base/strings.h"
#include "meta/internal/json_decoder.h"
#include "meta/ip.h"
#include "meta/json.h"

namespace berth::meta {

namespace {

using internal::Shape;

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
  std::string ToText() const { return WriteJson(value_); }

 private:
  const Value& value_;
};

std::string Expected(std::string_view wanted, std::string_view got) {
  return "expected " + std::string(wanted) + ", got " + Quote(got.substr(0, 64));
}

}  // namespace

std::string internal::DecodeScalarText(std::string_view text, const TypeInfo& type, void* out) {
  switch (type.kind) {
    case TypeKind::kBase64: {
      auto bytes = Base64Decode(text);
      if (!bytes) return "expected base64";  // the text may be a secret
      static_cast<Base64*>(out)->bytes = *std::move(bytes);
      return "";
    }
    case TypeKind::kTime:
    case TypeKind::kMicroTime: {
      const auto time = ParseRfc3339(text);
      if (!time.ok()) return Expected("an RFC 3339 time", text);
      if (type.kind == TypeKind::kMicroTime) {
        static_cast<MicroTime*>(out)->time = *time;
      } else {
        // metav1.Time has whole seconds only.
        *static_cast<WallTime*>(out) = WallTime::FromSeconds(time->seconds());
      }
      return "";
    }
    case TypeKind::kIp: {
      const auto address = text.empty() ? IpAddress() : IpAddress::Parse(text);
      if (!address) return Expected("an IP address", text);
      *static_cast<IpAddress*>(out) = *address;
      return "";
    }
    default: {
      const auto prefix = text.empty() ? IpPrefix() : IpPrefix::Parse(text);
      if (!prefix) return Expected("an IP prefix", text);
      *static_cast<IpPrefix*>(out) = *prefix;
      return "";
    }
  }
}

Status FromValue(const Value& value,
                 const TypeInfo& type,
                 void* out,
                 const DecodeOptions& options,
                 std::vector<std::string>* warnings) {
  return internal::Decoder<ValueSource>(options, warnings).Run(ValueSource(value), type, out);
}

}  // namespace berth::meta
