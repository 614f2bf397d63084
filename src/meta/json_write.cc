// SPDX-License-Identifier: Apache-2.0
// Writing JSON: structs and Values to text.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/strings.h"
#include "meta/ip.h"
#include "meta/json.h"
#include "meta/quantity.h"
#include "meta/reflect.h"

namespace berth::meta {
namespace {

template <class T>
const T& As(const void* value) {
  return *static_cast<const T*>(value);
}

// Bytes that cannot stand in a JSON string as they are, or begin something that must be checked.
constexpr std::array<bool, 256> MakeSpecial() {
  std::array<bool, 256> special{};
  for (size_t i = 0; i < 256; ++i) special[i] = i < 0x20 || i == '"' || i == '\\' || i >= 0x80;
  return special;
}
constexpr auto kSpecial = MakeSpecial();

// How many bytes from `at` on are not special. Eight at a time: a byte is special if it is below
// 0x20, has its top bit set, or equals '"' or '\\'.
size_t PlainRun(std::string_view text, size_t at) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kTops = 0x8080808080808080;
  const auto has_zero = [](uint64_t word) { return (word - kOnes) & ~word & kTops; };
  const size_t start = at;
  for (; at + sizeof(uint64_t) <= text.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof(word));
    const uint64_t below_space = (word - kOnes * 0x20) & ~word & kTops;
    if ((below_space | (word & kTops) | has_zero(word ^ (kOnes * '"')) |
         has_zero(word ^ (kOnes * '\\'))) != 0) {
      break;
    }
  }
  while (at < text.size() && !kSpecial[static_cast<uint8_t>(text[at])]) ++at;
  return at - start;
}

// Appends the character at `at`, which is special, and gives its size.
size_t AppendSpecial(std::string_view text, size_t at, std::string& out) {
  const auto byte = static_cast<uint8_t>(text[at]);
  if (byte >= 0x80) {
    const size_t size = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    if (at + size <= text.size() && IsValidUtf8(text.substr(at, size))) {
      out.append(text, at, size);
      return size;
    }
    out += "\xef\xbf\xbd";  // U+FFFD
    return 1;
  }
  out += '\\';
  switch (byte) {
    case '"':
    case '\\': out += static_cast<char>(byte); break;
    case '\n': out += 'n'; break;
    case '\r': out += 'r'; break;
    case '\t': out += 't'; break;
    case '\b': out += 'b'; break;
    case '\f': out += 'f'; break;
    default: {
      constexpr std::string_view kHex = "0123456789abcdef";
      out += "u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 0xf];
    }
  }
  return 1;
}

void AppendInt(int64_t value, std::string& out) {
  std::array<char, 24> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  out.append(buffer.data(), end);
}

// One growth check instead of one per piece: most of an object is such pieces. The size that
// resize_and_overwrite hands to the lambda may be larger than the one asked for.
void AppendQuoted(std::string_view plain, std::string& out) {
  const size_t start = out.size();
  const size_t end = start + plain.size() + 2;
  out.resize_and_overwrite(end, [&](char* text, size_t /*capacity*/) {
    text[start] = '"';
    std::memcpy(text + start + 1, plain.data(), plain.size());
    text[end - 1] = '"';
    return end;
  });
}

// ,"name":
void AppendKey(std::string_view name, bool first, std::string& out) {
  const size_t start = out.size();
  const size_t end = start + name.size() + (first ? 3 : 4);
  out.resize_and_overwrite(end, [&](char* text, size_t /*capacity*/) {
    char* at = text + start;
    if (!first) *at++ = ',';
    *at++ = '"';
    std::memcpy(at, name.data(), name.size());
    at[name.size()] = '"';
    at[name.size() + 1] = ':';
    return end;
  });
}

void EncodeList(const TypeInfo& type, const void* value, std::string& out) {
  out += '[';
  const size_t size = type.list->size(value);
  for (size_t i = 0; i < size; ++i) {
    if (i > 0) out += ',';
    EncodeJson(*type.element, type.list->at(value, i), out);
  }
  out += ']';
}

void EncodeMap(const TypeInfo& type, const void* value, std::string& out) {
  struct Context {
    const TypeInfo& element;
    std::string& out;
    bool first;
  } context{*type.element, out, true};
  out += '{';
  type.map->for_each(value, &context, [](void* opaque, const std::string& key, const void* item) {
    auto& at = *static_cast<Context*>(opaque);
    if (!at.first) at.out += ',';
    at.first = false;
    AppendJsonString(key, at.out);
    at.out += ':';
    EncodeJson(at.element, item, at.out);
  });
  out += '}';
}

void WriteMembers(const Value& value, int indent, std::string& out);

// indent < 0: compact.
void Write(const Value& value, int indent, std::string& out) {
  switch (value.type()) {
    case Value::Type::kNull: out += "null"; break;
    case Value::Type::kBool: out += value.as_bool() ? "true" : "false"; break;
    case Value::Type::kInt: AppendInt(value.as_int(), out); break;
    case Value::Type::kDouble: AppendJsonDouble(value.as_double(), out); break;
    case Value::Type::kString: AppendJsonString(value.as_string(), out); break;
    case Value::Type::kArray:
    case Value::Type::kObject: WriteMembers(value, indent, out); break;
  }
}

constexpr int kIndentStep = 4;

void NewLine(int indent, std::string& out) {
  if (indent < 0) return;
  out += '\n';
  out.append(static_cast<size_t>(indent), ' ');
}

void WriteMembers(const Value& value, int indent, std::string& out) {
  const bool is_array = value.is_array();
  const size_t size = is_array ? value.items().size() : value.members().size();
  out += is_array ? '[' : '{';
  const int inner = indent < 0 ? indent : indent + kIndentStep;
  const auto separate = [&](bool first) {
    if (!first) out += ',';
    NewLine(inner, out);
  };
  if (is_array) {
    for (size_t i = 0; i < size; ++i) {
      separate(i == 0);
      Write(value.items()[i], inner, out);
    }
  } else {
    std::vector<const Value::Member*> members;
    members.reserve(size);
    for (const auto& member : value.members()) members.push_back(&member);
    if (indent >= 0) {
      std::ranges::sort(members, [](const auto* a, const auto* b) { return a->key < b->key; });
    }
    for (const auto* member : members) {
      separate(member == members.front());
      AppendJsonString(member->key, out);
      out += indent < 0 ? ":" : ": ";
      Write(member->value, inner, out);
    }
  }
  if (size > 0) NewLine(indent, out);
  out += is_array ? ']' : '}';
}

}  // namespace

void AppendJsonString(std::string_view text, std::string& out) {
  const size_t plain = PlainRun(text, 0);
  if (plain == text.size()) {
    AppendQuoted(text, out);
    return;
  }
  out += '"';
  out.append(text, 0, plain);
  for (size_t at = plain; at < text.size();) {
    at += AppendSpecial(text, at, out);
    const size_t run = PlainRun(text, at);
    out.append(text, at, run);
    at += run;
  }
  out += '"';
}

void AppendJsonDouble(double value, std::string& out) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  // A zero has no sign for whoever reads it: "-0" would be the integer 0.
  if (value == 0) value = 0;
  const double magnitude = std::abs(value);
  // Go goes on to 1e21, but digits without an exponent are an integer to whoever reads them, and
  // one beyond 64 bits is refused.
  const bool fits = value >= -0x1p63 && value < 0x1p64;
  const bool fixed = magnitude == 0 || (magnitude >= 1e-6 && fits);
  std::array<char, 64> buffer;
  const auto [end, error] =
      std::to_chars(buffer.data(),
                    buffer.data() + buffer.size(),
                    value,
                    fixed ? std::chars_format::fixed : std::chars_format::scientific);
  const size_t start = out.size();
  out.append(buffer.data(), end);
  // Go writes 1e-9, not 1e-09.
  const size_t exponent = out.find("e-0", start);
  if (exponent != std::string::npos) out.erase(exponent + 2, 1);
}

bool EncodeJsonMembers(const TypeInfo& type,
                       const void* value,
                       std::string& out,
                       std::string_view skip) {
  bool any = false;
  for (const Field& field : type.fields) {
    const void* at = FieldAt(value, field);
    if (field.options.inlined) {
      const size_t comma = out.size();
      if (any) out += ',';
      if (EncodeJsonMembers(*field.type, at, out)) {
        any = true;
      } else {
        out.resize(comma);
      }
      continue;
    }
    if (!IsWritten(field, at)) continue;
    if (!skip.empty() && field.name == skip) continue;
    AppendKey(field.name, !any, out);
    any = true;
    EncodeJson(*field.type, at, out);
  }
  return any;
}

void EncodeJson(const TypeInfo& type, const void* value, std::string& out) {
  switch (type.kind) {
    case TypeKind::kBool: out += As<bool>(value) ? "true" : "false"; break;
    case TypeKind::kInt32: AppendInt(As<int32_t>(value), out); break;
    case TypeKind::kInt64: AppendInt(As<int64_t>(value), out); break;
    case TypeKind::kDouble: AppendJsonDouble(As<double>(value), out); break;
    case TypeKind::kString: AppendJsonString(As<std::string>(value), out); break;
    case TypeKind::kBase64: AppendQuoted(Base64Encode(As<Base64>(value).bytes), out); break;
    case TypeKind::kTime:
      if (const auto time = As<WallTime>(value); time.is_zero()) {
        out += "null";
      } else {
        AppendQuoted(FormatRfc3339(time), out);
      }
      break;
    case TypeKind::kMicroTime:
      if (const auto time = As<MicroTime>(value).time; time.is_zero()) {
        out += "null";
      } else {
        AppendQuoted(FormatRfc3339Micro(time), out);
      }
      break;
    case TypeKind::kQuantity:
      out += '"';
      As<Quantity>(value).AppendTo(out);
      out += '"';
      break;
    case TypeKind::kIp:
      if (const auto& ip = As<IpAddress>(value); ip.is_null()) {
        out += "null";
      } else {
        AppendQuoted(ip.ToString(), out);
      }
      break;
    case TypeKind::kIpPrefix:
      if (const auto& prefix = As<IpPrefix>(value); prefix.is_null()) {
        out += "null";
      } else {
        AppendQuoted(prefix.ToString(), out);
      }
      break;
    case TypeKind::kIntOrString:
      if (const auto& either = As<IntOrString>(value); either.is_int) {
        AppendInt(either.number, out);
      } else {
        AppendJsonString(either.text, out);
      }
      break;
    case TypeKind::kValue: Write(As<Value>(value), -1, out); break;
    case TypeKind::kRawJson: {
      const std::string& text = As<RawJson>(value).text;
      out += text.empty() ? std::string_view("null") : std::string_view(text);
      break;
    }
    case TypeKind::kStruct:
      out += '{';
      EncodeJsonMembers(type, value, out);
      out += '}';
      break;
    case TypeKind::kOptional:
      if (const void* held = type.optional->get(value); held != nullptr) {
        EncodeJson(*type.element, held, out);
      } else {
        out += "null";
      }
      break;
    case TypeKind::kList: EncodeList(type, value, out); break;
    case TypeKind::kMap: EncodeMap(type, value, out); break;
  }
}

void WriteJson(const Value& value, std::string& out) { Write(value, -1, out); }

std::string WriteJson(const Value& value) {
  std::string out;
  Write(value, -1, out);
  return out;
}

std::string WriteJsonPretty(const Value& value) {
  std::string out;
  Write(value, 0, out);
  return out;
}

}  // namespace berth::meta
