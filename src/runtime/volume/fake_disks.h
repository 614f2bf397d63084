// SPDX-License-Identifier: Apache-2.0
// Disks of tests: every format is a plain file, as long as the disk. Done inline, without programs.
#pragma once

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "rt/event.h"
#include "runtime/volume/disks.h"

namespace berth::runtime {

class FakeDisks final : public Disks {
 public:
  rt::Task<Status> Create(DiskFile target, int64_t bytes, std::string /*key*/) override {
    std::ofstream(target.path).put('\0');
    std::filesystem::resize_file(target.path, static_cast<uintmax_t>(bytes));
    co_return OkStatus();
  }
  rt::Task<Status> Copy(DiskCopy copy) override {
    ++copies;
    if (!failure.ok()) co_return failure;
    if (in_use.contains(copy.source.path)) co_return Conflict("in use");
    std::error_code failed;
    const auto bytes = std::filesystem::file_size(copy.source.path, failed);
    if (!failed && static_cast<int64_t>(bytes) > copy.bytes) co_return BadRequest("too large");
    if (copies_go_on != nullptr) {
      std::ofstream(copy.target.path) << "a part";
      CO_TRY_STATUS(co_await copies_go_on->Wait());
    }
    std::filesystem::copy_file(
        copy.source.path, copy.target.path, std::filesystem::copy_options::overwrite_existing);
    co_return OkStatus();
  }
  rt::Task<Result<int64_t>> VirtualBytes(DiskFile disk) override {
    std::error_code failed;
    const auto bytes = std::filesystem::file_size(disk.path, failed);
    if (failed) co_return NotFound(disk.path);
    co_return static_cast<int64_t>(bytes);
  }
  rt::Task<Result<int64_t>> ForeignVirtualBytes(DiskFile disk) override {
    return VirtualBytes(std::move(disk));
  }
  rt::Task<Result<Growth>> Grow(DiskFile disk, int64_t bytes) override {
    if (static_cast<int64_t>(std::filesystem::file_size(disk.path)) >= bytes) {
      co_return Growth::kDone;
    }
    if (in_use.contains(disk.path)) co_return Growth::kInUse;
    std::filesystem::resize_file(disk.path, static_cast<uintmax_t>(bytes));
    co_return Growth::kDone;
  }
  rt::Task<Status> Unlock(DiskFile /*disk*/, std::string key) override {
    if (key == right_key) co_return OkStatus();
    co_return Forbidden("the key does not open the disk");
  }

  Status failure;                // of copies
  std::set<std::string> in_use;  // paths
  std::string right_key = "right";
  int copies = 0;
  rt::Event* copies_go_on = nullptr;  // they wait for it in the middle; outlives this
};

}  // namespace berth::runtime
