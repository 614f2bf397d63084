// SPDX-License-Identifier: Apache-2.0
#include "meta/at_rest.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "meta/json.h"
#include "meta/reflect.h"

namespace berth::meta {
namespace {

constexpr char kFormat = 1;
constexpr uint8_t kDeleting = 1;
constexpr uint8_t kFinalizers = 2;
constexpr uint8_t kOwners = 4;
constexpr size_t kFixedBytes = 6;  // format, flags, header size

void PutNumber(std::string& out, uint64_t number) {
  while (number >= 0x80) {
    out += static_cast<char>(number | 0x80);
    number >>= 7;
  }
  out += static_cast<char>(number);
}

void PutText(std::string& out, std::string_view text) {
  PutNumber(out, text.size());
  out += text;
}

// Reads what Put wrote. After anything that does not fit, ok() is false and all values are empty.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  uint64_t Number() {
    uint64_t number = 0;
    for (int shift = 0; shift < 35; shift += 7) {  // lengths fit into 32 bits
      if (rest_.empty()) break;
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      number |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return number;
    }
    ok_ = false;
    return 0;
  }
  std::string_view Text() {
    const uint64_t size = Number();
    if (!ok_ || size > rest_.size()) {
      ok_ = false;
      return {};
    }
    const auto text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return text;
  }
  bool ok() const { return ok_; }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

// ObjectMeta without what is never written down.
const TypeInfo& StoredMetadataType() {
  static const auto* fields = [] {
    auto* kept = new std::vector<Field>;
    for (const auto& field : TypeInfoOf<ObjectMeta>().fields) {
      if (field.name != "resourceVersion" && field.name != "selfLink") kept->push_back(field);
    }
    return kept;
  }();
  static const TypeInfo type = [] {
    TypeInfo info = TypeInfoOf<ObjectMeta>();
    info.fields = *fields;
    return info;
  }();
  return type;
}

std::string SelectorValue(const Object& object, std::string_view selector) {
  const KindInfo& kind = object.kind();
  if (kind.selector_value != nullptr) {
    if (auto value = kind.selector_value(object.data(), selector)) return *std::move(value);
  }
  return GetString(*kind.type, object.data(), selector).value_or("");
}

std::string EncodeHeader(const Object& object, size_t metadata_size) {
  const ObjectMeta& metadata = object.metadata();
  uint8_t flags = 0;
  if (metadata.deletion_timestamp.has_value()) flags |= kDeleting;
  if (!metadata.finalizers.empty()) flags |= kFinalizers;
  if (!metadata.owner_references.empty()) flags |= kOwners;
  std::string header(kFixedBytes, '\0');
  header[0] = kFormat;
  header[1] = static_cast<char>(flags);
  PutText(header, metadata.uid);
  PutNumber(header, metadata_size);
  PutNumber(header, metadata.labels.size());
  for (const auto& [key, value] : metadata.labels) {
    PutText(header, key);
    PutText(header, value);
  }
  PutNumber(header, object.kind().field_selectors.size());
  for (const auto selector : object.kind().field_selectors) {
    PutText(header, SelectorValue(object, selector));
  }
  const auto size = static_cast<uint32_t>(header.size());
  for (size_t i = 0; i < 4; ++i) header[2 + i] = static_cast<char>(size >> (8 * i) & 0xff);
  return header;
}

Status Damaged(std::string_view what) {
  return Internal("a stored object is damaged: " + std::string(what));
}

}  // namespace

Bytes EncodeAtRest(const Object& object) {
  CHECK(!object.metadata().name.empty()) << "an object without a name is never stored";
  std::string body;
  EncodeJsonMembers(StoredMetadataType(), &object.metadata(), body);
  body += '}';
  const size_t metadata_size = body.size();
  TypeInfo rest = *object.kind().type;
  rest.fields = rest.fields.subspan(1);  // behind metadata, which every kind begins with
  body += ',';
  if (!EncodeJsonMembers(rest, object.data(), body)) body.pop_back();
  body += '}';
  return Bytes::Concat({EncodeHeader(object, metadata_size), body});
}

Result<AtRestView> AtRestView::Parse(std::string_view at_rest) {
  if (at_rest.size() < kFixedBytes) return Damaged("it is too short");
  if (at_rest[0] != kFormat) {
    return Damaged("its format is " + std::to_string(static_cast<uint8_t>(at_rest[0])) +
                   ", known is " + std::to_string(kFormat));
  }
  uint32_t size = 0;
  for (size_t i = 0; i < 4; ++i) {
    size |= static_cast<uint32_t>(static_cast<uint8_t>(at_rest[2 + i])) << (8 * i);
  }
  if (size < kFixedBytes || size > at_rest.size()) return Damaged("its header has a wrong size");
  AtRestView view;
  view.flags_ = static_cast<uint8_t>(at_rest[1]);
  view.body_ = at_rest.substr(size);
  Reader reader(at_rest.substr(kFixedBytes, size - kFixedBytes));
  view.uid_ = reader.Text();
  view.metadata_size_ = reader.Number();
  view.labels_ = reader.rest();
  for (uint64_t count = reader.Number() * 2; count > 0 && reader.ok(); --count) reader.Text();
  view.fields_ = reader.rest();
  for (uint64_t count = reader.Number(); count > 0 && reader.ok(); --count) reader.Text();
  if (!reader.ok() || !reader.rest().empty() || view.metadata_size_ > view.body_.size()) {
    return Damaged("its header does not add up");
  }
  return view;
}

bool AtRestView::is_deleting() const { return (flags_ & kDeleting) != 0; }
bool AtRestView::has_finalizers() const { return (flags_ & kFinalizers) != 0; }
bool AtRestView::has_owners() const { return (flags_ & kOwners) != 0; }

std::optional<std::string_view> AtRestView::Label(std::string_view key) const {
  Reader reader(labels_);
  for (uint64_t count = reader.Number(); count > 0; --count) {
    const auto name = reader.Text();
    const auto value = reader.Text();
    if (name == key) return value;
  }
  return std::nullopt;
}

std::string_view AtRestView::FieldValue(size_t selector_index) const {
  Reader reader(fields_);
  const uint64_t count = reader.Number();
  if (selector_index >= count) return {};
  for (size_t i = 0; i < selector_index; ++i) reader.Text();
  return reader.Text();
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

Result<Object> DecodeAtRest(const KindInfo& kind,
                            std::string_view at_rest,
                            std::string resource_version) {
  TRY(const auto view, AtRestView::Parse(at_rest));
  std::string text = R"({"metadata":{)";
  text += view.body();
  Object object(kind);
  const Status decoded = DecodeJson(text, *kind.type, object.data());
  if (!decoded.ok()) return Damaged(decoded.message());
  object.metadata().resource_version = std::move(resource_version);
  return object;
}

std::string ObjectPrefix(std::string_view api_version,
                         std::string_view kind,
                         std::string_view resource_version) {
  std::string text;
  text.reserve(96 + api_version.size() + kind.size());
  text += R"({"apiVersion":")";
  text += api_version;
  text += R"(","kind":")";
  text += kind;
  text += R"(","metadata":{"resourceVersion":")";
  text += resource_version;
  text += "\",";
  return text;
}

}  // namespace berth::meta
