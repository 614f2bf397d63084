// SPDX-License-Identifier: Apache-2.0
#include "app/restore_command.h"

#include <fmt/core.h>

#include <array>
#include <ostream>
#include <utility>

#include "app/backup_command.h"
#include "app/backup_job.h"
#include "app/restore.h"
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

constexpr std::array kSourceFlags = {
    Flag{.name = "from",
         .kind = FlagKind::kText,
         .value_name = "DIR",
         .help = "A copy of a data folder, taken while its server stood still.",
         .completion = cli::Completion::kFiles},
    kPassphraseFlag,
    Flag{.name = "keep-authority",
         .help = "The authority of the data folder stays, although the backup has another one."},
};
constexpr Flag kYes = {
    .name = "yes", .letter = 'y', .help = "Do it: everything since the copy is forgotten."};
constexpr auto kFlags = JoinFlags(kSourceFlags, kDataPlaceFlags, std::array{kYes});

Status AskFirst(const Arguments& arguments, const DataPlace& place, const std::string& from) {
  if (arguments.Switch("yes")) return OkStatus();
  return BadRequest(fmt::format(
      "everything that was written to {} since the copy {} was taken will be forgotten, "
      "revocations of identities too; say --yes to do it",
      place.data_dir,
      from));
}

void Tell(Session& session, const std::string& where, const Restored& restored) {
  session.out() << fmt::format("restored into {}: incarnation {}, revision {}\n",
                               where,
                               restored.incarnation,
                               restored.revision);
  if (!restored.set_aside.empty()) {
    session.out() << fmt::format("set aside     {}\n", restored.set_aside);
  }
  session.out() << "next          start the server; revoke again what was revoked since the copy\n";
}

Status RunFolder(Session& session, const Arguments& arguments, const DataPlace& place) {
  if (place.etcd.has_value()) {
    return BadRequest("--from is for the embedded store; into an etcd a backup FILE is restored");
  }
  RestoreOptions options;
  options.from = arguments.Text("from");
  options.data_dir = place.data_dir;
  TRY_STATUS(AskFirst(arguments, place, options.from));
  rt::AsioLoop loop("restore");
  TRY(const Restored restored, rt::RunTask(loop, Restore(loop, options)));
  Tell(session, place.data_dir, restored);
  return OkStatus();
}

Status Run(Session& session, const Arguments& arguments) {
  TRY(const DataPlace place, ReadDataPlace(session, arguments));
  const bool is_folder = !arguments.Text("from").empty();
  if (arguments.words().size() != (is_folder ? 0 : 1)) {
    return BadRequest("which copy to restore: a backup FILE, or --from with a folder");
  }
  if (is_folder) return RunFolder(session, arguments, place);
  const std::string path = arguments.words()[0];
  TRY_STATUS(AskFirst(arguments, place, path));
  TRY(const std::string passphrase, ReadPassphrase(arguments));
  const auto keep = arguments.Switch("keep-authority") ? KeepAuthority::kYes : KeepAuthority::kNo;
  rt::AsioLoop loop("restore");
  TRY(const Restored restored,
      rt::RunTask(loop, RestoreBackup(loop, place, path, passphrase, keep)));
  Tell(session, place.etcd.has_value() ? arguments.Text("store") : place.data_dir, restored);
  return OkStatus();
}

}  // namespace

cli::Command RestoreCommand() {
  return {
      .name = "restore",
      .group = "Server",
      .usage = "FILE --passphrase-file FILE --yes",
      .summary = "Put an older copy of the store in the place of the present one",
      .details =
          "A backup FILE, or with --from a copy of a data folder. The server is stopped. Hosts go\n"
          "on running what they run: what the copy does not know is shown as orphans and left\n"
          "alone. Join tokens from before are void, those of users too with a FILE. The present\n"
          "store is set aside, not deleted; an etcd has to be empty.",
      .examples =
          "berth restore monday.berth --passphrase-file /etc/berth/passphrase --yes\n"
          "berth restore --from /backup/berth --data-dir /srv/berth --yes",
      .flags = kFlags,
      .words = cli::Completion::kFiles,
      .run = &Run};
}

}  // namespace berth::app
