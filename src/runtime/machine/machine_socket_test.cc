// SPDX-License-Identifier: Apache-2.0
// Defends: what a machine runtime says of a call is what whoever asks over its socket reads.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "iri/grpc/client.h"
#include "iri/grpc/server.h"
#include "net/grpc_status.h"
#include "rt/asio/asio_loop.h"
#include "runtime/machine/machine_world.h"

namespace berth::runtime {
namespace {

// The runtime has its loop, and whoever asks has another, as between two processes.
class Served {
 public:
  explicit Served(MachineWorld& world) : world_(world) {
    net::InitGrpcProcess();
    world_.OnLoop(
        [this] { server_ = *iri::RuntimeServer::Start(world_.loop(), path(), world_.runtimes()); });
    client_ = std::make_unique<iri::RuntimeClient>(loop_, path());
  }
  ~Served() {
    client_.reset();
    CHECK(world_.Run(server_->Stop(Duration())).ok());
    world_.OnLoop([this] { server_.reset(); });
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  Status Detach(const std::string& id, const std::string& volume) {
    return rt::RunTask(loop_, client_->machine().DetachVolume(id, volume));
  }

 private:
  std::string path() const { return world_.root + "/iri.sock"; }

  MachineWorld& world_;
  rt::AsioLoop loop_;
  std::unique_ptr<iri::RuntimeServer> server_;
  std::unique_ptr<iri::RuntimeClient> client_;
};

TEST(MachineSocket, AGuestThatDoesNotLetGoIsNamedToWhoeverAsked) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  ASSERT_EQ(world.Await(world.host().AttachVolume(id, world.Volume("data", "odb"))), OkStatus());
  Served served(world);
  world.OnLoop([&] { world.hypervisor.lets_go = false; });
  const Status refused = served.Detach(id, "data");
  EXPECT_EQ(refused.reason(), Reason::kConflict) << refused;
  EXPECT_EQ(refused.message(), "volume \"data\": the guest does not let go of vdb");
  world.OnLoop([&] { world.hypervisor.lets_go = true; });
  EXPECT_EQ(served.Detach(id, "data"), OkStatus());
}

// The call as a whole, from when it is sent.
TEST(MachineSocket, ARefusalComesBeforeTheCallerGivesUp) {
  EXPECT_LT(MachineHost::Options().detach_limit + kDetachPause,
            iri::RuntimeClientOptions().change_limit);
}

}  // namespace
}  // namespace berth::runtime
