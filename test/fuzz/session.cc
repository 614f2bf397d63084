// SPDX-License-Identifier: Apache-2.0
// What a host may say to a gateway, on a simulated network with an API server behind it. An input
// is messages behind their length (two bytes); they are said by a host that was welcomed, each
// beside what is always said before. An honest host beside it must not notice.
#include <cstdint>
#include <memory>
#include <string>

#include "base/check.h"
#include "gateway/gateway_world.h"
#include "test/fuzz/pieces.h"
#include "test/fuzz/targets.h"

namespace berth::fuzz {
namespace {

using gateway::GatewayWorld;
using gateway::TestHost;

constexpr size_t kMessagesMax = 16;
// Objects pile up in a world: now and then it is a new one.
constexpr int kRunsPerWorld = 500;

struct Stage {
  Stage() {
    world.Enrol("honest");
    world.Enrol("liar");
    honest = std::make_unique<TestHost>(world, "honest");
    liar = std::make_unique<TestHost>(world, "liar");
    CHECK(!honest->Join("good").empty());
  }
  GatewayWorld world;
  std::unique_ptr<TestHost> honest;
  std::unique_ptr<TestHost> liar;
  int runs = 0;
};

std::unique_ptr<Stage>& TheStage() {
  static std::unique_ptr<Stage> stage;
  return stage;
}

}  // namespace

void Session(std::string_view bytes) {
  auto& stage = TheStage();
  if (!stage || ++stage->runs > kRunsPerWorld) {
    stage.reset();
    stage = std::make_unique<Stage>();
  }
  const uint8_t choice = TakeByte(bytes);
  if ((choice & 1) != 0) {
    CHECK(stage->liar->Open().ok());
  } else if ((choice & 2) != 0) {
    CHECK(stage->liar->Connect());
  } else {
    (void)stage->liar->Join("bad");
  }
  for (size_t sent = 0; sent < kMessagesMax && bytes.size() >= 2; ++sent) {
    const size_t high = TakeByte(bytes);
    const size_t size = high * 256 + TakeByte(bytes);
    stage->liar->SendRaw(std::string(bytes.substr(0, size)));
    bytes.remove_prefix(std::min(size, bytes.size()));
  }
  stage->world.Pass(Duration::Millis(200));
  stage->liar->Leave();
  // Until the liar may begin another session.
  stage->world.Pass(Duration::Seconds(1));
  CHECK(!stage->honest->end().has_value()) << *stage->honest->end();
}

}  // namespace berth::fuzz
