// SPDX-License-Identifier: Apache-2.0
// An ObjectTable prints the server's tables (metav1.Table): the server says what is worth seeing of
// a kind, the command line adds namespace, kind and labels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/render/text_table.h"
#include "meta/value.h"

namespace berth::cli {

struct ServerColumn {
  std::string name;
  int64_t priority = 0;  // above 0: only with -o wide
};

struct ServerRow {
  std::vector<std::string> cells;
  meta::Value object;  // partial metadata, or the whole object if that was asked for
};

struct ServerTable {
  std::vector<ServerColumn> columns;
  std::vector<ServerRow> rows;
  std::string resource_version;
  std::string continue_token;  // "": there is no more
};

// Reads a Table. A List or a single object of a server that makes no tables becomes one with name
// and age.
Result<ServerTable> ServerTableFromValue(meta::Value value, WallTime now);

struct ObjectTableOptions {
  bool wide = false;
  bool with_namespace = false;
  bool show_labels = false;
  std::vector<std::string> label_columns;  // -L
  std::string name_prefix;                 // "machine.compute.ironcore.dev/": several kinds at once
  TableHeader header = TableHeader::kShown;
  std::vector<std::string> leading;  // headers of cells that the caller puts in front: "EVENT"
};

class ObjectTable {
 public:
  ObjectTable(std::vector<ServerColumn> columns, ObjectTableOptions options);
  // `leading` has one cell per leading header.
  void Add(const ServerRow& row, std::vector<std::string> leading = {});
  bool empty() const { return table_.empty(); }
  std::string Flush() { return table_.Flush(); }

 private:
  std::vector<ServerColumn> columns_;
  ObjectTableOptions options_;
  TextTable table_;
};

// "a=1,b=2", or "<none>".
std::string LabelText(const meta::Value* labels);

}  // namespace berth::cli
