// SPDX-License-Identifier: Apache-2.0
// The server, its handlers and the channel that the contracts of net/rpc.h use.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/conformance/rpc_contract.h"
#include "net/rpc.h"
#include "rt/event.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::net {

inline constexpr char kEcho[] = "/test.Service/Echo";    // "echo " and the request
inline constexpr char kFail[] = "/test.Service/Fail";    // an error with everything in it
inline constexpr char kWait[] = "/test.Service/Wait";    // until it is cancelled
inline constexpr char kTell[] = "/test.Service/Tell";    // what the handler knows of the call
inline constexpr char kSmall[] = "/test.Service/Small";  // echo, messages of at most kSmallMax
inline constexpr char kHuge[] = "/test.Service/Huge";    // an answer of as many bytes as it is told
inline constexpr char kChat[] = "/test.Service/Chat";    // echoes every message
inline constexpr char kCount[] = "/test.Service/Count";  // reads n, answers 1 to n
inline constexpr char kSum[] = "/test.Service/Sum";      // adds up numbers until half close
inline constexpr char kDeaf[] = "/test.Service/Deaf";    // reads only after `listen`, then counts
inline constexpr char kBreak[] = "/test.Service/Break";  // says "first", then fails or aborts

inline constexpr size_t kSmallMax = 1'000;

class RpcBench {
 public:
  explicit RpcBench(RpcUnderTest& under_test) : network(under_test), tasks(under_test.loop()) {}
  RpcBench(const RpcBench&) = delete;
  RpcBench& operator=(const RpcBench&) = delete;

  // Runs the script between Start and Stop.
  rt::Task<Status> Run(rt::Task<Status> script);

  RpcRoutes Routes();
  rt::Task<Result<std::unique_ptr<RpcChannel>>> Dial();

  RpcUnderTest& network;
  std::unique_ptr<RpcServer> server;
  std::unique_ptr<RpcChannel> channel;
  rt::TaskScope tasks;  // closed before the channel
  rt::Event waiting;    // a handler that waits has begun
  rt::Event cancelled;  // and was cancelled
  rt::Event listen;     // for kDeaf
  size_t heard = 0;     // messages that kDeaf has read
};

}  // namespace berth::net
