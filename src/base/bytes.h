// SPDX-License-Identifier: Apache-2.0
// Bytes is an immutable, shared run of bytes in one allocation. Copying it copies a pointer, so
// that a stored object, the watch cache and every watcher's queue hold the same memory. Safe to
// share between threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace berth {

class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(std::string_view text);
  // One allocation for several parts, so that a frame is assembled without an intermediate string.
  static Bytes Concat(std::initializer_list<std::string_view> parts);

  Bytes(const Bytes& other) : block_(other.block_) { Ref(); }
  Bytes(Bytes&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Bytes& operator=(Bytes other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Bytes() { Unref(); }

  std::string_view view() const;
  size_t size() const { return view().size(); }
  bool empty() const { return size() == 0; }
  bool operator==(const Bytes& other) const {
    return block_ == other.block_ || view() == other.view();
  }

 private:
  struct Block {
    std::atomic<uint32_t> refs;
    uint32_t size;  // an object is at most 1 MiB, a frame a few; 4 GiB is a CHECK
  };
  static Block* Allocate(size_t size);
  void Ref() const {
    if (block_ != nullptr) block_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  void Unref();

  Block* block_ = nullptr;  // the bytes follow the block
};

}  // namespace berth
