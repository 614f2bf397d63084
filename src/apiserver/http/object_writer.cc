// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/object_writer.h"

#include <utility>

#include "apiserver/cache/keys.h"
#include "apiserver/http/answers.h"
#include "apiserver/http/body.h"
#include "apiserver/http/table.h"
#include "apiserver/registry/write_parts.h"
#include "base/strings.h"
#include "meta/at_rest.h"
#include "meta/json.h"
#include "meta/object.h"

namespace berth::apiserver {
namespace {

std::string_view EventName(RegistryEvent::Type type) {
  switch (type) {
    case RegistryEvent::Type::kAdded: return "ADDED";
    case RegistryEvent::Type::kModified: return "MODIFIED";
    case RegistryEvent::Type::kDeleted: return "DELETED";
    case RegistryEvent::Type::kBookmark: return "BOOKMARK";
  }
  return "ERROR";
}

std::string RevisionText(store::Revision revision) { return std::to_string(revision.value); }

std::string ListMeta(const ListPage& page) {
  std::string text = R"({"resourceVersion":")" + RevisionText(page.revision) + '"';
  if (!page.continue_token.empty()) {
    text += R"(,"continue":)" + meta::WriteJson(meta::Value(page.continue_token));
    if (page.remaining) text += R"(,"remainingItemCount":)" + std::to_string(*page.remaining);
  }
  return text + '}';
}

// The metadata of a bookmark, with `more` members.
std::string BookmarkMeta(const RegistryEvent& event, std::string_view more) {
  std::string text = R"({"resourceVersion":")" + RevisionText(event.object.revision) + '"';
  text += more;
  if (event.ends_state) text += R"(,"annotations":{"k8s.io/initial-events-end":"true"})";
  return text + '}';
}

}  // namespace

ObjectWriter::ObjectWriter(WriterOptions options) : options_(std::move(options)) {}

std::optional<uint32_t> ObjectWriter::SharedForm(const RegistryEvent& event) const {
  if (event.frames == nullptr || options_.form.shape != Shape::kObject) return std::nullopt;
  constexpr uint32_t kTypes = 4;
  return options_.group_index * kTypes + static_cast<uint32_t>(event.type);
}

Result<meta::Object> ObjectWriter::Decode(const StoredObject& object) const {
  TRY(auto stored,
      meta::DecodeAtRest(
          StoredKind(*options_.kind), object.at_rest.view(), RevisionText(object.revision)));
  return FromStored(*options_.kind, std::move(stored));
}

Status ObjectWriter::AppendWhole(const StoredObject& object, std::string& out) const {
  if (options_.kind->view != nullptr) {
    TRY(const auto view, Decode(object));
    AppendObjectText(view, options_.api_version, out);
    return OkStatus();
  }
  TRY(const auto view, meta::AtRestView::Parse(object.at_rest.view()));
  out +=
      meta::ObjectPrefix(options_.api_version, options_.kind->kind, RevisionText(object.revision));
  out += view.body();
  return OkStatus();
}

Status ObjectWriter::AppendPartial(const StoredObject& object, std::string& out) const {
  TRY(const auto view, meta::AtRestView::Parse(object.at_rest.view()));
  out += meta::ObjectPrefix("meta.k8s.io/" + options_.form.meta_version,
                            "PartialObjectMetadata",
                            RevisionText(object.revision));
  out += view.metadata_body();
  out += '}';
  return OkStatus();
}

Status ObjectWriter::AppendRow(const StoredObject& object, WallTime now, std::string& out) const {
  TRY(const auto decoded, Decode(object));
  out += R"({"cells":)";
  out += Cells(*options_.kind, decoded.data(), now);
  if (options_.table_object == TableObject::kMetadata) {
    out += R"(,"object":)";
    TRY_STATUS(AppendPartial(object, out));
  } else if (options_.table_object == TableObject::kObject) {
    out += R"(,"object":)";
    TRY_STATUS(AppendWhole(object, out));
  }
  out += '}';
  return OkStatus();
}

void ObjectWriter::AppendTableHead(std::string_view list_meta,
                                   bool with_columns,
                                   std::string& out) const {
  out += R"({"kind":"Table","apiVersion":"meta.k8s.io/)" + options_.form.meta_version +
         R"(","metadata":)";
  out += list_meta;
  out += R"(,"columnDefinitions":)";
  out += with_columns ? ColumnDefinitions(*options_.kind) : "[]";
  out += R"(,"rows":[)";
}

Status ObjectWriter::AppendObject(const StoredObject& object, std::string& out) const {
  switch (options_.form.shape) {
    case Shape::kObject: return AppendWhole(object, out);
    case Shape::kPartialMetadata: return AppendPartial(object, out);
    case Shape::kTable: return AppendRow(object, options_.now, out);
  }
  return OkStatus();
}

Result<std::string> ObjectWriter::Single(const StoredObject& object) const {
  std::string out;
  if (options_.form.shape == Shape::kTable) {
    AppendTableHead(R"({"resourceVersion":")" + RevisionText(object.revision) + "\"}", true, out);
    TRY_STATUS(AppendRow(object, options_.now, out));
    return out + "]}";
  }
  TRY_STATUS(AppendObject(object, out));
  return out;
}

std::string ObjectWriter::ListHead(const ListPage& page) const {
  std::string out;
  const std::string list_meta = ListMeta(page);
  switch (options_.form.shape) {
    case Shape::kTable: AppendTableHead(list_meta, true, out); return out;
    case Shape::kPartialMetadata:
      out = R"({"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/)" +
            options_.form.meta_version;
      break;
    case Shape::kObject:
      out = R"({"kind":")" + std::string(options_.kind->kind) + R"(List","apiVersion":")" +
            options_.api_version;
      break;
  }
  return out + R"(","metadata":)" + list_meta + R"(,"items":[)";
}

Status ObjectWriter::ListItem(const StoredObject& object, bool is_first, std::string& out) const {
  if (!is_first) out += ',';
  return AppendObject(object, out);
}

std::string ObjectWriter::ListTail() const { return "]}"; }

std::string ObjectWriter::BookmarkObject(const RegistryEvent& event, Shape shape) const {
  const bool is_whole = shape == Shape::kObject;
  const std::string kind(is_whole ? options_.kind->kind : "PartialObjectMetadata");
  return R"({"kind":")" + kind + R"(","apiVersion":")" +
         (is_whole ? options_.api_version : "meta.k8s.io/" + options_.form.meta_version) +
         R"(","metadata":)" + BookmarkMeta(event, R"(,"creationTimestamp":null)") + '}';
}

void ObjectWriter::AppendBookmark(const RegistryEvent& event,
                                  const LinePlace& place,
                                  std::string& out) const {
  if (options_.form.shape != Shape::kTable) {
    out += BookmarkObject(event, options_.form.shape);
    return;
  }
  AppendTableHead(BookmarkMeta(event, ""), place.is_first, out);
  // As in Kubernetes, whose tables have no annotations: the end is the row of an object that has
  // nothing else. Without objects in rows only the table itself can say it.
  if (event.ends_state && options_.table_object != TableObject::kNone) {
    const meta::Object nothing(*options_.kind);
    out += R"({"cells":)" + Cells(*options_.kind, nothing.data(), place.now) + R"(,"object":)";
    out += BookmarkObject(
        event,
        options_.table_object == TableObject::kObject ? Shape::kObject : Shape::kPartialMetadata);
    out += '}';
  }
  out += "]}";
}

Status ObjectWriter::WatchLine(const RegistryEvent& event,
                               const LinePlace& place,
                               std::string& out) const {
  out += R"({"type":")";
  out += EventName(event.type);
  out += R"(","object":)";
  if (event.type == RegistryEvent::Type::kBookmark) {
    AppendBookmark(event, place, out);
  } else if (options_.form.shape == Shape::kTable) {
    AppendTableHead(R"({"resourceVersion":")" + RevisionText(event.object.revision) + "\"}",
                    place.is_first,
                    out);
    TRY_STATUS(AppendRow(event.object, place.now, out));
    out += "]}";
  } else {
    TRY_STATUS(AppendObject(event.object, out));
  }
  out += "}\n";
  return OkStatus();
}

std::string ObjectWriter::ErrorLine(const Status& status) const {
  return R"({"type":"ERROR","object":)" + meta::WriteJson(StatusDocument(status)) + "}\n";
}

}  // namespace berth::apiserver
