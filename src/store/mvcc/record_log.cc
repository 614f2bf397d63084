// SPDX-License-Identifier: Apache-2.0
#include "store/mvcc/record_log.h"

namespace berth::store {

size_t LogWrite::bytes() const {
  size_t sum = sizeof(LogWrite) + erased.size() * sizeof(Position);
  for (const Record& record : records) {
    sum += sizeof(Record) + record.key.size() + record.value.size();
  }
  return sum;
}

}  // namespace berth::store
