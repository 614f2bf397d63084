// SPDX-License-Identifier: Apache-2.0
// What -o means, and how whole objects are printed.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/environment.h"
#include "cli/render/text_table.h"
#include "meta/value.h"

namespace berth::cli {

enum class OutputKind : uint8_t {
  kTable,  // without -o
  kWide,
  kJson,
  kYaml,
  kName,
  kJsonPath,
  kCustomColumns,
};

struct OutputFormat {
  OutputKind kind = OutputKind::kTable;
  std::string argument;  // the template of kJsonPath, the columns of kCustomColumns

  bool is_table() const { return kind == OutputKind::kTable || kind == OutputKind::kWide; }
};

// "json", "jsonpath={.metadata.name}", "custom-columns=NAME:.metadata.name". BadRequest names what
// there is.
Result<OutputFormat> ParseOutputFormat(std::string_view text);

// Prints one object, or a List of them. REQUIRES: not a table.
Status PrintValue(Environment& environment, const OutputFormat& format, const meta::Value& value);

// The values that kubectl's custom columns show; exposed for --sort-by and -o custom-columns.
// Accepts {.a.b}, .a.b and a.b.
Result<std::string> EvaluateField(const meta::Value& object, std::string_view path);

// Text for a terminal: control characters other than newline and tab are escaped. Elsewhere as it
// is.
std::string ForTerminal(const Environment& environment, std::string text);

// A List of `items`, as kubectl prints several objects.
meta::Value ListOf(std::vector<meta::Value> items);

}  // namespace berth::cli
