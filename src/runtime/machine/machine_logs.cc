// SPDX-License-Identifier: Apache-2.0
// What guests say does not fill the disk: their logs are looked at while the runtime lives.
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "rt/sleep.h"
#include "runtime/machine/console_log_cut.h"
#include "runtime/machine/machine_host.h"

namespace berth::runtime {

// Ends with the host. What was said while there was no runtime is cut at once.
rt::Task<Status> MachineHost::KeepLogsShort() {
  std::string trouble;
  for (;;) {
    std::vector<std::pair<std::string, int64_t>> logs;
    for (const auto& [id, entry] : machines_) {
      logs.emplace_back(deps_.folders.ConsoleLog(id), options_.console_log_max);
      std::string about = deps_.folders.LibvirtLog(DomainNameOf(id));
      if (!about.empty()) logs.emplace_back(std::move(about), kLibvirtLogMax);
    }
    const auto cut = [&logs]() -> Status {
      Status first;
      for (const auto& [path, bytes_max] : logs) {
        const Status done = CutLog(path, bytes_max / 2);
        if (first.ok()) first = done;
      }
      return first;
    };
    const Status done = co_await deps_.files.Run("machines.logs", cut);
    if (done.Is(Reason::kCancelled)) co_return done;
    // Of one that cannot be cut it is said once, not each time.
    if (!done.ok() && done.message() != trouble) LOG_WARNING("logs of guests: {}", done.message());
    trouble = done.message();
    CO_TRY_STATUS(co_await rt::Sleep(options_.log_look));
  }
}

}  // namespace berth::runtime
