// SPDX-License-Identifier: Apache-2.0
#include "app/poollet/hardware.h"

#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "base/strings.h"

namespace berth::app {
namespace {

// PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
std::string OsName() {
  std::ifstream file("/etc/os-release");
  std::string line;
  constexpr std::string_view kKey = "PRETTY_NAME=";
  while (std::getline(file, line)) {
    if (!line.starts_with(kKey)) continue;
    std::string name = line.substr(kKey.size());
    std::erase(name, '"');
    return name;
  }
  return "Linux";
}

}  // namespace

std::string ReadFirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return std::string(Trim(line));
}

std::string Hostname() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

poollet::HardwareFacts ReadHardware(const std::string& folder) {
  poollet::HardwareFacts facts;
  facts.hostname = Hostname();
  facts.os = OsName();
  utsname kernel = {};
  if (uname(&kernel) == 0) {
    facts.kernel = kernel.release;
    facts.architecture = kernel.machine;
  }
  facts.cpus = std::max<int64_t>(sysconf(_SC_NPROCESSORS_ONLN), 0);
  facts.memory_bytes =
      std::max<int64_t>(sysconf(_SC_PHYS_PAGES), 0) * std::max<int64_t>(sysconf(_SC_PAGESIZE), 0);
  struct statvfs disk = {};
  if (statvfs(folder.c_str(), &disk) == 0) {
    facts.storage_bytes = static_cast<int64_t>(disk.f_blocks * disk.f_frsize);
  }
  facts.machine_id = ReadFirstLine("/etc/machine-id");
  facts.boot_id = ReadFirstLine("/proc/sys/kernel/random/boot_id");
  return facts;
}

}  // namespace berth::app
