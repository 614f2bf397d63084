// SPDX-License-Identifier: Apache-2.0
// The network's end of a relayed call: brings its messages to the handler's loop and the handler's
// words to the network. On the loop of the network only.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>

#include "net/rpc.h"
#include "rt/event.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::net {

class HomeEnd;

class NetEnd : public std::enable_shared_from_this<NetEnd> {
 public:
  // `stream` lives until Close() has ended.
  NetEnd(rt::Loop& net_loop, rt::Loop& home_loop, MessageStream& stream, size_t told_every);
  NetEnd(const NetEnd&) = delete;
  NetEnd& operator=(const NetEnd&) = delete;

  // The messages of the network go to `home` from here on.
  void Start(std::shared_ptr<HomeEnd> home);
  // Waits until everything that the handler said is with the network, unless that is lost.
  rt::Task<Status> Flush();
  // Nothing is read or written after this.
  rt::Task<Status> Close();

  // What the handler's end says.
  void Deliver(std::string message);
  void Consumed(size_t bytes);
  void WritesDone();
  void Abort(Status why);

 private:
  rt::Task<Status> ReadAll();
  rt::Task<Status> WriteAll();
  template <class F>
  void Tell(F words);

  rt::Loop& home_loop_;
  MessageStream& stream_;
  const size_t told_every_;        // bytes that the network took before the other end hears of it
  std::shared_ptr<HomeEnd> home_;  // until Close()
  size_t ahead_bytes_ = 0;         // sent to the handler's loop and not read there yet
  rt::Event may_read_;
  std::list<std::string> outbox_;
  rt::Event written_;       // reset while WriteAll works on the outbox
  size_t taken_bytes_ = 0;  // by the network, and the other end does not know it yet
  rt::TaskScope pumps_;
};

}  // namespace berth::net
