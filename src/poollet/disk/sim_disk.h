// SPDX-License-Identifier: Apache-2.0
// The Disk of simulations: files in memory that outlive the process that wrote them. A write takes
// a time drawn from the seed; a crash meanwhile leaves a part of it, or nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>

#include "base/random.h"
#include "base/time.h"
#include "poollet/disk/disk.h"

namespace berth::poollet {

class SimDisk final : public Disk {
 public:
  struct Options {
    Duration latency_min = Duration::Micros(100);
    Duration latency_max = Duration::Millis(3);
  };
  explicit SimDisk(uint64_t seed, Options options) : random_(seed), options_(options) {}
  explicit SimDisk(uint64_t seed) : SimDisk(seed, Options()) {}

  rt::Task<Result<std::string>> Read(std::string name) override;
  rt::Task<Status> Append(std::string name, std::string bytes) override;
  rt::Task<Status> Replace(std::string name, std::string bytes) override;

  // The process that uses the disk dies now. Of a write in progress any beginning is kept; whoever
  // still waits for it is told Unavailable.
  void Crash();
  // Every write fails with this until it is cleared with ok; reads go on.
  void FailWrites(Status status) { failure_ = std::move(status); }
  // Every write takes this much longer.
  void SlowWrites(Duration extra) { extra_ = extra; }
  // Called when a write has begun: until it is durable, a crash tears it.
  void OnBegin(std::function<void()> fn) { on_begin_ = std::move(fn); }
  // Called when a write has become durable, before its caller is told.
  void OnWrite(std::function<void()> fn) { on_write_ = std::move(fn); }

  bool is_writing() const { return !in_progress_.empty(); }
  uint64_t writes() const { return writes_; }
  // For tests: what is on the disk.
  std::map<std::string, std::string>& files() { return files_; }

 private:
  struct Write {
    std::string name;
    std::string bytes;
    enum class How : uint8_t { kAppend, kReplace } how = How::kAppend;
    bool torn = false;
  };
  rt::Task<Status> Perform(Write write);

  Random random_;
  const Options options_;
  Status failure_;
  Duration extra_;
  std::function<void()> on_begin_;
  std::function<void()> on_write_;
  uint64_t writes_ = 0;
  std::map<std::string, std::string> files_;
  std::list<Write*> in_progress_;  // of suspended calls
};

}  // namespace berth::poollet
