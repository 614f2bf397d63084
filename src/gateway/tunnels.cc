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
// only sees the queues, so neither end minds when the other is gone. It can be ended from anywhere:
// the host's call waits for that, too.
struct Tunnels::Link {
  rt::Event opened;       // or it never will be
  bool is_taken = false;  // by the host's call
  rt::Channel<fleet::TunnelFrame> to_user{kFramesMax};
  rt::Channel<fleet::TunnelFrame> to_host{kFramesMax};
  rt::Event over;

  void End() {
    opened.Set();
    to_user.Close();
    to_host.Close();
    over.Set();
  }
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
  Links& links = hosts_[host];
  if (links.size() >= kTunnelsMax) return std::nullopt;
  std::string ticket = HexEncode(entropy_.Draw(kTicketBytes));
  links[ticket] = std::make_shared<Link>();
  return ticket;
}

std::shared_ptr<Tunnels::Link> Tunnels::Find(const std::string& host,
                                             const std::string& ticket) const {
  const auto links = hosts_.find(host);
  if (links == hosts_.end()) return nullptr;
  const auto found = links->second.find(ticket);
  return found == links->second.end() ? nullptr : found->second;
}

void Tunnels::Forget(const std::string& host, const std::string& ticket) {
  const auto links = hosts_.find(host);
  if (links == hosts_.end()) return;
  links->second.erase(ticket);
  if (links->second.empty()) hosts_.erase(links);
}

void Tunnels::EndAllOf(const std::string& host) {
  const auto found = hosts_.find(host);
  if (found == hosts_.end()) return;
  const Links links = std::move(found->second);
  hosts_.erase(found);
  for (const auto& [ticket, link] : links) link->End();
}

rt::Task<Result<std::unique_ptr<fleet::Tunnel>>> Tunnels::Await(std::string host,
                                                                std::string ticket,
                                                                Duration limit) {
  const std::shared_ptr<Link> link = Find(host, ticket);
  if (link == nullptr) co_return NotFound("tunnel: the ticket is not known");
  const Status opened = co_await rt::WithDeadline(link->opened.Wait(), limit);
  if (opened.ok() && link->is_taken) {
    co_return std::unique_ptr<fleet::Tunnel>(std::make_unique<End>(link));
  }
  // Too late for us: who comes in this very moment is sent away.
  link->End();
  Forget(host, ticket);
  if (opened.ok()) co_return Unavailable("tunnel: the session of the host has ended");
  co_return opened.Wrap("tunnel: waiting for the host");
}

rt::Task<Status> Tunnels::Serve(std::string host, net::MessageStream& stream) {
  CO_TRY(std::optional<std::string> bytes, co_await rt::WithDeadline(stream.Read(), kTunnelLimit));
  CO_TRY(agent::TunnelFrame first, ParseFrame(bytes));
  const std::string ticket = first.ticket();
  const std::shared_ptr<Link> link = Find(host, ticket);
  // The same words for an unknown ticket and for another host's.
  if (link == nullptr || link->is_taken) co_return Forbidden("tunnel: the ticket is not good");
  link->is_taken = true;
  link->opened.Set();
  rt::TaskScope scope((co_await rt::CurrentContext()).loop());
  scope.Spawn("gateway.tunnel_in", FromHost(link, stream));
  scope.Spawn("gateway.tunnel_out", ToHost(link, stream));
  const Status over = co_await link->over.Wait();
  link->End();
  Forget(host, ticket);
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
    if (!frame.ok() || link->over.is_set()) break;
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
