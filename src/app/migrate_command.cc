// SPDX-License-Identifier: Apache-2.0
#include "app/migrate_command.h"

#include <fmt/core.h>

#include <array>
#include <ostream>
#include <string>
#include <utility>

#include "app/migrate_job.h"
#include "app/process/process_flags.h"
#include "app/server_flags.h"
#include "cli/arguments.h"
#include "cli/session/session.h"
#include "rt/asio/asio_loop.h"

namespace berth::app {
namespace {

using cli::Arguments;
using cli::Flag;
using cli::FlagKind;
using cli::Session;

constexpr std::array kStoreFlags = {
    Flag{.name = "from",
         .kind = FlagKind::kText,
         .value_name = "STORE",
         .help = "embedded, or etcd://HOST:PORT,HOST:PORT."},
    Flag{.name = "to",
         .kind = FlagKind::kText,
         .value_name = "STORE",
         .help = "embedded, or etcd://HOST:PORT,HOST:PORT."},
    ServerFlag("data-dir"),
};
constexpr auto kFlags = JoinFlags(kStoreFlags, kEtcdFlags);

Status Run(Session& session, const Arguments& arguments) {
  const std::string from_name = arguments.Text("from");
  const std::string to_name = arguments.Text("to");
  if (from_name.empty() || to_name.empty() ||
      (from_name == kEmbeddedStore) == (to_name == kEmbeddedStore)) {
    return BadRequest(
        "--from and --to are needed: one is embedded, the other like etcd://HOST:PORT");
  }
  DataPlace from;
  from.data_dir = arguments.Text("data-dir");
  if (from.data_dir.empty()) from.data_dir = DefaultDataDir(session.environment());
  DataPlace to = from;
  const bool to_etcd = from_name == kEmbeddedStore;
  TRY(auto etcd, ReadEtcdOptions(arguments, to_etcd ? to_name : from_name));
  (to_etcd ? to : from).etcd = std::move(etcd);
  const std::string to_place = to_etcd ? to_name : to.data_dir;
  rt::AsioLoop loop("migrate");
  TRY(const Migrated migrated, rt::RunTask(loop, Migrate(loop, from, std::move(to), to_place)));
  session.out() << fmt::format("migrated {} values to {}, compared; revisions go on behind {}\n",
                               migrated.values,
                               to_place,
                               migrated.revision);
  if (!migrated.set_aside.empty()) {
    session.out() << fmt::format("set aside     {}\n", migrated.set_aside);
  }
  session.out() << fmt::format("next          start the server with --store {}\n", to_name);
  return OkStatus();
}

}  // namespace

cli::Command MigrateCommand() {
  return {.name = "migrate",
          .usage = "--from STORE --to STORE",
          .summary = "Move everything between the embedded store and an etcd",
          .details =
              "While no server runs. The new store has to be empty; what was broken off is begun\n"
              "anew. Everything is compared before the old store is set aside. Events are not\n"
              "moved. Authority and keys stay in the data folder.",
          .examples =
              "berth store migrate --from embedded --to etcd://10.0.0.1:2379\n"
              "berth store migrate --from etcd://10.0.0.1:2379 --to embedded --data-dir /srv/berth",
          .flags = kFlags,
          .run = &Run};
}

}  // namespace berth::app
