// SPDX-License-Identifier: Apache-2.0
// An HTTP server on a loop for the length of a test, and a client that sends exactly the bytes it
// is told to.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "net/http_client.h"
#include "net/http_server.h"
#include "net/stream.h"
#include "net/testing/test_pki.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"

namespace berth::net {

// Certificates and contexts of a small world: one authority, a server for localhost and 127.0.0.1.
class TestTls {
 public:
  TestTls();
  std::shared_ptr<const TlsContext> server(ClientCertificates mode = ClientCertificates::kOptional);
  std::shared_ptr<const TlsContext> client();
  std::shared_ptr<const TlsContext> client(const TestIdentity& identity);
  TestPki& pki() { return pki_; }

 private:
  TestPki pki_;
  TestIdentity server_;
};

// Connects and speaks raw bytes.
class RawClient {
 public:
  static rt::Task<Result<std::unique_ptr<RawClient>>> Connect(rt::AsioLoop* loop, uint16_t port);
  static rt::Task<Result<std::unique_ptr<RawClient>>> ConnectTls(
      rt::AsioLoop* loop, uint16_t port, std::shared_ptr<const TlsContext> tls);
  explicit RawClient(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}

  rt::Task<Status> Write(std::string bytes);
  // Reads until `marker` has been seen, and returns everything up to its end.
  rt::Task<Result<std::string>> ReadUntil(std::string marker);
  // Reads to the end of the connection.
  rt::Task<Result<std::string>> ReadAll();
  Stream& stream() { return *stream_; }

 private:
  std::unique_ptr<Stream> stream_;
  std::string inbox_;
};

}  // namespace berth::net
