// SPDX-License-Identifier: Apache-2.0
// What the contract of net/rpc.h needs of a server that speaks HTTP/2 over real sockets:
// certificates, a dialer, a loop. How the server is started is left to whoever tests one.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "net/conformance/rpc_contract.h"
#include "net/h2/h2_dialer.h"
#include "net/h2/h2_server.h"
#include "net/testing/test_pki.h"
#include "rt/asio/asio_loop.h"

namespace berth::net {

class H2UnderTest : public RpcUnderTest {
 public:
  rt::Loop& loop() override { return loop_; }
  Status Run(rt::Task<Status> task) override { return rt::RunTask(loop_, std::move(task)); }
  RpcDialer& dialer() override { return dialer_; }
  RpcCredentials credentials() override { return Credentials(pki_); }
  RpcCredentials stranger() override { return Credentials(other_pki_); }
  std::string dead_address() override { return "127.0.0.1:1"; }

 protected:
  Result<H2ServerOptions> ServerOptions() {
    const TestIdentity identity = pki_.IssueServer({"127.0.0.1"});
    TlsServerOptions tls;
    tls.certificate_pem = identity.certificate_pem + pki_.ca_pem();
    tls.key_pem = identity.key_pem;
    tls.client_certificates = ClientCertificates::kOptional;
    tls.client_ca_pem = pki_.ca_pem();
    H2ServerOptions options;
    TRY(options.tls, NewH2ServerTls(tls));
    options.drain_timeout = Duration::Millis(100);
    return options;
  }

  rt::AsioLoop loop_;

 private:
  RpcCredentials Credentials(TestPki& issuer) {
    const TestIdentity identity = issuer.IssueClient("host-1");
    return {.ca_pem = pki_.ca_pem(),
            .certificate_pem = identity.certificate_pem,
            .key_pem = identity.key_pem};
  }

  TestPki pki_;
  TestPki other_pki_{"another CA"};
  H2Dialer dialer_{loop_};
};

}  // namespace berth::net
