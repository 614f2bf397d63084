// SPDX-License-Identifier: Apache-2.0
// pool: join-token, what a host needs to join, and the table of the others.
#include <fmt/core.h>

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/flags.h"
#include "cli/commands/pool_commands.h"
#include "cli/commands/secrets.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/kubeconfig/connection.h"
#include "cli/objects/failures.h"
#include "cli/objects/fetch.h"
#include "cli/render/output.h"
#include "cli/render/text_table.h"
#include "cli/session/session.h"
#include "pki/entropy.h"
#include "pki/join_token.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr std::string_view kRegionLabel = "topology.ironcore.dev/region";
constexpr std::string_view kZoneLabel = "topology.ironcore.dev/zone";

// "key=value" pairs of a repeated flag.
Result<std::map<std::string, std::string>> ReadPairs(const Arguments& arguments,
                                                     std::string_view flag) {
  std::map<std::string, std::string> out;
  for (const std::string& text : arguments.List(flag)) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return BadRequest(fmt::format("--{}: {} is not KEY=VALUE", flag, Quote(text)));
    }
    out[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return out;
}

// A flag for a label that the server itself looks at.
Status AddPlace(const Arguments& arguments,
                std::string_view flag,
                std::string_view label,
                std::map<std::string, std::string>& labels) {
  if (!arguments.Given(flag)) return OkStatus();
  const std::string place = arguments.Text(flag);
  const auto [found, is_new] = labels.try_emplace(std::string(label), place);
  if (is_new || found->second == place) return OkStatus();
  return BadRequest(
      fmt::format("--{} {}: --label says {}={}", flag, Quote(place), label, found->second));
}

Result<pki::JoinGrant> ReadGrant(const Arguments& arguments) {
  pki::JoinGrant grant;
  if (arguments.words().size() > 1) return BadRequest("at most one host name is expected");
  if (!arguments.words().empty()) grant.host_pattern = arguments.words().front();
  grant.pool_pattern = arguments.Text("pools");
  if (arguments.Given("kind")) grant.pool_kinds = arguments.List("kind");
  TRY(grant.labels, ReadPairs(arguments, "label"));
  TRY_STATUS(AddPlace(arguments, "region", kRegionLabel, grant.labels));
  TRY_STATUS(AddPlace(arguments, "zone", kZoneLabel, grant.labels));
  TRY(grant.limits, ReadPairs(arguments, "limit"));
  grant.taints = arguments.List("taint");
  if (arguments.Switch("replace")) grant.replacement = pki::HostReplacement::kAllowed;
  TRY_STATUS(pki::CheckGrant(grant));
  return grant;
}

// The record that the server writes at its start: a restore voids tokens of the
// time before.
Result<uint64_t> FetchIncarnation(Api& api) {
  TRY(const Value record, api.Get("/api/v1/namespaces/berth-system/configmaps/cluster"));
  const std::string text(record.GetString({"data", "incarnation"}));
  uint64_t incarnation = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return Internal("configmap berth-system/cluster: data.incarnation");
    incarnation = incarnation * 10 + static_cast<uint64_t>(c - '0');
  }
  return incarnation;
}

Status RunJoinToken(Session& session, const Arguments& arguments) {
  TRY(const pki::JoinGrant grant, ReadGrant(arguments));
  TRY(const Connection connection, session.GetConnection());
  TRY(Api * api, session.GetApi());
  TRY(const uint64_t incarnation, FetchIncarnation(*api));
  TRY(const pki::NewToken token,
      pki::MakeJoinToken(pki::SystemEntropy(),
                         connection.certificate_authority,
                         incarnation,
                         grant,
                         arguments.Span("ttl"),
                         session.environment().wall_now()));
  TRY_STATUS(StoreSecret(*api, SecretValue(token.secret, pki::kJoinTokenSecretType)));
  if (arguments.Text("output") == "json") {
    Value out = Value::Object();
    out.Set("name", token.secret.name);
    out.Set("token", token.text);
    return PrintValue(session.environment(), {.kind = OutputKind::kJson}, out);
  }
  session.out() << token.text << "\n";
  session.err() << fmt::format(
      "This is the only time the token is shown; it "
      "joins one host within {}. On the host, in a FILE of mode 0600:\n"
      "  berth poollet --server HOST:PORT "
      "--token-file FILE --machine-pool NAME\n",
      FormatDuration(arguments.Span("ttl")));
  return OkStatus();
}

constexpr std::array<std::string_view, 1> kJson = {"json"};
constexpr std::array kJoinFlags = {
    Flag{.name = "pools",
         .kind = FlagKind::kText,
         .value_name = "PATTERN",
         .help = "Names that the host's pools may have; * stands for anything.",
         .fallback = "*"},
    Flag{.name = "kind",
         .kind = FlagKind::kCommaList,
         .value_name = "KIND",
         .help = "Kinds of pools that the host may have: MachinePool, "
                 "VolumePool, BucketPool."},
    Flag{.name = "label",
         .kind = FlagKind::kCommaList,
         .value_name = "KEY=VALUE",
         .help = "Labels of its pools: tier=fast. A host cannot choose them "
                 "itself."},
    Flag{.name = "zone",
         .kind = FlagKind::kText,
         .value_name = "NAME",
         .help = "What fails together: the label topology.ironcore.dev/zone, by which "
                 "volumes with reach Zone, spread and the brake of mass losses go."},
    Flag{.name = "region",
         .kind = FlagKind::kText,
         .value_name = "NAME",
         .help = "The label topology.ironcore.dev/region of its pools."},
    Flag{.name = "taint",
         .kind = FlagKind::kCommaList,
         .value_name = "KEY=VALUE:EFFECT",
         .help = "Taints of its pools."},
    Flag{.name = "limit",
         .kind = FlagKind::kCommaList,
         .value_name = "RESOURCE=AMOUNT",
         .help = "What of its capacity counts at most: cpu=64,memory=256Gi."},
    Flag{.name = "ttl",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "How long the token is good for.",
         .fallback = "1h"},
    Flag{.name = "replace", .help = "The host may take over the name of one that has joined."},
    Flag{.name = "output",
         .letter = 'o',
         .kind = FlagKind::kText,
         .value_name = "FORMAT",
         .help = "json prints name and token as an object.",
         .values = kJson},
};

Command JoinTokenCommand() {
  return {.name = "join-token",
          .usage = "[HOST]",
          .summary = "Make a token with which one host joins",
          .details =
              "HOST is the name that the host must have, or a pattern with *. The "
              "token "
              "is printed alone on standard output, so that it can go into a file.",
          .examples =
              "berth pool join-token rack1-07 --zone a --label tier=fast > token\n"
              "berth pool join-token 'rack1-*' --limit memory=256Gi --ttl 15m",
          .flags = kJoinFlags,
          .run = &RunJoinToken};
}

}  // namespace

Command PoolCommand() {
  static const auto* const kChildren = new std::vector<Command>{JoinTokenCommand(),
                                                                PoolRemoveCommand(),
                                                                PoolFenceCommand(),
                                                                PoolIsolateCommand(),
                                                                PoolAdoptCommand(),
                                                                PoolPurgeCommand(),
                                                                PoolApproveCommand(),
                                                                PoolBrakeCommand(),
                                                                PoolAllowLegacyCommand()};
  return {.name = "pool",
          .group = "Pools",
          .summary = "Let hosts in, and take them out",
          .examples =
              "berth pool join-token rack1-07 --zone a > token\n"
              "berth pool remove rack1-07",
          .children = *kChildren};
}

}  // namespace berth::cli
