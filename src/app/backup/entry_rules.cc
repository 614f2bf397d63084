// SPDX-License-Identifier: Apache-2.0
#include "app/backup/entry_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/backup/state_copy.h"
#include "base/strings.h"
#include "store/store.h"

namespace berth::app {
namespace {

constexpr std::string_view kFolder = "pki/";
constexpr size_t kNameBytesMax = 255;  // of a file, on Linux
constexpr size_t kShownBytes = 64;

std::string Shown(std::string_view text) {
  return Quote(text.substr(0, kShownBytes)) + (text.size() > kShownBytes ? "..." : "");
}

}  // namespace

bool IsBackupFileName(std::string_view name) {
  if (!name.starts_with(kFolder)) return false;
  name.remove_prefix(kFolder.size());
  return !name.empty() && name.size() <= kNameBytesMax && !name.starts_with('.') &&
         std::ranges::all_of(name, [](char c) {
           const auto byte = static_cast<uint8_t>(c);
           return byte >= 0x20 && byte != 0x7f && c != '/';
         });
}

Status EntryRules::CheckHead(int64_t revision, int64_t created) {
  if (has_head_) return BadRequest("it has two heads");
  if (revision < 0 || revision > kBackupRevisionMax) {
    return BadRequest(fmt::format(
        "its head has revision {}, which is not between 0 and {}", revision, kBackupRevisionMax));
  }
  if (created < 0) {
    return BadRequest(fmt::format("its head has the time {}, which is before 1970", created));
  }
  has_head_ = true;
  return OkStatus();
}

Status EntryRules::CheckFile(std::string_view name, size_t bytes) {
  if (!IsBackupFileName(name)) {
    return BadRequest(
        fmt::format("it holds a file {}, which is none of the folder pki", Shown(name)));
  }
  files_bytes_ += name.size() + bytes + kBackupFileMore;
  if (files_bytes_ > kBackupFilesBytesMax) {
    return BadRequest(fmt::format("its files are more than {} bytes", kBackupFilesBytesMax));
  }
  return OkStatus();
}

Status EntryRules::CheckValue(std::string_view key, size_t bytes) {
  if (key.empty()) return BadRequest("it has a value without a key");
  if (key.size() > store::kMaxKeyBytes) {
    return BadRequest(fmt::format(
        "key {} has {} bytes, the limit is {}", Shown(key), key.size(), store::kMaxKeyBytes));
  }
  if (bytes > store::kMaxValueBytes) {
    return BadRequest(fmt::format("the value of key {} has {} bytes, the limit is {}",
                                  Shown(key),
                                  bytes,
                                  store::kMaxValueBytes));
  }
  if (key == kFillingKey || key == kMovedKey || key == kBaseKey) {
    return BadRequest(
        fmt::format("it holds {}, which belongs to one store and is in no backup", Shown(key)));
  }
  // So none comes twice, however many there are.
  if (key <= last_key_) {
    return BadRequest(
        fmt::format("key {} comes behind {}, out of order", Shown(key), Shown(last_key_)));
  }
  last_key_ = key;
  return OkStatus();
}

Status EntryRules::CheckEnd() const {
  return has_head_ ? OkStatus() : BadRequest("its head is missing");
}

}  // namespace berth::app
