// SPDX-License-Identifier: Apache-2.0
#include "app/restore_command.h"

#include <fmt/core.h>

#include <array>
#include <ostream>
#include <utility>
#include <vector>

#include "app/backup/restored_access.h"
#include "app/backup_command.h"
#include "app/backup_job.h"
#include "app/restore.h"
#include "app/server_flags.h"
#include "cli/arguments.h"
#include "cli/session/session.h"
#include "pki/revocation_list.h"
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
    Flag{.name = "revoked",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "What was revoked since the copy, as berth certificate revocations lists it.",
         .completion = cli::Completion::kFiles},
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
      "revocations of identities too, but those in --revoked; say --yes to do it",
      place.data_dir,
      from));
}

using Revoked = std::vector<pki::Revocation>;

// Before anything else: a list that is wrong changes nothing.
Result<Revoked> ReadRevoked(Session& session, const Arguments& arguments) {
  const std::string& path = arguments.Text("revoked");
  if (path.empty()) return Revoked();
  return ReadRevocationList(path, session.environment().wall_now());
}

void Tell(Session& session,
          const std::string& where,
          const Restored& restored,
          const Revoked& revoked) {
  session.out() << fmt::format("restored into {}: incarnation {}, revision {}\n",
                               where,
                               restored.incarnation,
                               restored.revision);
  if (!restored.set_aside.empty()) {
    session.out() << fmt::format("set aside     {}\n", restored.set_aside);
  }
  if (!revoked.empty()) {
    session.out() << fmt::format("revoked       {} of the list\n", revoked.size());
  }
  session.out() << "next          start the server; revoke again what was revoked since the "
                << (revoked.empty() ? "copy\n" : "list\n");
}

Status RunFolder(Session& session,
                 const Arguments& arguments,
                 const DataPlace& place,
                 const Revoked& revoked) {
  if (place.etcd.has_value()) {
    return BadRequest("--from is for the embedded store; into an etcd a backup FILE is restored");
  }
  RestoreOptions options;
  options.from = arguments.Text("from");
  options.data_dir = place.data_dir;
  options.revoked = revoked;
  TRY_STATUS(AskFirst(arguments, place, options.from));
  rt::AsioLoop loop("restore");
  TRY(const Restored restored, rt::RunTask(loop, Restore(loop, options)));
  Tell(session, place.data_dir, restored, revoked);
  return OkStatus();
}

Status Run(Session& session, const Arguments& arguments) {
  TRY(const DataPlace place, ReadDataPlace(session, arguments));
  const bool is_folder = !arguments.Text("from").empty();
  if (arguments.words().size() != (is_folder ? 0 : 1)) {
    return BadRequest("which copy to restore: a backup FILE, or --from with a folder");
  }
  TRY(const Revoked revoked, ReadRevoked(session, arguments));
  if (is_folder) return RunFolder(session, arguments, place, revoked);
  BackupRestoreOptions options;
  options.path = arguments.words()[0];
  TRY_STATUS(AskFirst(arguments, place, options.path));
  TRY(options.passphrase, ReadPassphrase(arguments));
  if (arguments.Switch("keep-authority")) options.keep = KeepAuthority::kYes;
  options.revoked = revoked;
  rt::AsioLoop loop("restore");
  TRY(const Restored restored, rt::RunTask(loop, RestoreBackup(loop, place, std::move(options))));
  Tell(session,
       place.etcd.has_value() ? arguments.Text("store") : place.data_dir,
       restored,
       revoked);
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
          "alone. Join tokens and users' tokens from before are void, and certificates that\n"
          "--revoked lists. The present store is set aside, not deleted; an etcd has to be empty.",
      .examples =
          "berth restore monday.berth --passphrase-file /etc/berth/passphrase --yes\n"
          "berth restore --from /backup/berth --data-dir /srv/berth --revoked revoked.txt --yes",
      .flags = kFlags,
      .words = cli::Completion::kFiles,
      .run = &Run};
}

}  // namespace berth::app
