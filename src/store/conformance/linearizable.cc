// SPDX-License-Identifier: Apache-2.0
#include "store/conformance/linearizable.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/random.h"
#include "rt/leaf.h"
#include "rt/loop.h"
#include "rt/sleep.h"

namespace berth::store {
namespace {

using Type = Observation::Type;

constexpr int kKeys = 4;
constexpr Duration kPauseAfterFailure = Duration::Millis(10);

std::string Text(const Observation& seen) {
  const char* what = seen.type == Type::kRead ? "read" : "write";
  return fmt::format(
      "{} of {} = '{}' at revision {}", what, seen.key, seen.value, seen.revision.value);
}

class Checker {
 public:
  explicit Checker(const std::vector<Observation>& history) : history_(history) {
    for (const Observation& seen : history) {
      if (seen.type == Type::kRead) continue;
      written_[seen.value] = &seen;
      if (seen.type == Type::kWrite) writes_[seen.key][seen.revision] = &seen;
    }
  }

  std::vector<std::string> Run() {
    CheckTime();
    CheckRevisions();
    for (const Observation& seen : history_) {
      if (seen.type == Type::kRead) CheckRead(seen);
      if (seen.type == Type::kWrite) CheckWrite(seen);
    }
    return std::move(violations_);
  }

 private:
  void Add(std::string line) { violations_.push_back(std::move(line)); }

  // What ended before something else began has an earlier place.
  void CheckTime() {
    std::vector<const Observation*> by_begin;
    std::vector<const Observation*> by_end;
    for (const Observation& seen : history_) {
      if (seen.type == Type::kUnknown) continue;
      by_begin.push_back(&seen);
      by_end.push_back(&seen);
    }
    std::ranges::sort(by_begin, {}, &Observation::begun);
    std::ranges::sort(by_end, {}, &Observation::ended);
    const Observation* latest = nullptr;  // of those that ended before
    auto next = by_end.begin();
    for (const Observation* seen : by_begin) {
      for (; next != by_end.end() && (*next)->ended < seen->begun; ++next) {
        if (latest == nullptr || (*next)->revision > latest->revision) latest = *next;
      }
      if (latest == nullptr) continue;
      const bool is_late = seen->type == Type::kWrite ? seen->revision <= latest->revision
                                                      : seen->revision < latest->revision;
      if (is_late) Add(Text(*seen) + " began after the end of " + Text(*latest));
    }
  }

  void CheckRevisions() {
    std::map<Revision, const Observation*> taken;
    for (const Observation& seen : history_) {
      if (seen.type != Type::kWrite) continue;
      const auto [place, is_new] = taken.emplace(seen.revision, &seen);
      if (!is_new) Add(Text(seen) + " has the revision of " + Text(*place->second));
    }
  }

  // No other write of the key happened after `from` and up to `through`.
  void CheckNothingBetween(const Observation& seen, Revision from, Revision through) {
    const auto key = writes_.find(seen.key);
    if (key == writes_.end()) return;
    const auto first = key->second.upper_bound(from);
    if (first == key->second.end() || first->first > through || first->second == &seen) return;
    Add(Text(seen) + " does not know of " + Text(*first->second));
  }

  void CheckRead(const Observation& seen) {
    CheckNothingBetween(seen, seen.changed, seen.revision);
    if (seen.value.empty()) return;
    const auto found = written_.find(seen.value);
    if (found == written_.end() || found->second->key != seen.key) {
      return Add(Text(seen) + " was never written");
    }
    const bool is_same =
        found->second->type == Type::kUnknown || found->second->revision == seen.changed;
    if (!is_same) Add(Text(seen) + " was changed elsewhere than " + Text(*found->second));
    const auto [place, is_new] = read_.emplace(seen.value, seen.changed);
    if (!is_new && place->second != seen.changed) Add(Text(seen) + " was written twice");
  }

  void CheckWrite(const Observation& seen) {
    if (!seen.is_conditional) return;
    CheckNothingBetween(seen, seen.replaces, Revision{seen.revision.value - 1});
  }

  const std::vector<Observation>& history_;
  std::map<std::string, const Observation*> written_;
  std::map<std::string, std::map<Revision, const Observation*>> writes_;
  std::map<std::string, Revision> read_;
  std::vector<std::string> violations_;
};

void NoteRead(Observation seen, const KeyValue* kv, std::vector<Observation>& history) {
  seen.type = Type::kRead;
  seen.value = kv == nullptr ? "" : std::string(kv->value.view());
  if (kv != nullptr) seen.changed = kv->mod_revision;
  history.push_back(std::move(seen));
}

}  // namespace

std::vector<std::string> FindViolations(const std::vector<Observation>& history) {
  return Checker(history).Run();
}

rt::Task<Status> RunClient(Store* store, ClientOptions options, std::vector<Observation>* history) {
  rt::Loop& loop = (co_await rt::CurrentContext{}).loop();
  Random random(options.seed);
  std::map<std::string, Revision> known;
  for (int i = 0; i < options.operations && (options.stop == nullptr || !*options.stop); ++i) {
    Observation seen;
    seen.key = "l" + std::to_string(random.Below(kKeys));
    seen.begun = loop.Now();
    if (random.Chance(0.4)) {
      RangeRequest request;
      request.start = seen.key;
      const Result<RangeResult> result = co_await store->Range(request);
      seen.ended = loop.Now();
      if (!result.ok()) {
        CO_TRY_STATUS(co_await rt::Sleep(kPauseAfterFailure));
        continue;
      }
      const KeyValue* kv = result->items.empty() ? nullptr : result->items.data();
      known[seen.key] = kv == nullptr ? Revision{} : kv->mod_revision;
      seen.revision = result->revision;
      NoteRead(std::move(seen), kv, *history);
      continue;
    }
    seen.value = options.name + "-" + std::to_string(i);
    seen.is_conditional = random.Chance(0.7);
    seen.replaces = known[seen.key];
    Txn txn;
    if (seen.is_conditional) {
      txn.conditions.push_back(Condition::Unchanged(seen.key, seen.replaces));
    }
    txn.ops.push_back(Op::Put(seen.key, Bytes(seen.value)));
    const Result<TxnResult> result = co_await store->Commit(std::move(txn));
    seen.ended = loop.Now();
    if (!result.ok()) {
      seen.type = Type::kUnknown;
      history->push_back(std::move(seen));
      CO_TRY_STATUS(co_await rt::Sleep(kPauseAfterFailure));
      continue;
    }
    seen.revision = result->revision;
    if (result->committed) {
      known[seen.key] = result->revision;
      seen.type = Type::kWrite;
      history->push_back(std::move(seen));
      continue;
    }
    const KeyValue& conflict = result->conflicts.at(0);
    known[seen.key] = conflict.mod_revision;
    NoteRead(std::move(seen), conflict.mod_revision.value == 0 ? nullptr : &conflict, *history);
  }
  co_return OkStatus();
}

}  // namespace berth::store
