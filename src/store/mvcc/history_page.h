// SPDX-License-Identifier: Apache-2.0
// Builds one page of history out of records that come in log order; the same for every log.
#pragma once

#include <optional>
#include <utility>

#include "store/key_range.h"
#include "store/mvcc/record_log.h"

namespace berth::store {

class HistoryPageBuilder {
 public:
  explicit HistoryPageBuilder(const HistoryRequest& request) : request_(request) {
    page_.through = Revision{request.from.value - 1};
  }

  // False if the page ends before the transaction of this position: stop reading.
  bool Accepts(Position at) const {
    if (at.revision > request_.through) return false;
    return at.revision == page_.through || !is_full();
  }
  // REQUIRES: Accepts(record.at). `previous` reads the record that the change replaced.
  template <class PreviousFn>
  Status Add(Record record, PreviousFn previous) {
    page_.through = record.at.revision;
    ++scanned_;
    if (!InRange(record.key, request_.start, request_.end)) return OkStatus();
    Event event;
    event.type = record.type == Op::Type::kPut ? Event::Type::kPut : Event::Type::kDelete;
    if (record.previous.revision.value != 0) {
      TRY(std::optional<Record> before, previous(record.previous));
      if (before.has_value()) event.previous = ToKeyValue(*before);
    }
    bytes_ += record.value.size() + (event.previous ? event.previous->value.size() : 0);
    event.kv = ToKeyValue(record);
    page_.events.push_back(std::move(event));
    return OkStatus();
  }
  // The log had no more to give: everything up to request.through was looked at.
  void ReachedEnd() { page_.through = request_.through; }
  HistoryPage Take() { return std::move(page_); }

 private:
  bool is_full() const {
    return page_.events.size() >= kHistoryPageEvents || bytes_ >= kHistoryPageBytes ||
           scanned_ >= kHistoryPageScanned;
  }

  const HistoryRequest& request_;
  HistoryPage page_;
  size_t bytes_ = 0;
  size_t scanned_ = 0;
};

}  // namespace berth::store
