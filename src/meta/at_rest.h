// SPDX-License-Identifier: Apache-2.0
// The object at rest, as the store and the watch cache keep it: a small binary header for selecting
// without decoding, and the JSON text of the object from behind `"metadata":{` to its end. What is
// in front of that differs per reader:
//
//   {"apiVersion":"compute.OpenKCM.dev/v1alpha1","kind":"Machine","metadata":{"resourceVersion":"42",
//   + body
//
// so aliases, revisions, lists and watches never encode an object again.
//
// Header, integers little-endian, text as length (uint32) and bytes:
//   format (1 byte, 1) | flags (1 byte) | header size (4) | metadata size (4) | creation seconds
//   (8) | uid | labels: count (4), key and value each | owners: count (4), uid each | values of the
//   kind's field selectors: count (4), text each
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "meta/field_selector.h"
#include "meta/label_selector.h"
#include "meta/object.h"

namespace berth::meta {

// The object's resourceVersion is not written: the store's revision is the only one.
Bytes EncodeAtRest(const Object& object);
// Internal if the bytes are damaged; `resource_version` becomes metadata.resourceVersion.
Result<Object> DecodeAtRest(const KindInfo& kind,
                            std::string_view at_rest,
                            std::string resource_version);

// A view of encoded bytes; valid as long as they are. Reading allocates nothing.
class AtRestView {
 public:
  // Checks the header's structure; Internal if it is damaged.
  static Result<AtRestView> Parse(std::string_view at_rest);

  std::string_view uid() const { return uid_; }
  WallTime creation_timestamp() const { return creation_timestamp_; }
  bool is_deleting() const { return (flags_ & kDeleting) != 0; }  // has a deletionTimestamp
  bool has_finalizers() const { return (flags_ & kFinalizers) != 0; }
  bool has_owners() const { return owners_.count > 0; }
  bool Matches(const Selector& selector) const;
  // `kind` gives meaning to the stored values of its field selectors; metadata.name and
  // metadata.namespace come from the caller, who knows the key.
  bool Matches(const FieldSelector& selector,
               const KindInfo& kind,
               std::string_view namespace_,
               std::string_view name) const;
  // The value of one of the kind's field selectors; "" beyond the last.
  std::string_view FieldValue(size_t selector_index) const;
  std::optional<std::string_view> Label(std::string_view key) const;
  size_t label_count() const { return labels_.count; }
  template <class Visit>  // visit(key, value), in key order
  void ForEachLabel(const Visit& visit) const {
    std::string_view rest = labels_.texts;
    for (size_t i = 0; i < labels_.count; ++i) {
      const auto key = TakeText(rest);
      visit(key, TakeText(rest));
    }
  }
  template <class Visit>  // visit(uid)
  void ForEachOwner(const Visit& visit) const {
    std::string_view rest = owners_.texts;
    for (size_t i = 0; i < owners_.count; ++i) visit(TakeText(rest));
  }
  // JSON from behind `"metadata":{`.
  std::string_view body() const { return body_; }
  // The part of body that belongs to metadata, its closing brace included: for partial metadata.
  std::string_view metadata_body() const { return body_.substr(0, metadata_size_); }

 private:
  friend Bytes EncodeAtRest(const Object& object);
  static constexpr uint8_t kDeleting = 1;
  static constexpr uint8_t kFinalizers = 2;
  // A run of texts whose structure Parse has checked.
  struct Texts {
    size_t count = 0;
    std::string_view texts;
  };
  // REQUIRES: checked by Parse.
  static std::string_view TakeText(std::string_view& rest);
  static bool TakeTexts(std::string_view& rest, size_t texts_per_item, Texts& out);

  uint8_t flags_ = 0;
  uint32_t metadata_size_ = 0;
  WallTime creation_timestamp_;
  std::string_view uid_;
  Texts labels_;
  Texts owners_;
  Texts fields_;
  std::string_view body_;
};

// The text in front of a body.
std::string ObjectPrefix(std::string_view api_version,
                         std::string_view kind,
                         std::string_view resource_version);

}  // namespace berth::meta
