// SPDX-License-Identifier: Apache-2.0
#include "net/h2/h2_sessions.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "net/call/call_service.h"
#include "net/h2/h2_connection.h"

namespace berth::net {
namespace {

// Handlers of calls that were reset are still ending when the next calls come.
constexpr size_t kHandlersPerStream = 2;

}  // namespace

// One connection and the handlers of its calls.
class H2Sessions::Session {
 public:
  Session(H2Sessions& owner, std::unique_ptr<Stream> stream)
      : owner_(owner),
        connection_(H2Connection::Side::kServer,
                    std::move(stream),
                    owner.options_.limits,
                    [this](std::shared_ptr<CallStream> call, CallHead head) {
                      service_.Begin(std::move(call), std::move(head));
                    }),
        service_(connection_.loop(),
                 owner.routes_,
                 {.calls_max = kHandlersPerStream * owner.options_.limits.streams_max,
                  .request_timeout = owner.options_.limits.request_timeout},
                 [this] { return Peer(); }) {}

  rt::Task<Status> Run() {
    Status status = co_await connection_.Run();
    CO_TRY_STATUS(co_await service_.Close());
    co_return status;
  }
  void Drain() {
    connection_.Drain();
    service_.Drain();
  }
  void End(std::string_view why) {
    is_ending_ = true;
    connection_.Terminate(H2Connection::kEnhanceYourCalm, why);
  }
  bool is_ending() const { return is_ending_; }
  bool is_idle_since(Time time) const {
    return !is_ending_ && connection_.open_streams() == 0 && connection_.idle_since() <= time;
  }
  // A call whose request is not complete is no work: anybody can begin one.
  bool is_working() const { return service_.answering() > 0; }
  Time begun() const { return begun_; }
  Stream& stream() { return connection_.stream(); }

  // What it counts as: one of the two while it has a place.
  std::unique_ptr<Census::Entry> of_identity;
  std::unique_ptr<Crowd<Session>::Place> anonymous;

  // What calls may make the server hold, as it is known whose they are, or not.
  void SetBytesMax() {
    const H2Limits& limits = owner_.options_.limits;
    const size_t of_nobody = owner_.options_.anonymous.bytes_max;
    const bool is_known = of_identity != nullptr;
    connection_.SetBytesMax(
        is_known ? limits.received_bytes_max : std::min(limits.received_bytes_max, of_nobody),
        is_known ? limits.queued_bytes_max : std::min(limits.queued_bytes_max, of_nobody));
  }

 private:
  RpcPeer Peer() {
    RpcPeer peer = connection_.peer();
    if (of_identity != nullptr) return peer;
    if (self_ == nullptr) self_ = std::make_shared<Session*>(this);
    peer.introduce = [self = std::weak_ptr(self_)](const std::string& user) {
      const std::shared_ptr<Session*> session = self.lock();
      if (session != nullptr) (*session)->owner_.Introduce(**session, user);
    };
    return peer;
  }

  H2Sessions& owner_;
  bool is_ending_ = false;
  std::shared_ptr<Session*> self_;  // for calls that may introduce it
  H2Connection connection_;
  const Time begun_ = connection_.Now();
  CallService service_;
};

H2Sessions::H2Sessions(H2SessionsOptions options, RpcRoutes routes)
    : options_(options), routes_(std::move(routes)) {}

H2Sessions::~H2Sessions() {
  CHECK(sessions_.empty()) << "connections outlive the H2Sessions that serve them";
}

void H2Sessions::Drain() {
  draining_ = true;
  for (Session* session : sessions_) session->Drain();
}

void H2Sessions::End(Session& session, std::string_view why) {
  session.of_identity.reset();
  session.anonymous.reset();
  ++ending_;
  session.End(why);
}

bool H2Sessions::EndAnonymous(Session* session) {
  if (session == nullptr) return false;
  End(*session, "too many connections without a certificate");
  return true;
}

bool H2Sessions::MakeAnonymousRoom(const std::string& address) {
  const auto may_go = [](const Session& session) { return !session.is_working(); };
  const AnonymousLimits& limits = options_.anonymous;
  if (anonymous_.CountOf(address) >= limits.connections_per_address_max) {
    return EndAnonymous(anonymous_.OldestOf(address, may_go));
  }
  return anonymous_.size() < limits.connections_max ||
         EndAnonymous(anonymous_.OldestOfMost(may_go));
}

bool H2Sessions::EndOne(Duration spared_for) {
  if (sessions_.empty()) return false;
  const Time since = sessions_.front()->stream().loop().Now() - spared_for;
  const auto may_go = [since](const Session& session) {
    return !session.is_working() && session.begun() <= since;
  };
  if (EndAnonymous(anonymous_.OldestOfMost(may_go))) return true;
  for (Session* session : sessions_) {
    if (!session->is_idle_since(since)) continue;
    End(*session, "too many connections: this one was idle");
    return true;
  }
  return false;
}

// Out of line, as all that is not for the life of a connection: its frame is small so.
[[gnu::noinline]] std::string_view H2Sessions::WhyRefused(Session& session) {
  const std::string subject = session.stream().peer_subject_hash();
  const std::string address = HostOf(session.stream().peer_address());
  if (!subject.empty()) {
    session.of_identity = by_identity_.Add(subject, options_.connections_per_identity_max);
    if (session.of_identity == nullptr) return "too many connections of this identity";
  } else if (!MakeAnonymousRoom(address)) {
    return "too many connections without a certificate";
  }
  if (sessions_.size() - ending_ >= options_.connections_max && !EndOne()) {
    return "too many connections";
  }
  if (subject.empty()) session.anonymous = anonymous_.Add(address, session);
  session.SetBytesMax();
  return {};
}

void H2Sessions::Introduce(Session& session, const std::string& user) {
  if (session.is_ending() || session.of_identity != nullptr) return;
  // Never the key of a subject: that is a hash.
  session.of_identity = by_identity_.Add("user " + user, options_.connections_per_identity_max);
  if (session.of_identity == nullptr) {
    End(session, "too many connections of this user");
    return;
  }
  session.anonymous.reset();
  session.SetBytesMax();
}

rt::Task<Status> H2Sessions::Serve(std::unique_ptr<Stream> stream) {
  Session session(*this, std::move(stream));
  const std::string_view why_refused = WhyRefused(session);
  const auto place = sessions_.insert(sessions_.end(), &session);
  if (!why_refused.empty()) End(session, why_refused);
  if (draining_) session.Drain();
  Status status = co_await session.Run();
  if (session.is_ending()) --ending_;
  sessions_.erase(place);
  co_return status;
}

}  // namespace berth::net
