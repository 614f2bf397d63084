// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <csignal>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
// Debian's RocksDB is built without the sanitizer, which therefore sees its memory accesses
// (through memcpy and memcmp) but not the atomics that order them.
extern "C" const char* __tsan_default_suppressions() { return "race:librocksdb.so\n"; }
#endif
#endif

int main(int argc, char** argv) {
  std::signal(SIGPIPE,
              SIG_IGN);  // as every berth process does: a closed peer is an error, not a death
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
