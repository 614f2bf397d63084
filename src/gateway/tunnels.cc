// SPDX-License-Identifier: Apache-2.0
#include "gateway/tunnels.h"

#include <optional>
#include <utility>

#include "base/strings.h"
#include "berth/agent/v1/agent.pb.h"
#include "gateway/rules/limits.h"
#include "rt/channel.h"
#include "rt/deadline.h"
#include "rt/event.h"
#include "rt/scope.h"

namespace berth::gateway {
namespace {

namespace agent = berth::agent::v1;
constexpr size_t kTicketBytes = 16;
constexpr size_t kFramesMax = 16;  // on their way, each direction
constexpr auto kChannelMax = static_cast<uint32_t>(fleet::TunnelFrame::Channel::kResize);

Result<agent::TunnelFrame> ParseFrame(const std::optional<std::string>& bytes) {
  agent::TunnelFrame frame;
  if (!bytes) return Unavailable("tunnel: the host has ended it");
  if (!frame.ParseFromString(*bytes)) return BadRequest("tunnel: not a TunnelFrame");
  return frame;
}

}  // namespace

// What is between the two ends. The host's call owns the stream and moves the frames; whoever asked
// only sees the queues, so neither end minds when the other is gone.
struct Tunnels::Link {
  rt::Channel<fleet::TunnelFrame> to_user{kFramesMax};
  rt::Channel<fleet::TunnelFrame> to_host{kFramesMax};
  rt::Event over;

  void End() {
    to_user.Close();
    to_host.Close();
    over.Set();
  }
};

struct Tunnels::Waiting {
  std::string host;
  std::shared_ptr<Link> link;
  rt::Event opened;
};

// The end of whoever asked.
class Tunnels::End final : public fleet::Tunnel {
 public:
  explicit End(std::shared_ptr<Link> link) : link_(std::move(link)) {}
  ~End() override { Close(); }

  rt::Task<Result<std::optional<fleet::TunnelFrame>>> Read() override {
    const std::shared_ptr<Link> link = link_;
    auto frame = co_await link->to_user.Receive();
    if (frame.ok()) co_return std::optional<fleet::TunnelFrame>(*std::move(frame));
    if (frame.status().Is(Reason::kUnavailable)) co_return std::optional<fleet::TunnelFrame>();
    co_return frame.status();
  }
  rt::Task<Status> Write(fleet::TunnelFrame frame) override {
    const std::shared_ptr<Link> link = link_;
    const Status sent = co_await link->to_host.Send(std::move(frame));
    co_return sent.Is(Reason::kUnavailable) ? Unavailable("tunnel: the host has ended it") : sent;
  }
  // What was written before still goes out.
  void Close() override {
    link_->to_user.Close();
    link_->to_host.Close();
  }

 private:
  const std::shared_ptr<Link> link_;
};

std::optional<std::string> Tunnels::Issue(const std::string& host) {
  size_t open = 0;
  for (const auto& [ticket, waiting] : waiting_) open += waiting->host == host ? 1 : 0;
  if (open >= kTunnelsMax) return std::nullopt;
  std::string ticket = HexEncode(entropy_.Draw(kTicketBytes));
  auto waiting = std::make_shared<Waiting>();
  waiting->host = host;
  waiting_[ticket] = std::move(waiting);
  return ticket;
}

rt::Task<Result<std::unique_ptr<fleet::Tunnel>>> Tunnels::Await(std::string ticket,
                                                                Duration limit) {
  const auto found = waiting_.find(ticket);
  if (found == waiting_.end()) co_return NotFound("tunnel: the ticket is not known");
  const std::shared_ptr<Waiting> waiting = found->second;
  const Status opened = co_await rt::WithDeadline(waiting->opened.Wait(), limit);
  waiting_.erase(ticket);
  if (!opened.ok()) {
    // Too late for us: who comes in this very moment is sent away.
    if (waiting->link) waiting->link->End();
    co_return opened.Wrap("tunnel: waiting for the host");
  }
  co_return std::unique_ptr<fleet::Tunnel>(std::make_unique<End>(waiting->link));
}

rt::Task<Status> Tunnels::Serve(std::string host, net::MessageStream& stream) {
  CO_TRY(std::optional<std::string> bytes, co_await rt::WithDeadline(stream.Read(), kTunnelLimit));
  CO_TRY(agent::TunnelFrame first, ParseFrame(bytes));
  const auto found = waiting_.find(first.ticket());
  // The same words for an unknown ticket and for another host's.
  if (found == waiting_.end() || found->second->host != host || found->second->link) {
    co_return Forbidden("tunnel: the ticket is not good");
  }
  const auto link = std::make_shared<Link>();
  found->second->link = link;
  found->second->opened.Set();
  rt::TaskScope scope((co_await rt::CurrentContext()).loop());
  scope.Spawn("gateway.tunnel_in", FromHost(link, stream));
  scope.Spawn("gateway.tunnel_out", ToHost(link, stream));
  const Status over = co_await link->over.Wait();
  link->End();
  const Status closed = co_await scope.Close();
  CHECK(closed.ok());
  co_return over.Is(Reason::kCancelled) ? Unavailable("tunnel: broken off") : over;
}

rt::Task<Status> Tunnels::FromHost(std::shared_ptr<Link> link, net::MessageStream& stream) {
  for (;;) {
    auto bytes = co_await stream.Read();
    const auto frame = bytes.ok() ? ParseFrame(*bytes) : Result<agent::TunnelFrame>(bytes.status());
    if (!frame.ok() || frame->channel() > kChannelMax) break;
    fleet::TunnelFrame out{.channel = static_cast<fleet::TunnelFrame::Channel>(frame->channel()),
                           .data = frame->data()};
    const Status sent = co_await link->to_user.Send(std::move(out));
    if (!sent.ok()) break;
  }
  link->End();
  co_return OkStatus();
}

rt::Task<Status> Tunnels::ToHost(std::shared_ptr<Link> link, net::MessageStream& stream) {
  for (;;) {
    auto frame = co_await link->to_host.Receive();
    if (!frame.ok()) break;
    agent::TunnelFrame out;
    out.set_channel(static_cast<uint32_t>(frame->channel));
    out.set_data(std::move(frame->data));
    const Status written = co_await stream.Write(out.SerializeAsString());
    if (!written.ok()) break;
  }
  link->End();
  co_return OkStatus();
}

}  // namespace berth::gateway
