// SPDX-License-Identifier: Apache-2.0
// The Disks of production: qemu-img, as a process without a shell, with limits, and with keys
// through pipes.
#pragma once

#include <string>

#include "rt/blocking_pool.h"
#include "rt/process/process_runner.h"
#include "runtime/volume/disks.h"

namespace berth::runtime {

class QemuDisks final : public Disks {
 public:
  struct Options {
    std::string qemu_img = "/usr/bin/qemu-img";
    // How long unlocking a new disk takes whoever guesses its key, once per guess.
    Duration key_hardening = Duration::Seconds(1);
    Duration copy_limit = Duration::Hours(4);
  };
  // The runner and the pool, for calls on files, outlive this.
  QemuDisks(rt::ProcessRunner& processes, rt::BlockingPool& pool, Options options)
      : processes_(processes), pool_(pool), options_(std::move(options)) {}

  rt::Task<Status> Create(DiskFile target, int64_t bytes, std::string key) override;
  rt::Task<Status> Copy(DiskCopy copy) override;
  rt::Task<Result<int64_t>> VirtualBytes(DiskFile disk) override;
  rt::Task<Result<int64_t>> ForeignVirtualBytes(DiskFile disk) override;
  rt::Task<Result<Growth>> Grow(DiskFile disk, int64_t bytes) override;
  rt::Task<Status> Unlock(DiskFile disk, std::string key) override;

  // "qemu-img version 7.2.22": what is there, or why nothing is.
  rt::Task<Result<std::string>> Version();

 private:
  struct Call;
  rt::Task<Result<std::string>> Run(Call call);
  rt::Task<Result<Growth>> GrowFile(DiskFile disk, int64_t bytes);

  rt::ProcessRunner& processes_;
  rt::BlockingPool& pool_;
  const Options options_;
};

}  // namespace berth::runtime
