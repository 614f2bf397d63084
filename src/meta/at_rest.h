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
// Header, integers little-endian; counts and the lengths of texts with seven bits per byte:
//   format (1 byte, 2) | flags (1 byte) | header size (4) | metadata size (4) | creation seconds
//   (8) | where in the body the members of metadata.labels begin (4; 0: there are none) | uid |
//   owners: count, uid each | values of the kind's field selectors: count, text each
//
// Format 1, which is read and no longer written, had the labels a second time: instead of where
// they begin, their count, key and value each, behind uid.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "meta/field_selector.h"
#include "meta/label_selector.h"
#include "meta/object.h"

namespace berth::meta {

namespace internal {
void BeginAtRest(const Object& object, std::string& out);
}

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
  // Whether metadata says that the object is the one of this namespace ("" for none) and name.
  // Decodes metadata only if it does not begin as EncodeAtRest writes it.
  bool IsNamed(std::string_view namespace_, std::string_view name) const;
  bool Matches(const Selector& selector) const;
  // `kind` gives meaning to the stored values of its field selectors; metadata.name and
  // metadata.namespace come from the caller, who knows the key.
  bool Matches(const FieldSelector& selector,
               const KindInfo& kind,
               std::string_view namespace_,
               std::string_view name) const;
  // The value of one of the kind's field selectors; "" beyond the last.
  std::string_view FieldValue(size_t selector_index) const;
  // Labels need no escapes in JSON: one that does is none that a selector could name.
  std::optional<std::string_view> Label(std::string_view key) const;
  template <class Visit>  // visit(key, value), in key order
  void ForEachLabel(const Visit& visit) const {
    std::string_view rest = labels_;
    while (const auto label = TakeLabel(rest)) visit(label->first, label->second);
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
  friend void internal::BeginAtRest(const Object& object, std::string& out);
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
  // The next of labels_, or nullopt at their end, also where they are damaged.
  std::optional<std::pair<std::string_view, std::string_view>> TakeLabel(
      std::string_view& rest) const;

  uint8_t flags_ = 0;
  uint32_t metadata_size_ = 0;
  WallTime creation_timestamp_;
  std::string_view uid_;
  bool labels_are_json_ = true;  // not in format 1
  std::string_view labels_;      // `"key":"value",…}` and what follows; texts in format 1
  Texts owners_;
  Texts fields_;
  std::string_view body_;
};

// The text in front of a body.
std::string ObjectPrefix(std::string_view api_version,
                         std::string_view kind,
                         std::string_view resource_version);

}  // namespace berth::meta
