// SPDX-License-Identifier: Apache-2.0
#include "app/commit_trace.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace berth::app {

Result<std::unique_ptr<CommitTrace>> CommitTrace::Open(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return BadRequest("commit trace " + path + ": " + std::strerror(errno));
  struct stat facts{};
  const bool fits =
      fstat(file, &facts) == 0 && facts.st_size >= static_cast<off_t>(sizeof(Counters));
  void* memory = fits ? mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                      : MAP_FAILED;
  close(file);
  if (memory == MAP_FAILED)
    return BadRequest("commit trace " + path + " is not a file of 16 bytes");
  return std::unique_ptr<CommitTrace>(new CommitTrace(static_cast<Counters*>(memory)));
}

CommitTrace::~CommitTrace() { munmap(counters_, sizeof(Counters)); }

void CommitTrace::OnCommitBegin(uint64_t number) { counters_->begun.store(number); }
void CommitTrace::OnCommitEnd(uint64_t number) { counters_->ended.store(number); }

}  // namespace berth::app
