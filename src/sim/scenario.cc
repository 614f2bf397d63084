// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "meta/yaml.h"

namespace berth::sim {
namespace {

using Shape = ScenarioField::Shape;

constexpr double kRateMax = 600;  // per virtual minute

constexpr ScenarioField Whole(std::string_view name,
                              double Scenario::* value,
                              double min,
                              double max) {
  return {
      .section = "", .name = name, .value = value, .min = min, .max = max, .shape = Shape::kWhole};
}
constexpr ScenarioField Rate(std::string_view section,
                             std::string_view name,
                             double Scenario::* value) {
  return {.section = section, .name = name, .value = value, .max = kRateMax};
}
constexpr ScenarioField Chance(std::string_view section,
                               std::string_view name,
                               double Scenario::* value) {
  return {.section = section, .name = name, .value = value, .max = 1};
}

constexpr std::array kFields = {
    Whole("servers", &Scenario::servers, 1, 9),
    Whole("pools", &Scenario::pools, 1, 1000),
    Whole("foreignPools", &Scenario::foreign_pools, 0, 1000),
    Whole("bucketPools", &Scenario::bucket_pools, 0, 1000),
    Whole("cpus", &Scenario::cpus, 4, 256),
    Whole("machines", &Scenario::machines, 0, 20'000),
    Whole("sets", &Scenario::sets, 0, 100),
    Whole("volumes", &Scenario::volumes, 0, 10'000),
    Whole("minutes", &Scenario::minutes, 1, 600),
    Whole("convergeMinutes", &Scenario::converge_minutes, 1, 60),
    ScenarioField{
        .section = "", .name = "moveShare", .value = &Scenario::move_share, .min = 0, .max = 1},
    ScenarioField{
        .section = "", .name = "binpackShare", .value = &Scenario::binpack_share, .max = 1},
    ScenarioField{
        .section = "", .name = "hopelessShare", .value = &Scenario::hopeless_share, .max = 1},
    ScenarioField{.section = "", .name = "tiedShare", .value = &Scenario::tied_share, .max = 1},
    ScenarioField{
        .section = "", .name = "tolerantShare", .value = &Scenario::tolerant_share, .max = 1},
    ScenarioField{
        .section = "", .name = "clockSkew", .value = &Scenario::clock_skew, .min = 0, .max = 1},
    Rate("users", "creations", &Scenario::creations),
    Rate("users", "deletions", &Scenario::deletions),
    Rate("users", "forcedDeletions", &Scenario::forced_deletions),
    Rate("users", "edits", &Scenario::edits),
    Rate("users", "cordons", &Scenario::cordons),
    Rate("users", "drains", &Scenario::drains),
    Rate("users", "moves", &Scenario::moves),
    Rate("users", "scalings", &Scenario::scalings),
    Rate("users", "groups", &Scenario::groups),
    Rate("users", "urgent", &Scenario::urgent),
    Rate("users", "reservations", &Scenario::reservations),
    Rate("users", "buckets", &Scenario::buckets),
    Rate("users", "taints", &Scenario::taints),
    Rate("users", "hostDrains", &Scenario::host_drains),
    Rate("users", "hostStops", &Scenario::host_stops),
    Rate("faults", "serverCrash", &Scenario::server_crash),
    Rate("faults", "poolletCrash", &Scenario::poollet_crash),
    Rate("faults", "poolletGone", &Scenario::poollet_gone),
    ScenarioField{.section = "faults",
                  .name = "goneMax",
                  .value = &Scenario::gone_max,
                  .max = 100,
                  .shape = Shape::kWhole},
    Rate("faults", "powerCut", &Scenario::power_cut),
    Rate("faults", "pausePoollet", &Scenario::pause_poollet),
    Rate("faults", "pauseServer", &Scenario::pause_server),
    Rate("faults", "cutServer", &Scenario::cut_server),
    Rate("faults", "partition", &Scenario::partition),
    Rate("faults", "slowLink", &Scenario::slow_link),
    Rate("faults", "dropConnection", &Scenario::drop_connection),
    Rate("faults", "runtimeCrash", &Scenario::runtime_crash),
    Rate("faults", "runtimeLies", &Scenario::runtime_lies),
    Rate("faults", "diskFails", &Scenario::disk_fails),
    Rate("faults", "secondLeader", &Scenario::second_leader),
    Rate("faults", "restoreBackup", &Scenario::restore_backup),
    Rate("faults", "poolReborn", &Scenario::pool_reborn),
    Chance("moments", "crashAfterOffer", &Scenario::crash_after_offer),
    Chance("moments", "crashAfterAccept", &Scenario::crash_after_accept),
    Chance("moments", "crashInBind", &Scenario::crash_in_bind),
    Chance("moments", "crashAfterBind", &Scenario::crash_after_bind),
    Chance("moments", "bindAnswerLost", &Scenario::bind_answer_lost),
    Chance("moments", "bindSlow", &Scenario::bind_slow),
    Chance("moments", "editBeforeBind", &Scenario::edit_before_bind),
    Chance("moments", "cordonBeforeBind", &Scenario::cordon_before_bind),
    Chance("moments", "partitionAfterBind", &Scenario::partition_after_bind),
    Chance("moments", "poolletDiesAfterAccept", &Scenario::poollet_dies_after_accept),
    Chance("moments", "poolletDiesInWrite", &Scenario::poollet_dies_in_write),
    Chance("moments", "poolletDiesAfterWrite", &Scenario::poollet_dies_after_write),
    Chance("moments", "poolletDiesInCreate", &Scenario::poollet_dies_in_create),
    Chance("moments", "runtimeDiesInCreate", &Scenario::runtime_dies_in_create),
    Chance("moments", "crashInGroup", &Scenario::crash_in_group),
    Chance("moments", "crashInPreemption", &Scenario::crash_in_preemption),
    Chance("runtime", "callFails", &Scenario::runtime_call_fails),
    Chance("runtime", "createFails", &Scenario::create_fails),
    Chance("runtime", "createAnswerLost", &Scenario::create_answer_lost),
    Chance("runtime", "answerLost", &Scenario::answer_lost),
    Chance("runtime", "bootFails", &Scenario::boot_fails),
    Chance("runtime", "deleteSticks", &Scenario::delete_sticks),
    Chance("store", "refuses", &Scenario::store_refuses),
    Chance("store", "answerLost", &Scenario::store_answer_lost),
    Chance("store", "slow", &Scenario::store_slow),
    Chance("store", "watchLost", &Scenario::store_watch_lost),
};

std::string PathOf(std::string_view section, std::string_view name) {
  return section.empty() ? std::string(name) : fmt::format("{}.{}", section, name);
}

const ScenarioField* Find(std::string_view section, std::string_view name) {
  for (const ScenarioField& field : kFields) {
    if (field.section == section && field.name == name) return &field;
  }
  return nullptr;
}

bool IsSection(std::string_view name) {
  for (const ScenarioField& field : kFields) {
    if (!name.empty() && field.section == name) return true;
  }
  return false;
}

Status ReadField(std::string_view section,
                 std::string_view name,
                 const meta::Value& value,
                 Scenario& out) {
  const std::string path = PathOf(section, name);
  const ScenarioField* field = Find(section, name);
  if (field == nullptr) return BadRequest(fmt::format("scenario: unknown field {}", path));
  if (!value.is_number()) {
    return BadRequest(
        fmt::format("scenario: {}: expected a number, not {}", path, value.type_name()));
  }
  const double number = value.as_double();
  if (field->shape == Shape::kWhole && number != std::floor(number)) {
    return BadRequest(fmt::format("scenario: {} is {}: expected a whole number", path, number));
  }
  if (number < field->min || number > field->max) {
    return BadRequest(
        fmt::format("scenario: {} is {}: expected {} to {}", path, number, field->min, field->max));
  }
  out.*field->value = number;
  return OkStatus();
}

Status ReadSection(std::string_view section, const meta::Value& value, Scenario& out) {
  if (!value.is_object()) {
    return BadRequest(
        fmt::format("scenario: {}: expected fields, not {}", section, value.type_name()));
  }
  for (const auto& member : value.members()) {
    TRY_STATUS(ReadField(section, member.key, member.value, out));
  }
  return OkStatus();
}

Status CheckWhole(const Scenario& scenario) {
  if (scenario.foreign_pools > scenario.pools) {
    return BadRequest(fmt::format("scenario: foreignPools is {}: at most pools, which is {}",
                                  scenario.foreign_pools,
                                  scenario.pools));
  }
  if (scenario.gone_max > 0 && scenario.gone_max * 4 > scenario.pools) {
    return BadRequest(
        fmt::format("scenario: faults.goneMax is {}: at most a quarter of pools, which is {} (the "
                    "brake for mass loss would hold everything)",
                    scenario.gone_max,
                    scenario.pools));
  }
  if (scenario.bucket_pools > scenario.pools) {
    return BadRequest(fmt::format("scenario: bucketPools is {}: at most pools, which is {}",
                                  scenario.bucket_pools,
                                  scenario.pools));
  }
  if (scenario.servers > 1 && scenario.restore_backup > 0) {
    return BadRequest(
        fmt::format("scenario: faults.restoreBackup is {}: expected 0 with several servers, whose "
                    "store is not replaced while they run",
                    scenario.restore_backup));
  }
  if (scenario.servers > 1 && scenario.second_leader > 0) {
    return BadRequest(
        fmt::format("scenario: faults.secondLeader is {}: expected 0 with several servers, which "
                    "depose each other by themselves",
                    scenario.second_leader));
  }
  if (scenario.servers == 1 && scenario.cut_server > 0) {
    return BadRequest(fmt::format(
        "scenario: faults.cutServer is {}: expected 0 with one server, which has its own store",
        scenario.cut_server));
  }
  // Every machine has one core, and a third of the room is left for what is lost on the way.
  const double room = scenario.pools * scenario.cpus * 0.8;
  if (scenario.machines > room) {
    return BadRequest(
        fmt::format("scenario: machines is {}: at most {:.0f} with this many pools and cpus",
                    scenario.machines,
                    room));
  }
  return OkStatus();
}

}  // namespace

std::span<const ScenarioField> ScenarioFields() { return kFields; }

Result<Scenario> ParseScenario(std::string_view yaml) {
  TRY(const meta::Value root, meta::ParseYaml(yaml));
  Scenario scenario;
  if (root.is_null()) return scenario;
  if (!root.is_object()) {
    return BadRequest(fmt::format("scenario: expected fields, not {}", root.type_name()));
  }
  for (const auto& member : root.members()) {
    if (IsSection(member.key)) {
      TRY_STATUS(ReadSection(member.key, member.value, scenario));
    } else {
      TRY_STATUS(ReadField("", member.key, member.value, scenario));
    }
  }
  TRY_STATUS(CheckWhole(scenario));
  return scenario;
}

}  // namespace berth::sim
