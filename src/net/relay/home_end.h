// SPDX-License-Identifier: Apache-2.0
// The handler's end of a relayed call: what the handler reads and writes. On the loop of the
// handlers only.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "net/rpc.h"
#include "rt/leaf.h"
#include "rt/task.h"
#include "rt/waiters.h"

namespace berth::net {

class NetEnd;

class HomeEnd final : public MessageStream {
 public:
  // `net` is told by posts to its loop, and says what it took in steps of `told_every` bytes.
  HomeEnd(rt::Loop& net_loop, std::shared_ptr<NetEnd> net, RpcLimits limits, size_t told_every);
  ~HomeEnd() override;
  HomeEnd(const HomeEnd&) = delete;
  HomeEnd& operator=(const HomeEnd&) = delete;

  rt::Task<Result<std::optional<std::string>>> Read() override;
  [[nodiscard]] bool TryWrite(std::string message) override;
  rt::Task<Status> Write(std::string message) override;
  size_t outbox_bytes() const override { return outbox_bytes_; }
  void WritesDone() override;
  void Abort(Status why) override;

  // What the other end says.
  void Arrived(std::string message);
  // Nothing follows: the peer's half is done, or the stream is lost.
  void Ended(Status status);
  // So much of what was written is with the network.
  void Taken(size_t bytes);

 private:
  Status WhyNotWritable(size_t bytes) const;
  bool HasRoom(size_t bytes) const;
  void Send(std::string message);
  void WakeReader();
  template <class F>
  void Tell(F words);

  rt::Loop& net_loop_;
  const std::shared_ptr<NetEnd> net_;
  const RpcLimits limits_;
  const size_t told_every_;
  std::list<std::string> inbox_;
  size_t read_bytes_ = 0;      // and the other end does not know it yet
  std::optional<Status> end_;  // ok: the peer's half is done; else the stream is over
  bool writes_done_ = false;
  rt::Leaf<Status>* reader_ = nullptr;
  size_t outbox_bytes_ = 0;
  rt::Waiters<Status> writers_;
};

}  // namespace berth::net
