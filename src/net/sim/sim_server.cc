// SPDX-License-Identifier: Apache-2.0
#include "net/sim/sim_server.h"

#include <fmt/core.h>

#include <utility>

#include "base/check.h"
#include "net/call/call_service.h"

namespace berth::net {

// One connection and the handlers of its calls.
struct SimServer::Session {
  RpcPeer peer;
  std::unique_ptr<CallService> service;
  std::shared_ptr<SimEnd> end;
};

SimServer::SimServer(std::shared_ptr<SimFabric> fabric,
                     const std::string& node,
                     SimServerOptions options,
                     RpcRoutes routes)
    : fabric_(std::move(fabric)),
      options_(std::move(options)),
      routes_(std::move(routes)),
      address_(fmt::format("{}:{}", node, options_.port)),
      loop_(fabric_->loop_of(node)),
      serving_(loop_) {}

SimServer::~SimServer() { CHECK(stopped_) << "a server is destroyed before Stop() was awaited"; }

Result<std::unique_ptr<RpcServer>> SimServer::Start(std::shared_ptr<SimFabric> fabric,
                                                    const std::string& node,
                                                    SimServerOptions options,
                                                    RpcRoutes routes) {
  auto server = std::make_unique<SimServer>(fabric, node, std::move(options), std::move(routes));
  SimServer* body = server.get();
  const Status listening = fabric->Listen(
      body->address_, [body](SimFabric::Hello hello) { return body->Accept(std::move(hello)); });
  if (!listening.ok()) {
    body->stopped_ = true;
    return listening;
  }
  return std::unique_ptr<RpcServer>(std::move(server));
}

Result<RpcPeer> SimServer::Judge(const SimFabric::Hello& hello) const {
  RpcPeer peer{.address = hello.address};
  if (options_.client_certificates == ClientCertificates::kNone) return peer;
  if (hello.certificate_pem.empty()) {
    if (options_.client_certificates == ClientCertificates::kOptional) return peer;
    return Unauthorized("the server wants a certificate of us");
  }
  TRY(peer.certificate_der, CertificateDer(hello.certificate_pem));
  peer.certificate_state = CertificateState::kValid;
  if (options_.client_ca_pem.empty()) return peer;
  TRY(peer.certificate_state,
      VerifyClientCertificate(hello.certificate_pem, options_.client_ca_pem, loop_.WallNow()));
  if (peer.certificate_state == CertificateState::kExpired &&
      options_.expired_client_certificates == ExpiredCertificates::kRefuse) {
    return Unauthorized("the server says that our certificate has expired");
  }
  return peer;
}

Result<std::shared_ptr<SimEnd>> SimServer::Accept(SimFabric::Hello hello) {
  if (sessions_.size() >= options_.connections_max) return Unavailable("connection refused");
  TRY(RpcPeer peer, Judge(hello));
  auto session = std::make_shared<Session>();
  session->peer = std::move(peer);
  Session* raw = session.get();
  session->service = std::make_unique<CallService>(
      loop_, routes_, CallServiceLimits{.calls_max = options_.streams_max}, [raw] {
        return raw->peer;
      });
  CallService* service = session->service.get();
  session->end =
      std::make_shared<SimEnd>(SimEnd::Side::kServer,
                               loop_,
                               fabric_->options(),
                               hello.send,
                               [service](std::shared_ptr<CallStream> call, CallHead head) {
                                 service->Begin(std::move(call), std::move(head));
                               });
  std::shared_ptr<SimEnd> end = session->end;
  hello.send({.kind = SimFrame::Kind::kWelcome, .bytes = options_.certificate_pem});
  serving_.Spawn("sim.serve", Serve(std::move(session)));
  return end;
}

rt::Task<Status> SimServer::Serve(std::shared_ptr<Session> session) {
  const auto place = sessions_.insert(sessions_.end(), session);
  const Status lost = co_await session->end->WaitLost();
  if (!lost.ok()) session->end->Close(Unavailable("the server has stopped"));
  CO_TRY_STATUS(co_await session->service->Close());
  sessions_.erase(place);
  co_return OkStatus();
}

rt::Task<Status> SimServer::Stop() {
  if (std::exchange(stopped_, true)) co_return OkStatus();
  fabric_->Unlisten(address_);
  const auto sessions = sessions_;
  for (const std::shared_ptr<Session>& session : sessions) {
    session->end->Drain();
    session->service->Drain();
  }
  const rt::TimerId timer =
      loop_.After("sim.drain", options_.drain_timeout, [this] { serving_.Cancel(); });
  CO_TRY_STATUS(co_await serving_.Join());
  loop_.CancelTimer(timer);
  co_return OkStatus();
}

}  // namespace berth::net
