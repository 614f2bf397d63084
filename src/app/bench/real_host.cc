// SPDX-License-Identifier: Apache-2.0
#include "app/bench/real_host.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "app/bench/packet_loss.h"
#include "base/strings.h"
#include "meta/json.h"
#include "meta/value.h"
#include "net/socket.h"
#include "pki/join_token.h"
#include "pki/private_file.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

constexpr Duration kLimit = Duration::Seconds(30);
constexpr Duration kPoll = Duration::Millis(20);
// Longer than any bench.
constexpr Duration kRelayedFor = Duration::Minutes(600);
// A server in a new folder has its first history.
constexpr uint64_t kIncarnation = 1;

std::string SecretJson(const pki::TokenSecret& secret) {
  meta::Value metadata = meta::Value::Object();
  metadata.Set("name", secret.name);
  meta::Value data = meta::Value::Object();
  for (const auto& [key, bytes] : secret.data) data.Set(key, Base64Encode(bytes));
  meta::Value out = meta::Value::Object();
  out.Set("apiVersion", "v1");
  out.Set("kind", "Secret");
  out.Set("metadata", std::move(metadata));
  out.Set("type", std::string(pki::kJoinTokenSecretType));
  out.Set("data", std::move(data));
  return meta::WriteJson(out);
}

rt::Task<Status> WaitForFile(rt::AsioLoop* loop, std::string path) {
  const Time end = loop->Now() + kLimit;
  std::error_code ignored;
  while (!std::filesystem::exists(path, ignored)) {
    if (loop->Now() > end) co_return Timeout(path + " did not appear");
    CO_TRY_STATUS(co_await rt::Sleep(kPoll));
  }
  co_return OkStatus();
}

rt::Task<Status> WaitForPool(BenchWorld* world, std::string name) {
  const Time end = world->loop().Now() + kLimit;
  while (world->loop().Now() < end) {
    const auto pool =
        co_await world->Get("/apis/compute.ironcore.dev/v1alpha1/machinepools/" + name);
    if (pool.status().Is(Reason::kCancelled)) co_return pool.status();
    if (pool.ok() && pool->find(R"("Ready")") != std::string::npos) co_return OkStatus();
    CO_TRY_STATUS(co_await rt::Sleep(kPoll));
  }
  co_return Timeout("the pool of a real poollet was not ready within " + FormatDuration(kLimit));
}

// What lets a host join, in a file.
rt::Task<Status> MakeToken(BenchWorld* world, std::string path) {
  CO_TRY(const pki::NewToken token,
         pki::MakeJoinToken(pki::SystemEntropy(),
                            world->server().authority_pem(),
                            kIncarnation,
                            {},
                            Duration::Minutes(5),
                            world->loop().WallNow()));
  CO_TRY_STATUS(
      co_await world->Post("/api/v1/namespaces/berth-system/secrets", SecretJson(token.secret)));
  co_return pki::WritePrivateFile(path, token.text);
}

std::vector<std::string> RuntimeWords(const std::string& socket, const std::string& name) {
  return {"runtime",
          "fake",
          "--socket",
          socket,
          "--name",
          name,
          "--cpu",
          std::to_string(kBenchMachinesPerHost),
          "--memory",
          std::to_string(kBenchMachinesPerHost) + "Gi",
          "--boot-time",
          "10ms",
          "--classes",
          std::string(kBenchClass) + ":1:1Gi"};
}

std::vector<std::string> PoolletWords(const std::string& server,
                                      const std::string& folder,
                                      const std::string& socket,
                                      const std::string& name) {
  return {"poollet",
          "--server",
          server,
          "--token-file",
          folder + "/token",
          "--data-dir",
          folder + "/data",
          "--name",
          name,
          "--machine-pool",
          name,
          "--machine-runtime",
          "unix:" + socket,
          "--log-level",
          "error"};
}

}  // namespace

rt::Task<Result<std::unique_ptr<RealHost>>> RealHost::Start(BenchWorld* world, std::string name) {
  CO_TRY(const int listener, net::ListenTcp("127.0.0.1", 0));
  std::unique_ptr<RealHost> host(new RealHost(*world, listener, std::move(name)));
  const Status started = co_await host->StartAll(world);
  if (!started.ok()) {
    (void)co_await host->Stop();
    co_return started;
  }
  co_return std::move(host);
}

RealHost::RealHost(BenchWorld& world, int listener, std::string name)
    : name_(std::move(name)),
      folder_(world.folder() + "/" + name_),
      socket_(folder_ + "/fake.sock"),
      relay_(world.loop(),
             listener,
             {.again_within = Duration()},
             {.open = metrics_.GetGauge("open", ""),
              .passed = metrics_.GetCounter("passed", ""),
              .refused = metrics_.GetCounter("refused", ""),
              .unreachable = metrics_.GetCounter("unreachable", "")}),
      server_(world.gateway()),
      client_(world.loop(), socket_) {
  relay_.SetTarget(
      {.name = "server", .addresses = {server_}, .until = world.loop().Now() + kRelayedFor});
}

rt::Task<Status> RealHost::StartAll(BenchWorld* world) {
  CO_TRY_STATUS(pki::EnsurePrivateFolder(folder_));
  CO_TRY_STATUS(co_await MakeToken(world, folder_ + "/token"));
  CO_TRY(ChildProcess runtime, ChildProcess::Start(RuntimeWords(socket_, name_)));
  runtime_.emplace(std::move(runtime));
  CO_TRY_STATUS(co_await WaitForFile(&world->loop(), socket_));
  CO_TRY(ChildProcess poollet,
         ChildProcess::Start(PoolletWords(relay_.address(), folder_, socket_, name_)));
  poollet_.emplace(std::move(poollet));
  co_return co_await WaitForPool(world, name_);
}

// At both ends of the relay: what either side sends is not acknowledged either.
Status RealHost::Lose() {
  TRY_STATUS(DropPacketsOf(relay_.address()));
  TRY_STATUS(DropPacketsOf(server_));
  poollet_->Pause();
  is_lost_ = true;
  return OkStatus();
}

rt::Task<Result<size_t>> RealHost::CountRunning() {
  const iri::ObjectFilter all;
  CO_TRY(const std::vector<iri::Machine> machines, co_await client_.machine().ListMachines(all));
  co_return static_cast<size_t>(std::ranges::count(
      machines, iri::MachineState::kRunning, [](const auto& one) { return one.status.state; }));
}

rt::Task<Status> RealHost::Stop() {
  Status stopped = co_await relay_.Stop();
  // One that is paused would never end by itself.
  if (is_lost_) poollet_->Kill();
  if (poollet_ && !is_lost_ && stopped.ok()) stopped = poollet_->Stop();
  if (runtime_ && stopped.ok()) stopped = runtime_->Stop();
  co_return stopped;
}

}  // namespace berth::app
