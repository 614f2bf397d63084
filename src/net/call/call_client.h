// SPDX-License-Identifier: Apache-2.0
// A client's hold on its calls.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "net/call/call_stream.h"
#include "net/rpc.h"
#include "rt/task.h"

namespace berth::net {

// The stream as its user owns it: letting go of it breaks the call off.
std::unique_ptr<MessageStream> HoldCall(std::shared_ptr<CallStream> stream);

// Sends the one message of a unary call and waits for its answer.
rt::Task<Result<std::string>> CallUnary(std::unique_ptr<MessageStream> stream,
                                        std::string method,
                                        std::string request);

}  // namespace berth::net
