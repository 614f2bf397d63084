// SPDX-License-Identifier: Apache-2.0
#include "store/mvcc/tip.h"

#include <utility>

namespace berth::store {
namespace {

void CheckConditions(const Txn& txn, const Tip& tip, Verdict& verdict) {
  for (const Condition& condition : txn.conditions) {
    Tip::State state = tip.Look(condition.key);
    verdict.saw_pending |= state.pending;
    if (state.kv.mod_revision == condition.mod_revision) continue;
    state.kv.key = condition.key;
    verdict.conflicts.push_back(std::move(state.kv));
  }
  verdict.committed = verdict.conflicts.empty();
}

}  // namespace

Tip::State Tip::Look(std::string_view key) const {
  State state;
  if (const auto it = pending_.find(key); it != pending_.end()) {
    state.pending = true;
    if (it->second->type == Op::Type::kDelete) return state;
    state.kv = ToKeyValue(*it->second);
    state.at = it->second->at;
    return state;
  }
  const Index::Entry* entry = index_.Find(key);
  if (entry == nullptr) return state;
  state.kv = {.key = std::string(key),
              .value = entry->value,
              .create_revision = entry->create_revision,
              .mod_revision = entry->newest.revision,
              .version = entry->version,
              .lease = entry->lease};
  state.at = entry->newest.at();
  return state;
}

void Tip::Add(const LogWrite& write) {
  for (const Record& record : write.records) pending_[record.key] = &record;
}

void Tip::Settle(const LogWrite& write) {
  for (const Record& record : write.records) {
    const auto it = pending_.find(record.key);
    if (it != pending_.end() && it->second == &record) pending_.erase(it);
  }
}

Verdict Evaluate(Txn txn, const Tip& tip, Revision revision) {
  Verdict verdict;
  CheckConditions(txn, tip, verdict);
  if (!verdict.committed) return verdict;
  for (Op& op : txn.ops) {
    const Tip::State before = tip.Look(op.key);
    verdict.saw_pending |= before.pending;
    const bool exists = before.kv.mod_revision.value != 0;
    if (op.type == Op::Type::kDelete && !exists) continue;
    Record record;
    record.at = {.revision = revision, .sub = static_cast<uint8_t>(verdict.records.size())};
    record.type = op.type;
    record.previous = before.at;
    record.key = std::move(op.key);
    if (op.type == Op::Type::kPut) {
      record.value = std::move(op.value);
      record.create_revision = exists ? before.kv.create_revision : revision;
      record.version = before.kv.version + 1;
      record.lease = op.lease;
    }
    verdict.records.push_back(std::move(record));
  }
  return verdict;
}

}  // namespace berth::store
