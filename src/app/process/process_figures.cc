// SPDX-License-Identifier: Apache-2.0
#include "app/process/process_figures.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "app/process/memory_limit.h"

namespace berth::app {
namespace {

double OpenFiles() {
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  double count = -3;  // ".", ".." and the folder itself
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

double SecondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

void MeasureProcess(metrics::Registry& metrics) {
  const auto set = [&metrics](std::string_view name, std::string_view help, double value) {
    metrics.GetGauge(name, help).Set(value);
  };
  set("process_open_fds", "Files and sockets that are open.", OpenFiles());
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    set("process_max_fds", "How many may be open.", static_cast<double>(files.rlim_cur));
  }
  uint64_t size = 0;
  uint64_t resident = 0;
  if (std::ifstream("/proc/self/statm") >> size >> resident) {
    set("process_resident_memory_bytes",
        "Memory in use.",
        static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  }
  set("process_memory_limit_bytes",
      "The smallest limit of memory, of the host, a control group or the shell.",
      static_cast<double>(ReadMemoryLimit().bytes));
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    set("process_cpu_seconds_total",
        "Processor time used.",
        SecondsOf(usage.ru_utime) + SecondsOf(usage.ru_stime));
  }
}

}  // namespace berth::app
