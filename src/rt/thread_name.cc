// SPDX-License-Identifier: Apache-2.0
#include "rt/thread_name.h"

#include <pthread.h>

#include <string>

namespace berth::rt {

void SetThreadName(std::string_view name) {
  constexpr size_t kKernelMax = 15;
  const std::string shown(name.substr(0, kKernelMax));
  pthread_setname_np(pthread_self(), shown.c_str());
}

}  // namespace berth::rt
