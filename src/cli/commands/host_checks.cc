// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/host_checks.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/strings.h"

namespace berth::cli {
namespace {

// 10,000 connections of clients, watchers and poollets, RocksDB's files, and some room.
constexpr uint64_t kDescriptorsMin = 16'384;
constexpr uint64_t kDiskWarnBytes = 2ULL << 30;
// RocksDB needs room for a compaction of its largest level before it can free anything.
constexpr uint64_t kDiskFailBytes = 256ULL << 20;
constexpr double kSyncsPerSecondMin = 200;
constexpr int kSyncsMax = 64;

std::string Bytes(uint64_t count) {
  return count >= (1ULL << 30)
             ? fmt::format("{:.1f} GiB", static_cast<double>(count) / (1ULL << 30))
             : fmt::format("{} MiB", count >> 20);
}

}  // namespace

bool IsReadableByOthers(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && (info.st_mode & 077) != 0;
}

Finding CheckDescriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return {Verdict::kWarn, "open files", std::strerror(errno), "ulimit -n"};
  }
  return JudgeDescriptors(limit.rlim_cur, limit.rlim_max);
}

Finding JudgeDescriptors(uint64_t soft, uint64_t hard) {
  const auto number = [](uint64_t count) {
    return count == RLIM_INFINITY ? std::string("none") : std::to_string(count);
  };
  const std::string text = fmt::format("soft limit {}, hard limit {}", number(soft), number(hard));
  if (hard >= kDescriptorsMin) return {Verdict::kOk, "open files", text, ""};
  return {Verdict::kWarn,
          "open files",
          text,
          fmt::format("raise the hard limit to {} or more before starting a server: ulimit -Hn, "
                      "LimitNOFILE=",
                      kDescriptorsMin)};
}

Finding CheckDiskSpace(const std::string& folder) {
  struct statvfs info{};
  if (::statvfs(folder.c_str(), &info) != 0) {
    return {Verdict::kFail,
            "disk space",
            fmt::format("{}: {}", Printable(folder), std::strerror(errno)),
            "give the data folder of a server on this host"};
  }
  const uint64_t free = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  const std::string text = fmt::format("{} free for {}", Bytes(free), Printable(folder));
  if (free >= kDiskWarnBytes) return {Verdict::kOk, "disk space", text, ""};
  return {free < kDiskFailBytes ? Verdict::kFail : Verdict::kWarn,
          "disk space",
          text,
          "free some space: a full disk makes the server read-only"};
}

Finding CheckSyncSpeed(const std::string& folder, const Environment& environment) {
  std::string path = fmt::format("{}/.doctor-XXXXXX", folder);
  const int file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) {
    return {Verdict::kWarn,
            "disk speed",
            fmt::format("not measured, {}: {}", Printable(folder), std::strerror(errno)),
            "run berth doctor as the user of the server"};
  }
  ::unlink(path.c_str());
  const std::array<char, 4096> block{};
  const Time start = environment.now();
  int count = 0;
  bool good = true;
  while (good && count < kSyncsMax && environment.now() - start < Duration::Seconds(1)) {
    good = ::pwrite(file, block.data(), block.size(), count * static_cast<off_t>(block.size())) ==
               static_cast<ssize_t>(block.size()) &&
           ::fdatasync(file) == 0;
    if (good) ++count;
  }
  const int error = errno;
  ::close(file);
  if (!good) {
    return {
        Verdict::kFail, "disk speed", std::strerror(error), "look at the disk: dmesg, smartctl"};
  }
  const double seconds = std::max((environment.now() - start).to_seconds(), 1e-6);
  const double rate = count / seconds;
  const std::string text = fmt::format("{:.0f} syncs per second", rate);
  if (rate >= kSyncsPerSecondMin) return {Verdict::kOk, "disk speed", text, ""};
  return {Verdict::kWarn,
          "disk speed",
          text,
          "every write waits for a sync: put the data folder on a faster disk"};
}

std::optional<WallTime> ParseHttpDate(std::string_view text) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  constexpr size_t kLength = 29;
  if (text.size() != kLength || !text.ends_with(" GMT") || text.substr(3, 2) != ", ") {
    return std::nullopt;
  }
  const size_t month = kMonths.find(text.substr(8, 3));
  if (month == std::string_view::npos || month % 3 != 0) return std::nullopt;
  const auto parsed = ParseRfc3339(fmt::format(
      "{}-{:02}-{}T{}Z", text.substr(12, 4), month / 3 + 1, text.substr(5, 2), text.substr(17, 8)));
  if (!parsed.ok()) return std::nullopt;
  return *parsed;
}

}  // namespace berth::cli
