// SPDX-License-Identifier: Apache-2.0
// berth backup: everything that a server keeps, in one encrypted file.
#pragma once

#include <string>

#include "app/backup_job.h"
#include "base/result.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/session/session.h"

namespace berth::app {

inline constexpr cli::Flag kPassphraseFlag = {
    .name = "passphrase-file",
    .kind = cli::FlagKind::kText,
    .value_name = "FILE",
    .help = "File with the passphrase of the backup FILE, closed to others.",
    .variable = "BERTH_PASSPHRASE_FILE",
    .completion = cli::Completion::kFiles};

cli::Command BackupCommand();

// From --data-dir, --encryption-keys, --store and --etcd-....
Result<DataPlace> ReadDataPlace(cli::Session& session, const cli::Arguments& arguments);
// From --passphrase-file, which is needed.
Result<std::string> ReadPassphrase(const cli::Arguments& arguments);

}  // namespace berth::app
