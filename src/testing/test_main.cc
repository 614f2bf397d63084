// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <csignal>

int main(int argc, char** argv) {
  std::signal(SIGPIPE,
              SIG_IGN);  // as every berth process does: a closed peer is an error, not a death
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
