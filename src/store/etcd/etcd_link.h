// SPDX-License-Identifier: Apache-2.0
// An EtcdLink keeps one connection to one member of an etcd cluster and moves to another member
// when this one fails. Calls are tried again as long as that is safe. On-loop only.
//
//   none ──dial, authenticate──► current ──call timed out, member without leader, lost──► retired
//     ▲                                                                                     │
//     └──────────────────────── next member, pause grows from 50 ms to 2 s ─────────────────┘
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "net/rpc.h"
#include "rt/backoff.h"
#include "rt/gate.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"
#include "rt/waiters.h"
#include "store/etcd/etcd_options.h"

namespace berth::store {

// etcd serves TLS connections with at most 250 calls at once.
inline constexpr size_t kEtcdCallsMax = 128;

class EtcdLink {
 private:
  struct Connection;

 public:
  // What an unanswered call may do.
  enum class Repeat : uint8_t {
    kSafe,   // a read, or a change that may happen twice
    kNever,  // a caller must know whether it happened
  };

  // One stream of messages to the current member. Ends with Unavailable when the link moves on.
  class Stream {
   public:
    Stream(std::shared_ptr<Connection> connection, std::unique_ptr<net::MessageStream> stream);
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    net::MessageStream& messages() { return *stream_; }
    void Abort(Status why) { stream_->Abort(std::move(why)); }

   private:
    std::shared_ptr<Connection> connection_;
    std::unique_ptr<net::MessageStream> stream_;
  };

  // The dialer outlives the link.
  EtcdLink(rt::Loop& loop, net::RpcDialer& dialer, EtcdOptions options);
  // REQUIRES: Close() was awaited.
  ~EtcdLink();
  EtcdLink(const EtcdLink&) = delete;
  EtcdLink& operator=(const EtcdLink&) = delete;

  // The answer's bytes. Errors are the store's (ExplainEtcd).
  rt::Task<Result<std::string>> Call(std::string method, std::string request, Repeat repeat);
  rt::Task<Result<std::unique_ptr<Stream>>> Open(std::string method);
  // Leaves the current member for the next one: it gave an answer that cannot be right.
  void MoveOn(const Status& why);

  // Calls and streams in progress and later ones end with Unavailable.
  rt::Task<Status> Close();

  const EtcdOptions& options() const { return options_; }

 private:
  rt::Task<Result<std::shared_ptr<Connection>>> Connect(Time deadline);
  rt::Task<Result<std::string>> CallWithin(std::string method,
                                           std::string request,
                                           Repeat repeat,
                                           Time deadline);
  rt::Task<Status> DialAll();
  rt::Task<Result<std::shared_ptr<Connection>>> Dial(std::string endpoint);
  // The first call on a connection; its errors end the connection.
  rt::Task<Status> Greet(Connection* connection);
  rt::Task<Result<std::string>> Authenticate(net::RpcChannel* channel);
  // Calls in progress on it may end; streams are broken off.
  void GiveUp(const std::shared_ptr<Connection>& connection, const Status& why);
  static rt::Task<Status> Retire(std::shared_ptr<Connection> connection, Duration grace);
  net::RpcOptions OptionsFor(const Connection& connection) const;

  rt::Loop& loop_;
  net::RpcDialer& dialer_;
  const EtcdOptions options_;
  size_t next_ = 0;  // the endpoint that is dialed first
  std::shared_ptr<Connection> current_;
  bool closed_ = false;
  bool dialing_ = false;
  bool failed_ = false;      // the last round of dials
  uint64_t cluster_id_ = 0;  // zero: not known yet
  Status last_error_;
  rt::Backoff backoff_;
  rt::Waiters<Status> dialed_;  // woken after every round
  rt::Gate calls_{kEtcdCallsMax};
  rt::TaskScope scope_;
};

}  // namespace berth::store
