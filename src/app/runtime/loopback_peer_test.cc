// SPDX-License-Identifier: Apache-2.0
// Defends that a connection over the loopback is known by its user, and by nothing else.
#include "app/runtime/loopback_peer.h"

#include <gtest/gtest.h>

namespace berth::app {
namespace {

constexpr std::string_view kHead =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n";

TEST(LoopbackPeer, TheOwnerIsThatOfTheOtherEnd) {
  const std::string table = std::string(kHead) +
                            "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 "
                            "00000000     0        0 1\n"
                            "   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 "
                            "00000000     0        0 2\n"
                            "   2: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 "
                            "00000000  1000        0 3\n";
  EXPECT_EQ(LoopbackOwner(table, 0xc350, 0x1f90), 1000U);
  EXPECT_EQ(LoopbackOwner(table, 0xc351, 0x1f90), std::nullopt);
}

TEST(LoopbackPeer, WhoeverHangsUpOrComesFromElsewhereHasNoOwner) {
  // The kernel says 0 of a socket that nobody has any more: that is not root.
  const std::string table =
      std::string(kHead) +
      "   0: 0100007F:C350 0100007F:1F90 04 00000000:00000000 00:00000000 00000000     0        0 "
      "0\n"
      "   1: 0200007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 "
      "3\n"
      "   2: 0100007F:C350 0100007F:1F91 01 00000000:00000000 00:00000000 00000000     0        0 "
      "3\n"
      "   3: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  -1 0 3\n"
      "   4: 0100007F:C350 0100007F:1F90 01\n";
  EXPECT_EQ(LoopbackOwner(table, 0xc350, 0x1f90), std::nullopt);
  EXPECT_EQ(LoopbackOwner("", 1, 2), std::nullopt);
}

}  // namespace
}  // namespace berth::app
