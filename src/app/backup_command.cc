// SPDX-License-Identifier: Apache-2.0
#include "app/backup_command.h"

#include <fmt/core.h>

#include <array>
#include <ostream>
#include <utility>

#include "app/process/process_flags.h"
#include "app/server_flags.h"
#include "base/strings.h"
#include "pki/private_file.h"
#include "rt/asio/asio_loop.h"

namespace berth::app {
namespace {

using cli::Arguments;
using cli::Session;

constexpr auto kFlags = JoinFlags(std::array{kPassphraseFlag}, kDataPlaceFlags);

Status Run(Session& session, const Arguments& arguments) {
  if (arguments.words().size() != 1) return BadRequest("one FILE is needed: where to write it");
  const std::string path = arguments.words()[0];
  TRY(DataPlace place, ReadDataPlace(session, arguments));
  TRY(std::string passphrase, ReadPassphrase(arguments));
  rt::AsioLoop loop("backup");
  TRY(const BackupMade made,
      rt::RunTask(loop, MakeBackup(loop, std::move(place), path, std::move(passphrase))));
  session.out() << fmt::format("backup {}: revision {}, {} values, {} files\n",
                               path,
                               made.revision,
                               made.values,
                               made.files)
                << "next          keep it and its passphrase apart; try berth restore somewhere\n";
  return OkStatus();
}

}  // namespace

Result<DataPlace> ReadDataPlace(Session& session, const Arguments& arguments) {
  DataPlace place;
  place.data_dir = arguments.Text("data-dir");
  if (place.data_dir.empty()) place.data_dir = DefaultDataDir(session.environment());
  place.key_file = arguments.Text("encryption-keys");
  if (place.key_file.empty()) place.key_file = DefaultKeyFile(place.data_dir);
  TRY(place.etcd, ReadEtcdOptions(arguments, arguments.Text("store")));
  return place;
}

Result<std::string> ReadPassphrase(const Arguments& arguments) {
  const std::string file = arguments.Text("passphrase-file");
  if (file.empty()) return BadRequest("--passphrase-file is needed");
  TRY(const std::string text, pki::ReadPrivateFile(file));
  return std::string(Trim(text));
}

cli::Command BackupCommand() {
  return {.name = "backup",
          .group = "Server",
          .usage = "FILE --passphrase-file FILE",
          .summary = "Write everything that a server keeps into an encrypted file",
          .details =
              "Runs on the server's machine, while the server serves. All objects as of one\n"
              "revision, with the authority and the keys of the data folder. The file has mode\n"
              "0600 and is encrypted; whoever has it and the passphrase is the cluster.",
          .examples =
              "berth backup /backup/monday.berth --passphrase-file /etc/berth/passphrase\n"
              "berth backup monday.berth --passphrase-file p --store etcd://10.0.0.1:2379",
          .flags = kFlags,
          .words = cli::Completion::kFiles,
          .run = &Run};
}

}  // namespace berth::app
