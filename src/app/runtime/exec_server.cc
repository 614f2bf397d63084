// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/exec_server.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "fleet/channels/guest_channels.h"
#include "net/status_map.h"
#include "pki/digest.h"
#include "pki/entropy.h"
#include "rt/event.h"
#include "rt/scope.h"

namespace berth::app {
namespace {

using fleet::GuestTalk;
using fleet::TunnelFrame;
using iri::AttachFrame;

constexpr std::string_view kPath = "/exec/";
constexpr size_t kTokenBytes = 32;
// A poollet has one connection per conversation, and few of them.
constexpr size_t kConnectionsMax = 128;
constexpr uint16_t kPolicyViolation = 1008;

struct Talk {
  Talk(rt::Loop& its_loop, runtime::ConsoleDoors::Open its_open)
      : loop(its_loop), open(std::move(its_open)) {}
  rt::Loop& loop;
  const runtime::ConsoleDoors::Open open;
  std::unique_ptr<iri::AttachStream> stream;
  rt::Event over;
};
using TalkPtr = std::shared_ptr<Talk>;

rt::Task<Status> ToGuest(TalkPtr talk, net::WebSocket* socket) {
  for (;;) {
    auto message = co_await socket->Receive();
    if (!message.ok()) break;
    auto frame = fleet::FromClient(GuestTalk::kTerminal, message->data);
    if (!frame.ok()) {
      const Status told =
          co_await socket->Close(kPolicyViolation, std::string(frame.status().message()));
      if (told.Is(Reason::kCancelled)) co_return told;
      break;
    }
    if (!frame->has_value()) continue;
    AttachFrame said;
    said.channel = static_cast<AttachFrame::Channel>((*frame)->channel);
    said.data = std::move((*frame)->data);
    const Status written = co_await talk->stream->Write(std::move(said));
    if (written.Is(Reason::kCancelled)) co_return written;
  }
  talk->over.Set();
  co_return OkStatus();
}

rt::Task<Status> Send(net::WebSocket* socket, TunnelFrame frame) {
  std::optional<std::string> data = fleet::ToClient(GuestTalk::kTerminal, frame);
  if (!data) co_return OkStatus();
  net::WebSocket::Message message;
  message.data = *std::move(data);
  co_return co_await socket->Send(std::move(message));
}

rt::Task<Status> ToClient(TalkPtr talk, net::WebSocket* socket) {
  for (bool is_over = false; !is_over;) {
    auto frame = co_await talk->stream->Read();
    if (frame.status().Is(Reason::kCancelled)) co_return frame.status();
    TunnelFrame said{.channel = TunnelFrame::Channel::kEnd, .data = "the console is over"};
    if (frame.ok() && frame->has_value()) {
      said.channel = static_cast<TunnelFrame::Channel>((*frame)->channel);
      said.data = std::move((*frame)->data);
    }
    is_over = said.channel == TunnelFrame::Channel::kEnd;
    const Status sent = co_await Send(socket, std::move(said));
    if (!sent.ok()) break;
  }
  talk->over.Set();
  co_return OkStatus();
}

rt::Task<Status> Converse(TalkPtr talk, net::WebSocket* socket) {
  Result<std::unique_ptr<iri::AttachStream>> opened = co_await talk->open();
  if (opened.status().Is(Reason::kCancelled)) co_return opened.status();
  if (!opened.ok()) {
    TunnelFrame why{.channel = TunnelFrame::Channel::kEnd,
                    .data = std::string(opened.status().message())};
    co_return co_await Send(socket, std::move(why));
  }
  talk->stream = *std::move(opened);
  rt::TaskScope scope(talk->loop);
  scope.Spawn("exec.to_guest", ToGuest(talk, socket));
  scope.Spawn("exec.to_client", ToClient(talk, socket));
  const Status waited = co_await talk->over.Wait();
  const Status ended = co_await scope.Close();
  CHECK(ended.ok());
  const Status closed = co_await talk->stream->Close();
  CHECK(closed.ok());
  co_return waited;
}

}  // namespace

ExecServer::ExecServer(rt::AsioLoop& loop, rt::BlockingPool& files, Options options)
    : loop_(loop), files_(files), options_(std::move(options)) {}

Result<std::string> ExecServer::Grant(Open open) {
  Forget();
  if (doors_.size() >= options_.urls_max) {
    return Status(
        Reason::kTooManyRequests,
        fmt::format("{} URLs of consoles wait to be used, which are the most; they do for {}",
                    options_.urls_max,
                    FormatDuration(options_.url_life)));
  }
  if (server_ == nullptr) {
    net::HttpServerOptions http;
    http.connections_max = kConnectionsMax;
    http.connections_per_address_max = kConnectionsMax;
    http.websocket_message_max = iri::kAttachFrameBytesMax;
    const auto handler = [this](net::HttpRequest request) { return Handle(std::move(request)); };
    TRY(server_, net::HttpServer::Start(loop_, std::move(http), handler));
  }
  const std::string token = pki::Base64UrlEncode(pki::SystemEntropy().Draw(kTokenBytes));
  doors_.emplace(pki::Sha256(token),
                 Door{.open = std::move(open), .until = loop_.Now() + options_.url_life});
  return "http://" + server_->address() + std::string(kPath) + token;
}

rt::Task<Status> ExecServer::Stop() {
  doors_.clear();
  if (server_ == nullptr) co_return OkStatus();
  co_return co_await server_->Stop();
}

void ExecServer::Forget() {
  const Time now = loop_.Now();
  std::erase_if(doors_, [now](const auto& door) { return door.second.until <= now; });
}

rt::Task<Status> ExecServer::CheckPeer(std::string address) {
  const std::optional<uint64_t> port = ParseUint(address.substr(address.rfind(':') + 1));
  const uint16_t own = server_->port();
  const auto ask = [port, own, owner_of = options_.owner_of]() -> std::optional<uid_t> {
    if (!port || *port > UINT16_MAX) return std::nullopt;
    return owner_of(static_cast<uint16_t>(*port), own);
  };
  CO_TRY(const std::optional<uid_t> owner, co_await files_.Run("exec.peer", ask));
  if (owner && MayEnter(*owner)) co_return OkStatus();
  co_return Forbidden("consoles are for those who may call the machine runtime");
}

bool ExecServer::MayEnter(uid_t user) const {
  return user == 0 || user == geteuid() || std::ranges::count(options_.allowed, user) > 0;
}

Result<ExecServer::Open> ExecServer::Take(std::string_view target) {
  Forget();
  const std::string_view path = target.substr(0, target.find('?'));
  if (path.starts_with(kPath)) {
    const auto found = doors_.find(pki::Sha256(path.substr(kPath.size())));
    if (found != doors_.end()) {
      Open open = std::move(found->second.open);
      doors_.erase(found);
      return open;
    }
  }
  return NotFound("no such URL, or it was used, or it is too late");
}

rt::Task<Result<net::HttpResponse>> ExecServer::Enter(net::HttpRequest request) {
  CO_TRY_STATUS(co_await CheckPeer(request.peer.address));
  // No page of any site has business here.
  if (request.headers.Has("Origin")) co_return Forbidden("this is not for browsers");
  if (ToLower(request.headers.Get("Upgrade")) != "websocket") {
    co_return BadRequest("a console is a WebSocket: ask with Upgrade: websocket");
  }
  CO_TRY(const std::string protocol,
         fleet::ChooseChannels(request.headers.Get("Sec-WebSocket-Protocol")));
  CO_TRY(const Open open, Take(request.target));
  const auto talk = std::make_shared<Talk>(loop_, open);
  net::HttpResponse response;
  response.status = 101;
  if (!protocol.empty()) response.headers.Set("Sec-WebSocket-Protocol", protocol);
  response.websocket = [talk](net::WebSocket& socket) { return Converse(talk, &socket); };
  co_return response;
}

rt::Task<net::HttpResponse> ExecServer::Handle(net::HttpRequest request) {
  Result<net::HttpResponse> answer = co_await Enter(std::move(request));
  if (answer.ok()) co_return *std::move(answer);
  net::HttpResponse refusal;
  refusal.status = net::HttpStatusOf(answer.status().reason());
  refusal.headers.Set("Content-Type", "text/plain; charset=utf-8");
  refusal.body.emplace_back(Printable(answer.status().message()) + "\n");
  co_return refusal;
}

}  // namespace berth::app
