// SPDX-License-Identifier: Apache-2.0
// A server with a few handlers and its certificates, for the tests of this folder.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/strings.h"
#include "net/h2/h2_dialer.h"
#include "net/h2/h2_server.h"
#include "net/rpc.h"
#include "net/testing/test_pki.h"
#include "rt/asio/asio_loop.h"
#include "rt/event.h"
#include "rt/sleep.h"
#include "rt/task.h"

namespace berth::net {

struct H2World {
  static constexpr char kEcho[] = "/berth.net.testdata.EchoService/Echo";
  static constexpr char kHuge[] = "/test/Huge";
  static constexpr char kWait[] = "/test/Wait";
  static constexpr char kDeaf[] = "/test/Deaf";
  static constexpr char kState[] = "/test/State";
  static constexpr char kCertificate[] = "/test/Certificate";
  static constexpr char kIntroduce[] = "/test/Introduce";
  static constexpr char kKnownOnly[] = "/test/KnownOnly";
  static constexpr Duration kDialLimit = Duration::Seconds(20);

  static rt::Task<Result<std::string>> Echo(RpcCall, std::string request) { co_return request; }
  static rt::Task<Result<std::string>> Huge(RpcCall, std::string request) {
    co_return std::string(static_cast<size_t>(ParseInt(request).value_or(0)), 'x');
  }
  static rt::Task<Result<std::string>> State(RpcCall call, std::string) {
    co_return std::to_string(static_cast<int>(call.peer.certificate_state));
  }
  static rt::Task<Result<std::string>> Certificate(RpcCall call, std::string) {
    co_return call.peer.certificate_der;
  }
  // Takes the request for the name of the user who sent it.
  static rt::Task<Result<std::string>> Introduce(RpcCall call, std::string user) {
    if (!call.peer.introduce) co_return "known already";
    call.peer.introduce(std::move(user));
    co_return "introduced";
  }
  static rt::Task<Status> AdmitNobody(RpcCall call) {
    if (call.peer.certificate_der.empty()) co_return Unauthorized("who are you?");
    co_return OkStatus();
  }
  rt::Task<Result<std::string>> Wait() {
    ++waiting;
    const Status slept = co_await rt::Sleep(Duration::Hours(1));
    --waiting;
    co_return slept.ok() ? Internal("nobody waits that long") : slept;
  }
  static rt::Task<Status> Deaf() { co_return co_await rt::Sleep(Duration::Hours(1)); }

  RpcRoutes Routes() {
    RpcRoutes routes;
    routes.unary[kEcho] = {.handler = Echo};
    routes.unary[kHuge] = {.handler = Huge};
    routes.unary[kState] = {.handler = State};
    routes.unary[kCertificate] = {.handler = Certificate};
    routes.unary[kIntroduce] = {.handler = Introduce};
    routes.unary[kKnownOnly] = {.handler = Echo, .limits = {}, .admit = AdmitNobody};
    routes.unary[kWait] = {.handler = [this](RpcCall, std::string) { return Wait(); }};
    routes.streams[kDeaf] = {.handler = [](RpcCall, MessageStream&) { return Deaf(); }};
    return routes;
  }

  TlsServerOptions Tls() {
    const TestIdentity identity = pki.IssueServer({"127.0.0.1", "localhost"});
    TlsServerOptions tls;
    tls.certificate_pem = identity.certificate_pem + pki.ca_pem();
    tls.key_pem = identity.key_pem;
    tls.client_certificates = ClientCertificates::kOptional;
    tls.client_ca_pem = pki.ca_pem();
    return tls;
  }
  RpcCredentials Client(const std::string& name) {
    const TestIdentity identity = pki.IssueClient(name);
    return {.ca_pem = pki.ca_pem(),
            .certificate_pem = identity.certificate_pem,
            .key_pem = identity.key_pem};
  }
  // Of somebody who trusts the server and shows no certificate.
  RpcCredentials Nobody() {
    RpcCredentials credentials;
    credentials.ca_pem = pki.ca_pem();
    return credentials;
  }
  rt::Task<Result<std::unique_ptr<RpcChannel>>> Dial(RpcCredentials credentials) {
    return dialer.Dial(server->address(), std::move(credentials), kDialLimit);
  }

  // Serves while the script runs.
  using Script = std::function<rt::Task<Status>(H2World*)>;
  Status Run(H2ServerOptions options, Script script) {
    return rt::RunTask(loop, RunScript(std::move(options), std::move(script)));
  }
  rt::Task<Status> RunScript(H2ServerOptions options, Script script) {
    if (options.tls == nullptr) {
      CO_TRY(options.tls, NewH2ServerTls(Tls()));
    }
    options.drain_timeout = Duration::Millis(100);
    CO_TRY(server, H2Server::Start(loop, std::move(options), Routes()));
    rt::Task<Status> running = script(this);
    const Status status = co_await running;
    CO_TRY_STATUS(co_await server->Stop());
    server.reset();
    co_return status;
  }

  rt::AsioLoop loop;
  TestPki pki;
  std::unique_ptr<H2Server> server;
  H2Dialer dialer{loop};
  int waiting = 0;
};

}  // namespace berth::net
