// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/table.h"

#include "base/strings.h"
#include "meta/json.h"
#include "meta/value.h"

namespace berth::apiserver {
namespace {

using meta::Column;
using meta::Value;

std::string NameCell(const void* object) { return meta::MetadataOf(object).name; }
WallTime CreatedAt(const void* object) { return meta::MetadataOf(object).creation_timestamp; }

constexpr Column kName = {.name = "Name",
                          .doc = "Name of the object, unique in its namespace.",
                          .cell = &NameCell,
                          .format = "name"};
constexpr Column kAge = {
    .name = "Age", .doc = "Time since the object was created.", .since = &CreatedAt};

Value CellOf(const Column& column, const void* object, WallTime now) {
  if (column.cell != nullptr) {
    std::string text = column.cell(object);
    if (column.type != "integer") return text;
    if (const auto number = ParseInt(text)) return *number;
    return text;
  }
  const WallTime since = column.since != nullptr ? column.since(object) : CreatedAt(object);
  return since.is_zero() ? std::string("<unknown>") : FormatAge(now - since);
}

}  // namespace

std::vector<Column> TableColumns(const meta::KindInfo& kind) {
  if (kind.column_frame == meta::ColumnFrame::kNone) {
    return {kind.columns.begin(), kind.columns.end()};
  }
  std::vector<Column> columns = {kName};
  bool aged = false;
  for (const auto& column : kind.columns) {
    if (column.priority > 0 && !aged) {
      columns.push_back(kAge);
      aged = true;
    }
    columns.push_back(column);
  }
  if (!aged) columns.push_back(kAge);
  return columns;
}

std::string ColumnDefinitions(const meta::KindInfo& kind) {
  std::vector<Value> definitions;
  for (const auto& column : TableColumns(kind)) {
    Value definition = Value::Object();
    definition.Set("name", column.name);
    definition.Set("type", column.type);
    definition.Set("format", column.format);
    definition.Set("description", column.doc);
    definition.Set("priority", static_cast<int64_t>(column.priority));
    definitions.push_back(std::move(definition));
  }
  return meta::WriteJson(Value::Array(std::move(definitions)));
}

std::string Cells(const meta::KindInfo& kind, const void* object, WallTime now) {
  std::vector<Value> cells;
  for (const auto& column : TableColumns(kind)) cells.push_back(CellOf(column, object, now));
  return meta::WriteJson(Value::Array(std::move(cells)));
}

}  // namespace berth::apiserver
