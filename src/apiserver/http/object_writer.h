// SPDX-License-Identifier: Apache-2.0
// An ObjectWriter turns stored objects into the text of one answer: whole objects, partial metadata
// or tables, singly, as lists or as watch events, under the group that the client asked for. Whole
// objects are spliced from their stored bytes; only tables and views (events.k8s.io) decode.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/http/negotiation.h"
#include "apiserver/registry.h"
#include "base/result.h"
#include "base/time.h"
#include "meta/kind.h"

namespace berth::apiserver {

// What a table's rows carry of their object (?includeObject=).
enum class TableObject : uint8_t { kNone, kMetadata, kObject };

struct WriterOptions {
  const meta::KindInfo* kind = nullptr;  // as requested; may be a view of the stored kind
  std::string api_version;               // as served to this client
  uint32_t group_index = 0;              // of that apiVersion among Scheme::groups()
  AcceptedForm form;
  TableObject table_object = TableObject::kMetadata;
  WallTime now;  // ages in tables, but those of a watch
};

// Where a line stands in its watch.
struct LinePlace {
  bool is_first = false;  // tables describe their columns here only
  WallTime now;           // ages in tables: a watch may be older than what it tells
};

class ObjectWriter {
 public:
  explicit ObjectWriter(WriterOptions options);

  // One object as the whole answer.
  Result<std::string> Single(const StoredObject& object) const;

  // A list is written in pieces: ListHead, then ListItem for each object, then ListTail.
  std::string ListHead(const ListPage& page) const;
  Status ListItem(const StoredObject& object, bool is_first, std::string& out) const;
  std::string ListTail() const;

  // One line of a watch.
  Status WatchLine(const RegistryEvent& event, const LinePlace& place, std::string& out) const;
  // The last line of a watch that fails.
  std::string ErrorLine(const Status& status) const;
  // The number under which the event's line may be shared with other watchers (EventFrames);
  // nullopt if the line depends on this one.
  std::optional<uint32_t> SharedForm(const RegistryEvent& event) const;

 private:
  Status AppendObject(const StoredObject& object, std::string& out) const;
  Status AppendWhole(const StoredObject& object, std::string& out) const;
  Status AppendPartial(const StoredObject& object, std::string& out) const;
  Status AppendRow(const StoredObject& object, WallTime now, std::string& out) const;
  // The bookmark as an object that has nothing but metadata.
  std::string BookmarkObject(const RegistryEvent& event, Shape shape) const;
  void AppendBookmark(const RegistryEvent& event, const LinePlace& place, std::string& out) const;
  void AppendTableHead(std::string_view list_meta, bool with_columns, std::string& out) const;
  Result<meta::Object> Decode(const StoredObject& object) const;

  WriterOptions options_;
};

}  // namespace berth::apiserver
