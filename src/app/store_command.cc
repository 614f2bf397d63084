// SPDX-License-Identifier: Apache-2.0
#include "app/store_command.h"

#include <array>

#include "app/key_commands.h"
#include "app/migrate_command.h"

namespace berth::app {

cli::Command StoreCommand() {
  static const std::array kChildren = {RotateKeyCommand(), RetireKeysCommand(), MigrateCommand()};
  return {.name = "store",
          .group = "Server",
          .usage = "COMMAND",
          .summary = "Work on what a server keeps",
          .examples = "berth store rotate-key",
          .children = kChildren};
}

}  // namespace berth::app
