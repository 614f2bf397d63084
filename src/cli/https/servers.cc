// SPDX-License-Identifier: Apache-2.0
#include "cli/https/servers.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"

namespace berth::cli {
namespace {

constexpr std::string_view kApplyPrefix = "application/apply-patch";

}  // namespace

bool MayRepeat(const Request& request) {
  if (request.method == "GET" || request.method == "HEAD" || request.method == "OPTIONS")
    return true;
  if (std::ranges::find(request.query, std::pair<std::string, std::string>("dryRun", "All")) !=
      request.query.end()) {
    return true;
  }
  return request.method == "PATCH" && request.headers.Get("Content-Type").starts_with(kApplyPrefix);
}

Result<std::unique_ptr<Servers>> Servers::New(rt::AsioLoop& loop,
                                              const Connection& connection,
                                              ServerTimes times) {
  std::unique_ptr<Servers> out(new Servers(loop, times));
  std::vector<std::string> urls = {connection.server};
  urls.insert(urls.end(), connection.others.begin(), connection.others.end());
  Connection one = connection;
  for (const std::string& url : urls) {
    one.server = url;
    auto server = std::make_unique<Server>();
    server->url = Printable(url);
    TRY(server->requests, SignedRequests::For(one));
    TRY(server->client, NewHttpClient(loop, one));
    out->order_.push_back(std::move(server));
  }
  return out;
}

rt::Task<Result<Servers::Server*>> Servers::Reach() {
  if (size() == 1) co_return order_.front().get();
  rt::TaskScope dials(loop_);
  rt::Channel<Dialled> ended(size());
  Result<Server*> found = co_await DialAll(&dials, &ended);
  CO_TRY_STATUS(co_await dials.Close());
  if (!found.ok()) co_return found;
  const auto at = std::ranges::find(order_, *found, &std::unique_ptr<Server>::get);
  std::rotate(order_.begin(), at, at + 1);
  co_return found;
}

// One after the other, each with a head start before the next; the first that stands is it.
rt::Task<Result<Servers::Server*>> Servers::DialAll(rt::TaskScope* dials,
                                                    rt::Channel<Dialled>* ended) {
  size_t begun = 0;
  std::string reasons;
  for (size_t failed = 0; failed < size();) {
    if (begun < size()) dials->Spawn("cli.dial", Dial(order_[begun++].get(), ended));
    // The last one's limit is the one of its connection.
    const Duration patience = begun < size() ? times_.head_start : Duration::Minutes(1);
    Result<Dialled> next = co_await rt::WithDeadline(ended->Receive(), patience);
    if (next.status().Is(Reason::kTimeout)) continue;
    if (!next.ok()) co_return next.status();
    if (next->status.ok()) co_return next->server;
    ++failed;
    reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", next->status.message());
  }
  co_return Unavailable(fmt::format("none of {} servers can be reached: {}", size(), reasons));
}

rt::Task<Status> Servers::Dial(Server* server, rt::Channel<Dialled>* ended) {
  Status status = co_await server->client->Reach();
  if (status.Is(Reason::kCancelled)) co_return status;
  Dialled dialled{.server = server, .status = std::move(status)};
  co_return co_await ended->Send(std::move(dialled));
}

void Servers::PassOver(const Server* server) {
  const auto at = std::ranges::find(order_, server, &std::unique_ptr<Server>::get);
  if (at != order_.end()) std::rotate(at, at + 1, order_.end());
}

// Whatever it answers: a server that answers is there. Its last words may be on the connection that
// is waited for, so this goes over another one.
rt::Task<Status> Servers::LooksAlive(Server* server) {
  Request request{.path = "/livez"};
  const net::SendOptions options{.deadline = times_.sign_of_life};
  const auto answer =
      co_await server->client->Send(server->requests.Make(std::move(request)), options);
  if (answer.ok() || answer.status().Is(Reason::kCancelled)) co_return answer.status();
  co_return Unavailable(fmt::format("{} does not answer any more", server->url));
}

}  // namespace berth::cli
