// SPDX-License-Identifier: Apache-2.0
// top: what is promised and what is really used.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/flags.h"
#include "cli/commands/placement_commands.h"
#include "cli/objects/fetch.h"
#include "cli/render/output.h"
#include "cli/render/text_table.h"
#include "cli/session/session.h"
#include "meta/quantity.h"

namespace berth::cli {
namespace {

using meta::Quantity;
using meta::Value;

constexpr std::string_view kNothing = "-";

// The usage of an object.
struct Row {
  std::string kind;
  Value usage;
};

// The usages of all objects of a kind.
Status AddRows(Api& api,
               const Resource& resource,
               const ListSelection& selection,
               std::vector<Row>& rows) {
  const size_t before = rows.size();
  const auto take = [&](Value page) -> Status {
    Value* items = page.Find("items");
    if (items == nullptr || !items->is_array()) return OkStatus();
    for (Value& usage : items->items()) {
      rows.push_back({.kind = resource.kind, .usage = std::move(usage)});
    }
    return OkStatus();
  };
  const auto restart = [&] { rows.resize(before); };
  return FetchPages(api,
                    PathOf(resource, selection.namespace_),
                    QueryOf(selection),
                    kAcceptUsages,
                    take,
                    restart);
}

// Absent or unreadable: zero.
Quantity AmountAt(const Value& value, std::initializer_list<std::string_view> path) {
  const auto parsed = Quantity::Parse(value.GetString(path));
  return parsed.ok() ? *parsed : Quantity();
}

// As it is if that is short: 512Mi. Else in a unit that can be read: 22.5Gi, not 23635524Ki.
std::string Readable(const Quantity& amount) {
  constexpr size_t kShort = 6;
  constexpr std::array<std::string_view, 5> kUnits = {"Ki", "Mi", "Gi", "Ti", "Pi"};
  std::string exact = amount.ToString();
  double value = amount.ToDouble() / 1024;
  if (exact.size() <= kShort || value < 1) return exact;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.1f}{}", value, kUnits[unit]);
}

int64_t NumberAt(const Value& value, std::string_view key) {
  const Value* found = value.Find(key);
  return found != nullptr && found->is_int() ? found->as_int() : 0;
}

// The promised part of what there is; -1 if there is nothing.
double ShareOf(const Value& usage, std::string_view resource) {
  const double capacity = AmountAt(usage, {"capacity", resource}).ToDouble();
  if (capacity <= 0) return -1;
  return AmountAt(usage, {"allocated", resource}).ToDouble() / capacity;
}

// "3/8", "37%", and in wide tables what is free.
void AddShare(const Value& usage,
              std::string_view resource,
              bool is_wide,
              std::vector<std::string>& cells) {
  const double share = ShareOf(usage, resource);
  if (share < 0) {
    cells.insert(cells.end(), is_wide ? 3 : 2, std::string(kNothing));
    return;
  }
  cells.push_back(fmt::format("{}/{}",
                              Readable(AmountAt(usage, {"allocated", resource})),
                              Readable(AmountAt(usage, {"capacity", resource}))));
  cells.push_back(fmt::format("{:.0f}%", share * 100));
  if (is_wide) cells.push_back(Readable(AmountAt(usage, {"free", resource})));
}

// A figure that was measured; "-" if it was not.
std::string UsedCell(const Value& usage, std::string_view what) {
  if (usage.Find("used") == nullptr) return std::string(kNothing);
  return Readable(AmountAt(usage, {"used", what}));
}

std::string BytesCell(const Value& usage, std::string_view what) {
  const Value* used = usage.Find("used");
  return used == nullptr ? std::string(kNothing) : Readable(Quantity(NumberAt(*used, what)));
}

std::string HeartbeatCell(const Value& usage) {
  const Value* age = usage.Find("heartbeatAgeMs");
  if (age == nullptr || !age->is_int()) return std::string(kNothing);
  return fmt::format("{:.1f}s ago", static_cast<double>(age->as_int()) / 1000);
}

std::string OrNothing(std::string_view text) { return std::string(text.empty() ? kNothing : text); }

// Larger figures first; equals by kind, namespace and name.
template <class Figure>
void SortRows(std::vector<Row>& rows, Figure figure) {
  const auto name_of = [](const Row& row) {
    return std::tuple(std::string_view(row.kind),
                      row.usage.GetString({"metadata", "namespace"}),
                      row.usage.GetString({"metadata", "name"}));
  };
  std::ranges::sort(rows, [&](const Row& a, const Row& b) {
    if (figure(a.usage) != figure(b.usage)) return figure(a.usage) > figure(b.usage);
    return name_of(a) < name_of(b);
  });
}

void SortPools(std::vector<Row>& pools, const std::string& by) {
  SortRows(pools, [&by](const Value& usage) -> double {
    if (by == "name") return 0;
    if (by == "objects") return static_cast<double>(NumberAt(usage, "objects"));
    return ShareOf(usage, by);
  });
}

void SortMachines(std::vector<Row>& machines, const std::string& by) {
  SortRows(machines, [&by](const Value& usage) -> double {
    return by == "name" ? 0 : AmountAt(usage, {"used", by}).ToDouble();
  });
}

Status PrintRows(Session& session, const OutputFormat& format, std::vector<Row> rows) {
  std::vector<Value> usages;
  for (Row& row : rows) usages.push_back(std::move(row.usage));
  return PrintValue(session.environment(), format, ListOf(std::move(usages)));
}

TableHeader HeaderOf(const Arguments& arguments) {
  return arguments.Switch("no-headers") ? TableHeader::kHidden : TableHeader::kShown;
}

std::string PoolTable(const std::vector<Row>& pools, bool is_wide, TableHeader header) {
  std::vector<std::string> headers = {"Name", "Kind", "Contact", "Heartbeat", "Objects"};
  for (const std::string resource : {"CPU", "Memory", "Storage"}) {
    headers.push_back(resource);
    headers.push_back(resource + "%");
    if (is_wide) headers.push_back(resource + " free");
  }
  headers.insert(headers.end(), {"Used CPU", "Used memory"});
  TextTable table(std::move(headers), header);
  for (const auto& [kind, usage] : pools) {
    std::vector<std::string> cells = {std::string(usage.GetString({"metadata", "name"})),
                                      kind,
                                      OrNothing(usage.GetString({"contact"})),
                                      HeartbeatCell(usage),
                                      std::to_string(NumberAt(usage, "objects"))};
    for (const std::string_view resource : {"cpu", "memory", "storage"}) {
      AddShare(usage, resource, is_wide, cells);
    }
    cells.push_back(UsedCell(usage, "cpu"));
    cells.push_back(UsedCell(usage, "memory"));
    table.AddRow(std::move(cells));
  }
  return table.Flush();
}

Status RunTopPools(Session& session, const Arguments& arguments) {
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  TRY(Api * api, session.GetApi());
  TRY(Discovery * discovery, session.GetDiscovery());
  const ListSelection selection{.namespace_ = "", .label_selector = arguments.Text("selector")};
  std::vector<Row> rows;
  for (const std::string_view word : {"machinepool", "volumepool", "bucketpool"}) {
    const Result<Resource> resource = discovery->FindByWord(word);
    if (resource.status().Is(Reason::kNotFound)) continue;  // a server without that kind
    TRY_STATUS(resource);
    TRY_STATUS(AddRows(*api, *resource, selection, rows));
  }
  SortPools(rows, arguments.Text("sort-by"));
  if (!format.is_table()) return PrintRows(session, format, std::move(rows));
  if (rows.empty()) session.err() << "No pools found.\n";
  session.out() << PoolTable(rows, format.kind == OutputKind::kWide, HeaderOf(arguments));
  return OkStatus();
}

std::string MachineTable(const std::vector<Row>& machines,
                         bool with_namespace,
                         TableHeader header) {
  std::vector<std::string> headers = {
      "Name", "Pool", "State", "CPU", "Memory", "Disk", "Received", "Sent"};
  if (with_namespace) headers.insert(headers.begin(), "Namespace");
  TextTable table(std::move(headers), header);
  for (const auto& [kind, usage] : machines) {
    std::vector<std::string> cells;
    if (with_namespace) cells.emplace_back(usage.GetString({"metadata", "namespace"}));
    for (std::string cell : {std::string(usage.GetString({"metadata", "name"})),
                             OrNothing(usage.GetString({"pool"})),
                             OrNothing(usage.GetString({"state"})),
                             UsedCell(usage, "cpu"),
                             UsedCell(usage, "memory"),
                             UsedCell(usage, "disk"),
                             BytesCell(usage, "networkReceivedBytes"),
                             BytesCell(usage, "networkSentBytes")}) {
      cells.push_back(std::move(cell));
    }
    table.AddRow(std::move(cells));
  }
  return table.Flush();
}

Status RunTopMachines(Session& session, const Arguments& arguments) {
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  TRY(Api * api, session.GetApi());
  TRY(Discovery * discovery, session.GetDiscovery());
  TRY(const Resource resource, discovery->FindByWord("machine"));
  const bool everywhere = arguments.Switch("all-namespaces");
  ListSelection selection{.namespace_ = "", .label_selector = arguments.Text("selector")};
  if (!everywhere) {
    TRY(selection.namespace_, session.Namespace());
  }
  std::vector<Row> rows;
  TRY_STATUS(AddRows(*api, resource, selection, rows));
  SortMachines(rows, arguments.Text("sort-by"));
  if (!format.is_table()) return PrintRows(session, format, std::move(rows));
  if (rows.empty()) session.err() << "No machines found.\n";
  session.out() << MachineTable(rows, everywhere, HeaderOf(arguments));
  return OkStatus();
}

constexpr std::array<std::string_view, 5> kPoolOrders = {
    "name", "cpu", "memory", "storage", "objects"};
constexpr std::array<std::string_view, 4> kMachineOrders = {"name", "cpu", "memory", "disk"};
constexpr std::array<std::string_view, 3> kForms = {"wide", "json", "yaml"};

constexpr Flag SortFlag(std::span<const std::string_view> orders) {
  return {.name = "sort-by",
          .kind = FlagKind::kText,
          .value_name = "WHAT",
          .help = "The order; of figures the largest comes first.",
          .fallback = "name",
          .values = orders};
}
constexpr Flag kTopOutput = {.name = "output",
                             .letter = 'o',
                             .kind = FlagKind::kText,
                             .value_name = "FORMAT",
                             .help = "wide, json or yaml.",
                             .values = kForms};
constexpr std::array kPoolFlags = {
    SortFlag(kPoolOrders), flags::kSelector, kTopOutput, flags::kNoHeaders};
constexpr std::array kMachineFlags = {SortFlag(kMachineOrders),
                                      flags::kSelector,
                                      flags::kAllNamespaces,
                                      kTopOutput,
                                      flags::kNoHeaders};

constexpr std::array kChildren = {
    Command{.name = "pools",
            .summary = "Show what of each pool is promised, free and used",
            .details = "CPU, MEMORY and STORAGE show what is promised to "
                       "objects and what there "
                       "is; USED is what the whole host measures. HEARTBEAT is "
                       "when the host was "
                       "last heard of.",
            .examples = "berth top pools --sort-by memory\n"
                        "berth top pools -l topology.ironcore.dev/zone=a -o wide",
            .flags = kPoolFlags,
            .run = &RunTopPools},
    Command{.name = "machines",
            .summary = "Show what each machine really uses",
            .details = "The figures are the newest that the machine's host has "
                       "sent; a machine "
                       "without any shows a dash.",
            .examples = "berth top machines --sort-by cpu\n"
                        "berth top machines -A -o json",
            .flags = kMachineFlags,
            .run = &RunTopMachines},
};

}  // namespace

Command TopCommand() {
  return {.name = "top",
          .group = "Look",
          .summary = "Show what pools and machines use",
          .examples =
              "berth top pools\n"
              "berth top machines --sort-by cpu -A",
          .children = kChildren};
}

}  // namespace berth::cli
