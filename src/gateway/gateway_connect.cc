// SPDX-License-Identifier: Apache-2.0
// From the first byte of a session to its end.
#include "base/log.h"
#include "gateway/gateway.h"
#include "gateway/identity/protocol_version.h"
#include "rt/chaos.h"
#include "rt/deadline.h"
#include "rt/sleep.h"

namespace berth::gateway {
namespace {

// Messages of one host that are handled before others get their turn.
constexpr int kBurst = 32;

// Says why there is no session, and ends the call with it.
Status Refuse(net::MessageStream& stream, const Refusal& refusal) {
  agent::ServerMessage message;
  message.mutable_refused()->set_reason(refusal.reason);
  message.mutable_refused()->set_message(refusal.message);
  message.mutable_refused()->set_retry_after_ms(
      static_cast<uint64_t>(refusal.retry_after.millis()));
  if (!stream.TryWrite(message.SerializeAsString())) LOG_DEBUG("a refused host takes nothing");
  return ToStatus(refusal);
}

Refusal RefusalOf(const Status& status) {
  std::string_view reason = kUnavailable;
  if (status.Is(Reason::kUnauthorized)) reason = kRemoved;
  if (status.Is(Reason::kConflict)) reason = kOlderHistory;
  return {.reason = std::string(reason), .message = std::string(status.message())};
}

}  // namespace

rt::Task<Status> Gateway::Connect(net::RpcCall call, net::MessageStream& stream) {
  CO_TRY(const std::unique_ptr<Session> session, co_await Greet(std::move(call), stream));
  co_return co_await Serve(*session);
}

// Out of line: its frame, which is large, ends with the greeting.
[[gnu::noinline]] rt::Task<Result<std::unique_ptr<Session>>> Gateway::Greet(
    net::RpcCall call, net::MessageStream& stream) {
  const IdentityVerdict verdict = ReadIdentity(call.peer.certificate_der,
                                               Purpose::kSession,
                                               revocations_.revocations(),
                                               deps_.loop.WallNow());
  if (!verdict.identity) co_return Refuse(stream, verdict.refusal);
  const HostIdentity identity = *verdict.identity;
  if (const auto why = WhyNotNow(identity)) co_return Refuse(stream, *why);
  const auto hello = co_await ReadHello(stream);
  if (hello.status().Is(Reason::kCancelled)) co_return hello.status();
  if (!hello.ok()) {
    co_return Refuse(
        stream,
        {.reason = std::string(kProtocol), .message = std::string(hello.status().message())});
  }
  const auto version = ChooseVersion(
      {.min = hello->versions().min(), .max = hello->versions().max()}, options_.versions);
  if (!version.ok()) {
    co_return Refuse(
        stream,
        {.reason = std::string(kVersion), .message = std::string(version.status().message())});
  }
  const auto record = co_await Examine(identity.host, *hello);
  if (record.status().Is(Reason::kCancelled)) co_return record.status();
  if (!record.ok()) co_return Refuse(stream, RefusalOf(record.status()));
  while (table_.OfHost(identity.host) != nullptr) {
    CO_TRY(const bool is_dead, co_await Challenge(identity.host));
    if (!is_dead) {
      co_return Refuse(stream,
                       {.reason = std::string(kAlreadyConnected),
                        .message = "host " + identity.host + " has a session that is alive",
                        .retry_after = kChallenge});
    }
  }
  // From here to the table without a pause (invariant 1). Much may have happened since the start.
  if (revocations_.revocations().Covers(identity.host, identity.serial, identity.issued)) {
    co_return Refuse(stream,
                     {.reason = std::string(kRevoked),
                      .message = "the certificate of host " + identity.host + " was revoked"});
  }
  if (closing_) {
    co_return Refuse(stream, {.reason = std::string(kDraining), .message = "the server stops"});
  }
  if (!IsTrusted(deps_.authority, identity)) {
    co_return Refuse(stream, RetiredAuthority(identity));
  }
  auto session = std::make_unique<Session>(deps_.loop, stream, identity, ++last_session_);
  session->certificate = {.authority = identity.authority, .until = identity.not_after};
  session->announcer = {.host = identity.host,
                        .record = *record,
                        .poollet_version = hello->poollet_version(),
                        .is_leaving = hello->leaving()};
  session->is_draining = hello->leaving();
  session->lease_left = Duration::Millis(
      static_cast<int64_t>(std::min<uint64_t>(hello->lease_left_ms(), uint64_t{1} << 40U)));
  table_.Add(*session);
  Welcome(*session, *version);
  co_return session;
}

std::optional<Refusal> Gateway::WhyNotNow(const HostIdentity& identity) {
  if (!IsTrusted(deps_.authority, identity)) return RetiredAuthority(identity);
  if (closing_ || !synced() || !Leads()) {
    return Refusal{.reason = std::string(kUnavailable),
                   .message = "the server is starting or stopping, or does not lead",
                   .retry_after = Duration::Millis(50)};
  }
  // Last: nobody uses up turns while nobody is let in.
  if (connects_.Take(identity.host, deps_.loop.Now())) return std::nullopt;
  return Refusal{.reason = std::string(kLimits),
                 .message = "host " + identity.host + " begins too many sessions",
                 .retry_after = connects_.pause()};
}

rt::Task<Result<agent::Hello>> Gateway::ReadHello(net::MessageStream& stream) {
  CO_TRY(std::optional<std::string> bytes, co_await rt::WithDeadline(stream.Read(), kHelloLimit));
  agent::HostMessage message;
  if (!bytes || !message.ParseFromString(*bytes) || !message.has_hello()) {
    co_return BadRequest("the first message of a session is Hello");
  }
  co_return std::move(*message.mutable_hello());
}

rt::Task<Result<client::HostRecord>> Gateway::Examine(std::string host, agent::Hello hello) {
  if (hello.incarnation() > cluster_.incarnation) {
    // A store that was put back without saying so: nothing of it can be trusted by this host.
    co_return Conflict("the host has seen incarnation " + std::to_string(hello.incarnation()) +
                       ", this server has " + std::to_string(cluster_.incarnation));
  }
  co_return co_await enrolment_.FindHost(host);
}

rt::Task<Result<bool>> Gateway::Challenge(std::string host) {
  Session* incumbent = table_.OfHost(host);
  if (incumbent == nullptr) co_return true;
  if (incumbent->challenge != nullptr) co_return false;  // another newcomer is before this one
  const uint64_t number = incumbent->number();
  rt::Event word;
  incumbent->challenge = &word;
  agent::ServerMessage ping;
  ping.mutable_ping()->set_number(++last_ping_);
  incumbent->Send(ping);
  const Status heard = co_await rt::WithDeadline(word.Wait(), kChallenge);
  incumbent = table_.OfHost(host);
  if (incumbent == nullptr || incumbent->number() != number) co_return true;
  incumbent->challenge = nullptr;
  if (heard.Is(Reason::kCancelled)) co_return heard;
  if (heard.ok()) {
    for (const auto& [uid, pool] : incumbent->pools) {
      events_.Record(
          {.kind = pool.face.kind, .key = {.namespace_ = "", .name = pool.face.name}, .uid = uid},
          client::EventType::kWarning,
          "AlreadyConnected",
          "Connect",
          "another session of host " + host +
              " was refused while this one is alive: its key may have been copied");
    }
    co_return false;
  }
  REACHED("gateway.superseded");
  incumbent->End({.reason = std::string(kSuperseded),
                  .message = "no answer within " + FormatDuration(kChallenge) +
                             " while another session of the host was waiting"});
  Leave(*incumbent);
  co_return true;
}

void Gateway::Welcome(Session& session, uint32_t version) {
  const Duration lease = health_.lease();
  health_.Begin(session.host(), lease, deps_.loop.Now());
  session.announcer.lease = health_.LongestLeaseOf(session.host());
  session.last_word = deps_.loop.Now();
  agent::ServerMessage message;
  agent::Welcome& welcome = *message.mutable_welcome();
  welcome.set_version(version);
  welcome.mutable_versions()->set_min(options_.versions.min);
  welcome.mutable_versions()->set_max(options_.versions.max);
  welcome.mutable_session()->set_start(cluster_.start);
  welcome.mutable_session()->set_counter(session.number());
  welcome.set_incarnation(cluster_.incarnation);
  welcome.set_cluster_id(cluster_.id);
  welcome.set_lease_ms(static_cast<uint64_t>(lease.millis()));
  welcome.set_heartbeat_ms(
      static_cast<uint64_t>(HeartbeatFor(health_.hosts(), options_.heartbeat).millis()));
  for (const std::string& server : options_.servers) welcome.add_servers(server);
  welcome.mutable_limits()->set_message_bytes(kMessageBytesMax);
  welcome.mutable_limits()->set_status_per_second(static_cast<uint32_t>(kStatusesPerSecond));
  welcome.mutable_limits()->set_text_bytes(kTextMax);
  welcome.mutable_limits()->set_events_per_second(static_cast<uint32_t>(kEventsPerSecond));
  session.Send(message);
}

rt::Task<Status> Gateway::Serve(Session& session) {
  Status read;
  {
    rt::ChildContext reader(co_await rt::CurrentContext());
    session.SetReader(&reader);
    auto reading = ReadAll(session);
    read = co_await reading.In(reader.context());
    session.SetReader(nullptr);
  }
  if (!session.ended()) {
    // The host's own doing, or the connection's: there is nobody to tell.
    session.Conclude(
        {.reason = std::string(session.said_goodbye ? kGoodbye : kLost),
         .message = read.ok() ? "the host has ended the session" : std::string(read.message())});
  }
  Leave(session);
  const Status closed = co_await session.scope.Close();
  CHECK(closed.ok());
  if (session.reason().reason == kGoodbye) co_return OkStatus();
  co_return ToStatus(session.reason());
}

rt::Task<Status> Gateway::ReadAll(Session& session) {
  for (int handled = 1; !session.ended(); ++handled) {
    CO_TRY(std::optional<std::string> bytes, co_await session.stream().Read());
    if (!bytes) co_return OkStatus();
    const Time now = deps_.loop.Now();
    if (!session.Admit(bytes->size(), now)) continue;
    health_.Word(session.host(), now);
    agent::HostMessage message;
    if (!message.ParseFromString(*bytes)) {
      session.End({.reason = std::string(kProtocol), .message = "not a HostMessage"});
      break;
    }
    OnMessage(session, std::move(message));
    if (handled % kBurst == 0) CO_TRY_STATUS(co_await rt::Yield());
  }
  co_return OkStatus();
}

void Gateway::Leave(Session& session) {
  if (!session.is_listed) return;
  table_.Remove(session);
  tunnels_.EndAllOf(session.host());
  if (session.challenge != nullptr) session.challenge->Set();
  session.challenge = nullptr;
  health_.End(session.host(), deps_.loop.Now());
  const std::string reason = session.reason().reason;
  if (session.phase == Session::Phase::kSynced) {
    for (const auto& [uid, pool] : session.pools) {
      TellPool(fleet::FleetEvent::Type::kLeft, pool, reason);
    }
  }
  FinishAsks(asks_.DropSession(session.number()), reason);
}

rt::Task<Status> Gateway::Tunnel(net::RpcCall call, net::MessageStream& stream) {
  const IdentityVerdict verdict = ReadIdentity(call.peer.certificate_der,
                                               Purpose::kSession,
                                               revocations_.revocations(),
                                               deps_.loop.WallNow());
  if (!verdict.identity) co_return ToStatus(verdict.refusal);
  co_return co_await tunnels_.Serve(verdict.identity->host, stream);
}

}  // namespace berth::gateway
