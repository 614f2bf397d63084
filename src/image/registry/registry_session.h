// SPDX-License-Identifier: Apache-2.0
// A RegistrySession asks one registry for what is in one repository, on behalf of somebody: with a
// token if the registry wants one, along redirects, over TLS alone. On-loop only.
//
// Credentials go to the registry and to the realm that it names, never along a redirect.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "image/reference.h"
#include "image/registry/address_rules.h"
#include "image/registry/challenge.h"
#include "image/registry/credentials.h"
#include "net/http_client.h"
#include "net/tls.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"

namespace berth::image {

struct RegistryOptions {
  std::shared_ptr<const net::TlsContext> tls;
  AddressRules addresses;
  Duration answer_limit = Duration::Seconds(30);  // to the head of an answer, and between bytes
};

class RegistrySession {
 public:
  // An answer with status 200 or 206 whose body is read as it comes.
  struct Answer {
    std::unique_ptr<net::HttpClient> client;  // outlives the stream
    std::unique_ptr<net::HttpStream> stream;
  };

  // The options outlive this.
  RegistrySession(rt::AsioLoop& loop,
                  const RegistryOptions& options,
                  Reference reference,
                  Credentials credentials);

  const std::string& registry() const { return reference_.registry; }
  rt::Loop& loop() { return loop_; }

  // "manifests/12", "blobs/sha256:...". NotFound; Unauthorized, Forbidden; Unavailable: later,
  // perhaps; Expired: it has less than the range begins at; BadRequest: it does not talk as a
  // registry does. Errors name the registry.
  rt::Task<Result<Answer>> Get(std::string what, net::Headers headers);
  // A whole body, of at most so many bytes.
  rt::Task<Result<std::string>> ReadBody(net::HttpStream* stream, size_t bytes_max);
  // The next bytes of a body; Unavailable if none come in time.
  rt::Task<Result<std::string>> ReadSome(net::HttpStream* stream);

 private:
  rt::Task<Result<Answer>> Open(std::string url, net::Headers headers);
  rt::Task<Result<Answer>> Follow(std::string url, net::Headers headers);
  // What the registry wants to hear, from its refusal.
  rt::Task<Status> Authenticate(Challenge challenge);
  rt::Task<Status> FetchToken(Challenge challenge);
  Status Refusal(int status, std::string_view what) const;

  rt::AsioLoop& loop_;
  const RegistryOptions& options_;
  const Reference reference_;
  const Credentials credentials_;
  std::string authorization_;  // header for the registry; "" for none yet
};

}  // namespace berth::image
