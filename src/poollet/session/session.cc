// SPDX-License-Identifier: Apache-2.0
#include "poollet/session/session.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "berth/agent/v1/agent.pb.h"
#include "rt/deadline.h"
#include "rt/sleep.h"

namespace berth::poollet {
namespace {

namespace pb = ::berth::agent::v1;

constexpr std::string_view kConnect = "/berth.agent.v1.AgentService/Connect";
// A server that says nothing for this many heartbeats is gone, whatever the connection looks like.
constexpr int64_t kSilentHeartbeats = 3;
constexpr Duration kHeartbeatDefault = Duration::Seconds(2);
constexpr size_t kRedirectsMax = 16;
constexpr std::string_view kTunnel = "/berth.agent.v1.AgentService/Tunnel";
// Streams of one connection that may be open at once beside the session itself. What is asked for
// beyond it is refused over a stream of its own, of which there are as many: 32 + 32 are all that a
// server has on their way at a time, and with the session fewer than the 100 that it takes.
constexpr size_t kTunnelsMax = 32;
constexpr size_t kRefusalsMax = 32;
// How long a server may take to read a refusal.
constexpr Duration kRefusalLimit = Duration::Seconds(5);
constexpr uint32_t kEndChannel = 3;
// What waits for a server that does not read, of one tunnel.
constexpr size_t kTunnelOutboxBytesMax = 256 * 1024;

Result<pb::ServerMessage> Decode(const std::string& bytes) {
  pb::ServerMessage message;
  if (!message.ParseFromString(bytes)) return BadRequest("the server sent what is no message");
  return message;
}

Status StatusOfRefusal(const pb::Refused& refused) {
  Status status(refused.reason() == "Version" ? Reason::kBadRequest : Reason::kForbidden,
                fmt::format("{}: {}", refused.reason(), refused.message()));
  if (refused.retry_after_ms() > 0) {
    status = status.WithRetryAfter(Duration::Millis(
        static_cast<int64_t>(std::min<uint64_t>(refused.retry_after_ms(), 600'000))));
  }
  return status;
}

// A server takes the highest version that both speak; one that says another is not understood.
Status CheckVersion(const pb::Welcome& welcome, ProtocolVersions ours) {
  const uint32_t version = welcome.version();
  const pb::VersionRange& theirs = welcome.versions();
  const bool is_theirs =
      !welcome.has_versions() || (version >= theirs.min() && version <= theirs.max());
  if (is_theirs && version >= ours.min && version <= ours.max) return OkStatus();
  const std::string range =
      welcome.has_versions() ? fmt::format(" of {} to {}", theirs.min(), theirs.max()) : "";
  return BadRequest(fmt::format(
      "the server speaks version {}{}, this poollet {} to {}", version, range, ours.min, ours.max));
}

// Sets `either` when `event` is set.
rt::Task<Status> PassOn(rt::Event* event, rt::Event* either) {
  CO_TRY_STATUS(co_await event->Wait());
  either->Set();
  co_return OkStatus();
}

// Says why there is no tunnel, and waits until the server has taken it.
rt::Task<Status> SayTooMany(net::MessageStream* tunnel) {
  pb::TunnelFrame end;
  end.set_channel(kEndChannel);
  end.set_data(fmt::format(
      "the host carries {} consoles, commands, logs and ports already, which are the most: end one",
      kTunnelsMax));
  CO_TRY_STATUS(co_await tunnel->Write(end.SerializeAsString()));
  tunnel->WritesDone();
  while (true) {
    const auto read = co_await tunnel->Read();
    if (!read.ok() || !read->has_value()) co_return OkStatus();
  }
}

}  // namespace

Session::Session(rt::Loop& loop,
                 net::RpcDialer& dialer,
                 CredentialSource& credentials,
                 SessionPeer& peer,
                 SessionOptions options)
    : loop_(loop),
      dials_(loop, dialer),
      credentials_(credentials),
      peer_(peer),
      options_(options),
      backoff_(options.backoff),
      scope_(loop) {}

void Session::Start() { scope_.Spawn("poollet.session", Run()); }

void Session::Wake(Urgency urgency) {
  if (urgency == Urgency::kIdle) {
    has_idle_words_ = true;
    return;
  }
  const bool waits_already = soon_.is_set();
  soon_.Set();
  if (urgency == Urgency::kNow) now_.Set();
  if (urgency != Urgency::kNext || loop_.Now() - last_next_ < options_.coalesce) return;
  last_next_ = loop_.Now();
  if (waits_already) now_.Set();
  is_next_ = true;
}

void Session::Reconnect() {
  if (stream_ != nullptr) stream_->Abort(Unavailable("the host begins a new session"));
}

std::string Session::NextServer() {
  if (!redirected_.empty()) {
    std::string server = std::move(redirected_.front());
    redirected_.erase(redirected_.begin());
    return server;
  }
  const auto servers = peer_.Servers();
  if (servers.empty()) return "";
  const Time now = loop_.Now();
  std::erase_if(silent_, [&servers](const auto& entry) {
    return std::ranges::find(servers, entry.first) == servers.end();
  });
  for (size_t i = 0; i < servers.size(); ++i) {
    const std::string& server = servers[next_server_++ % servers.size()];
    ++tried_;
    if (dials_.has(server)) continue;
    const auto silence = silent_.find(server);
    if (silence == silent_.end() || silence->second.until <= now) return server;
  }
  return servers[next_server_++ % servers.size()];
}

size_t Session::UntriedServers() const {
  const size_t servers = peer_.Servers().size();
  return servers > tried_ ? servers - tried_ : 0;
}

Duration Session::PauseAfter(const Status& status) {
  if (!redirected_.empty()) return Duration();
  // One of several servers leads and lets hosts in: the others are asked before there is a pause.
  if (UntriedServers() > 0) return Duration();
  tried_ = 0;
  Duration pause = backoff_.Next(loop_.random());
  if (status.retry_after().has_value()) pause = std::max(pause, *status.retry_after());
  return pause;
}

// Whether the server was there and said nothing, rather than no.
bool Session::IsSilence(const Status& status, Duration took) const {
  if (welcomed_) return status.Is(Reason::kTimeout);
  return took >= options_.dial_limit_of_many;
}

void Session::NoteSilence(const std::string& server) {
  Silence& silence = silent_[server];
  silence.pause = silence.pause == Duration()
                      ? options_.silent_pause
                      : std::min(silence.pause * 2, options_.silent_pause_max);
  silence.until = loop_.Now() + silence.pause;
}

rt::Task<Status> Session::Run() {
  const Status ended = co_await RunAll();
  CO_TRY_STATUS(co_await dials_.GiveUp());
  co_return ended;
}

rt::Task<Status> Session::RunAll() {
  Duration pause;
  while (!leaving_) {
    CO_TRY(Dialled dialled, co_await Reach(pause));
    const std::string server = dialled.address;
    const Time began = dialled.began;
    Status status = dialled.status;
    if (dialled.channel != nullptr) status = co_await RunOnce(std::move(dialled));
    stream_ = nullptr;
    const bool was_synced = synced_;
    synced_ = false;
    may_speak_.Reset();
    const bool was_silent = IsSilence(status, loop_.Now() - began);
    if (welcomed_) peer_.Ended(status);
    welcomed_ = false;
    if (status.Is(Reason::kCancelled)) co_return status;
    // Said once: the attempts that follow mostly fail for the same reason.
    if (was_synced || last_error_ != status.message()) {
      LOG_WARNING("no session with {}: {}", server, status.message());
    }
    last_error_ = status.message();
    if (leaving_) break;
    if (was_silent) {
      NoteSilence(server);
    } else {
      silent_.erase(server);
    }
    if (was_synced) {
      backoff_.Reset();
      tried_ = 1;  // the one that was lost; the others are asked at once
    }
    pause = PauseAfter(status);
  }
  farewell_.Set();
  co_return OkStatus();
}

rt::Task<Result<Dialled>> Session::Reach(Duration pause) {
  for (;;) {
    // One that was slow may answer meanwhile.
    CO_TRY(auto slow, co_await dials_.Next(pause));
    if (slow.has_value()) co_return Explained(*std::move(slow));
    const std::string server = NextServer();
    const Status begun = co_await BeginDial(server);
    if (!begun.ok()) {
      co_return Dialled{.address = server, .began = loop_.Now(), .status = begun, .channel = {}};
    }
    CO_TRY(auto answer, co_await dials_.Next(Patience()));
    if (answer.has_value()) co_return Explained(*std::move(answer));
    pause = PauseAfter(OkStatus());
  }
}

std::optional<Duration> Session::Patience() const {
  if (peer_.Servers().size() < 2) return std::nullopt;
  return options_.dial_patience;
}

rt::Task<Status> Session::BeginDial(std::string address) {
  if (address.empty()) co_return Unavailable("no server is known");
  CO_TRY(auto credentials, co_await credentials_.Current());
  const Duration limit =
      peer_.Servers().size() > 1 ? options_.dial_limit_of_many : options_.dial_limit;
  dials_.Begin(address, std::move(credentials), limit);
  co_return OkStatus();
}

Dialled Session::Explained(Dialled dialled) {
  if (dialled.channel != nullptr) return dialled;
  if (dialled.status.Is(Reason::kUnauthorized)) {
    dialled.status = credentials_.Rejected(dialled.status);
  }
  dialled.status = dialled.status.Wrap("dial " + dialled.address);
  return dialled;
}

rt::Task<Status> Session::RunOnce(Dialled server) {
  CO_TRY_STATUS(co_await dials_.GiveUp());
  const std::unique_ptr<net::RpcChannel> channel = std::move(server.channel);
  net::RpcOptions options;
  std::string method(kConnect);
  auto opened = co_await channel->Open(std::move(method), std::move(options));
  Status status = opened.status();
  if (opened.ok()) {
    std::unique_ptr<net::MessageStream> stream = *std::move(opened);
    stream_ = stream.get();
    channel_ = channel.get();
    status = co_await Talk(stream.get());
    stream_ = nullptr;
    channel_ = nullptr;
    stream->Abort(Cancelled("the session is over"));
  }
  const Status closed = co_await channel->Close();
  if (!closed.ok()) LOG_DEBUG("close: {}", closed.message());
  if (status.Is(Reason::kUnauthorized)) status = credentials_.Rejected(status);
  co_return status;
}

rt::Task<Status> Session::Talk(net::MessageStream* stream) {
  CO_TRY_STATUS(co_await Greet(stream));
  rt::TaskScope helpers(loop_);
  helpers_ = &helpers;
  helpers.Spawn("poollet.session.write", WriteLoop(stream));
  helpers.Spawn("poollet.session.heartbeat", HeartbeatLoop(stream));
  const Status status = co_await ReadLoop(stream);
  stream->Abort(status.ok() ? Cancelled("the session is over") : status);
  helpers_ = nullptr;
  const Status closed = co_await helpers.Close();
  CHECK(closed.ok());
  co_return status;
}

std::string Session::Hello() {
  std::string hello = peer_.Hello();
  pb::HostMessage more;
  more.mutable_hello()->mutable_versions()->set_min(options_.versions.min);
  more.mutable_hello()->mutable_versions()->set_max(options_.versions.max);
  if (draining_) more.mutable_hello()->set_leaving(true);
  more.AppendToString(&hello);  // encoded messages in a row are one merged message
  return hello;
}

rt::Task<Status> Session::Greet(net::MessageStream* stream) {
  CO_TRY_STATUS(co_await stream->Write(Hello()));
  CO_TRY(const auto bytes, co_await rt::WithDeadline(stream->Read(), options_.welcome_limit));
  if (!bytes.has_value()) co_return Unavailable("the server ended the session before its welcome");
  CO_TRY(const pb::ServerMessage message, Decode(*bytes));
  if (!message.has_welcome()) {
    CO_TRY_STATUS(Dispatch(message, stream));
    co_return BadRequest("the server's first word is no welcome");
  }
  const pb::Welcome& welcome = message.welcome();
  CO_TRY_STATUS(CheckVersion(welcome, options_.versions));
  CO_TRY_STATUS(peer_.Welcomed(welcome));
  version_ = welcome.version();
  welcomed_ = true;
  ++sessions_;
  session_start_ = welcome.session().start();
  session_counter_ = welcome.session().counter();
  heartbeat_every_ = welcome.heartbeat_ms() == 0
                         ? kHeartbeatDefault
                         : Duration::Millis(static_cast<int64_t>(welcome.heartbeat_ms()));
  last_word_ = loop_.Now();
  last_heartbeat_ = loop_.Now() - heartbeat_every_;
  for (std::string& chunk : peer_.Announce()) {
    CO_TRY_STATUS(co_await stream->Write(std::move(chunk)));
  }
  co_return OkStatus();
}

rt::Task<Status> Session::ReadLoop(net::MessageStream* stream) {
  while (true) {
    CO_TRY(const auto bytes, co_await stream->Read());
    if (!bytes.has_value()) co_return Unavailable("the server ended the session");
    last_word_ = loop_.Now();
    CO_TRY(const pb::ServerMessage message, Decode(*bytes));
    CO_TRY_STATUS(Dispatch(message, stream));
  }
}

Status Session::Dispatch(const pb::ServerMessage& message, net::MessageStream* stream) {
  switch (message.message_case()) {
    case pb::ServerMessage::kBatch:
      if (message.batch().has_grant()) Granted(message.batch().grant());
      peer_.Received(message.batch());
      for (const auto& tunnel : message.batch().tunnels()) {
        BeginTunnel(tunnel);
      }
      break;
    case pb::ServerMessage::kSynced:
      synced_ = true;
      may_speak_.Set();
      LOG_INFO("in contact: session ({}, {}), revision {}",
               session_start_,
               session_counter_,
               message.synced().revision());
      peer_.Synced(message.synced().revision(),
                   message.synced().open() ? HistoryState::kOpen : HistoryState::kSettled);
      if (draining_ && !SayGoodbye(LeaveMode::kDrain)) return Unavailable("the outbox is full");
      Wake(Urgency::kNow);
      break;
    case pb::ServerMessage::kGrant: Granted(message.grant()); break;
    case pb::ServerMessage::kPing: {
      pb::HostMessage pong;
      pong.mutable_pong()->set_number(message.ping().number());
      if (!stream->TryWrite(pong.SerializeAsString())) return Unavailable("the outbox is full");
      break;
    }
    case pb::ServerMessage::kRedirect: {
      const auto& servers = message.redirect().servers();
      redirected_.assign(servers.begin(),
                         servers.begin() + std::min<int>(servers.size(), kRedirectsMax));
      return Unavailable("redirected: " + message.redirect().reason());
    }
    case pb::ServerMessage::kFarewell: farewell_.Set(); break;
    case pb::ServerMessage::kRefused: return StatusOfRefusal(message.refused());
    case pb::ServerMessage::kWelcome: return BadRequest("a second welcome");
    case pb::ServerMessage::MESSAGE_NOT_SET: break;  // a word of a later version
  }
  return OkStatus();
}

void Session::Granted(const pb::Grant& grant) {
  peer_.Granted(grant.number(), Duration::Millis(static_cast<int64_t>(grant.ttl_ms())));
  if (grant.renew()) credentials_.RenewSoon();
}

rt::Task<Status> Session::WriteLoop(net::MessageStream* stream) {
  // Before the server has said what it wants, it has no ear for batches.
  CO_TRY_STATUS(co_await may_speak_.Wait());
  while (true) {
    CO_TRY_STATUS(co_await soon_.Wait());
    if (now_.is_set()) {
      // What else is said in this turn goes with it.
      rt::Yield yield;
      CO_TRY_STATUS(co_await yield);
    } else {
      const Duration pause = is_next_ ? options_.settle : options_.coalesce;
      const Status waited = co_await rt::WithDeadline(now_.Wait(), pause);
      if (waited.Is(Reason::kCancelled)) co_return waited;
    }
    soon_.Reset();
    now_.Reset();
    is_next_ = false;
    has_idle_words_ = false;
    auto batch = peer_.TakeBatch();
    while (batch.has_value()) {
      CO_TRY_STATUS(co_await stream->Write(WithHeartbeat(*std::move(batch))));
      batch = peer_.TakeBatch();
      // The server takes only so many statuses in a second.
      if (batch.has_value()) CO_TRY_STATUS(co_await rt::Sleep(options_.batch_pause));
    }
  }
}

void Session::FillHeartbeat(pb::Heartbeat& heartbeat) {
  heartbeat.mutable_session()->set_start(session_start_);
  heartbeat.mutable_session()->set_counter(session_counter_);
  heartbeat.set_number(++heartbeats_);
  last_heartbeat_ = loop_.Now();
  peer_.HeartbeatSent(heartbeats_);
}

// A host that speaks anyway says with it that it is there, and needs no message for that alone.
std::string Session::WithHeartbeat(std::string batch) {
  if (loop_.Now() - last_heartbeat_ < heartbeat_every_ / 2) return batch;
  pb::HostMessage more;
  FillHeartbeat(*more.mutable_batch()->mutable_heartbeat());
  // Encoded messages in a row are one merged message.
  return std::move(batch) + more.SerializeAsString();
}

rt::Task<Status> Session::HeartbeatLoop(net::MessageStream* stream) {
  while (true) {
    const Duration silence = loop_.Now() - last_word_;
    if (silence > heartbeat_every_ * kSilentHeartbeats) {
      stream->Abort(
          {Reason::kTimeout, "the server has been silent for " + FormatDuration(silence)});
      co_return OkStatus();
    }
    const auto is_due = [this] { return loop_.Now() - last_heartbeat_ >= heartbeat_every_; };
    if (is_due() && has_idle_words_ && synced_) {
      Wake(Urgency::kNow);  // and it goes with them
      CO_TRY_STATUS(co_await rt::Sleep(options_.coalesce));
    }
    if (is_due()) {
      pb::HostMessage message;
      FillHeartbeat(*message.mutable_heartbeat());
      if (!stream->TryWrite(message.SerializeAsString())) {
        LOG_DEBUG("heartbeat: the outbox is full");
      }
    }
    CO_TRY_STATUS(co_await rt::Sleep(last_heartbeat_ + heartbeat_every_ - loop_.Now()));
  }
}

// Whoever waits at the other end learns at once why there is nothing to see.
void Session::BeginTunnel(const pb::TunnelRequest& request) {
  if (helpers_ == nullptr) return;
  if (tunnels_ < kTunnelsMax) {
    helpers_->Spawn("poollet.session.tunnel", RunTunnel(request, &tunnels_, Verdict::kServed));
  } else if (refusals_ < kRefusalsMax) {
    helpers_->Spawn("poollet.session.no_tunnel", RunTunnel(request, &refusals_, Verdict::kRefused));
  } else {
    LOG_WARNING("the server asks for more tunnels than can even be refused");
  }
}

rt::Task<Status> Session::RunTunnel(pb::TunnelRequest request, size_t* count, Verdict verdict) {
  ++*count;
  const Status status = co_await CarryTunnel(std::move(request), verdict);
  --*count;
  co_return status;
}

rt::Task<Status> Session::CarryTunnel(pb::TunnelRequest request, Verdict verdict) {
  net::RpcOptions options;
  options.limits.outbox_bytes_max = kTunnelOutboxBytesMax;
  std::string method(kTunnel);
  CO_TRY(auto tunnel, co_await channel_->Open(std::move(method), std::move(options)));
  pb::TunnelFrame first;
  first.set_ticket(request.ticket());
  Status status = co_await tunnel->Write(first.SerializeAsString());
  if (status.ok() && verdict == Verdict::kServed) {
    status = co_await peer_.Tunnel(std::move(request), tunnel.get());
  } else if (status.ok()) {
    status = co_await rt::WithDeadline(SayTooMany(tunnel.get()), kRefusalLimit);
  }
  tunnel->Abort(Cancelled("the tunnel is over"));
  co_return status;
}

bool Session::SayGoodbye(LeaveMode mode) {
  if (stream_ == nullptr || !synced_) return false;
  farewell_.Reset();
  pb::HostMessage message;
  message.mutable_goodbye()->set_mode(mode == LeaveMode::kKeep ? pb::Goodbye::KEEP
                                                               : pb::Goodbye::DRAIN);
  return stream_->TryWrite(message.SerializeAsString());
}

rt::Task<Status> Session::AwaitDrain(rt::Event* drained) {
  rt::Event over;
  rt::TaskScope waiting(loop_);
  waiting.Spawn("poollet.session.drained", PassOn(drained, &over));
  waiting.Spawn("poollet.session.farewell", PassOn(&farewell_, &over));
  const Status waited = co_await rt::WithDeadline(over.Wait(), options_.drain_limit);
  const Status closed = co_await waiting.Close();
  CHECK(closed.ok());
  co_return waited;
}

rt::Task<Status> Session::Leave(LeaveMode mode, rt::Event* drained) {
  bool said = false;
  if (mode == LeaveMode::kDrain) {
    draining_ = true;  // a session that begins meanwhile says it again
    farewell_.Reset();
    SayGoodbye(mode);
    const Status waited = co_await AwaitDrain(drained);
    if (waited.Is(Reason::kTimeout)) {
      LOG_WARNING("not drained within {}: what is here stays",
                  FormatDuration(options_.drain_limit));
      mode = LeaveMode::kKeep;
    } else {
      CO_TRY_STATUS(waited);
      said = stream_ != nullptr && synced_;
      Wake(Urgency::kNow);
    }
  }
  leaving_ = true;
  if (mode == LeaveMode::kKeep) said = SayGoodbye(mode);
  if (said) {
    const Status heard = co_await rt::WithDeadline(farewell_.Wait(), options_.farewell_limit);
    if (!heard.ok()) LOG_INFO("no farewell from the server: {}", heard.message());
  }
  co_return co_await Close();
}

rt::Task<Status> Session::Close() {
  leaving_ = true;
  co_return co_await scope_.Close();
}

}  // namespace berth::poollet
