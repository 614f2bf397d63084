// SPDX-License-Identifier: Apache-2.0
// The Disk of production: files of mode 0600 in a folder of mode 0700, written on a blocking pool.
#pragma once

#include <string>

#include "poollet/disk/disk.h"
#include "rt/blocking_pool.h"

namespace berth::poollet {

class FileDisk final : public Disk {
 public:
  // The pool outlives the disk. The folder is made at the first use.
  FileDisk(std::string folder, rt::BlockingPool& pool) : folder_(std::move(folder)), pool_(pool) {}

  rt::Task<Result<std::string>> Read(std::string name) override;
  rt::Task<Status> Append(std::string name, std::string bytes) override;
  rt::Task<Status> Replace(std::string name, std::string bytes) override;

 private:
  const std::string folder_;
  rt::BlockingPool& pool_;
};

}  // namespace berth::poollet
