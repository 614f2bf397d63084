// SPDX-License-Identifier: Apache-2.0
// Consoles, shells, logs and ports: frames between the server's call and the runtime's guest. Each
// direction waits for its reader, so nothing piles up here.
#include <fmt/core.h>

#include <optional>
#include <utility>

#include "base/strings.h"
#include "berth/agent/v1/agent.pb.h"
#include "poollet/host/host.h"
#include "rt/deadline.h"

namespace berth::poollet {
namespace {

namespace pb = ::berth::agent::v1;
using fleet::ObjectKind;
using Channel = iri::AttachFrame::Channel;

// How long a server may take to read the end.
constexpr Duration kEndLimit = Duration::Seconds(5);

std::string Frame(Channel channel, std::string data) {
  pb::TunnelFrame frame;
  frame.set_channel(static_cast<uint32_t>(channel));
  frame.set_data(std::move(data));
  return frame.SerializeAsString();
}

// To the server, until the guest has said its last. Always ends with an end frame.
rt::Task<Status> CarryOut(iri::AttachStream* guest, net::MessageStream* stream) {
  std::string end;
  while (true) {
    auto frame = co_await guest->Read();
    if (!frame.ok()) {
      end = frame.status().message();
      break;
    }
    if (!frame->has_value()) break;
    const bool is_end = (*frame)->channel == Channel::kEnd;
    std::string bytes = Frame((*frame)->channel, std::move((*frame)->data));
    CO_TRY_STATUS(co_await stream->Write(std::move(bytes)));
    if (is_end) co_return OkStatus();
  }
  co_return co_await stream->Write(Frame(Channel::kEnd, std::move(end)));
}

// To the guest, until the server has said its last. Then nobody listens any more, either.
rt::Task<Status> CarryIn(net::MessageStream* stream, iri::AttachStream* guest) {
  bool is_deaf =
      false;  // a guest that has ended takes nothing, and still has its last words to say
  while (true) {
    CO_TRY(auto bytes, co_await stream->Read());
    if (!bytes.has_value()) co_return OkStatus();
    pb::TunnelFrame message;
    if (!message.ParseFromString(*bytes)) co_return BadRequest("the server sent what is no frame");
    const bool is_input = message.channel() == static_cast<uint32_t>(Channel::kIn) ||
                          message.channel() == static_cast<uint32_t>(Channel::kResize);
    if (!is_input || is_deaf) continue;  // or a word of a later version
    std::string data = std::move(*message.mutable_data());
    do {
      iri::AttachFrame frame;
      frame.channel = static_cast<Channel>(message.channel());
      frame.data = data.substr(0, iri::kAttachFrameBytesMax);
      data.erase(0, iri::kAttachFrameBytesMax);
      const Status written = co_await guest->Write(std::move(frame));
      if (written.Is(Reason::kCancelled)) co_return written;
      is_deaf = !written.ok();
    } while (!data.empty() && !is_deaf);
  }
}

rt::Task<Status> Signal(rt::Task<Status> task, rt::Event* over) {
  const Status status = co_await task;
  over->Set();
  co_return status.Is(Reason::kUnavailable) ? OkStatus() : status;  // the other end has ended it
}

// Says the end, and waits until the server has taken it.
rt::Task<Status> Finish(net::MessageStream* stream) {
  stream->WritesDone();
  while (true) {
    const auto read = co_await stream->Read();
    if (!read.ok() || !read->has_value()) co_return OkStatus();
  }
}

}  // namespace

rt::Task<Result<std::unique_ptr<iri::AttachStream>>> Host::Attach(pb::TunnelRequest request) {
  const auto found = items_.find(request.uid());
  if (found == items_.end() || found->second.entry.phase != Phase::kAssigned ||
      found->second.entry.placement.number != request.placement()) {
    co_return NotFound(
        fmt::format("{} is not on this host at placement {}", request.uid(), request.placement()));
  }
  const auto port = ports_.find(found->second.entry.kind);
  const Status unserved(Reason::kMethodNotSupported,
                        fmt::format("the runtime of this host offers no {}", request.what()));
  if (found->second.entry.kind != ObjectKind::kMachine || port == ports_.end() ||
      port->second.host == nullptr) {
    co_return unserved;
  }
  iri::AttachRequest wanted;
  wanted.machine_uid = request.uid();
  wanted.what = request.what();
  wanted.options.insert(request.options().begin(), request.options().end());
  auto attached = co_await rt::WithDeadline(port->second.host->Attach(std::move(wanted)),
                                            options_.reconcile.call_limit);
  if (!attached.status().Is(Reason::kMethodNotSupported)) co_return attached;
  // A runtime that knows the call says why; one that does not has nothing to say.
  constexpr std::string_view kItself = "this runtime ";
  const std::string_view why = attached.status().message();
  const size_t itself = why.find(kItself);
  if (itself == why.npos) co_return unserved;
  co_return Status(
      Reason::kMethodNotSupported,
      "the runtime of this host " + Printable(why.substr(itself + kItself.size()).substr(0, 256)));
}

rt::Task<Status> Host::Tunnel(pb::TunnelRequest request, net::MessageStream* stream) {
  auto guest = co_await Attach(std::move(request));
  if (guest.status().Is(Reason::kCancelled)) co_return guest.status();
  Status status;
  if (guest.ok()) {
    rt::Event over;
    rt::TaskScope pumps(loop_);
    pumps.Spawn("poollet.tunnel_out", Signal(CarryOut(guest->get(), stream), &over));
    pumps.Spawn("poollet.tunnel_in", Signal(CarryIn(stream, guest->get()), &over));
    status = co_await over.Wait();
    const Status pumped = co_await pumps.Close();
    CHECK(pumped.ok());
    const Status closed = co_await (*guest)->Close();
    CHECK(closed.ok());
  } else {
    const std::string why(guest.status().message());
    status = co_await stream->Write(Frame(Channel::kEnd, why));
  }
  if (status.ok()) status = co_await rt::WithDeadline(Finish(stream), kEndLimit);
  co_return status;
}

}  // namespace berth::poollet
