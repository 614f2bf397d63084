// SPDX-License-Identifier: Apache-2.0
#include "meta/k8s_proto/k8s_proto.h"

#include <bit>
#include <limits>
#include <string>
#include <utility>

#include "base/strings.h"
#include "base/time.h"
#include "meta/k8s_proto/messages.h"
#include "meta/k8s_proto/wire.h"
#include "meta/quantity.h"
#include "meta/reflect.h"
#include "meta/value.h"

namespace berth::meta {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMagic = "k8s\0"sv;

// What metav1.Time can say in RFC 3339: years 1 to 9999.
constexpr int64_t kSecondsMin = -62'135'596'800;
constexpr int64_t kSecondsMax = 253'402'300'799;
constexpr int64_t kNanosPerSecond = 1'000'000'000;

Status NoProtoForm(const TypeInfo& type) {
  return {Reason::kUnsupportedMediaType,
          std::string(type.name) + " has no protobuf form, send application/json"};
}

Status Expect(const WireTag& tag, WireType wanted) {
  if (tag.type == wanted) return OkStatus();
  return InvalidProto(tag.offset,
                      "field " + std::to_string(tag.number) + " has wire type " +
                          std::to_string(static_cast<int>(tag.type)) + ", expected " +
                          std::to_string(static_cast<int>(wanted)));
}

Result<std::string_view> ReadBytes(WireReader& in, const WireTag& tag) {
  TRY_STATUS(Expect(tag, WireType::kBytes));
  TRY(const WireReader bytes, in.Bytes());
  return bytes.rest();
}

// Nothing behind the decoder expects text that JSON could not have carried.
Result<std::string_view> ReadText(WireReader& in, const WireTag& tag) {
  TRY(const std::string_view text, ReadBytes(in, tag));
  if (!IsValidUtf8(text)) return InvalidProto(tag.offset, "the text is not valid UTF-8");
  return text;
}

bool IsScalarNumber(const TypeInfo& type) {
  return type.kind == TypeKind::kBool || type.kind == TypeKind::kInt32 ||
         type.kind == TypeKind::kInt64 || type.kind == TypeKind::kDouble;
}

WireType WireTypeOf(const TypeInfo& number) {
  return number.kind == TypeKind::kDouble ? WireType::kFixed64 : WireType::kVarint;
}

Status ReadNumber(WireReader& in, const TypeInfo& type, void* out) {
  const size_t start = in.offset();
  if (type.kind == TypeKind::kDouble) {
    TRY(const uint64_t bits, in.Fixed64());
    *static_cast<double*>(out) = std::bit_cast<double>(bits);
    return OkStatus();
  }
  TRY(const uint64_t bits, in.Varint());
  const auto number = static_cast<int64_t>(bits);
  if (type.kind == TypeKind::kBool) {
    *static_cast<bool*>(out) = bits != 0;
  } else if (type.kind == TypeKind::kInt64) {
    *static_cast<int64_t*>(out) = number;
  } else if (std::in_range<int32_t>(number)) {
    *static_cast<int32_t*>(out) = static_cast<int32_t>(number);
  } else {
    return InvalidProto(start, "expected an integer of 32 bits, got " + std::to_string(number));
  }
  return OkStatus();
}

// {seconds = 1, nanos = 2}; an empty message is no time.
Result<WallTime> ReadTime(WireReader message) {
  if (message.done()) return WallTime();
  const size_t start = message.offset();
  int64_t seconds = 0;
  int64_t nanos = 0;
  while (!message.done()) {
    TRY(const WireTag tag, message.Tag());
    if (tag.number != 1 && tag.number != 2) {
      TRY_STATUS(message.Skip(tag.type));
      continue;
    }
    TRY_STATUS(Expect(tag, WireType::kVarint));
    TRY(const uint64_t bits, message.Varint());
    (tag.number == 1 ? seconds : nanos) = static_cast<int64_t>(bits);
  }
  if (seconds < kSecondsMin || seconds > kSecondsMax || nanos < 0 || nanos >= kNanosPerSecond) {
    return InvalidProto(start,
                        std::to_string(seconds) + " seconds and " + std::to_string(nanos) +
                            " nanoseconds are not a time between the years 1 and 9999");
  }
  return WallTime::FromSeconds(seconds) + Duration::Nanos(nanos);
}

// The only field, number 1, of a message that wraps bytes: Quantity, FieldsV1.
Result<std::string_view> ReadWrapped(WireReader message) {
  std::string_view bytes;
  while (!message.done()) {
    TRY(const WireTag tag, message.Tag());
    if (tag.number == 1) {
      TRY(bytes, ReadBytes(message, tag));
    } else {
      TRY_STATUS(message.Skip(tag.type));
    }
  }
  return bytes;
}

class Decoder {
 public:
  // The fields of a struct. What is there already is kept where the message says nothing.
  Status Message(WireReader message, const TypeInfo& type, void* out, size_t depth) {
    TRY_STATUS(CheckDepth(message, depth));
    const ProtoMessage* table = FindProtoMessage(type.name);
    if (table == nullptr) return NoProtoForm(type);
    while (!message.done()) {
      TRY(const WireTag tag, message.Tag());
      const FoundField found = FieldOf(*table, type, tag.number);
      if (found.field == nullptr) {
        TRY_STATUS(message.Skip(tag.type));
        continue;
      }
      void* at = static_cast<char*>(out) + found.offset;
      TRY_STATUS(Field(message, tag, *found.field->type, at, depth));
    }
    return OkStatus();
  }

 private:
  static Status CheckDepth(const WireReader& message, size_t depth) {
    if (depth <= kMaxProtoDepth) return OkStatus();
    return InvalidProto(message.offset(),
                        "more than " + std::to_string(kMaxProtoDepth) + " nested messages");
  }

  static FoundField FieldOf(const ProtoMessage& table, const TypeInfo& type, uint32_t number) {
    for (const ProtoField& field : table.fields) {
      if (field.number == number) return FindField(type, field.name);
    }
    return {};
  }

  Status CountItem(const WireTag& tag) {
    if (++items_ <= kMaxProtoItems) return OkStatus();
    return InvalidProto(
        tag.offset, "more than " + std::to_string(kMaxProtoItems) + " list items and map entries");
  }

  // One occurrence of a field, behind its tag.
  Status Field(WireReader& in, const WireTag& tag, const TypeInfo& type, void* out, size_t depth) {
    switch (type.kind) {
      case TypeKind::kBool:
      case TypeKind::kInt32:
      case TypeKind::kInt64:
      case TypeKind::kDouble:
        TRY_STATUS(Expect(tag, WireTypeOf(type)));
        return ReadNumber(in, type, out);
      case TypeKind::kString: {
        TRY(const std::string_view text, ReadText(in, tag));
        static_cast<std::string*>(out)->assign(text);
        return OkStatus();
      }
      case TypeKind::kBase64: {
        TRY(const std::string_view bytes, ReadBytes(in, tag));
        static_cast<Base64*>(out)->bytes.assign(bytes);
        return OkStatus();
      }
      case TypeKind::kOptional: return Optional(in, tag, type, out, depth);
      case TypeKind::kList: return Item(in, tag, type, out, depth);
      default: break;
    }
    TRY_STATUS(Expect(tag, WireType::kBytes));
    TRY(const WireReader message, in.Bytes());
    TRY_STATUS(CheckDepth(message, depth + 1));
    if (type.kind == TypeKind::kStruct) return Message(message, type, out, depth + 1);
    if (type.kind == TypeKind::kMap) return Entry(message, tag, type, out, depth + 1);
    return Wrapped(message, type, out);
  }

  // Types that are one value in JSON and a message here.
  static Status Wrapped(const WireReader& message, const TypeInfo& type, void* out) {
    switch (type.kind) {
      case TypeKind::kTime: {
        TRY(const WallTime time, ReadTime(message));
        // metav1.Time has whole seconds only.
        *static_cast<WallTime*>(out) = WallTime::FromSeconds(time.seconds());
        return OkStatus();
      }
      case TypeKind::kMicroTime: {
        TRY(static_cast<MicroTime*>(out)->time, ReadTime(message));
        return OkStatus();
      }
      case TypeKind::kQuantity: {
        TRY(const std::string_view text, ReadWrapped(message));
        auto quantity = Quantity::Parse(text);
        if (!quantity.ok()) return InvalidProto(message.offset(), quantity.status().message());
        *static_cast<Quantity*>(out) = *quantity;
        return OkStatus();
      }
      case TypeKind::kValue:
      case TypeKind::kRawJson: {
        TRY(const std::string_view json, ReadWrapped(message));
        if (json.empty()) return OkStatus();
        const Status decoded = DecodeJson(json, type, out);
        if (!decoded.ok()) return InvalidProto(message.offset(), decoded.message());
        return OkStatus();
      }
      default: return Internal("a field's type has no protobuf form");
    }
  }

  Status Optional(
      WireReader& in, const WireTag& tag, const TypeInfo& type, void* out, size_t depth) {
    const TypeInfo& element = *type.element;
    const void* present = type.optional->get(out);
    // Occurrences of one message are merged; `out` is ours, so what is in it may change.
    void* value = present != nullptr && element.kind == TypeKind::kStruct
                      ? const_cast<void*>(present)
                      : type.optional->emplace(out);
    TRY_STATUS(Field(in, tag, element, value, depth));
    // Go writes a pointer to no time as an empty message; in JSON it is null, which is absent.
    const bool is_time = element.kind == TypeKind::kTime || element.kind == TypeKind::kMicroTime;
    if (is_time && IsEmpty(element, value)) type.optional->reset(out);
    return OkStatus();
  }

  Status Item(WireReader& in, const WireTag& tag, const TypeInfo& type, void* out, size_t depth) {
    const TypeInfo& element = *type.element;
    if (!IsScalarNumber(element) || tag.type != WireType::kBytes) {
      TRY_STATUS(CountItem(tag));
      return Field(in, tag, element, type.list->append(out), depth);
    }
    TRY(WireReader packed, in.Bytes());
    while (!packed.done()) {
      TRY_STATUS(CountItem(tag));
      TRY_STATUS(ReadNumber(packed, element, type.list->append(out)));
    }
    return OkStatus();
  }

  // {key = 1, value = 2}, in any order; a later entry of the same key replaces an earlier one.
  Status Entry(
      WireReader entry, const WireTag& tag, const TypeInfo& type, void* out, size_t depth) {
    TRY_STATUS(CountItem(tag));
    std::string_view key;
    WireReader value;
    WireTag value_tag;
    while (!entry.done()) {
      TRY(const WireTag part, entry.Tag());
      if (part.number == 1) {
        TRY(key, ReadText(entry, part));
        continue;
      }
      if (part.number == 2) {
        value = entry;
        value_tag = part;
      }
      TRY_STATUS(entry.Skip(part.type));
    }
    const TypeInfo& element = *type.element;
    void* at = type.map->insert(out, std::string(key));
    element.ops->reset(at);
    if (value_tag.number == 0) return OkStatus();
    if (element.kind != TypeKind::kList) return Field(value, value_tag, element, at, depth);
    return WrappedList(value, value_tag, element, at, depth);
  }

  // A map's value cannot be repeated, so Kubernetes wraps lists: ExtraValue {items = 1}.
  Status WrappedList(
      WireReader& in, const WireTag& tag, const TypeInfo& type, void* out, size_t depth) {
    TRY_STATUS(Expect(tag, WireType::kBytes));
    TRY(WireReader message, in.Bytes());
    TRY_STATUS(CheckDepth(message, depth + 1));
    while (!message.done()) {
      TRY(const WireTag part, message.Tag());
      if (part.number == 1) {
        TRY_STATUS(Item(message, part, type, out, depth + 1));
      } else {
        TRY_STATUS(message.Skip(part.type));
      }
    }
    return OkStatus();
  }

  size_t items_ = 0;
};

struct Envelope {
  TypeMeta type_meta;
  WireReader raw;
};

Status ReadTypeMeta(WireReader message, TypeMeta& out) {
  while (!message.done()) {
    TRY(const WireTag tag, message.Tag());
    if (tag.number == 1) {
      TRY(out.api_version, ReadText(message, tag));
    } else if (tag.number == 2) {
      TRY(out.kind, ReadText(message, tag));
    } else {
      TRY_STATUS(message.Skip(tag.type));
    }
  }
  return OkStatus();
}

// The object's bytes may say that they are something else than protobuf.
Status CheckContent(const WireTag& tag, std::string_view text) {
  if (text.empty() || (tag.number == 4 && text == kKubernetesProtoMediaType)) return OkStatus();
  return InvalidProto(tag.offset,
                      "the object inside has the content " +
                          std::string(tag.number == 3 ? "encoding " : "type ") + Quote(text) +
                          ", only plain " + std::string(kKubernetesProtoMediaType) + " is read");
}

// runtime.Unknown {typeMeta = 1, raw = 2, contentEncoding = 3, contentType = 4}.
Result<Envelope> ReadEnvelope(WireReader message) {
  Envelope envelope;
  while (!message.done()) {
    TRY(const WireTag tag, message.Tag());
    if (tag.number == 1 || tag.number == 2) {
      TRY_STATUS(Expect(tag, WireType::kBytes));
      TRY(const WireReader inner, message.Bytes());
      if (tag.number == 2) {
        envelope.raw = inner;
      } else {
        TRY_STATUS(ReadTypeMeta(inner, envelope.type_meta));
      }
    } else if (tag.number == 3 || tag.number == 4) {
      TRY(const std::string_view text, ReadText(message, tag));
      TRY_STATUS(CheckContent(tag, text));
    } else {
      TRY_STATUS(message.Skip(tag.type));
    }
  }
  return envelope;
}

}  // namespace

bool HasKubernetesProto(const TypeInfo& type) { return FindProtoMessage(type.name) != nullptr; }

Status DecodeKubernetesProto(std::string_view body,
                             const TypeInfo& type,
                             void* out,
                             TypeMeta* type_meta) {
  if (!HasKubernetesProto(type)) return NoProtoForm(type);
  if (body.size() > kMaxProtoBytes) {
    return InvalidProto(kMaxProtoBytes,
                        "the body has " + std::to_string(body.size()) + " bytes, at most " +
                            std::to_string(kMaxProtoBytes) + " are read");
  }
  if (!body.starts_with(kMagic)) return InvalidProto(0, R"(the prefix "k8s\x00" is missing)");
  TRY(auto envelope, ReadEnvelope(WireReader(body.substr(kMagic.size()), kMagic.size())));
  if (type_meta != nullptr) *type_meta = std::move(envelope.type_meta);
  return Decoder().Message(envelope.raw, type, out, 1);
}

}  // namespace berth::meta
