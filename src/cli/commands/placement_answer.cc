// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/placement_answer.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "base/strings.h"
#include "cli/api/resource.h"
#include "cli/failure.h"
#include "cli/render/text_table.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr std::string_view kGroup = "berth.dev";
constexpr std::string_view kVersion = "v1alpha1";

int64_t NumberAt(const Value& value, std::string_view key) {
  const Value* found = value.Find(key);
  return found != nullptr && found->is_int() ? found->as_int() : 0;
}

const std::vector<Value>& ItemsAt(const Value& value, std::string_view key) {
  static const auto* const kNone = new std::vector<Value>;
  const Value* found = value.Find(key);
  return found != nullptr && found->is_array() ? found->items() : *kNone;
}

// "2 cpu, 1 memory"; "1500m cpu, 2Gi memory".
std::string PerResource(const Value* amounts) {
  if (amounts == nullptr || !amounts->is_object()) return "";
  std::vector<std::string> parts;
  for (const auto& [name, amount] : amounts->members()) {
    const std::string text = amount.is_string()
                                 ? amount.as_string()
                                 : std::to_string(amount.is_int() ? amount.as_int() : 0);
    parts.push_back(text + " " + name);
  }
  return Join(parts, ", ");
}

// "1500m cpu, 2Gi memory"; of a pool that counts per class "room for one more of class small".
std::string MissingText(const Value* missing) {
  const std::string text = PerResource(missing);
  const bool is_class = text.starts_with("1 class ");
  return is_class ? "room for one more of " + text.substr(2) : text;
}

std::string RulesText(const Value& status) {
  TextTable table({"Rule", "Pools", "Meaning"});
  for (const Value& failed : ItemsAt(status, "failed")) {
    std::string meaning(failed.GetString({"message"}));
    if (failed.GetString({"rule"}) == "Room") {
      const std::string scarce = PerResource(status.Find("scarce"));
      if (!scarce.empty()) meaning += fmt::format(" ({})", scarce);
    }
    table.AddRow({std::string(failed.GetString({"rule"})),
                  std::to_string(NumberAt(failed, "pools")),
                  std::move(meaning)});
  }
  if (NumberAt(status, "fitting") > 0) {
    table.AddRow({"(none)", std::to_string(NumberAt(status, "fitting")), "pass every rule"});
  }
  return table.Flush();
}

std::string NearestText(const Value& status) {
  const Value* nearest = status.Find("nearest");
  if (nearest == nullptr) return "";
  const std::string missing = MissingText(nearest->Find("missing"));
  return fmt::format("nearest of the others: {}, {}\n",
                     Printable(nearest->GetString({"pool"})),
                     missing.empty() ? fmt::format("kept out by {}", nearest->GetString({"rule"}))
                                     : fmt::format("which lacks {}", missing));
}

// Names of the pools of volumes: "volumes on alpha-disks"; "" without.
std::string VolumesText(const Value& place) {
  std::vector<std::string> pools;
  for (const Value& pool : ItemsAt(place, "volumePools")) {
    if (pool.is_string()) pools.push_back(pool.as_string());
  }
  return pools.empty() ? "" : "volumes on " + Join(pools, ", ");
}

std::string RankingText(const Value& status) {
  TextTable table({"Rank", "Pool", "Score", "Preference", "Note"});
  const bool is_placed = status.GetString({"verdict"}) == "Placed";
  int rank = 0;
  for (const Value& ranked : ItemsAt(status, "ranked")) {
    std::vector<std::string> notes;
    if (is_placed && ranked.GetString({"pool"}) == status.GetString({"pool"})) {
      notes.emplace_back("is here");
    }
    const std::string_view reluctance = ranked.GetString({"reluctance"});
    if (!reluctance.empty()) notes.emplace_back(reluctance);
    if (std::string volumes = VolumesText(ranked); !volumes.empty()) {
      notes.push_back(std::move(volumes));
    }
    table.AddRow({std::to_string(++rank),
                  std::string(ranked.GetString({"pool"})),
                  std::to_string(NumberAt(ranked, "score")),
                  std::to_string(NumberAt(ranked, "preference")),
                  Join(notes, "; ")});
  }
  return table.Flush();
}

std::string MembersText(const Value& status) {
  TextTable table({"Member", "Pool", "Note"});
  for (const Value& member : ItemsAt(status, "members")) {
    const std::string_view message = member.GetString({"message"});
    table.AddRow({std::string(member.GetString({"name"})),
                  std::string(member.GetString({"pool"})),
                  message.empty() ? VolumesText(member) : std::string(message)});
  }
  return table.Flush();
}

std::string RefusalsText(const Value& status) {
  TextTable table({"Refused by", "Reason", "Message"});
  for (const Value& refusal : ItemsAt(status, "refusals")) {
    table.AddRow({std::string(refusal.GetString({"pool"})),
                  std::string(refusal.GetString({"reason"})),
                  std::string(refusal.GetString({"message"}))});
  }
  return table.Flush();
}

}  // namespace

Result<Value> AskForPlacement(Api& api, const std::string& namespace_, Value spec) {
  const Resource resource{.group = std::string(kGroup),
                          .version = std::string(kVersion),
                          .plural = "placementreviews",
                          .singular = "placementreview",
                          .kind = "PlacementReview",
                          .namespaced = true};
  Value review = Value::Object();
  review.Set("apiVersion", resource.ApiVersion());
  review.Set("kind", resource.kind);
  review.Set("spec", std::move(spec));
  return api.Post(PathOf(resource, namespace_), review, {{"fieldValidation", "Strict"}});
}

std::string_view VerdictOf(const Value& review) { return review.GetString({"status", "verdict"}); }

std::string PlacementText(std::string_view label, const Value& review) {
  const Value* found = review.Find("status");
  const Value status = found == nullptr ? Value::Object() : *found;
  std::string out = fmt::format("{}: {}\n", label, Printable(status.GetString({"message"})));
  for (const std::string& part : {RulesText(status) + NearestText(status),
                                  RankingText(status),
                                  MembersText(status),
                                  RefusalsText(status)}) {
    if (!part.empty()) out += "\n" + part;
  }
  return out;
}

}  // namespace berth::cli
