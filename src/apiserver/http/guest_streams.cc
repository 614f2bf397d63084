// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/guest_streams.h"

#include <optional>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/placement.h"
#include "apiserver/http/query.h"
#include "apiserver/registry/write_parts.h"
#include "base/strings.h"
#include "fleet/channels/guest_channels.h"
#include "meta/json.h"
#include "rt/deadline.h"
#include "rt/event.h"
#include "rt/scope.h"
#include "rt/sleep.h"

namespace berth::apiserver {
namespace {

using fleet::ChooseChannels;
using fleet::FromClient;
using fleet::GuestEnd;
using fleet::GuestTalk;
using fleet::ReadEnd;
using fleet::TunnelFrame;
using Channel = fleet::TunnelFrame::Channel;

// Nobody has said a word for so long: whoever left a shell open is gone.
constexpr Duration kIdleMax = Duration::Hours(4);
// How long a log may take to say whether there is one, before the answer begins without it.
constexpr Duration kFirstFrameMax = Duration::Seconds(5);
constexpr size_t kCommandWordsMax = 1024;
constexpr size_t kCommandBytesMax = 32 * 1024;
constexpr int64_t kPortMax = 65'535;

bool WantsUpgrade(const Call& call) {
  return ToLower(call.http.headers.Get("Upgrade")) == "websocket";
}

// A page of another site must not talk through a browser that has our certificate.
Status CheckOrigin(const Call& call) {
  const std::string_view origin = call.http.headers.Get("Origin");
  if (origin.empty() || origin == "https://" + std::string(call.http.headers.Get("Host"))) {
    return OkStatus();
  }
  return Forbidden("origin " + Quote(origin.substr(0, 256)) + " is not this server");
}

// What a runtime is told of a command: its words for machines, and one line for people and shells.
Result<std::map<std::string, std::string>> CommandOf(const Call& call) {
  std::vector<std::string> words;
  std::vector<meta::Value> values;
  size_t bytes = 0;
  for (const std::string_view word : call.query.GetAll("command")) {
    bytes += word.size();
    words.emplace_back(word);
    values.emplace_back(word);
  }
  if (words.size() > kCommandWordsMax || bytes > kCommandBytesMax) {
    return BadRequest("query parameter command: at most " + std::to_string(kCommandWordsMax) +
                      " words and " + std::to_string(kCommandBytesMax) + " bytes");
  }
  std::map<std::string, std::string> options;
  options["command"] = Join(words, " ");
  options["argv"] = meta::WriteJson(meta::Value::Array(std::move(values)));
  for (const std::string_view name : {"stdin", "tty"}) {
    TRY(const bool is_on, QueryBool(call.query, name));
    if (is_on) options[std::string(name)] = "true";
  }
  return options;
}

Result<int64_t> PortOf(const Call& call) {
  const auto ports = call.query.GetAll("ports");
  TRY(const auto port, QueryCount(call.query, "ports"));
  if (ports.size() != 1 || !port || *port == 0 || *port > kPortMax) {
    return BadRequest("query parameter ports: one port from 1 to " + std::to_string(kPortMax) +
                      "; a second connection is for a second port");
  }
  return *port;
}

// Both channels of a port begin with its number, low byte first.
std::string PortGreeting(char channel, int64_t port) {
  std::string out(1, channel);
  out.push_back(static_cast<char>(port & 0xff));
  out.push_back(static_cast<char>(port >> 8 & 0xff));
  return out;
}

}  // namespace

// One conversation. Owned by the answer, and by what runs for it.
struct GuestStreams::Talk {
  Talk(rt::Loop& its_loop, AuditLog& its_audit, CallPtr its_call, GuestTalk its_kind)
      : loop(its_loop), audit(its_audit), call(std::move(its_call)), kind(its_kind) {}

  rt::Loop& loop;
  AuditLog& audit;
  const CallPtr call;
  const GuestTalk kind;
  std::unique_ptr<fleet::Tunnel> tunnel;
  std::optional<TunnelFrame> first;  // read before the answer began
  std::vector<std::string> greeting;
  int64_t bytes_in = 0;
  int64_t bytes_out = 0;
  const Time start = loop.Now();
  Time last_word = start;
  rt::Event over;

  void Said(int64_t& counter, size_t bytes) {
    counter += static_cast<int64_t>(bytes);
    last_word = loop.Now();
  }
  // The second line of the audit log; the first was written when it began.
  void RecordEnd(int code) const {
    const Duration took = loop.Now() - start;
    audit.Record({.time = loop.WallNow() - took,
                  .request_id = call->id,
                  .identity = call->identity,
                  .impersonator = call->impersonator,
                  .source = call->http.peer.address,
                  .user_agent = call->http.headers.Get("User-Agent"),
                  .request = call->info,
                  .name = {},
                  .code = code,
                  .duration = took,
                  .stage = kAuditEnded,
                  .bytes_in = bytes_in,
                  .bytes_out = bytes_out});
  }
};

bool GuestStreams::IsConversation(const RequestInfo& info) {
  return info.kind == &apis::compute::kMachineKind && !info.name.empty() &&
         (info.subresource == "exec" || info.subresource == "console" ||
          info.subresource == "portforward");
}

bool GuestStreams::Serves(const RequestInfo& info) {
  return IsConversation(info) || (info.kind == &apis::compute::kMachineKind && !info.name.empty() &&
                                  info.subresource == "log");
}

Status GuestStreams::CheckUpgrade(const Call& call) {
  if (!WantsUpgrade(call)) {
    return BadRequest("machines/" + call.info.subresource +
                      " is a WebSocket: ask with Upgrade: websocket");
  }
  return CheckOrigin(call);
}

rt::Task<Result<std::unique_ptr<fleet::Tunnel>>> GuestStreams::Open(CallPtr call,
                                                                    std::string what,
                                                                    Options options) const {
  const meta::KindInfo& kind = *call->info.kind;
  const ObjectKey key{.namespace_ = call->info.namespace_, .name = call->info.name};
  CO_TRY(const StoredObject stored, co_await deps_.registry.Get(kind, key, std::string()));
  CO_TRY(const meta::Object machine, Decode(kind, stored));
  const std::string subject = "machine " + Quote(call->info.name);
  const auto& placement = apis::PlacementOf(machine);
  if (!placement || placement->pool_uid.empty()) {
    co_return BadRequest(subject + " is not placed on any pool");
  }
  if (deps_.hosts.fleet == nullptr) co_return deps_.hosts.Missing();
  auto tunnel = co_await deps_.hosts.fleet->OpenTunnel(placement->pool_uid,
                                                       machine.metadata().uid,
                                                       static_cast<uint64_t>(placement->epoch),
                                                       std::move(what),
                                                       std::move(options));
  if (tunnel.status().Is(Reason::kNotFound)) {
    co_return Unavailable(subject + ": the host of pool " + Quote(placement->pool) +
                          " is not connected, or has not taken it yet");
  }
  if (!tunnel.ok()) co_return tunnel.status().Wrap(subject);
  co_return tunnel;
}

rt::Task<Result<net::HttpResponse>> GuestStreams::Answer(CallPtr call) const {
  if (call->info.subresource == "log") co_return co_await Log(call);
  CO_TRY_STATUS(CheckUpgrade(*call));
  CO_TRY(const std::string protocol,
         ChooseChannels(call->http.headers.Get("Sec-WebSocket-Protocol")));
  const bool is_port = call->info.subresource == "portforward";
  const auto talk = std::make_shared<Talk>(
      deps_.loop, deps_.audit, call, is_port ? GuestTalk::kPort : GuestTalk::kTerminal);
  Options options;
  if (is_port) {
    CO_TRY(const int64_t port, PortOf(*call));
    options["port"] = std::to_string(port);
    talk->greeting = {PortGreeting(0, port), PortGreeting(1, port)};
  }
  // IronCore's exec knows no commands: it is the console.
  const bool is_command =
      call->info.subresource == "exec" && !call->query.GetAll("command").empty();
  if (is_command) {
    CO_TRY(options, CommandOf(*call));
  }
  const std::string what = is_port ? "portforward" : is_command ? "exec" : "console";
  CO_TRY(talk->tunnel, co_await Open(call, what, std::move(options)));
  net::HttpResponse response;
  response.status = 101;
  if (!protocol.empty()) response.headers.Set("Sec-WebSocket-Protocol", protocol);
  response.websocket = [talk](net::WebSocket& socket) { return Converse(talk, &socket); };
  co_return response;
}

rt::Task<Status> GuestStreams::Converse(TalkPtr talk, net::WebSocket* socket) {
  rt::TaskScope scope(talk->loop);
  scope.Spawn("apiserver.to_guest", ToGuest(talk, socket));
  scope.Spawn("apiserver.to_client", ToClient(talk, socket));
  scope.Spawn("apiserver.guest_idle", WatchIdle(talk));
  const Status waited = co_await talk->over.Wait();
  talk->tunnel->Close();
  const Status closed = co_await scope.Close();
  CHECK(closed.ok());
  talk->RecordEnd(101);
  co_return waited;
}

rt::Task<Status> GuestStreams::ToGuest(TalkPtr talk, net::WebSocket* socket) {
  for (;;) {
    auto message = co_await socket->Receive();
    if (!message.ok()) break;
    auto frame = FromClient(talk->kind, message->data);
    if (!frame.ok()) {
      const Status told = co_await socket->Close(1008, std::string(frame.status().message()));
      if (told.Is(Reason::kCancelled)) co_return told;
      break;
    }
    if (!frame->has_value()) continue;
    talk->Said(talk->bytes_in, (*frame)->data.size());
    const Status written = co_await talk->tunnel->Write(**std::move(frame));
    // A guest that takes nothing more may still have something to say.
    if (written.Is(Reason::kCancelled)) co_return written;
  }
  talk->over.Set();
  co_return OkStatus();
}

rt::Task<Status> GuestStreams::ToClient(TalkPtr talk, net::WebSocket* socket) {
  for (std::string& greeting : talk->greeting) {
    net::WebSocket::Message message{.kind = net::WebSocket::Kind::kBinary,
                                    .data = std::move(greeting)};
    CO_TRY_STATUS(co_await socket->Send(std::move(message)));
  }
  bool has_ended = false;
  while (!has_ended) {
    auto frame = co_await talk->tunnel->Read();
    if (!frame.ok()) break;
    TunnelFrame said{.channel = Channel::kEnd, .data = "its host has ended the conversation"};
    if (frame->has_value()) said = **std::move(frame);
    has_ended = said.channel == Channel::kEnd;
    if (!has_ended) talk->Said(talk->bytes_out, said.data.size());
    auto data = fleet::ToClient(talk->kind, said);
    if (!data) continue;
    net::WebSocket::Message message{.kind = net::WebSocket::Kind::kBinary,
                                    .data = *std::move(data)};
    const Status sent = co_await socket->Send(std::move(message));
    if (!sent.ok()) break;
  }
  talk->over.Set();
  co_return OkStatus();
}

rt::Task<Status> GuestStreams::WatchIdle(TalkPtr talk) {
  for (;;) {
    const Duration left = talk->last_word + kIdleMax - talk->loop.Now();
    if (left <= Duration()) break;
    CO_TRY_STATUS(co_await rt::Sleep(left));
  }
  talk->over.Set();
  co_return OkStatus();
}

rt::Task<Result<net::HttpResponse>> GuestStreams::Log(CallPtr call) const {
  if (call->info.verb != "get") {
    co_return Status(Reason::kMethodNotSupported, "machines/log is only read");
  }
  Options options;
  CO_TRY(const bool follows, QueryBool(call->query, "follow"));
  if (follows) options["follow"] = "true";
  CO_TRY(const auto lines, QueryCount(call->query, "tailLines"));
  if (lines) options["tailLines"] = std::to_string(*lines);
  const auto talk = std::make_shared<Talk>(deps_.loop, deps_.audit, call, GuestTalk::kTerminal);
  const std::string what = "logs";
  CO_TRY(talk->tunnel, co_await Open(call, what, std::move(options)));
  auto first = co_await rt::WithDeadline(talk->tunnel->Read(), kFirstFrameMax);
  if (!first.ok() && !first.status().Is(Reason::kTimeout)) co_return first.status();
  if (first.ok()) {
    talk->first = first->value_or(TunnelFrame{.channel = Channel::kEnd, .data = {}});
    if (talk->first->channel == Channel::kEnd) {
      const GuestEnd end = ReadEnd(talk->first->data);
      if (!end.problem.empty()) {
        co_return Unavailable("log of machine " + Quote(call->info.name) + ": " + end.problem);
      }
    }
  }
  net::HttpResponse response;
  response.headers.Set("Content-Type", "text/plain; charset=utf-8");
  response.stream = [talk](net::BodyWriter& body) { return WriteLog(talk, &body); };
  co_return response;
}

rt::Task<Status> GuestStreams::WriteLog(TalkPtr talk, net::BodyWriter* body) {
  Status status;
  for (;;) {
    if (!talk->first) {
      auto frame = co_await talk->tunnel->Read();
      if (!frame.ok()) status = frame.status();
      if (!frame.ok()) break;
      talk->first = frame->value_or(TunnelFrame{.channel = Channel::kEnd, .data = {}});
    }
    TunnelFrame frame = *std::exchange(talk->first, std::nullopt);
    if (frame.channel == Channel::kEnd) {
      const GuestEnd end = ReadEnd(frame.data);
      if (!end.problem.empty()) status = Unavailable("log: " + end.problem);
      break;
    }
    talk->Said(talk->bytes_out, frame.data.size());
    std::vector<Bytes> parts;
    parts.emplace_back(std::move(frame.data));
    status = co_await body->Write(std::move(parts));
    if (!status.ok()) break;
  }
  talk->tunnel->Close();
  talk->RecordEnd(200);
  co_return status;
}

}  // namespace berth::apiserver
