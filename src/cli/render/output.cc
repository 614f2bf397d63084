// SPDX-License-Identifier: Apache-2.0
#include "cli/render/output.h"

#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <utility>

#include "base/strings.h"
#include "meta/json.h"
#include "meta/jsonpath.h"
#include "meta/yaml.h"

namespace berth::cli {
namespace {

using meta::Value;

struct FormatName {
  std::string_view name;
  OutputKind kind;
};
constexpr std::array kFormats = {
    FormatName{"", OutputKind::kTable},
    FormatName{"wide", OutputKind::kWide},
    FormatName{"json", OutputKind::kJson},
    FormatName{"yaml", OutputKind::kYaml},
    FormatName{"name", OutputKind::kName},
};
constexpr std::string_view kAll =
    "json, yaml, name, wide, jsonpath=TEMPLATE or custom-columns=HEADER:PATH,...";

// Two bytes of UTF-8 for U+0080 to U+009F, which some terminals obey.
bool IsC1(std::string_view text, size_t at) {
  return static_cast<uint8_t>(text[at]) == 0xc2 && at + 1 < text.size() &&
         static_cast<uint8_t>(text[at + 1]) < 0xa0;
}

std::string NameOf(const Value& object) {
  std::string kind = ToLower(object.GetString({"kind"}));
  const std::string_view api_version = object.GetString({"apiVersion"});
  if (const size_t slash = api_version.find('/'); slash != std::string_view::npos) {
    kind += fmt::format(".{}", api_version.substr(0, slash));
  }
  return Printable(fmt::format("{}/{}", kind, object.GetString({"metadata", "name"})));
}

// The objects of a List, or the object itself.
std::vector<const Value*> ObjectsOf(const Value& value) {
  std::vector<const Value*> out;
  const Value* items = value.Find("items");
  if (value.GetString({"kind"}).ends_with("List") && items != nullptr && items->is_array()) {
    for (const Value& item : items->items()) out.push_back(&item);
  } else {
    out.push_back(&value);
  }
  return out;
}

struct CustomColumn {
  std::string header;
  meta::JsonPath path;
};

// "NAME:.metadata.name,STATE:.status.state". A comma inside brackets belongs to the path.
Result<std::vector<CustomColumn>> ParseColumns(std::string_view text) {
  std::vector<std::string> specs(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (c == ',' && depth == 0) {
      specs.emplace_back();
    } else {
      specs.back() += c;
    }
  }
  std::vector<CustomColumn> out;
  for (const std::string& spec : specs) {
    const size_t colon = spec.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == spec.size()) {
      return BadRequest(fmt::format("custom-columns: {} is not HEADER:PATH", Quote(spec)));
    }
    TRY(meta::JsonPath path, meta::JsonPath::ParseRelaxed(spec.substr(colon + 1)));
    out.push_back({.header = spec.substr(0, colon), .path = std::move(path)});
  }
  return out;
}

Result<std::string> PrintColumns(std::string_view columns, const Value& value) {
  TRY(const std::vector<CustomColumn> parsed, ParseColumns(columns));
  std::vector<std::string> headers;
  for (const CustomColumn& column : parsed) headers.push_back(column.header);
  TextTable table(std::move(headers));
  for (const Value* object : ObjectsOf(value)) {
    std::vector<std::string> cells;
    for (const CustomColumn& column : parsed) {
      TRY(std::string cell, column.path.Render(*object));
      cells.push_back(cell.empty() ? "<none>" : std::move(cell));
    }
    table.AddRow(std::move(cells));
  }
  return table.Flush();
}

Result<std::string> TextOf(const OutputFormat& format, const Value& value) {
  switch (format.kind) {
    case OutputKind::kYaml: return meta::WriteYaml(value);
    case OutputKind::kName: {
      std::string out;
      for (const Value* object : ObjectsOf(value)) out += NameOf(*object) + "\n";
      return out;
    }
    case OutputKind::kJsonPath: {
      TRY(const meta::JsonPath path, meta::JsonPath::Parse(format.argument));
      return path.Render(value);
    }
    case OutputKind::kCustomColumns: return PrintColumns(format.argument, value);
    default: return meta::WriteJsonPretty(value) + "\n";
  }
}

}  // namespace

Result<OutputFormat> ParseOutputFormat(std::string_view text) {
  for (const FormatName& format : kFormats) {
    if (text == format.name) return OutputFormat{.kind = format.kind, .argument = {}};
  }
  const size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  std::string argument(equals == std::string_view::npos ? "" : text.substr(equals + 1));
  if (name == "jsonpath" && !argument.empty()) {
    // A mistake in the template is found before the server is asked.
    TRY_STATUS(meta::JsonPath::Parse(argument));
    return OutputFormat{.kind = OutputKind::kJsonPath, .argument = std::move(argument)};
  }
  if (name == "custom-columns" && !argument.empty()) {
    TRY_STATUS(ParseColumns(argument));
    return OutputFormat{.kind = OutputKind::kCustomColumns, .argument = std::move(argument)};
  }
  return BadRequest(fmt::format("--output: {} is not {}", Quote(text), kAll));
}

std::string ForTerminal(const Environment& environment, std::string text) {
  if (!environment.terminal.out_is_terminal) return text;
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (IsC1(text, i)) {
      out += fmt::format("\\u{:04x}", static_cast<uint8_t>(text[++i]));
    } else if ((byte < 0x20 && text[i] != '\n' && text[i] != '\t') || byte == 0x7f) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += text[i];
    }
  }
  return out;
}

Status PrintValue(Environment& environment, const OutputFormat& format, const Value& value) {
  TRY(std::string text, TextOf(format, value));
  *environment.out << ForTerminal(environment, std::move(text));
  return OkStatus();
}

Result<std::string> EvaluateField(const Value& object, std::string_view path) {
  TRY(const meta::JsonPath parsed, meta::JsonPath::ParseRelaxed(path));
  return parsed.Render(object);
}

Value ListOf(std::vector<Value> items) {
  Value metadata = Value::Object();
  metadata.Set("resourceVersion", "");
  Value out = Value::Object();
  out.Set("apiVersion", "v1");
  out.Set("kind", "List");
  out.Set("items", Value::Array(std::move(items)));
  out.Set("metadata", std::move(metadata));
  return out;
}

}  // namespace berth::cli
