// SPDX-License-Identifier: Apache-2.0
// A kind with one of everything, for the tests of meta.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "meta/ip.h"
#include "meta/kind.h"
#include "meta/label_selector.h"
#include "meta/object_meta.h"
#include "meta/quantity.h"
#include "meta/type.h"
#include "meta/value.h"

namespace berth::meta::testing {

struct Reference {
  std::string name;
  bool operator==(const Reference&) const = default;
};
BERTH_DESCRIBE_ATOMIC(Reference,
                      "test.v1.Reference",
                      "Names another object.",
                      BERTH_FIELD(name, "name", "Its name."))

struct Disk {
  std::string name;
  std::optional<Quantity> size;
  std::string device;
  std::optional<Reference> volume_ref;
};
BERTH_DESCRIBE(Disk,
               "test.v1.Disk",
               "A disk.",
               BERTH_FIELD(name, "name", "Unique name.", {.required = true}),
               BERTH_FIELD(size, "size", "How large it is."),
               BERTH_FIELD(device, "device", "Where it appears.", {.fallback = "\"oda\""}),
               BERTH_FIELD(volume_ref, "volumeRef", "What it shows."))

struct Placement {
  std::string policy;
  int32_t priority = 0;
};
BERTH_DESCRIBE(Placement,
               "test.v1.Placement",
               "Inlined into the spec.",
               BERTH_FIELD(policy, "policy", "Policy."),
               BERTH_FIELD(priority, "priority", "Priority."))

struct WidgetSpec {
  std::string power;
  std::optional<Reference> pool_ref;
  std::vector<Disk> disks;
  Placement placement;
  std::map<std::string, Quantity> resources;
  std::vector<IpAddress> ips;
  std::optional<IpPrefix> prefix;
  std::optional<int32_t> replicas;
  std::optional<LabelSelector> selector;
  IntOrString port;
  std::map<std::string, Base64> data;
  Value extra;
  double ratio = 0;
  std::vector<std::string> tags;
};
BERTH_DESCRIBE(
    WidgetSpec,
    "test.v1.WidgetSpec",
    "What a widget should be.",
    BERTH_FIELD(power, "power", "On or Off.", {.values = {"On", "Off"}, .fallback = "\"On\""}),
    BERTH_FIELD(pool_ref, "poolRef", "Where it runs."),
    BERTH_FIELD(disks,
                "disks",
                "Its disks.",
                {.merge_key = "name", .list_type = "map", .list_keys = {"name"}}),
    BERTH_FIELD(placement, "", "Inlined.", {.inlined = true}),
    BERTH_FIELD(resources, "resources", "What it needs."),
    BERTH_FIELD(ips, "ips", "Its addresses."),
    BERTH_FIELD(prefix, "prefix", "Its network."),
    BERTH_FIELD(replicas, "replicas", "How many.", {.fallback = "1"}),
    BERTH_FIELD(selector, "selector", "Selects."),
    BERTH_FIELD(port, "port", "Port."),
    BERTH_FIELD(data, "data", "Bytes."),
    BERTH_FIELD(extra, "extra", "Anything."),
    BERTH_FIELD(ratio, "ratio", "A ratio."),
    BERTH_FIELD(tags, "tags", "Tags.", {.list_type = "set"}))

struct WidgetStatus {
  std::string state;
  MicroTime seen;
  std::optional<WallTime> since;
  int64_t observed_generation = 0;
};
BERTH_DESCRIBE(WidgetStatus,
               "test.v1.WidgetStatus",
               "What a widget is.",
               BERTH_FIELD(state, "state", "State.", {.values = {"Ready", "Broken"}}),
               BERTH_FIELD(seen, "seen", "When it was seen."),
               BERTH_FIELD(since, "since", "Since when."),
               BERTH_FIELD(observed_generation, "observedGeneration", "Generation seen."))

struct Widget {
  ObjectMeta metadata;
  WidgetSpec spec;
  WidgetStatus status;
};
BERTH_DESCRIBE(Widget,
               "test.v1.Widget",
               "A widget has one of everything.",
               BERTH_FIELD(metadata, "metadata", "What every object has."),
               BERTH_FIELD(spec, "spec", "What it should be."),
               BERTH_FIELD(status, "status", "What it is."))

inline constexpr std::string_view kWidgetSelectors[] = {"spec.poolRef.name", "status.state"};
inline constexpr std::string_view kWidgetShort[] = {"wd"};
inline std::string WidgetState(const Widget& widget) { return widget.status.state; }
inline constexpr Column kWidgetColumns[] = {
    {.name = "State", .doc = "The state.", .cell = Hook<&WidgetState>},
    {.name = "Pool", .doc = "The pool.", .priority = 1, .cell = Hook<&WidgetState>},
};
inline constexpr KindInfo kWidget = {.group = "test",
                                     .naming = GroupNaming::kDomain,
                                     .version = "v1",
                                     .kind = "Widget",
                                     .plural = "widgets",
                                     .singular = "widget",
                                     .short_names = kWidgetShort,
                                     .type = &TypeInfoOf<Widget>(),
                                     .has_status = true,
                                     .field_selectors = kWidgetSelectors,
                                     .columns = kWidgetColumns};

}  // namespace berth::meta::testing
