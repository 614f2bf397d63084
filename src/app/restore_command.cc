// SPDX-License-Identifier: Apache-2.0
#include "app/restore_command.h"

#include <fmt/core.h>

#include <array>
#include <ostream>
#include <utility>

#include "app/process/process_flags.h"
#include "app/restore.h"
#include "cli/arguments.h"
#include "cli/session/session.h"
#include "rt/asio/asio_loop.h"

namespace berth::app {
namespace {

using cli::Arguments;
using cli::Flag;
using cli::FlagKind;
using cli::Session;

constexpr std::array kFlags = {
    Flag{.name = "from",
         .kind = FlagKind::kText,
         .value_name = "DIR",
         .help = "A copy of a data folder, taken while its server stood still.",
         .completion = cli::Completion::kFiles},
    Flag{.name = "data-dir",
         .kind = FlagKind::kText,
         .value_name = "DIR",
         .help = "The data folder to restore into. As root /var/lib/berth, else "
                 "~/.local/share/berth.",
         .variable = "BERTH_DATA_DIR",
         .completion = cli::Completion::kFiles},
    Flag{.name = "yes", .letter = 'y', .help = "Do it: everything since the copy is forgotten."}};

Status Run(Session& session, const Arguments& arguments) {
  RestoreOptions options;
  options.from = arguments.Text("from");
  options.data_dir = arguments.Text("data-dir");
  if (options.data_dir.empty()) options.data_dir = DefaultDataDir(session.environment());
  if (options.from.empty()) return BadRequest("--from is needed: which copy to restore");
  if (!arguments.Switch("yes")) {
    return BadRequest(fmt::format(
        "everything that was written to {} since the copy {} was taken will be forgotten, "
        "revocations of identities too; say --yes to do it",
        options.data_dir,
        options.from));
  }
  rt::AsioLoop loop("restore");
  TRY(const Restored restored, rt::RunTask(loop, Restore(loop, options)));
  session.out() << fmt::format("restored into {}: incarnation {}, revision {}\n",
                               options.data_dir,
                               restored.incarnation,
                               restored.revision);
  if (!restored.set_aside.empty()) {
    session.out() << fmt::format("set aside     {}\n", restored.set_aside);
  }
  session.out() << "next          start the server; revoke again what was revoked since the copy\n";
  return OkStatus();
}

}  // namespace

cli::Command RestoreCommand() {
  return {.name = "restore",
          .group = "Server",
          .usage = "--from DIR --yes",
          .summary = "Put an older copy of the store in the place of the present one",
          .details =
              "Works on folders, with the server stopped. Hosts go on running what they run: what\n"
              "the copy does not know is shown as orphans and left alone. Join tokens from before\n"
              "are void. The present store is set aside, not deleted.",
          .examples =
              "berth restore --from /backup/berth --yes\n"
              "berth restore --from /backup/berth --data-dir /srv/berth --yes",
          .flags = kFlags,
          .run = &Run};
}

}  // namespace berth::app
