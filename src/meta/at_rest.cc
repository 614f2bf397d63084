// SPDX-License-Identifier: Apache-2.0
#include "meta/at_rest.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "meta/internal/at_rest_parts.h"
#include "meta/json.h"
#include "meta/reflect.h"

namespace berth::meta {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr uint8_t kFormat = 2;
constexpr uint8_t kFormatWithLabels = 1;
constexpr size_t kSizesAt = 2;  // header size, metadata size
constexpr size_t kSecondsAt = kSizesAt + 4 + 4;
constexpr size_t kLabelsAt = kSecondsAt + 8;  // not in format 1
constexpr size_t kFixedHeader = kLabelsAt + 4;
constexpr std::string_view kOpening = R"({"metadata":{)";
constexpr std::string_view kLabels = R"("labels":{)";

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

// A text of JSON without its quotes, escapes as they are; nullopt if there is none.
std::optional<std::string_view> TakeQuoted(std::string_view& rest) {
  if (!rest.starts_with('"')) return std::nullopt;
  size_t end = 1;
  while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
  if (end >= rest.size()) return std::nullopt;
  const auto text = rest.substr(1, end - 1);
  rest.remove_prefix(end + 1);
  return text;
}

// The value of the member that is next if it is this one, with the comma behind it; "" otherwise.
std::string_view TakeMember(std::string_view& rest, std::string_view key) {
  std::string_view ahead = rest;
  const auto found = TakeQuoted(ahead);
  if (!found || *found != key || !ahead.starts_with(':')) return {};
  ahead.remove_prefix(1);
  const auto value = TakeQuoted(ahead);
  if (!value) return {};
  if (ahead.starts_with(',')) ahead.remove_prefix(1);
  rest = ahead;
  return *value;
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

void internal::BeginAtRest(const Object& object, std::string& out) {
  const ObjectMeta& metadata = object.metadata();
  out += static_cast<char>(kFormat);
  out += static_cast<char>((metadata.deletion_timestamp ? AtRestView::kDeleting : 0) |
                           (metadata.finalizers.empty() ? 0 : AtRestView::kFinalizers));
  AppendNumber(uint32_t{0}, out);
  AppendNumber(uint32_t{0}, out);
  AppendNumber(metadata.creation_timestamp.seconds(), out);
  AppendNumber(uint32_t{0}, out);
  AppendSelectable(object, out);
}

Bytes internal::EndAtRest(const Object& object,
                          size_t header_size,
                          size_t metadata_size,
                          std::string& out) {
  if (!object.metadata().labels.empty()) {
    // Quotes inside of texts are escaped, so this is the member; nothing in front of it has such.
    const size_t labels = out.find(kLabels, header_size);
    CHECK(labels != std::string::npos) << object.metadata().name;
    const auto labels_at = static_cast<uint32_t>(labels + kLabels.size() - header_size);
    std::memcpy(out.data() + kLabelsAt, &labels_at, sizeof(labels_at));
  }
  const std::array<uint32_t, 2> sizes = {static_cast<uint32_t>(header_size),
                                         static_cast<uint32_t>(metadata_size)};
  std::memcpy(out.data() + kSizesAt, sizes.data(), sizeof(sizes));
  return Bytes(out);
}

Bytes EncodeAtRest(const Object& object) {
  const ObjectMeta& metadata = object.metadata();
  std::string out;
  out.reserve(2048);
  internal::BeginAtRest(object, out);
  const size_t header_size = out.size();
  // Whoever puts resourceVersion in front of the body relies on a member that follows.
  if (!EncodeJsonMembers(TypeInfoOf<ObjectMeta>(), &metadata, out, "resourceVersion")) {
    out += R"("name":"")";
  }
  out += '}';
  const size_t metadata_size = out.size() - header_size;
  out += ',';
  if (!EncodeJsonMembers(*object.kind().type, object.data(), out, "metadata")) out.pop_back();
  out += '}';
  return internal::EndAtRest(object, header_size, metadata_size, out);
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

std::optional<std::pair<std::string_view, std::string_view>> AtRestView::TakeLabel(
    std::string_view& rest) const {
  if (!labels_are_json_) {
    if (rest.empty()) return std::nullopt;
    const auto key = TakeText(rest);
    return std::pair(key, TakeText(rest));
  }
  const auto key = TakeQuoted(rest);
  if (!key || !rest.starts_with(':')) return std::nullopt;
  rest.remove_prefix(1);
  const auto value = TakeQuoted(rest);
  if (!value) return std::nullopt;
  if (rest.starts_with(',')) rest.remove_prefix(1);
  return std::pair(*key, *value);
}

Result<AtRestView> AtRestView::Parse(std::string_view at_rest) {
  if (at_rest.size() < kFixedHeader) return Damaged("too short");
  const auto format = static_cast<uint8_t>(at_rest[0]);
  if (format != kFormat && format != kFormatWithLabels) {
    return Damaged("unknown format " + std::to_string(format));
  }
  const auto header_size = ReadNumber<uint32_t>(at_rest.substr(kSizesAt));
  if (header_size < kFixedHeader || header_size > at_rest.size()) return Damaged("header size");
  AtRestView view;
  view.flags_ = static_cast<uint8_t>(at_rest[1]);
  view.metadata_size_ = ReadNumber<uint32_t>(at_rest.substr(kSizesAt + sizeof(uint32_t)));
  const auto seconds = ReadNumber<int64_t>(at_rest.substr(kSecondsAt));
  constexpr int64_t kSecondsMax = 253'402'300'799;  // the end of the year 9999
  if (seconds < -kSecondsMax || seconds > kSecondsMax) return Damaged("creation time");
  view.creation_timestamp_ = WallTime::FromSeconds(seconds);
  view.body_ = at_rest.substr(header_size);
  if (view.metadata_size_ > view.body_.size()) return Damaged("metadata size");
  view.labels_are_json_ = format == kFormat;

  const size_t fixed = view.labels_are_json_ ? kFixedHeader : kLabelsAt;
  std::string_view rest = at_rest.substr(fixed, header_size - fixed);
  const auto uid = TakeChecked(rest);
  if (!uid) return Damaged("header");
  view.uid_ = *uid;
  if (view.labels_are_json_) {
    const auto labels_at = ReadNumber<uint32_t>(at_rest.substr(kLabelsAt));
    if (labels_at > view.metadata_size_) return Damaged("labels");
    if (labels_at != 0) view.labels_ = view.metadata_body().substr(labels_at);
  } else {
    Texts labels;
    if (!TakeTexts(rest, 2, labels)) return Damaged("header");
    view.labels_ = labels.texts;
  }
  if (!TakeTexts(rest, 1, view.owners_) || !TakeTexts(rest, 1, view.fields_) || !rest.empty()) {
    return Damaged("header");
  }
  return view;
}

std::optional<std::string_view> AtRestView::Label(std::string_view key) const {
  std::string_view rest = labels_;
  while (const auto label = TakeLabel(rest)) {
    if (label->first == key) return label->second;
  }
  return std::nullopt;
}

bool AtRestView::IsNamed(std::string_view namespace_, std::string_view name) const {
  std::string_view rest = metadata_body();
  const std::string_view first = TakeMember(rest, "name");
  TakeMember(rest, "generateName");
  if (first == name && TakeMember(rest, "namespace") == namespace_) return true;
  ObjectMeta metadata;
  const std::string json = "{" + std::string(metadata_body());
  return DecodeJson(json, TypeInfoOf<ObjectMeta>(), &metadata).ok() && metadata.name == name &&
         metadata.namespace_ == namespace_;
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
