// SPDX-License-Identifier: Apache-2.0
// Everything in a store as of one revision, out of it and into another one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "pki/digest_stream.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::app {

// Marks a store that is being filled: no server starts on it.
inline constexpr std::string_view kFillingKey = "/guard/filling";
// Marks a store whose place another one has taken; says which. No server starts on it.
inline constexpr std::string_view kMovedKey = "/guard/moved";
// What is added to all revisions of the store (store/rebased).
inline constexpr std::string_view kBaseKey = "/guard/revision-base";

// Whether a value belongs into a copy: not what ends with a lease, nor the marks above.
bool IsCopied(const store::KeyValue& item);

// Reads a store page by page, all pages as of the first one's revision.
class StateReader {
 public:
  // The store outlives this.
  explicit StateReader(store::Store& store) : store_(store) {}
  // The next values, in the order of their keys; an empty page is the end.
  rt::Task<Result<std::vector<store::KeyValue>>> Next();
  store::Revision revision() const { return revision_; }  // known after the first page

 private:
  store::Store& store_;
  store::Revision revision_;
  std::string after_;
  bool ended_ = false;
};

// Writes values in transactions that every store takes.
class StateWriter {
 public:
  explicit StateWriter(store::Store& store) : store_(store) {}
  rt::Task<Status> Add(std::string key, Bytes value);
  rt::Task<Status> Flush();

 private:
  store::Store& store_;
  store::Txn txn_;
  size_t bytes_ = 0;
};

// A number and a hash that two stores with the same values share.
struct StateSum {
  size_t keys = 0;
  std::string digest;
  bool operator==(const StateSum&) const = default;
};
rt::Task<Result<StateSum>> SumState(store::Store& store);

// Ok if there is nothing in the store, or only what a filling that was broken off has left: that is
// removed. Conflict names a key that is there. The mark is set afterwards.
rt::Task<Status> BeginFilling(store::Store& store);
// Takes the mark away.
rt::Task<Status> EndFilling(store::Store& store);
// Conflict if the store is not whole, or was moved.
rt::Task<Status> CheckFilled(store::Store& store);
// See kBaseKey; zero if there is none. `store` is the one below a RebasedStore.
rt::Task<Result<int64_t>> ReadRevisionBase(store::Store& store);
rt::Task<Status> PutMark(store::Store& store, std::string_view key, std::string value);

}  // namespace berth::app
