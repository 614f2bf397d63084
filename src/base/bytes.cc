// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <cstring>
#include <limits>
#include <new>

#include "base/check.h"

namespace berth {

Bytes::Block* Bytes::Allocate(size_t size) {
  CHECK(size <= std::numeric_limits<uint32_t>::max()) << size;
  void* memory = ::operator new(sizeof(Block) + size);
  return new (memory) Block{.refs = 1, .size = static_cast<uint32_t>(size)};
}

Bytes::Bytes(std::string_view text) : Bytes(Concat({text})) {}

Bytes Bytes::Concat(std::initializer_list<std::string_view> parts) {
  size_t size = 0;
  for (const auto part : parts) size += part.size();
  Bytes bytes;
  if (size == 0) return bytes;
  bytes.block_ = Allocate(size);
  char* at = reinterpret_cast<char*>(bytes.block_ + 1);
  for (const auto part : parts) {
    if (part.empty()) continue;
    std::memcpy(at, part.data(), part.size());
    at += part.size();
  }
  return bytes;
}

std::string_view Bytes::view() const {
  if (block_ == nullptr) return {};
  return {reinterpret_cast<const char*>(block_ + 1), block_->size};
}

void Bytes::Unref() {
  if (block_ == nullptr || block_->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  block_->~Block();
  ::operator delete(block_);
}

}  // namespace berth
