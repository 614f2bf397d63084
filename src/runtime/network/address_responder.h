// SPDX-License-Identifier: Apache-2.0
// AddressResponder listens at the taps of guests and tells each its addresses. It hears what a
// guest sends before the bridge and its rules do, and answers on the same wire: the host needs no
// address there, and no guest hears another's requests.
//
// It is the only part that reads what guests send. A guest that asks too often is not heard for a
// moment; others are not held up.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "runtime/network/network_port.h"

namespace berth::runtime {

// Nullopt: nothing to say. Pure.
std::optional<std::string> AnswerFrame(std::string_view frame, const NetworkPort& port);

// Any thread may call anything.
class AddressResponder {
 public:
  // Of one guest, in a tenth of a second.
  static constexpr unsigned kFramesMax = 32;

  // An error says what the kernel or our rights lack.
  static Result<std::unique_ptr<AddressResponder>> Make();
  ~AddressResponder();
  AddressResponder(const AddressResponder&) = delete;
  AddressResponder& operator=(const AddressResponder&) = delete;

  // Answers for this port from now on, at the link with this index. Again: as it is now.
  Status Add(const NetworkPort& port, int link_index);
  void Remove(const std::string& tap);

  // Answers until Stop(), on the calling thread.
  Status Serve();
  void Stop();

 private:
  class Body;
  explicit AddressResponder(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace berth::runtime
