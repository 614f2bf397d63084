// SPDX-License-Identifier: Apache-2.0
// PassOn brings requests about hosts to the server that has them, from one that does not lead. They
// are sent anew, by this server as itself, in the name of who asked (ADR 0032): what the client
// sent to say who it is stays here, and the leader checks again what that user may do.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "apiserver/http/call.h"
#include "apiserver/http/hosts.h"
#include "apiserver/identity.h"
#include "base/result.h"
#include "net/http.h"
#include "net/http_client.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::apiserver {

// A request that has it is not passed on again: the servers do not agree on who leads. A client
// that sends it has its requests answered here, or not at all.
inline constexpr std::string_view kPassedOnHeader = "Berth-Passed-On";

// The headers that make another server take a request for this user's. Forbidden for a name that a
// header cannot carry as it is.
Result<net::Headers> InTheNameOf(const Identity& identity);

class PassOn {
 public:
  // A client of the server at `url`, which shows it that this is a server, too.
  using Connect = std::function<Result<std::unique_ptr<net::HttpClient>>(const std::string& url)>;
  struct Deps {
    rt::Loop& loop;
    const Hosts& hosts;
    Connect connect;  // empty: nothing is passed on
  };
  explicit PassOn(Deps deps) : deps_(std::move(deps)) {}

  // Whether another server has to answer: the request is about hosts, which are there.
  bool Takes(const Call& call) const;
  // Unavailable, with the reason, if the leader cannot be asked; TooManyRequests if too much is
  // being passed on.
  rt::Task<Result<net::HttpResponse>> Answer(CallPtr call);
  // From the next request on: what this server shows, or whom it trusts, has changed.
  void ConnectAnew() { client_.reset(); }

 private:
  struct Talk;
  using TalkPtr = std::shared_ptr<Talk>;

  Result<TalkPtr> Begin();
  rt::Task<Result<net::HttpResponse>> Send(CallPtr call, TalkPtr talk);
  rt::Task<Result<net::HttpResponse>> Stream(CallPtr call, TalkPtr talk);
  rt::Task<Result<net::HttpResponse>> Upgrade(CallPtr call, TalkPtr talk);

  const Deps deps_;
  std::shared_ptr<net::HttpClient> client_;
  std::string url_;  // of the client
  Time connected_;   // when the client was made
  std::shared_ptr<size_t> passing_ = std::make_shared<size_t>(0);
};

}  // namespace berth::apiserver
