// SPDX-License-Identifier: Apache-2.0
// What travels on a simulated connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "net/call/call_service.h"

namespace berth::net {

struct SimFrame {
  enum class Kind : uint8_t {
    kHello,    // client: its certificate in `bytes`
    kWelcome,  // server: its certificate in `bytes`
    kRefusal,  // server: no connection, `status` says why
    kOpen,     // client: a call begins with `head`
    kBytes,    // of a call's messages
    kCredit,   // `count` bytes more may be sent
    kDone,     // client: its half of the call is done
    kEnd,      // server: the call ends with `status`
    kReset,    // client: the call is broken off
    kGoaway,   // server: no new calls
    kClose,    // the connection ends; `status` says why
  };
  Kind kind = Kind::kClose;
  int32_t call = 0;
  std::string bytes;
  size_t count = 0;
  Status status;
  CallHead head;
};

}  // namespace berth::net
