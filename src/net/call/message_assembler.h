// SPDX-License-Identifier: Apache-2.0
// Messages behind their length, as gRPC frames them: a byte for compression (always 0 here) and
// four for the length, big end first.
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::net {

inline constexpr size_t kMessagePrefixBytes = 5;
// What goes in front of a message of so many bytes.
std::string MessagePrefix(size_t bytes);

// Cuts incoming bytes into messages.
class MessageAssembler {
 public:
  explicit MessageAssembler(size_t message_bytes_max) : message_bytes_max_(message_bytes_max) {}

  // Appends the messages that `bytes` complete. An error is final: RequestTooLarge, or
  // MethodNotSupported for a compressed message.
  Status Feed(std::string_view bytes, std::list<std::string>* messages);
  // Also judges the message in progress.
  Status SetLimit(size_t message_bytes_max);
  // Of the message in progress.
  size_t held_bytes() const { return prefix_.size() + message_.size(); }
  bool is_between_messages() const { return held_bytes() == 0; }

 private:
  Status ReadPrefix();
  Status CheckSize(size_t bytes) const;

  size_t message_bytes_max_;
  std::string prefix_;  // shorter than kMessagePrefixBytes until the message's length is known
  std::string message_;
  size_t missing_ = 0;
};

}  // namespace berth::net
