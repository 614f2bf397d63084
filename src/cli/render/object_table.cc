// SPDX-License-Identifier: Apache-2.0
#include "cli/render/object_table.h"

#include <fmt/core.h>

#include <utility>

#include "base/strings.h"
#include "base/time.h"
#include "meta/json.h"

namespace berth::cli {
namespace {

using meta::Value;

std::string CellText(const Value& cell) {
  switch (cell.type()) {
    case Value::Type::kNull: return "<none>";
    case Value::Type::kString: return cell.as_string();
    default: return meta::WriteJson(cell);
  }
}

std::string AgeOf(const Value& object, WallTime now) {
  const auto created = ParseRfc3339(object.GetString({"metadata", "creationTimestamp"}));
  return created.ok() ? FormatAge(now - *created) : "<unknown>";
}

// What we show of objects from a server without tables.
ServerTable NameAndAge(Value value, WallTime now) {
  ServerTable out;
  out.columns = {{.name = "Name", .priority = 0}, {.name = "Age", .priority = 0}};
  out.resource_version = value.GetString({"metadata", "resourceVersion"});
  out.continue_token = value.GetString({"metadata", "continue"});
  std::vector<Value> objects;
  if (Value* items = value.Find("items"); items != nullptr && items->is_array()) {
    objects = std::move(items->items());
  } else {
    objects.push_back(std::move(value));
  }
  for (Value& object : objects) {
    std::string name(object.GetString({"metadata", "name"}));
    std::string age = AgeOf(object, now);
    out.rows.push_back({.cells = {std::move(name), std::move(age)}, .object = std::move(object)});
  }
  return out;
}

std::vector<std::string> Headers(const std::vector<ServerColumn>& columns,
                                 const ObjectTableOptions& options) {
  std::vector<std::string> out = options.leading;
  if (options.with_namespace) out.emplace_back("Namespace");
  for (const ServerColumn& column : columns) {
    if (column.priority == 0 || options.wide) out.push_back(column.name);
  }
  for (const std::string& key : options.label_columns) {
    const size_t slash = key.rfind('/');
    out.push_back(slash == std::string::npos ? key : key.substr(slash + 1));
  }
  if (options.show_labels) out.emplace_back("Labels");
  return out;
}

}  // namespace

Result<ServerTable> ServerTableFromValue(Value value, WallTime now) {
  if (value.GetString({"kind"}) != "Table") return NameAndAge(std::move(value), now);
  ServerTable out;
  out.resource_version = value.GetString({"metadata", "resourceVersion"});
  out.continue_token = value.GetString({"metadata", "continue"});
  if (const Value* columns = value.Find("columnDefinitions");
      columns != nullptr && columns->is_array()) {
    for (const Value& column : columns->items()) {
      const Value* priority = column.Find("priority");
      const bool has = priority != nullptr && priority->type() == Value::Type::kInt;
      out.columns.push_back({.name = std::string(column.GetString({"name"})),
                             .priority = has ? priority->as_int() : 0});
    }
  }
  Value* rows = value.Find("rows");
  if (rows == nullptr || !rows->is_array()) return out;
  for (Value& row : rows->items()) {
    ServerRow& made = out.rows.emplace_back();
    if (const Value* cells = row.Find("cells"); cells != nullptr && cells->is_array()) {
      for (const Value& cell : cells->items()) made.cells.push_back(CellText(cell));
    }
    if (Value* object = row.Find("object")) made.object = std::move(*object);
  }
  return out;
}

std::string LabelText(const Value* labels) {
  if (labels == nullptr || !labels->is_object() || labels->members().empty()) return "<none>";
  std::vector<std::string> parts;
  for (const Value::Member& label : labels->members()) {
    parts.push_back(fmt::format("{}={}", label.key, CellText(label.value)));
  }
  return Join(parts, ",");
}

ObjectTable::ObjectTable(std::vector<ServerColumn> columns, ObjectTableOptions options)
    : columns_(std::move(columns)),
      options_(std::move(options)),
      table_(Headers(columns_, options_), options_.header) {}

void ObjectTable::Add(const ServerRow& row, std::vector<std::string> leading) {
  std::vector<std::string> cells = std::move(leading);
  if (options_.with_namespace) {
    cells.emplace_back(row.object.GetString({"metadata", "namespace"}));
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].priority > 0 && !options_.wide) continue;
    std::string cell = i < row.cells.size() ? row.cells[i] : "<none>";
    if (i == 0) cell = options_.name_prefix + cell;
    cells.push_back(std::move(cell));
  }
  const Value* labels = row.object.Get({"metadata", "labels"});
  for (const std::string& key : options_.label_columns) {
    const Value* label = labels == nullptr ? nullptr : labels->Find(key);
    cells.push_back(label == nullptr ? "" : CellText(*label));
  }
  if (options_.show_labels) cells.push_back(LabelText(labels));
  table_.AddRow(std::move(cells));
}

}  // namespace berth::cli
