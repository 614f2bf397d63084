// SPDX-License-Identifier: Apache-2.0
#include "net/h2/h2_frame_memory.h"

#include <malloc.h>
#include <nghttp2/nghttp2.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <unordered_set>

#include "base/check.h"
#include "base/mutex.h"
#include "base/thread_annotations.h"

namespace berth::net {
namespace {

class FrameMemory {
 public:
  static nghttp2_mem* Table() {
    static nghttp2_mem table = {.mem_user_data = nullptr,
                                .malloc = &Allocate,
                                .free = &Free,
                                .calloc = &AllocateZeroed,
                                .realloc = &Reallocate};
    return &table;
  }

 private:
  static constexpr size_t kMappedMin = 16 * 1024;
  // In front of a mapped block. Others have none: nghttp2 asks for powers of two, which would need
  // the next larger class of the allocator.
  struct alignas(64) Head {
    size_t bytes = 0;
  };
  static constexpr uintptr_t kPage = 4'096;

  // The mapped blocks, of all threads.
  struct Mapped {
    Mutex mutex;
    std::unordered_set<const void*> blocks GUARDED_BY(mutex);
  };
  static Mapped& AllMapped() {
    static auto* all = new Mapped();
    return *all;
  }
  static bool IsMapped(const void* memory) {
    if (reinterpret_cast<uintptr_t>(memory) % kPage != sizeof(Head)) return false;
    Mapped& all = AllMapped();
    const MutexLock lock(all.mutex);
    return all.blocks.contains(memory);
  }
  static size_t SizeOf(void* memory) {
    return IsMapped(memory) ? (static_cast<Head*>(memory) - 1)->bytes
                            : ::malloc_usable_size(memory);
  }

  static void* Allocate(size_t bytes, void*) {
    if (bytes < kMappedMin) return std::malloc(bytes);
    void* block = ::mmap(
        nullptr, sizeof(Head) + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return nullptr;
    void* memory = new (block) Head{.bytes = bytes} + 1;
    Mapped& all = AllMapped();
    const MutexLock lock(all.mutex);
    all.blocks.insert(memory);
    return memory;
  }
  static void Free(void* memory, void*) {
    if (memory == nullptr) return;
    if (!IsMapped(memory)) return std::free(memory);
    Head* head = static_cast<Head*>(memory) - 1;
    {
      Mapped& all = AllMapped();
      const MutexLock lock(all.mutex);
      all.blocks.erase(memory);
    }
    ::munmap(head, sizeof(Head) + head->bytes);
  }
  static void* AllocateZeroed(size_t count, size_t bytes, void*) {
    if (bytes != 0 && count > SIZE_MAX / 2 / bytes) return nullptr;
    return count * bytes < kMappedMin ? std::calloc(count, bytes)
                                      : Allocate(count * bytes, nullptr);
  }
  static void* Reallocate(void* memory, size_t bytes, void*) {
    if (memory == nullptr) return Allocate(bytes, nullptr);
    if (bytes < kMappedMin && !IsMapped(memory)) return std::realloc(memory, bytes);
    void* fresh = Allocate(bytes, nullptr);
    if (fresh == nullptr) return nullptr;
    std::memcpy(fresh, memory, std::min(bytes, SizeOf(memory)));
    Free(memory, nullptr);
    return fresh;
  }
};

}  // namespace

nghttp2_session* NewH2Session(H2Connection::Side side,
                              const nghttp2_session_callbacks& callbacks,
                              const nghttp2_option& options,
                              void* user) {
  const auto create = side == H2Connection::Side::kServer ? nghttp2_session_server_new3
                                                          : nghttp2_session_client_new3;
  nghttp2_session* session = nullptr;
  CHECK(create(&session, &callbacks, user, &options, FrameMemory::Table()) == 0) << "out of memory";
  return session;
}

}  // namespace berth::net
