// SPDX-License-Identifier: Apache-2.0
// LargeVector is a std::vector whose memory, once it is large, comes in pages of 2 MiB if the
// system has them. Whoever jumps about in many megabytes otherwise waits for the address of nearly
// every access as long as for the access itself.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace berth {

inline constexpr size_t kLargePage = size_t{2} << 20;

// Memory of at least `bytes`, a multiple of the large page, which begins at one. Never null.
void* AllocateLarge(size_t bytes);
void FreeLarge(void* memory);

template <class T>
struct LargeAllocator {
  using value_type = T;
  LargeAllocator() = default;
  template <class U>
  explicit(false) LargeAllocator(const LargeAllocator<U>& /*other*/) {}

  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    if (bytes >= kLargePage) return static_cast<T*>(AllocateLarge(bytes));
    return static_cast<T*>(::operator new(bytes, std::align_val_t{alignof(T)}));
  }
  void deallocate(T* memory, size_t count) {
    if (count * sizeof(T) >= kLargePage) return FreeLarge(memory);
    ::operator delete(memory, std::align_val_t{alignof(T)});
  }
  bool operator==(const LargeAllocator& /*other*/) const { return true; }
};

template <class T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace berth
