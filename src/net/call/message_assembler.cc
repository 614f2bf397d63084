// SPDX-License-Identifier: Apache-2.0
#include "net/call/message_assembler.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace berth::net {

std::string MessagePrefix(size_t bytes) {
  std::string prefix(kMessagePrefixBytes, '\0');
  for (size_t i = 0; i < 4; ++i) prefix[4 - i] = static_cast<char>(bytes >> (8 * i) & 0xff);
  return prefix;
}

Status MessageAssembler::ReadPrefix() {
  if (prefix_.front() != 0) {
    return {Reason::kMethodNotSupported, "a compressed message: only identity is supported"};
  }
  missing_ = 0;
  for (size_t i = 1; i < kMessagePrefixBytes; ++i) {
    missing_ = missing_ << 8 | static_cast<unsigned char>(prefix_[i]);
  }
  return CheckSize(missing_);
}

Status MessageAssembler::CheckSize(size_t bytes) const {
  if (bytes <= message_bytes_max_) return OkStatus();
  return {Reason::kRequestTooLarge,
          fmt::format("a message of {} bytes, the limit is {}", bytes, message_bytes_max_)};
}

Status MessageAssembler::SetLimit(size_t message_bytes_max) {
  message_bytes_max_ = message_bytes_max;
  return CheckSize(message_.size() + missing_);
}

Status MessageAssembler::Feed(std::string_view bytes, std::list<std::string>* messages) {
  while (!bytes.empty()) {
    if (prefix_.size() < kMessagePrefixBytes) {
      const size_t taken = std::min(bytes.size(), kMessagePrefixBytes - prefix_.size());
      prefix_ += bytes.substr(0, taken);
      bytes.remove_prefix(taken);
      if (prefix_.size() < kMessagePrefixBytes) break;
      TRY_STATUS(ReadPrefix());
    }
    const size_t taken = std::min(bytes.size(), missing_);
    message_ += bytes.substr(0, taken);
    bytes.remove_prefix(taken);
    missing_ -= taken;
    if (missing_ > 0) break;
    messages->push_back(std::exchange(message_, {}));
    prefix_.clear();
  }
  return OkStatus();
}

}  // namespace berth::net
