// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

#include <fmt/core.h>

#include <array>
#include <utility>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/table.h"
#include "cli/render/output.h"
#include "cli/session/session.h"

namespace berth::cli {
namespace {

using meta::Value;

Value ClientVersion() {
  Value out = Value::Object();
  out.Set("gitVersion", fmt::format("v{}", kVersion));
  out.Set("compiler", kCompiler);
  return out;
}

Result<Value> FetchServerVersion(Session& session) {
  TRY(Api * api, session.GetApi());
  return api->Get("/version");
}

Status RunVersion(Session& session, const Arguments& arguments) {
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  Value all = Value::Object();
  all.Set("clientVersion", ClientVersion());
  Status failure;
  if (!arguments.Switch("client")) {
    auto server = FetchServerVersion(session);
    if (server.ok()) {
      all.Set("serverVersion", *std::move(server));
    } else {
      failure = server.status();
    }
  }
  if (!format.is_table()) {
    TRY_STATUS(PrintValue(session.environment(), format, all));
    return failure;
  }
  session.out() << fmt::format("Client Version: v{}\n", kVersion);
  if (const auto version = all.GetString({"serverVersion", "gitVersion"}); !version.empty()) {
    session.out() << fmt::format("Server Version: {}\n", Printable(version));
  }
  return failure;
}

constexpr std::array<std::string_view, 2> kFormats = {"json", "yaml"};
constexpr std::array kFlags = {
    Flag{.name = "client", .help = "Only this program; the server is not asked."},
    Flag{.name = "output",
         .letter = 'o',
         .kind = FlagKind::kText,
         .value_name = "FORMAT",
         .help = "Print everything there is to know.",
         .values = kFormats},
};

}  // namespace

Command VersionCommand() {
  return {.name = "version",
          .group = "Server",
          .summary = "Show the version of this program and of the server",
          .examples = "berth version\nberth version --client -o json",
          .flags = kFlags,
          .run = &RunVersion};
}

}  // namespace berth::cli
