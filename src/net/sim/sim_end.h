// SPDX-License-Identifier: Apache-2.0
// A SimEnd is one end of a simulated connection: it turns frames into events of its calls and back.
// Shared by the fabric and by the channel or server that uses it; all its functions run on its
// node's loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/call/call_service.h"
#include "net/call/call_stream.h"
#include "net/call/call_transport.h"
#include "net/rpc.h"
#include "net/sim/sim_frame.h"
#include "net/sim/sim_network.h"
#include "rt/event.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::net {

class SimEnd final : public CallTransport {
 public:
  enum class Side : uint8_t { kClient, kServer };
  using Send = std::function<void(SimFrame)>;
  using OnCall = std::function<void(std::shared_ptr<CallStream>, CallHead)>;

  // `on_call` is a server's.
  SimEnd(Side side, rt::Loop& loop, const SimNetworkOptions& options, Send send, OnCall on_call);
  // Ends what is left.
  ~SimEnd() override;

  Side side() const { return side_; }
  rt::Loop& loop() const override { return loop_; }

  // A frame has arrived.
  void Receive(SimFrame frame);
  // The connection is gone; nothing is said to the peer.
  void Lose(const Status& why);
  // Says goodbye and ends.
  void Close(const Status& why);
  // Takes no new calls; closes once those in progress have ended.
  void Drain();
  // A client's: sets off a call.
  Result<std::shared_ptr<CallStream>> Request(const std::string& method, const RpcOptions& options);
  // The server has let us in, and shown this certificate.
  rt::Task<Result<std::string>> WaitWelcome();
  rt::Task<Status> WaitLost() { return lost_event_.Wait(); }

  bool usable() const { return !lost_.has_value() && !draining_; }
  const std::optional<Status>& lost() const { return lost_; }

 private:
  struct Entry {
    std::shared_ptr<CallStream> call;
    int64_t window = 0;  // what the peer still takes
    bool done_sent = false;
  };

  void ResumeSending(CallStream& call) override;
  void SendAbort(CallStream& call, const Status& why) override;
  void GiveWindow(CallStream& call, size_t bytes) override;
  void WakeWriters() override;

  void Begin(SimFrame frame);
  void ReceiveForCall(SimFrame frame);
  void SendQueued(Entry& entry);
  // Forgets the call. It is destroyed later: one of its functions may be running.
  void Retire(int32_t id, const Status& status);
  Entry* Find(int32_t id);

  const Side side_;
  rt::Loop& loop_;
  const SimNetworkOptions& options_;
  const Send send_;
  const OnCall on_call_;
  std::map<int32_t, Entry> calls_;
  std::vector<std::shared_ptr<CallStream>> retired_;
  int32_t last_call_ = 0;
  bool draining_ = false;
  std::optional<Status> lost_;
  std::string welcome_;
  rt::Event welcomed_;
  rt::Event lost_event_;
};

}  // namespace berth::net
