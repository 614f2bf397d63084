// SPDX-License-Identifier: Apache-2.0
// The object at rest, as the store and the watch cache keep it: a small binary header for selecting
// without decoding, and the JSON text of the object from behind `"metadata":{` to its end. What is
// in front of that differs per reader:
//
//   {"apiVersion":"compute.OpenKCM.dev/v1alpha1","kind":"Machine",
//    "metadata":{"resourceVersion":"42",  + body
//
// so aliases, revisions, lists and watches never encode an object again.
//
// Layout, numbers as LEB128:
//
//   format (1 byte) flags (1 byte) header size (4 bytes, little endian, all of it)
//   uid, metadata size, labels (count, then key and value each), field selector values (count,
//   each) body
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "meta/field_selector.h"
#include "meta/label_selector.h"
#include "meta/object.h"

namespace berth::meta {

// The object's resourceVersion is not written: the store's revision is the only one.
// REQUIRES: the object has a name.
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
  bool is_deleting() const;  // has a deletionTimestamp
  bool has_finalizers() const;
  bool has_owners() const;
  // The value of a label; nullopt if the object does not have it.
  std::optional<std::string_view> Label(std::string_view key) const;
  bool Matches(const Selector& selector) const;
  // `kind` gives meaning to the stored values of its field selectors; metadata.name and
  // metadata.namespace come from the caller, who knows the key.
  bool Matches(const FieldSelector& selector,
               const KindInfo& kind,
               std::string_view namespace_,
               std::string_view name) const;
  // The value of one of the kind's field selectors; "" if the header has none of that index.
  std::string_view FieldValue(size_t selector_index) const;
  // JSON from behind `"metadata":{`.
  std::string_view body() const { return body_; }
  // The part of body that belongs to metadata, its closing brace included: for partial metadata.
  std::string_view metadata_body() const { return body_.substr(0, metadata_size_); }

 private:
  uint8_t flags_ = 0;
  std::string_view uid_;
  std::string_view labels_;  // from their count on
  std::string_view fields_;  // from their count on
  std::string_view body_;
  size_t metadata_size_ = 0;
};

// The text in front of a body.
std::string ObjectPrefix(std::string_view api_version,
                         std::string_view kind,
                         std::string_view resource_version);

}  // namespace berth::meta
