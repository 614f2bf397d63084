// SPDX-License-Identifier: Apache-2.0
// What net/rpc.h promises, as functions that every body passes. Uses gtest expectations.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "net/rpc.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::net {

// A network under test, with at least two places that reach each other.
class RpcUnderTest {
 public:
  virtual ~RpcUnderTest() = default;
  virtual rt::Loop& loop() = 0;
  virtual Status Run(rt::Task<Status> task) = 0;
  // Every call gives a server at an address of its own. Client certificates are asked for, not
  // required. Unary calls may drain for a second at most.
  virtual rt::Task<Result<std::unique_ptr<RpcServer>>> Serve(RpcRoutes routes) = 0;
  virtual RpcDialer& dialer() = 0;
  // Trusts the server, and has a certificate that the server trusts.
  virtual RpcCredentials credentials() = 0;
  // Has a certificate of an authority that the server does not know.
  virtual RpcCredentials stranger() = 0;
  // Nobody listens there, and that can be noticed.
  virtual std::string dead_address() = 0;
};

class RpcBench;  // what a contract works with

struct RpcContract {
  const char* name;
  rt::Task<Status> (*script)(RpcBench* bench);
};
// All of them, by name.
std::span<const RpcContract> RpcContracts();

// Starts a server and a channel to it, runs the contract, and takes both down.
void RunRpcContract(const RpcContract& contract, RpcUnderTest& network);

}  // namespace berth::net
