// SPDX-License-Identifier: Apache-2.0
#include "runtime/volume/shared_budget.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/file_status.h"
#include "base/strings.h"
#include "meta/json.h"
#include "pki/private_file.h"

namespace berth::runtime {
namespace {

namespace fs = std::filesystem;
using meta::Value;

constexpr int kShareVersion = 1;
constexpr std::string_view kSuffix = ".share";
// A share is read and written in a millisecond.
constexpr int kLockPatienceMs = 5000;
constexpr int kLockPauseMs = 10;

class Lock {
 public:
  static Result<std::unique_ptr<Lock>> Take(const std::string& folder) {
    const std::string path = folder + "/lock";
    constexpr mode_t kOwnerOnly = 0600;
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kOwnerOnly);
    if (fd < 0) return FileFailed("open", path);
    std::unique_ptr<Lock> lock(new Lock(fd));
    for (int waited = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; waited += kLockPauseMs) {
      if (errno != EWOULDBLOCK && errno != EINTR) return FileFailed("lock", path);
      if (waited >= kLockPatienceMs) {
        return Unavailable("disk budget " + folder + ": another runtime holds it");
      }
      poll(nullptr, 0, kLockPauseMs);
    }
    return lock;
  }
  ~Lock() { close(fd_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  explicit Lock(int fd) : fd_(fd) {}
  const int fd_;
};

Result<int64_t> AmountIn(const Value& root, std::string_view key) {
  const Value* const amount = root.Find(key);
  if (amount == nullptr || !amount->is_int() || amount->as_int() < 0) {
    return BadRequest(std::string(key) + " is no amount");
  }
  return amount->as_int();
}

Value ValueOf(const std::map<std::string, int64_t>& amounts) {
  Value value = Value::Object();
  for (const auto& [name, bytes] : amounts) value.Set(name, bytes);
  return value;
}

Result<std::map<std::string, int64_t>> AmountsIn(const Value& root, std::string_view key) {
  const Value* const value = root.Find(key);
  if (value == nullptr || !value->is_object()) return BadRequest(std::string(key) + " are missing");
  std::map<std::string, int64_t> amounts;
  for (const Value::Member& member : value->members()) {
    TRY(amounts[member.key], AmountIn(*value, member.key));
  }
  return amounts;
}

// Of each name what most say that it has.
void AddMost(const std::map<std::string, int64_t>& amounts, std::map<std::string, int64_t>& most) {
  for (const auto& [name, bytes] : amounts) most[name] = std::max(most[name], bytes);
}

int64_t SumWithout(const std::map<std::string, int64_t>& amounts,
                   const std::map<std::string, int64_t>& own) {
  int64_t sum = 0;
  for (const auto& [name, bytes] : amounts) sum += own.contains(name) ? 0 : bytes;
  return sum;
}

}  // namespace

std::string ToText(const DiskShare& share) {
  Value root = Value::Object();
  root.Set("version", kShareVersion);
  root.Set("total", share.total);
  root.Set("promised", share.promised);
  root.Set("beside", share.beside);
  root.Set("images", ValueOf(share.images));
  root.Set("arriving", ValueOf(share.arriving));
  return meta::WriteJson(root) + "\n";
}

Result<DiskShare> DiskShareOf(std::string_view text) {
  TRY(const Value root, meta::ParseJson(text));
  TRY(const int64_t version, AmountIn(root, "version"));
  if (version != kShareVersion) return BadRequest("unknown version " + std::to_string(version));
  DiskShare share;
  TRY(share.total, AmountIn(root, "total"));
  TRY(share.promised, AmountIn(root, "promised"));
  TRY(share.images, AmountsIn(root, "images"));
  if (root.Find("beside") == nullptr) return share;  // an older runtime's
  TRY(share.beside, AmountIn(root, "beside"));
  TRY(share.arriving, AmountsIn(root, "arriving"));
  return share;
}

OtherShares Seen(const std::map<std::string, DiskShare>& all, const std::string& name) {
  OtherShares others;
  DiskShare most;
  for (const auto& [whose, share] : all) {
    if (whose == name) continue;
    others.promised += share.promised;
    others.beside += share.beside;
    if (share.total > 0 && (others.total == 0 || share.total < others.total)) {
      others.total = share.total;
    }
    AddMost(share.images, most.images);
    AddMost(share.arriving, most.arriving);
  }
  const auto found = all.find(name);
  const DiskShare own = found == all.end() ? DiskShare() : found->second;
  others.images = SumWithout(most.images, own.images);
  others.arriving = SumWithout(most.arriving, own.arriving);
  return others;
}

Result<std::unique_ptr<SharedBudget>> SharedBudget::Open(std::string folder,
                                                         std::string name,
                                                         rt::BlockingPool& pool) {
  TRY_STATUS(pki::EnsurePrivateFolder(folder));
  return std::unique_ptr<SharedBudget>(new SharedBudget(std::move(folder), std::move(name), pool));
}

Result<std::map<std::string, DiskShare>> SharedBudget::ReadAll() const {
  std::map<std::string, DiskShare> all;
  std::error_code failed;
  fs::directory_iterator entries(folder_, failed);
  if (failed) return Internal("read folder " + folder_ + ": " + failed.message());
  for (const fs::directory_entry& entry : entries) {
    const std::string file = entry.path().filename().string();
    if (!file.ends_with(kSuffix)) continue;
    TRY(const std::string text, pki::ReadPrivateFile(entry.path().string()));
    Result<DiskShare> share = DiskShareOf(text);
    if (!share.ok() && file == name_ + std::string(kSuffix)) continue;  // we know better
    if (!share.ok()) {
      return share.status().Wrap("disk budget: " + entry.path().string() + " is damaged");
    }
    all.emplace(file.substr(0, file.size() - kSuffix.size()), *std::move(share));
  }
  return all;
}

Status SharedBudget::ClaimNow(const DiskShare& mine, const Check& check) const {
  TRY(const std::unique_ptr<Lock> lock, Lock::Take(folder_));
  TRY(auto all, ReadAll());
  const auto before = all.find(name_);
  const bool is_same = before != all.end() && before->second == mine;
  all[name_] = mine;
  TRY_STATUS(check(Seen(all, name_)));
  if (is_same) return OkStatus();
  return AsFullDisk(
      pki::WritePrivateFile(folder_ + "/" + name_ + std::string(kSuffix), ToText(mine)));
}

rt::Task<Status> SharedBudget::Claim(DiskShare mine, Check check) {
  const auto job = [this, &mine, &check] { return ClaimNow(mine, check); };
  co_return co_await pool_.Run("budget.claim", job);
}

rt::Task<Status> SharedBudget::Settle(DiskShare mine) {
  const Check content = [](const OtherShares&) { return OkStatus(); };
  co_return co_await Claim(std::move(mine), content);
}

rt::Task<Result<OtherShares>> SharedBudget::Others() {
  const auto job = [this]() -> Result<OtherShares> {
    TRY(const auto all, ReadAll());
    return Seen(all, name_);
  };
  co_return co_await pool_.Run("budget.others", job);
}

}  // namespace berth::runtime
