// SPDX-License-Identifier: Apache-2.0
#include "app/bench/server_group.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/strings.h"
#include "meta/json.h"
#include "meta/value.h"
#include "rt/deadline.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

constexpr Duration kPoll = Duration::Millis(5);
constexpr Duration kLimit = Duration::Minutes(1);
constexpr Duration kRequestLimit = Duration::Seconds(2);
constexpr std::string_view kLeader =
    "/apis/coordination.k8s.io/v1/namespaces/berth-system/leases/leader";

}  // namespace

std::string_view LossName(Loss loss) {
  switch (loss) {
    case Loss::kKilled: return "killed";
    case Loss::kPaused: return "paused";
    case Loss::kCutOff: return "cut_off";
  }
  return "";
}

rt::Task<int> SendTo(std::shared_ptr<net::HttpClient> client,
                     std::string target,
                     std::string body,
                     std::string* answer) {
  if (client == nullptr) co_return 0;
  net::HttpClientRequest request;
  request.target = std::move(target);
  if (!body.empty()) {
    request.method = "POST";
    request.headers.Set("Content-Type", "application/json");
    request.body.emplace_back(std::move(body));
  }
  auto sent = co_await rt::WithDeadline(client->Send(std::move(request)), kRequestLimit);
  if (!sent.ok()) co_return 0;
  if (answer != nullptr) *answer = std::move(sent->body);
  co_return sent->status;
}

ServerGroup::ServerGroup(rt::AsioLoop& loop, Options options)
    : loop_(loop),
      options_(std::move(options)),
      etcd_({.members = options_.members, .dir = options_.dir}) {
  CHECK(options_.servers > 1) << "a group of " << options_.servers;
}

rt::Task<Status> ServerGroup::Start() {
  for (int i = 0; i < options_.servers; ++i) {
    Seat seat;
    seat.folder = options_.dir + "/server-" + std::to_string(i);
    CO_TRY(seat.gateway_port, FindFreePort());
    seat.links = std::make_unique<store::ClientLinks>(loop_, etcd_.endpoints());
    seats_.push_back(std::move(seat));
  }
  for (Seat& seat : seats_) CO_TRY_STATUS(co_await StartServer(&seat));
  co_return OkStatus();
}

void ServerGroup::DropClients() {
  for (Seat& seat : seats_) seat.client.reset();
}

rt::Task<Status> ServerGroup::StartServer(Seat* seat) {
  // All have the keys of the first.
  std::vector<std::string> more = {"--store",
                                   "etcd://" + Join(seat->links->endpoints(), ","),
                                   "--encryption-keys",
                                   options_.dir + "/keys/encryption-keys"};
  CO_TRY(seat->process,
         co_await ServerProcess::Start(loop_, seat->folder, seat->gateway_port, std::move(more)));
  CO_TRY(seat->client, seat->process->NewClient(options_.connections));
  co_return OkStatus();
}

std::string ServerGroup::gateways() const {
  std::vector<std::string> gateways;
  for (const Seat& seat : seats_) {
    gateways.push_back("127.0.0.1:" + std::to_string(seat.gateway_port));
  }
  return Join(gateways, ",");
}

rt::Task<Seat*> ServerGroup::FindLeader(Seat* asked) {
  std::string body;
  const int status = co_await SendTo(asked->client, std::string(kLeader), "", &body);
  if (status != 200) co_return nullptr;
  const auto lease = meta::ParseJson(body);
  if (!lease.ok() || lease->GetString({"spec", "holderIdentity"}).empty()) co_return nullptr;
  const std::string_view url = lease->GetString({"metadata", "annotations", "berth.dev/url"});
  const auto found = std::ranges::find_if(seats_, [url](const Seat& seat) {
    return seat.process != nullptr && seat.process->url() == url;
  });
  co_return found == seats_.end() ? nullptr : &*found;
}

rt::Task<Result<Seat*>> ServerGroup::WaitForLeader() {
  const Time end = loop_.Now() + kLimit;
  while (loop_.Now() < end) {
    for (Seat& seat : seats_) {
      Seat* leader = co_await FindLeader(&seat);
      if (leader != nullptr) co_return leader;
    }
    CO_TRY_STATUS(co_await rt::Sleep(kPoll));
  }
  co_return Timeout("nobody leads");
}

const Seat& ServerGroup::Beside(const Seat& leader) const {
  const Seat* beside = nullptr;
  for (const Seat& seat : seats_) {
    if (&seat == &leader) continue;
    if (beside == nullptr || beside == lost_) beside = &seat;
  }
  return *beside;
}

void ServerGroup::Lose(Seat& seat, Loss loss) {
  lost_ = &seat;
  switch (loss) {
    case Loss::kKilled:
      seat.client.reset();
      seat.process->Kill();
      return;
    case Loss::kPaused:
      seat.client.reset();
      seat.process->Pause();
      return;
    case Loss::kCutOff: seat.links->Cut(); return;
  }
}

rt::Task<Status> ServerGroup::Return(Seat* seat, Loss loss) {
  switch (loss) {
    case Loss::kKilled: CO_TRY_STATUS(co_await StartServer(seat)); break;
    case Loss::kPaused: {
      seat->process->Resume();
      CO_TRY(seat->client, seat->process->NewClient(options_.connections));
      break;
    }
    case Loss::kCutOff: seat->links->Heal(); break;
  }
  co_return co_await WaitForReady(seat);
}

rt::Task<Status> ServerGroup::WaitForReady(Seat* seat) {
  const Time end = loop_.Now() + kLimit;
  while (loop_.Now() < end) {
    if (co_await SendTo(seat->client, "/readyz", "", nullptr) == 200) co_return OkStatus();
    CO_TRY_STATUS(co_await rt::Sleep(kPoll));
  }
  co_return Timeout("a server was not ready within " + FormatDuration(kLimit));
}

}  // namespace berth::app
