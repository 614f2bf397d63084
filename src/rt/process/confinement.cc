// SPDX-License-Identifier: Apache-2.0
#include "rt/process/confinement.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "base/file_status.h"

namespace berth::rt {
namespace {

constexpr uint64_t kTruncate = uint64_t{1} << 14;  // newer than Debian's header
constexpr uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE;
constexpr uint64_t kWrite = kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;
constexpr uint64_t kRun = kRead | LANDLOCK_ACCESS_FS_EXECUTE;
constexpr uint64_t kRunBelow = kRun | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kMakeIn = kWrite | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                             LANDLOCK_ACCESS_FS_REMOVE_FILE;

// All that the kernel knows: what is not allowed below is forbidden. The first kernel with Landlock
// has 13 rights, the next two one more each; later ones are not about files of this kind.
uint64_t AllRights() {
  constexpr uint64_t kFirst = 13;
  constexpr int64_t kKnown = 3;
  const int64_t version =
      syscall(SYS_landlock_create_ruleset, nullptr, size_t{0}, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return 0;
  const auto more = static_cast<uint64_t>(version < kKnown ? version - 1 : kKnown - 1);
  return (uint64_t{1} << (kFirst + more)) - 1;
}

// Ok if there is no such file.
Status Allow(int rules, const std::string& path, uint64_t rights) {
  const int opened = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (opened < 0) {
    return errno == ENOENT || errno == ENOTDIR ? OkStatus() : FileFailed("look at", path);
  }
  landlock_path_beneath_attr rule = {};
  rule.allowed_access = rights & AllRights();
  rule.parent_fd = opened;
  const int64_t added =
      syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0U);
  const Status status = added == 0 ? OkStatus() : FileFailed("allow", path);
  close(opened);
  return status;
}

// What is left to root is to open files of others: disks belong to QEMU's user while a guest runs.
bool DropRights() {
  __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, &rights) != 0) return false;
  constexpr uint32_t kKept = uint32_t{1} << CAP_DAC_OVERRIDE;
  const uint32_t kept = rights[0].permitted & kKept;
  rights[0] = {.effective = kept, .permitted = kept, .inheritable = 0};
  rights[1] = {};
  return syscall(SYS_capset, &header, &rights) == 0;
}

}  // namespace

Confinement::~Confinement() {
  if (rules_ >= 0) close(rules_);
}
Confinement::Confinement(Confinement&& other) noexcept
    : is_any_(other.is_any_), rules_(std::exchange(other.rules_, -1)) {}
Confinement& Confinement::operator=(Confinement&& other) noexcept {
  std::swap(is_any_, other.is_any_);
  std::swap(rules_, other.rules_);
  return *this;
}

bool Confinement::HasLandlock() { return AllRights() != 0; }

Result<Confinement> Confinement::Prepare(const ProcessReach& reach, const std::string& program) {
  Confinement made;
  made.is_any_ = true;
  if (!HasLandlock()) return made;
  landlock_ruleset_attr all = {};
  all.handled_access_fs = AllRights();
  made.rules_ = static_cast<int>(syscall(SYS_landlock_create_ruleset, &all, sizeof(all), 0U));
  if (made.rules_ < 0) return FileFailed("confine", program);
  for (const char* folder : {"/usr", "/lib", "/lib64"}) {
    TRY_STATUS(Allow(made.rules_, folder, kRunBelow));
  }
  TRY_STATUS(Allow(made.rules_, program, kRun));
  TRY_STATUS(Allow(made.rules_, "/etc/ld.so.cache", kRead));
  TRY_STATUS(Allow(made.rules_, "/dev/urandom", kRead));
  TRY_STATUS(Allow(made.rules_, "/dev/null", kWrite));
  for (const std::string& path : reach.reads) TRY_STATUS(Allow(made.rules_, path, kRead));
  for (const std::string& path : reach.writes) {
    struct stat seen = {};
    const bool is_there = stat(path.c_str(), &seen) == 0;
    const std::string folder = std::filesystem::path(path).parent_path().string();
    TRY_STATUS(Allow(made.rules_, is_there ? path : folder, is_there ? kWrite : kMakeIn));
  }
  return made;
}

bool Confinement::Enter() const {
  if (!is_any_) return true;
  if (rules_ >= 0 && syscall(SYS_landlock_restrict_self, rules_, 0U) != 0) return false;
  return DropRights();
}

}  // namespace berth::rt
