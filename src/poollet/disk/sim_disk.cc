// SPDX-License-Identifier: Apache-2.0
#include "poollet/disk/sim_disk.h"

#include <utility>

#include "rt/sleep.h"

namespace berth::poollet {

rt::Task<Result<std::string>> SimDisk::Read(std::string name) {
  const auto found = files_.find(name);
  if (found == files_.end()) co_return NotFound("no file " + name);
  co_return found->second;
}

rt::Task<Status> SimDisk::Append(std::string name, std::string bytes) {
  Write write{.name = std::move(name),
              .bytes = std::move(bytes),
              .how = Write::How::kAppend,
              .torn = false};
  co_return co_await Perform(std::move(write));
}

rt::Task<Status> SimDisk::Replace(std::string name, std::string bytes) {
  Write write{.name = std::move(name),
              .bytes = std::move(bytes),
              .how = Write::How::kReplace,
              .torn = false};
  co_return co_await Perform(std::move(write));
}

rt::Task<Status> SimDisk::Perform(Write write) {
  if (!failure_.ok()) {
    // A full disk takes what still has room: an append may leave a beginning.
    if (write.how == Write::How::kAppend) {
      files_[write.name] += write.bytes.substr(0, random_.Below(write.bytes.size() + 1));
    }
    co_return failure_;
  }
  const auto place = in_progress_.insert(in_progress_.end(), &write);
  if (on_begin_) on_begin_();
  const Duration latency =
      Duration::Nanos(random_.Between(options_.latency_min.nanos(), options_.latency_max.nanos()));
  const Status slept = co_await rt::Sleep(latency + extra_);
  if (write.torn) co_return Unavailable("the disk is gone");
  in_progress_.erase(place);
  if (!slept.ok()) {
    // Whoever gave up on the write does not know how much of it was done.
    if (write.how == Write::How::kAppend) {
      files_[write.name] += write.bytes.substr(0, random_.Below(write.bytes.size() + 1));
    }
    co_return slept;
  }
  std::string& file = files_[write.name];
  if (write.how == Write::How::kReplace) file.clear();
  file += write.bytes;
  ++writes_;
  if (on_write_) on_write_();
  co_return OkStatus();
}

void SimDisk::Crash() {
  for (Write* write : in_progress_) {
    write->torn = true;
    if (write->how == Write::How::kAppend) {
      files_[write->name] += write->bytes.substr(0, random_.Below(write->bytes.size() + 1));
    } else if (random_.Chance(0.5)) {
      files_[write->name] = write->bytes;
    }
  }
  in_progress_.clear();
}

}  // namespace berth::poollet
