// SPDX-License-Identifier: Apache-2.0
#include "base/large_memory.h"

#include <sys/mman.h>

namespace berth {

void* AllocateLarge(size_t bytes) {
  const size_t whole = (bytes + kLargePage - 1) / kLargePage * kLargePage;
  void* memory = ::operator new(whole, std::align_val_t{kLargePage});
  // Only advice: a system without such pages gives ordinary ones.
  (void)::madvise(memory, whole, MADV_HUGEPAGE);
  return memory;
}

void FreeLarge(void* memory) { ::operator delete(memory, std::align_val_t{kLargePage}); }

}  // namespace berth
