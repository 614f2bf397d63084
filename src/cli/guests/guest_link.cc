// SPDX-License-Identifier: Apache-2.0
#include "cli/guests/guest_link.h"

#include "base/strings.h"
#include "cli/api/resource.h"
#include "cli/failure.h"
#include "cli/objects/targets.h"
#include "meta/json.h"

namespace berth::cli {
namespace {

constexpr Duration kOpenDeadline = Duration::Seconds(30);

// An answer other than 101 has a metav1.Status for a body, of which the message is worth reading.
Status Refusal(const Status& status) {
  const std::string_view text = status.message();
  const size_t body = text.find('{');
  if (body == std::string_view::npos) return status;
  const auto parsed = meta::ParseJson(text.substr(body));
  if (!parsed.ok() || parsed->GetString({"message"}).empty()) return status;
  return {status.reason(), Printable(parsed->GetString({"message"}))};
}

}  // namespace

Result<std::string> FindMachinePath(Session& session, const std::string& word, std::string& name) {
  TRY(Discovery * discovery, session.GetDiscovery());
  TRY(const auto machines, FindMachines(*discovery, {word}));
  const Target& target = machines.front();
  TRY(const std::string namespace_, session.Namespace());
  name = target.name;
  return PathOf(target.resource, namespace_, target.name);
}

Result<std::unique_ptr<GuestLink>> GuestLink::Make(Session& session, const std::string& machine) {
  std::unique_ptr<GuestLink> link(new GuestLink());
  TRY(link->path_, FindMachinePath(session, machine, link->machine_));
  TRY(const Connection connection, session.GetConnection());
  TRY(link->servers_, Servers::New(link->loop_, connection));
  return link;
}

rt::Task<Result<std::unique_ptr<net::WebSocket>>> GuestLink::Open(std::string subresource,
                                                                  Query query) {
  Request request;
  request.path = path_ + "/" + subresource;
  request.query = std::move(query);
  request.headers.Set("Sec-WebSocket-Protocol", std::string(kChannelProtocols));
  CO_TRY(Servers::Server * server, co_await servers_->Reach());
  auto socket = co_await servers_->While(
      server,
      server->client->OpenWebSocket(server->requests.Make(std::move(request)), kOpenDeadline));
  if (!socket.ok()) {
    // Who asks again, asks another one.
    if (socket.status().Is(Reason::kUnavailable)) servers_->PassOver(server);
    co_return Refusal(socket.status());
  }
  co_return socket;
}

}  // namespace berth::cli
