// SPDX-License-Identifier: Apache-2.0
#include "store/rocks/commit_trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace berth::store {
namespace {

constexpr size_t kFileBytes = 2 * sizeof(uint64_t);

Status FileError(std::string_view doing, const std::string& path) {
  return Unavailable(fmt::format("{} {}: {}", doing, path, std::strerror(errno)));
}

}  // namespace

Result<std::unique_ptr<CommitTrace>> CommitTrace::Create(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return FileError("create commit trace", path);
  const bool sized = ::ftruncate(fd, kFileBytes) == 0;
  void* memory =
      sized ? ::mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  const Status status = memory == MAP_FAILED ? FileError("map commit trace", path) : OkStatus();
  ::close(fd);
  if (!status.ok()) return status;
  return std::unique_ptr<CommitTrace>(new CommitTrace(static_cast<uint64_t*>(memory)));
}

CommitTrace::~CommitTrace() { ::munmap(counters_, kFileBytes); }

void CommitTrace::OnCommitBegin(uint64_t number) {
  std::atomic_ref<uint64_t>(counters_[0]).store(number, std::memory_order_seq_cst);
}

void CommitTrace::OnCommitEnd(uint64_t number) {
  std::atomic_ref<uint64_t>(counters_[1]).store(number, std::memory_order_seq_cst);
}

Result<CommitTrace::Counters> CommitTrace::Read(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError("open commit trace", path);
  std::array<uint64_t, 2> counters{};
  const ssize_t got = ::pread(fd, counters.data(), kFileBytes, 0);
  ::close(fd);
  if (got != static_cast<ssize_t>(kFileBytes)) {
    return Internal(fmt::format("commit trace {} has {} bytes, not {}", path, got, kFileBytes));
  }
  return Counters{.begun = counters[0], .ended = counters[1]};
}

}  // namespace berth::store
