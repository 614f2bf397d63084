// SPDX-License-Identifier: Apache-2.0
#include "net/h2/h2_sessions.h"

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
  Session(std::unique_ptr<Stream> stream, const RpcRoutes& routes, const H2Limits& limits)
      : connection_(H2Connection::Side::kServer,
                    std::move(stream),
                    limits,
                    [this](std::shared_ptr<CallStream> call, CallHead head) {
                      service_.Begin(std::move(call), std::move(head));
                    }),
        service_(connection_.loop(), routes, kHandlersPerStream * limits.streams_max, [this] {
          return connection_.peer();
        }) {}

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
  bool is_idle() const { return !is_ending_ && connection_.open_streams() == 0; }

 private:
  bool is_ending_ = false;
  H2Connection connection_;
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

bool H2Sessions::EndOldestIdle() {
  for (Session* session : sessions_) {
    if (!session->is_idle()) continue;
    session->End("too many connections: this one was idle");
    return true;
  }
  return false;
}

// Out of line, as all that is not for the life of a connection: its frame is small so.
[[gnu::noinline]] std::string_view H2Sessions::WhyRefused(
    const Stream& stream, std::unique_ptr<Census::Entry>* of_identity) {
  if (sessions_.size() >= options_.connections_max && !EndOldestIdle()) {
    return "too many connections";
  }
  const std::string subject = stream.peer_subject_hash();
  if (subject.empty()) return {};
  *of_identity = by_identity_.Add(subject, options_.connections_per_identity_max);
  return *of_identity == nullptr ? "too many connections of this identity" : "";
}

rt::Task<Status> H2Sessions::Serve(std::unique_ptr<Stream> stream) {
  std::unique_ptr<Census::Entry> of_identity;
  const std::string_view why_refused = WhyRefused(*stream, &of_identity);
  Session session(std::move(stream), routes_, options_.limits);
  const auto place = sessions_.insert(sessions_.end(), &session);
  if (!why_refused.empty()) session.End(why_refused);
  if (draining_) session.Drain();
  Status status = co_await session.Run();
  sessions_.erase(place);
  co_return status;
}

}  // namespace berth::net
