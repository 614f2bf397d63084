// SPDX-License-Identifier: Apache-2.0
// Servers and hosts of neighbouring versions agree; strangers learn what the other one speaks.
#include "gateway/identity/protocol_version.h"

#include <gtest/gtest.h>

namespace berth::gateway {
namespace {

TEST(ProtocolVersion, R5_8_TheHighestCommonVersionIsSpoken) {
  struct Case {
    ProtocolVersions host;
    ProtocolVersions server;
    uint32_t version;
  };
  constexpr Case kCases[] = {
      {{1, 1}, {1, 1}, 1},
      {{1, 1}, {1, 2}, 1},  // the server is newer
      {{1, 2}, {1, 1}, 1},  // the host is newer
      {{2, 2}, {1, 2}, 2},
      {{1, 2}, {2, 2}, 2},
      {{1, 2}, {2, 3}, 2},
      {{2, 3}, {1, 2}, 2},
      {{1, 9}, {3, 5}, 5},
  };
  for (const auto& [host, server, version] : kCases) {
    const auto chosen = ChooseVersion(host, server);
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_EQ(*chosen, version) << host.max << " and " << server.max;
  }
}

TEST(ProtocolVersion, R5_8_WithoutACommonVersionBothRangesAreNamed) {
  const auto older = ChooseVersion({.min = 1, .max = 2}, {.min = 3, .max = 4});
  EXPECT_TRUE(older.status().Is(Reason::kBadRequest));
  EXPECT_EQ(older.status().message(), "protocol versions 1 to 2 are not spoken here: 3 to 4 are");
  const auto newer = ChooseVersion({.min = 3, .max = 4}, {.min = 1, .max = 2});
  EXPECT_EQ(newer.status().message(), "protocol versions 3 to 4 are not spoken here: 1 to 2 are");
  EXPECT_FALSE(ChooseVersion({.min = 2, .max = 1}, {.min = 1, .max = 2}).ok());
  EXPECT_FALSE(ChooseVersion({.min = 0, .max = 0}, {.min = 1, .max = 2}).ok());
}

}  // namespace
}  // namespace berth::gateway
