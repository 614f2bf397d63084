// SPDX-License-Identifier: Apache-2.0
// pool brake: whether lost pools are left alone because too many fell silent at once, and an
// operator's word that they are really gone.
#include <fmt/core.h>

#include <array>
#include <string>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/pool_commands.h"
#include "cli/commands/pool_work.h"
#include "cli/session/session.h"
#include "meta/json.h"
#include "meta/value.h"

namespace berth::cli {
namespace {

using meta::Value;

// Written by the server: what fell silent, "" while the brake is off. Its own text as the override
// releases the brake.
constexpr std::string_view kClusterStatus =
    "/api/v1/namespaces/berth-system/configmaps/cluster-status";

Status RunBrake(Session& session, const Arguments& arguments) {
  TRY(Api * api, session.GetApi());
  const Result<Value> status = api->Get(std::string(kClusterStatus));
  if (!status.ok() && !status.status().Is(Reason::kNotFound)) return status.status();
  const std::string lost(status.ok() ? status->GetString({"data", "massLoss"}) : "");
  if (lost.empty()) {
    session.out() << "the brake is off: lost pools are handled as their machines ask for\n";
    return OkStatus();
  }
  session.out() << fmt::format("the brake is on: {}\n", Printable(lost));
  if (!arguments.Switch("release")) {
    session.out() << "nothing is moved or replaced until contact returns; berth pool brake "
                     "--release if the hosts are really gone\n";
    return OkStatus();
  }
  TRY_STATUS(
      Confirm(session,
              arguments,
              "Machines with Replace are made anew elsewhere, machines with Move are started "
              "elsewhere once their leases are over. If only the network is gone, that is "
              "work for all of them, and those with Move are stopped.\n"));
  Value data = Value::Object();
  data.Set("override", lost);
  Value patch = Value::Object();
  patch.Set("data", std::move(data));
  const Api::Query query = {{"fieldManager", "berth"}};
  TRY_STATUS(
      api->Patch(std::string(kClusterStatus), kMergePatch, meta::WriteJson(patch), query).status());
  session.out() << "released until contact returns\n";
  return OkStatus();
}

constexpr std::array kBrakeFlags = {
    Flag{.name = "release", .help = "The silent hosts are gone: move and replace what allows it."},
    Flag{.name = "yes", .help = "Do not ask: you know the risk."},
};

}  // namespace

Command PoolBrakeCommand() {
  return {.name = "brake",
          .summary = "Show or release the brake on moving away from many silent hosts",
          .details =
              "If more than a third of the hosts of a zone, or of all, and at least three, fall "
              "silent within a minute, nothing is moved or replaced: it is rather the network, or "
              "this server. Hosts are counted by their machine pools. The brake goes off by itself "
              "when contact returns.",
          .examples = "berth pool brake\nberth pool brake --release",
          .flags = kBrakeFlags,
          .run = &RunBrake};
}

}  // namespace berth::cli
