// SPDX-License-Identifier: Apache-2.0
// Defends: the brake of R3_4 can be seen, and is released by exactly what the server waits for.
#include <gtest/gtest.h>

#include <string>

#include "cli/commands/fake_run.h"

namespace berth::cli {
namespace {

const std::string kStatus = "/api/v1/namespaces/berth-system/configmaps/cluster-status";

class PoolBrakeTest : public CommandTest {
 protected:
  void Serve(const std::string& lost) {
    server().On("GET " + kStatus,
                R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cluster-status"},)"
                R"("data":{"massLoss":")" +
                    lost + R"("}})");
    server().On("PATCH " + kStatus + "?fieldManager=berth", "{}");
  }
};

TEST_F(PoolBrakeTest, SaysThatItIsOff) {
  Serve("");
  EXPECT_NE(Run({"pool", "brake"}).out.find("the brake is off"), std::string::npos);
}

TEST_F(PoolBrakeTest, SaysThatItIsOn) {
  Serve("7 of 12 pools fell silent");
  const auto on = Run({"pool", "brake"});
  EXPECT_NE(on.out.find("the brake is on: 7 of 12 pools fell silent"), std::string::npos);
  EXPECT_NE(on.out.find("--release"), std::string::npos);
}

TEST_F(PoolBrakeTest, R3_4_ReleasesItByTheServersOwnText) {
  Serve("7 of 12 pools fell silent");
  const auto released = Run({"pool", "brake", "--release", "--yes"});
  EXPECT_EQ(released.code, 0) << released.err;
  EXPECT_EQ(server().Last("PATCH " + kStatus).body,
            R"({"data":{"override":"7 of 12 pools fell silent"}})");
}

}  // namespace
}  // namespace berth::cli
