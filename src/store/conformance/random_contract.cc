// SPDX-License-Identifier: Apache-2.0
// Random operations compared with a model that is a list of all states the store ever had.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/random.h"
#include "store/conformance/blocking.h"
#include "store/conformance/store_contract.h"

namespace berth::store {
namespace {

using State = std::map<std::string, KeyValue>;

// The store, as simple as it can be: every state it ever had, and every event.
class Model {
 public:
  Revision revision() const { return {1 + static_cast<int64_t>(states_.size()) - 1}; }
  const State& At(Revision at) const { return states_[static_cast<size_t>(at.value - 1)]; }
  const State& now() const { return states_.back(); }
  const std::vector<Event>& events() const { return events_; }

  TxnResult Commit(const Txn& txn) {
    TxnResult result;
    for (const Condition& condition : txn.conditions) {
      const auto it = now().find(condition.key);
      KeyValue kv = it == now().end() ? KeyValue{.key = condition.key} : it->second;
      if (kv.mod_revision != condition.mod_revision) result.conflicts.push_back(std::move(kv));
    }
    result.committed = result.conflicts.empty();
    if (result.committed) Apply(txn.ops);
    result.revision = revision();
    return result;
  }

 private:
  void Apply(const std::vector<Op>& ops) {
    State next = now();
    const Revision at = revision().Next();
    bool changed = false;
    for (const Op& op : ops) {
      const auto it = next.find(op.key);
      if (op.type == Op::Type::kDelete && it == next.end()) continue;
      changed = true;
      Event& event = events_.emplace_back();
      if (it != next.end()) event.previous = it->second;
      event.kv.key = op.key;
      event.kv.mod_revision = at;
      if (op.type == Op::Type::kDelete) {
        event.type = Event::Type::kDelete;
        next.erase(it);
        continue;
      }
      event.kv.value = op.value;
      event.kv.create_revision = it == next.end() ? at : it->second.create_revision;
      event.kv.version = it == next.end() ? 1 : it->second.version + 1;
      next[op.key] = event.kv;
    }
    if (changed) states_.push_back(std::move(next));
  }

  std::vector<State> states_ = {{}};
  std::vector<Event> events_;
};

std::string FullText(const KeyValue& kv) {
  return Describe(kv) + " created " + std::to_string(kv.create_revision.value) + " version " +
         std::to_string(kv.version);
}

std::string FullText(const Event& event) {
  return Describe(event) + (event.type == Event::Type::kPut ? FullText(event.kv) : "") +
         " before: " + (event.previous ? FullText(*event.previous) : "-");
}

class Run {
 public:
  Run(StoreUnderTest& under_test, uint64_t seed) : under_test_(under_test), random_(seed) {}

  void Step(int number) {
    switch (random_.Below(20)) {
      case 0: return Compact();
      case 1: return CheckWatch();
      case 2:
      case 3:
      case 4: return CheckRange();
      case 5:
        // A restart costs much more than anything else.
        return random_.Chance(0.1) ? under_test_.Reopen() : CheckRange();
      default: return Commit(number);
    }
  }

  void CheckEnd() {
    under_test_.Reopen();
    CheckWatch();
    CheckRange();
    EXPECT_EQ(store().revision(), model_.revision());
    EXPECT_EQ(store().compacted(), compacted_);
  }

 private:
  Blocking store() {
    return {under_test_, random_.Chance(0.5) ? under_test_.first() : under_test_.second()};
  }
  std::string RandomKey() { return "k" + std::to_string(random_.Below(12)); }

  void Commit(int number) {
    Txn txn;
    while (random_.Chance(0.3) && txn.conditions.size() < 3) {
      const std::string key = RandomKey();
      const auto it = model_.now().find(key);
      const bool should_hold = random_.Chance(0.8);
      Revision at = it == model_.now().end() ? Revision{} : it->second.mod_revision;
      if (!should_hold) at = Revision{random_.Between(0, model_.revision().value)};
      txn.conditions.push_back(Condition::Unchanged(key, at));
    }
    const auto ops = static_cast<size_t>(random_.Between(0, 4));
    while (txn.ops.size() < ops) {
      const std::string key = RandomKey();
      if (std::ranges::any_of(txn.ops, [&](const Op& op) { return op.key == key; })) continue;
      txn.ops.push_back(random_.Chance(0.3) ? Op::Delete(key)
                                            : Op::Put(key, Bytes(std::to_string(number))));
    }
    const TxnResult expected = model_.Commit(txn);
    const Result<TxnResult> result = store().Commit(txn);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->committed, expected.committed);
    EXPECT_EQ(result->revision, expected.revision);
    EXPECT_EQ(DescribeAll(result->conflicts), DescribeAll(expected.conflicts));
  }

  void CheckRange() {
    const Revision at{
        random_.Between(std::max<int64_t>(1, compacted_.value - 2), model_.revision().value)};
    RangeRequest request;
    request.start = RandomKey();
    request.end = random_.Chance(0.3) ? "" : random_.Chance(0.3) ? "l" : RandomKey();
    request.revision = at;
    request.limit = random_.Below(4);
    const Result<RangeResult> result = store().Range(request);
    if (at < compacted_) {
      EXPECT_EQ(result.status().reason(), Reason::kExpired);
      return;
    }
    ASSERT_TRUE(result.ok()) << result.status();
    std::vector<std::string> expected;
    for (const auto& [key, kv] : model_.At(at)) {
      const bool inside =
          request.end.empty() ? key == request.start : key >= request.start && key < request.end;
      if (inside) expected.push_back(FullText(kv));
    }
    EXPECT_EQ(result->count, expected.size());
    if (request.limit != 0 && expected.size() > request.limit) {
      expected.resize(request.limit);
      EXPECT_TRUE(result->more);
    } else {
      EXPECT_FALSE(result->more);
    }
    std::vector<std::string> items;
    for (const KeyValue& kv : result->items) items.push_back(FullText(kv));
    EXPECT_EQ(items, expected) << "at " << at.value;
  }

  void CheckWatch() {
    const Revision from{
        random_.Between(std::max<int64_t>(1, compacted_.value - 1), model_.revision().value)};
    Result<std::unique_ptr<Watch>> watch = store().StartWatch(WatchPrefix("k", from));
    if (from <= compacted_) {
      EXPECT_EQ(watch.status().reason(), Reason::kExpired);
      return;
    }
    ASSERT_TRUE(watch.ok()) << watch.status();
    std::vector<std::string> expected;
    for (const Event& event : model_.events()) {
      if (event.kv.mod_revision >= from) expected.push_back(FullText(event));
    }
    std::vector<std::string> events;
    for (const Event& event : ReadUntil(under_test_, **watch, model_.revision())) {
      events.push_back(FullText(event));
    }
    EXPECT_EQ(events, expected) << "from " << from.value;
  }

  void Compact() {
    // Revision 1 is the empty store: there is nothing before it to forget.
    if (model_.revision().value < 2) return;
    const Revision at{
        random_.Between(std::max<int64_t>(2, compacted_.value), model_.revision().value)};
    EXPECT_TRUE(store().Compact(at).ok());
    compacted_ = std::max(compacted_, at);
  }

  StoreUnderTest& under_test_;
  Random random_;
  Model model_;
  Revision compacted_;
};

}  // namespace

void RandomOperationsMatchTheModel(StoreUnderTest& under_test, uint64_t seed, int operations) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Run run(under_test, seed);
  for (int i = 0; i < operations && !testing::Test::HasFailure(); ++i) run.Step(i);
  run.CheckEnd();
}

}  // namespace berth::store
