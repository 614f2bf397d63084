// SPDX-License-Identifier: Apache-2.0
#include "store/key_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/strings.h"

namespace berth::store {
namespace {

// What a condition or an operation adds to a request of etcd beside its key and value: tags,
// lengths, revisions and a lease.
constexpr size_t kTxnKeyBytes = 48;
// A leader's own condition (store/fenced) comes on top of what others may have.
constexpr size_t kFences = 1;

Status ValidateKey(std::string_view key) {
  if (key.empty()) return BadRequest("key is empty");
  if (key.size() > kMaxKeyBytes) {
    return BadRequest(fmt::format("key {}... has {} bytes, at most {} are allowed",
                                  Quote(key.substr(0, 64)),
                                  key.size(),
                                  kMaxKeyBytes));
  }
  return OkStatus();
}

Status ValidateOps(const std::vector<Op>& ops) {
  std::vector<std::string_view> keys;
  keys.reserve(ops.size());
  for (const Op& op : ops) {
    TRY_STATUS(ValidateKey(op.key));
    if (op.value.size() > kMaxValueBytes) {
      return BadRequest(fmt::format("value of key {} has {} bytes, at most {} are allowed",
                                    Quote(op.key),
                                    op.value.size(),
                                    kMaxValueBytes));
    }
    keys.push_back(op.key);
  }
  std::ranges::sort(keys);
  const auto twice = std::ranges::adjacent_find(keys);
  if (twice == keys.end()) return OkStatus();
  return BadRequest(
      fmt::format("key {} occurs in two operations of one transaction", Quote(*twice)));
}

}  // namespace

std::string PrefixEnd(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff) end.pop_back();
  if (end.empty()) return std::string(kNoEnd);
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

bool IsPastEnd(std::string_view key, std::string_view start, std::string_view end) {
  if (end.empty()) return key != start;
  return end != kNoEnd && key >= end;
}

bool InRange(std::string_view key, std::string_view start, std::string_view end) {
  return key >= start && !IsPastEnd(key, start, end);
}

Status ValidateTxn(const Txn& txn) {
  const size_t keys = txn.conditions.size() + txn.ops.size();
  if (txn.ops.size() > kMaxTxnKeys || keys > kMaxTxnKeys + kFences) {
    return BadRequest(fmt::format(
        "transaction has {} conditions and {} operations, at most {} together are allowed",
        txn.conditions.size(),
        txn.ops.size(),
        kMaxTxnKeys));
  }
  size_t bytes = 0;
  for (const Condition& condition : txn.conditions) {
    TRY_STATUS(ValidateKey(condition.key));
    bytes += 2 * condition.key.size() + kTxnKeyBytes;  // compared, and read if that fails
  }
  TRY_STATUS(ValidateOps(txn.ops));
  for (const Op& op : txn.ops) bytes += op.key.size() + op.value.size() + kTxnKeyBytes;
  if (bytes > kMaxTxnBytes) {
    return BadRequest(
        fmt::format("transaction has {} bytes, at most {} are allowed", bytes, kMaxTxnBytes));
  }
  return OkStatus();
}

Status ValidateRange(std::string_view start, std::string_view end) {
  if (start.empty() && end.empty()) return BadRequest("key is empty");
  // A page goes on at the last key + '\0', which is one byte longer than any key.
  if (start.size() > kMaxKeyBytes + 1 || end.size() > kMaxKeyBytes + 1) {
    return BadRequest(fmt::format("bounds of a range have {} and {} bytes, at most {} are allowed",
                                  start.size(),
                                  end.size(),
                                  kMaxKeyBytes + 1));
  }
  return OkStatus();
}

Status ValidateLeaseTtl(Duration ttl) {
  if (ttl >= kMinLeaseTtl && ttl <= kMaxLeaseTtl) return OkStatus();
  return BadRequest(fmt::format("lease ttl {} is not between {} and {}",
                                FormatDuration(ttl),
                                FormatDuration(kMinLeaseTtl),
                                FormatDuration(kMaxLeaseTtl)));
}

}  // namespace berth::store
