// SPDX-License-Identifier: Apache-2.0
#include "meta/at_rest.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "meta/json.h"
#include "meta/reflect.h"

namespace berth::meta {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr uint8_t kFormat = 1;
constexpr size_t kSizesAt = 2;  // header size, metadata size
constexpr size_t kFixedHeader = 2 + 4 + 4 + 8;
constexpr std::string_view kOpening = R"({"metadata":{)";

template <class T>
void AppendNumber(T value, std::string& out) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <class T>
T ReadNumber(std::string_view from) {
  T value;
  from.copy(reinterpret_cast<char*>(&value), sizeof(value));
  return value;
}

// Counts and lengths, seven bits per byte: nearly all are below 128.
void AppendCount(size_t count, std::string& out) {
  for (; count >= 0x80; count >>= 7) out += static_cast<char>((count & 0x7f) | 0x80);
  out += static_cast<char>(count);
}

std::optional<size_t> TakeCount(std::string_view& rest) {
  size_t count = 0;
  for (int shift = 0; shift <= 28 && !rest.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(rest.front());
    rest.remove_prefix(1);
    count |= size_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return count;
  }
  return std::nullopt;
}

void AppendText(std::string_view text, std::string& out) {
  AppendCount(text.size(), out);
  out += text;
}

// A text with its length in front, or nullopt if `rest` ends before it does.
std::optional<std::string_view> TakeChecked(std::string_view& rest) {
  const auto size = TakeCount(rest);
  if (!size || *size > rest.size()) return std::nullopt;
  const auto text = rest.substr(0, *size);
  rest.remove_prefix(*size);
  return text;
}

std::string SelectorValue(const Object& object, std::string_view selector) {
  const KindInfo& kind = object.kind();
  if (kind.selector_value != nullptr) {
    if (auto value = kind.selector_value(object.data(), selector)) return *std::move(value);
  }
  return GetString(*kind.type, object.data(), selector).value_or("");
}

void AppendSelectable(const Object& object, std::string& out) {
  const ObjectMeta& metadata = object.metadata();
  AppendText(metadata.uid, out);
  AppendCount(metadata.labels.size(), out);
  for (const auto& [key, value] : metadata.labels) {
    AppendText(key, out);
    AppendText(value, out);
  }
  AppendCount(metadata.owner_references.size(), out);
  for (const auto& owner : metadata.owner_references) AppendText(owner.uid, out);
  AppendCount(object.kind().field_selectors.size(), out);
  for (const auto selector : object.kind().field_selectors) {
    AppendText(SelectorValue(object, selector), out);
  }
}

Status Damaged(std::string_view what) {
  return Internal("damaged object at rest: " + std::string(what));
}

}  // namespace

Bytes EncodeAtRest(const Object& object) {
  const ObjectMeta& metadata = object.metadata();
  std::string out;
  out.reserve(2048);
  out += static_cast<char>(kFormat);
  out += static_cast<char>((metadata.deletion_timestamp ? AtRestView::kDeleting : 0) |
                           (metadata.finalizers.empty() ? 0 : AtRestView::kFinalizers));
  AppendNumber(uint32_t{0}, out);
  AppendNumber(uint32_t{0}, out);
  AppendNumber(metadata.creation_timestamp.seconds(), out);
  AppendSelectable(object, out);

  const auto header_size = static_cast<uint32_t>(out.size());
  // Whoever puts resourceVersion in front of the body relies on a member that follows.
  if (!EncodeJsonMembers(TypeInfoOf<ObjectMeta>(), &metadata, out, "resourceVersion")) {
    out += R"("name":"")";
  }
  out += '}';
  const auto metadata_size = static_cast<uint32_t>(out.size() - header_size);
  out += ',';
  if (!EncodeJsonMembers(*object.kind().type, object.data(), out, "metadata")) out.pop_back();
  out += '}';
  std::memcpy(out.data() + kSizesAt, &header_size, sizeof(header_size));
  std::memcpy(out.data() + kSizesAt + sizeof(header_size), &metadata_size, sizeof(metadata_size));
  return Bytes(out);
}

Result<Object> DecodeAtRest(const KindInfo& kind,
                            std::string_view at_rest,
                            std::string resource_version) {
  TRY(const AtRestView view, AtRestView::Parse(at_rest));
  std::string json;
  json.reserve(kOpening.size() + view.body().size());
  json.append(kOpening).append(view.body());
  Object object(kind);
  if (const Status status = DecodeJson(json, *kind.type, object.data()); !status.ok()) {
    return Damaged(status.message());
  }
  object.metadata().resource_version = std::move(resource_version);
  return object;
}

std::string_view AtRestView::TakeText(std::string_view& rest) {
  const auto text = TakeChecked(rest);
  return text ? *text : std::string_view();
}

bool AtRestView::TakeTexts(std::string_view& rest, size_t texts_per_item, Texts& out) {
  const auto count = TakeCount(rest);
  if (!count) return false;
  const std::string_view start = rest;
  for (size_t i = 0; i < *count * texts_per_item; ++i) {
    if (!TakeChecked(rest)) return false;
  }
  out = {*count, start.substr(0, start.size() - rest.size())};
  return true;
}

Result<AtRestView> AtRestView::Parse(std::string_view at_rest) {
  if (at_rest.size() < kFixedHeader) return Damaged("too short");
  if (static_cast<uint8_t>(at_rest[0]) != kFormat) {
    return Damaged("unknown format " + std::to_string(static_cast<uint8_t>(at_rest[0])));
  }
  const auto header_size = ReadNumber<uint32_t>(at_rest.substr(kSizesAt));
  if (header_size < kFixedHeader || header_size > at_rest.size()) return Damaged("header size");
  AtRestView view;
  view.flags_ = static_cast<uint8_t>(at_rest[1]);
  view.metadata_size_ = ReadNumber<uint32_t>(at_rest.substr(kSizesAt + sizeof(uint32_t)));
  const auto seconds = ReadNumber<int64_t>(at_rest.substr(kSizesAt + 2 * sizeof(uint32_t)));
  constexpr int64_t kSecondsMax = 253'402'300'799;  // the end of the year 9999
  if (seconds < -kSecondsMax || seconds > kSecondsMax) return Damaged("creation time");
  view.creation_timestamp_ = WallTime::FromSeconds(seconds);
  view.body_ = at_rest.substr(header_size);
  if (view.metadata_size_ > view.body_.size()) return Damaged("metadata size");

  std::string_view rest = at_rest.substr(kFixedHeader, header_size - kFixedHeader);
  const auto uid = TakeChecked(rest);
  if (!uid || !TakeTexts(rest, 2, view.labels_) || !TakeTexts(rest, 1, view.owners_) ||
      !TakeTexts(rest, 1, view.fields_) || !rest.empty()) {
    return Damaged("header");
  }
  view.uid_ = *uid;
  return view;
}

std::optional<std::string_view> AtRestView::Label(std::string_view key) const {
  std::string_view rest = labels_.texts;
  for (size_t i = 0; i < labels_.count; ++i) {
    const auto label = TakeText(rest);
    const auto value = TakeText(rest);
    if (label == key) return value;
  }
  return std::nullopt;
}

bool AtRestView::Matches(const Selector& selector) const {
  return selector.MatchesWith([this](std::string_view key) { return Label(key); });
}

bool AtRestView::Matches(const FieldSelector& selector,
                         const KindInfo& kind,
                         std::string_view namespace_,
                         std::string_view name) const {
  return selector.MatchesWith([&](std::string_view field) -> std::string_view {
    if (field == "metadata.name") return name;
    if (field == "metadata.namespace") return namespace_;
    const auto found = std::ranges::find(kind.field_selectors, field);
    if (found == kind.field_selectors.end()) return {};
    return FieldValue(static_cast<size_t>(found - kind.field_selectors.begin()));
  });
}

std::string_view AtRestView::FieldValue(size_t selector_index) const {
  if (selector_index >= fields_.count) return {};
  std::string_view rest = fields_.texts;
  for (size_t i = 0; i < selector_index; ++i) TakeText(rest);
  return TakeText(rest);
}

std::string ObjectPrefix(std::string_view api_version,
                         std::string_view kind,
                         std::string_view resource_version) {
  std::string out = R"({"apiVersion":)";
  AppendJsonString(api_version, out);
  out += R"(,"kind":)";
  AppendJsonString(kind, out);
  out += R"(,"metadata":{"resourceVersion":)";
  AppendJsonString(resource_version, out);
  out += ',';
  return out;
}

}  // namespace berth::meta
