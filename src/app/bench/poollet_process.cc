// SPDX-License-Identifier: Apache-2.0
#include "app/bench/poollet_process.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "app/bench/child_process.h"
#include "app/process/start_pages.h"
#include "base/strings.h"
#include "meta/json.h"
#include "meta/value.h"
#include "pki/join_token.h"
#include "pki/private_file.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

constexpr char kName[] = "real";
constexpr Duration kLimit = Duration::Seconds(30);
constexpr Duration kPoll = Duration::Millis(20);
// Until it has let go of what only its start needed.
constexpr Duration kRest = kStartOver + Duration::Seconds(1);
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

rt::Task<Status> WaitForPool(BenchWorld* world) {
  const Time end = world->loop().Now() + kLimit;
  while (world->loop().Now() < end) {
    const auto pool = co_await world->Get("/apis/compute.ironcore.dev/v1alpha1/machinepools/" +
                                          std::string(kName));
    if (pool.status().Is(Reason::kCancelled)) co_return pool.status();
    if (pool.ok() && pool->find(R"("Ready")") != std::string::npos) co_return OkStatus();
    CO_TRY_STATUS(co_await rt::Sleep(kPoll));
  }
  co_return Timeout("the pool of a real poollet was not ready within " + FormatDuration(kLimit));
}

}  // namespace

rt::Task<Result<double>> MeasurePoolletRss(BenchWorld* world) {
  rt::AsioLoop& loop = world->loop();
  const std::string folder = world->folder() + "/poollet";
  const std::string token_file = folder + "/token";
  const std::string socket = folder + "/fake.sock";
  CO_TRY_STATUS(pki::EnsurePrivateFolder(folder));
  CO_TRY(const pki::NewToken token,
         pki::MakeJoinToken(pki::SystemEntropy(),
                            world->server().authority_pem(),
                            kIncarnation,
                            {},
                            Duration::Minutes(5),
                            loop.WallNow()));
  CO_TRY_STATUS(
      co_await world->Post("/api/v1/namespaces/berth-system/secrets", SecretJson(token.secret)));
  CO_TRY_STATUS(pki::WritePrivateFile(token_file, token.text));
  CO_TRY(ChildProcess runtime,
         ChildProcess::Start({"runtime", "fake", "--socket", socket, "--name", kName}));
  CO_TRY_STATUS(co_await WaitForFile(&loop, socket));
  CO_TRY(ChildProcess poollet,
         ChildProcess::Start({"poollet",
                              "--server",
                              world->gateway(),
                              "--token-file",
                              token_file,
                              "--data-dir",
                              folder + "/data",
                              "--name",
                              kName,
                              "--machine-pool",
                              kName,
                              "--machine-runtime",
                              "unix:" + socket,
                              "--log-level",
                              "error"}));
  CO_TRY_STATUS(co_await WaitForPool(world));
  CO_TRY_STATUS(co_await rt::Sleep(kRest));
  CO_TRY(const double rss, poollet.RssMb());
  CO_TRY_STATUS(poollet.Stop());
  CO_TRY_STATUS(runtime.Stop());
  co_return rss;
}

}  // namespace berth::app
