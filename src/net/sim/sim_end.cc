// SPDX-License-Identifier: Apache-2.0
#include "net/sim/sim_end.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace berth::net {
namespace {

constexpr int64_t kBytesPerFrameMax = 64 * 1024;

// As the wire would say it: Cancelled never leaves a process.
Status AsSent(const Status& status) {
  if (!status.Is(Reason::kCancelled)) return status;
  return Unavailable("the server cancelled the call");
}

}  // namespace

SimEnd::SimEnd(
    Side side, rt::Loop& loop, const SimNetworkOptions& options, Send send, OnCall on_call)
    : CallTransport(options.received_bytes_max, options.queued_bytes_max),
      side_(side),
      loop_(loop),
      options_(options),
      send_(std::move(send)),
      on_call_(std::move(on_call)) {}

SimEnd::~SimEnd() { Lose(Unavailable("the connection is closed")); }

void SimEnd::Receive(SimFrame frame) {
  retired_.clear();
  if (lost_.has_value()) return;
  switch (frame.kind) {
    case SimFrame::Kind::kHello: break;  // the listener's
    case SimFrame::Kind::kWelcome:
      welcome_ = std::move(frame.bytes);
      welcomed_.Set();
      break;
    case SimFrame::Kind::kRefusal:
    case SimFrame::Kind::kClose: Lose(frame.status); break;
    case SimFrame::Kind::kGoaway: draining_ = true; break;
    case SimFrame::Kind::kOpen: Begin(std::move(frame)); break;
    case SimFrame::Kind::kBytes:
    case SimFrame::Kind::kCredit:
    case SimFrame::Kind::kDone:
    case SimFrame::Kind::kEnd:
    case SimFrame::Kind::kReset: ReceiveForCall(std::move(frame)); break;
  }
}

void SimEnd::Begin(SimFrame frame) {
  auto call = std::make_shared<CallStream>(*this, frame.call, RpcLimits());
  calls_.emplace(frame.call, Entry{.call = call, .window = options_.window_bytes});
  if (draining_) {
    call->Finish(Unavailable("the server takes no new calls"));
    return;
  }
  on_call_(std::move(call), std::move(frame.head));
}

void SimEnd::ReceiveForCall(SimFrame frame) {
  Entry* entry = Find(frame.call);
  if (entry == nullptr) return;  // over on our side already
  const std::shared_ptr<CallStream> call = entry->call;
  switch (frame.kind) {
    case SimFrame::Kind::kBytes: call->Receive(frame.bytes); break;
    case SimFrame::Kind::kDone: call->ReceiveEnd(); break;
    case SimFrame::Kind::kCredit:
      entry->window += static_cast<int64_t>(frame.count);
      SendQueued(*entry);
      break;
    case SimFrame::Kind::kEnd:
      call->EndWith(frame.status);
      Retire(frame.call, frame.status);
      break;
    default: Retire(frame.call, Unavailable("the client has cancelled the call")); break;
  }
}

void SimEnd::Lose(const Status& why) {
  if (lost_.has_value()) return;
  lost_ = why;
  auto calls = std::exchange(calls_, {});
  for (auto& [id, entry] : calls) {
    entry.call->Detach(why);
    retired_.push_back(std::move(entry.call));
  }
  welcomed_.Set();
  lost_event_.Set();
}

void SimEnd::Close(const Status& why) {
  if (lost_.has_value()) return;
  send_({.kind = SimFrame::Kind::kClose, .status = why});
  Lose(why);
}

void SimEnd::Drain() {
  if (lost_.has_value() || std::exchange(draining_, true)) return;
  send_({.kind = SimFrame::Kind::kGoaway});
  if (calls_.empty()) Close(Unavailable("the server has stopped"));
}

Result<std::shared_ptr<CallStream>> SimEnd::Request(const std::string& method,
                                                    const RpcOptions& options) {
  if (!usable()) return lost_.value_or(Unavailable("the server takes no new calls"));
  const int32_t id = ++last_call_;
  auto call = std::make_shared<CallStream>(*this, id, options.limits);
  calls_.emplace(id, Entry{.call = call, .window = options_.window_bytes});
  send_({.kind = SimFrame::Kind::kOpen,
         .call = id,
         .head = {.method = method, .metadata = options.metadata, .timeout = options.deadline}});
  return call;
}

rt::Task<Result<std::string>> SimEnd::WaitWelcome() {
  CO_TRY_STATUS(co_await welcomed_.Wait());
  if (lost_.has_value()) co_return *lost_;
  co_return welcome_;
}

void SimEnd::ResumeSending(CallStream& call) {
  Entry* entry = Find(call.id());
  if (entry != nullptr) SendQueued(*entry);
}

void SimEnd::SendQueued(Entry& entry) {
  CallStream& call = *entry.call;
  while (entry.window > 0 && !call.is_drained()) {
    std::string bytes(static_cast<size_t>(std::min(entry.window, kBytesPerFrameMax)), '\0');
    bytes.resize(call.Fill(bytes));
    entry.window -= static_cast<int64_t>(bytes.size());
    send_({.kind = SimFrame::Kind::kBytes, .call = call.id(), .bytes = std::move(bytes)});
  }
  if (!call.is_drained() || !call.writes_done()) return;
  if (side_ == Side::kClient) {
    if (std::exchange(entry.done_sent, true)) return;
    send_({.kind = SimFrame::Kind::kDone, .call = call.id()});
  } else if (call.final_status().has_value()) {
    const Status status = AsSent(*call.final_status());
    send_({.kind = SimFrame::Kind::kEnd, .call = call.id(), .status = status});
    Retire(call.id(), status);
  }
}

void SimEnd::SendAbort(CallStream& call, const Status& why) {
  if (Find(call.id()) == nullptr) return;
  send_({.kind = side_ == Side::kClient ? SimFrame::Kind::kReset : SimFrame::Kind::kEnd,
         .call = call.id(),
         .status = AsSent(why)});
  Retire(call.id(), why);
}

void SimEnd::GiveWindow(CallStream& call, size_t bytes) {
  send_({.kind = SimFrame::Kind::kCredit, .call = call.id(), .count = bytes});
}

void SimEnd::WakeWriters() {
  for (auto& [id, entry] : calls_) entry.call->WakeWriters();
}

void SimEnd::Retire(int32_t id, const Status& status) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  retired_.push_back(std::move(found->second.call));
  calls_.erase(found);
  const std::shared_ptr<CallStream> call = retired_.back();
  call->Detach(status.ok() ? Unavailable("the call is over") : status);
  if (draining_ && side_ == Side::kServer && calls_.empty()) {
    Close(Unavailable("the server has stopped"));
  }
}

SimEnd::Entry* SimEnd::Find(int32_t id) {
  const auto found = calls_.find(id);
  return found == calls_.end() ? nullptr : &found->second;
}

}  // namespace berth::net
