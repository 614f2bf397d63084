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
#include "pki/join_token.h"
#include "pki/private_file.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

constexpr Duration kLimit = Duration::Seconds(30);
constexpr Duration kPoll = Duration::Millis(20);
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

std::vector<std::string> PoolletWords(const BenchWorld& world,
                                      const std::string& folder,
                                      const std::string& socket,
                                      const std::string& name) {
  return {"poollet",
          "--server",
          world.gateway(),
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
  const std::string folder = world->folder() + "/" + name;
  const std::string socket = folder + "/fake.sock";
  CO_TRY_STATUS(pki::EnsurePrivateFolder(folder));
  CO_TRY_STATUS(co_await MakeToken(world, folder + "/token"));
  CO_TRY(ChildProcess runtime, ChildProcess::Start(RuntimeWords(socket, name)));
  CO_TRY_STATUS(co_await WaitForFile(&world->loop(), socket));
  CO_TRY(ChildProcess poollet, ChildProcess::Start(PoolletWords(*world, folder, socket, name)));
  CO_TRY_STATUS(co_await WaitForPool(world, name));
  co_return std::unique_ptr<RealHost>(
      new RealHost(world->loop(), socket, std::move(runtime), std::move(poollet)));
}

Status RealHost::Lose() {
  TRY_STATUS(DropAllPacketsOf(poollet_.pid()));
  poollet_.Pause();
  return OkStatus();
}

rt::Task<Result<size_t>> RealHost::CountRunning() {
  const iri::ObjectFilter all;
  CO_TRY(const std::vector<iri::Machine> machines, co_await client_.machine().ListMachines(all));
  co_return static_cast<size_t>(std::ranges::count(
      machines, iri::MachineState::kRunning, [](const auto& one) { return one.status.state; }));
}

Status RealHost::Stop() {
  TRY_STATUS(poollet_.Stop());
  return runtime_.Stop();
}

}  // namespace berth::app
