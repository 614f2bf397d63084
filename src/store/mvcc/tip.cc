// SPDX-License-Identifier: Apache-2.0
#include "store/mvcc/tip.h"

#include <utility>

namespace berth::store {
namespace {

KeyValue ToKeyValue(std::string_view key, const Tip::State& state) {
  return {.key = std::string(key),
          .value = state.value == nullptr ? Bytes() : *state.value,
          .create_revision = state.create_revision,
          .mod_revision = state.mod_revision,
          .version = state.version,
          .lease = state.lease};
}

// What was found for each condition, in order.
std::vector<Tip::State> CheckConditions(const Txn& txn, const Tip& tip, Verdict& verdict) {
  std::vector<Tip::State> states;
  states.reserve(txn.conditions.size());
  for (const Condition& condition : txn.conditions) {
    const Tip::State& state = states.emplace_back(tip.Look(condition.key));
    verdict.saw_pending |= state.pending;
    if (state.mod_revision == condition.mod_revision) continue;
    verdict.conflicts.push_back(ToKeyValue(condition.key, state));
  }
  verdict.committed = verdict.conflicts.empty();
  return states;
}

}  // namespace

Tip::State Tip::Look(std::string_view key) const {
  if (const auto it = pending_.find(key); it != pending_.end()) {
    const Record& record = *it->second;
    if (record.type == Op::Type::kDelete) return {.pending = true};
    return {.mod_revision = record.at.revision,
            .create_revision = record.create_revision,
            .version = record.version,
            .lease = record.lease,
            .at = record.at,
            .value = &record.value,
            .pending = true};
  }
  const Index::Entry* entry = index_.Find(key);
  if (entry == nullptr) return {};
  return {.mod_revision = entry->newest.revision,
          .create_revision = entry->create_revision,
          .version = entry->version,
          .lease = entry->lease,
          .at = entry->newest.at(),
          .value = &entry->value};
}

void Tip::Add(const LogWrite& write) {
  for (const Record& record : write.records) {
    const auto [it, is_new] = pending_.try_emplace(record.key, &record);
    if (is_new) continue;
    // The older change goes first, and its key with it.
    auto node = pending_.extract(it);
    node.key() = record.key;
    node.mapped() = &record;
    pending_.insert(std::move(node));
  }
}

void Tip::Settle(const LogWrite& write) {
  for (const Record& record : write.records) {
    const auto it = pending_.find(record.key);
    if (it != pending_.end() && it->second == &record) pending_.erase(it);
  }
}

Verdict Evaluate(Txn txn, const Tip& tip, Revision revision) {
  Verdict verdict;
  const std::vector<Tip::State> states = CheckConditions(txn, tip, verdict);
  if (!verdict.committed) return verdict;
  verdict.records.reserve(txn.ops.size());
  size_t condition = 0;
  for (Op& op : txn.ops) {
    // Most writers condition what they write, in the same order: then it was looked up already.
    while (condition < states.size() && txn.conditions[condition].key != op.key) ++condition;
    const bool is_known = condition < states.size();
    const Tip::State before = is_known ? states[condition] : tip.Look(op.key);
    if (!is_known) condition = 0;
    verdict.saw_pending |= before.pending;
    const bool exists = before.mod_revision.value != 0;
    if (op.type == Op::Type::kDelete && !exists) continue;
    Record record;
    record.at = {.revision = revision, .sub = static_cast<uint8_t>(verdict.records.size())};
    record.type = op.type;
    record.previous = before.at;
    record.key = std::move(op.key);
    if (op.type == Op::Type::kPut) {
      record.value = std::move(op.value);
      record.create_revision = exists ? before.create_revision : revision;
      record.version = before.version + 1;
      record.lease = op.lease;
    }
    verdict.records.push_back(std::move(record));
  }
  return verdict;
}

}  // namespace berth::store
