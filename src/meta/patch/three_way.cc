// SPDX-License-Identifier: Apache-2.0
// The patch that `apply` sends: from what was applied last, what is wanted and what is there.
#include <unordered_map>
#include <utility>

#include "meta/patch/internal/member_index.h"
#include "meta/patch/internal/schema.h"
#include "meta/patch/patch.h"

namespace berth::meta {
namespace {

using internal::IdentityOf;
using internal::ItemType;
using internal::MemberIndex;
using internal::MemberSchema;
using internal::SchemaOf;

const Value kNothing;

using ItemsByKey = std::unordered_map<std::string, const Value*>;

// False if an item cannot be told apart from the others: then the list is replaced.
bool IndexItems(const Value& list, std::string_view merge_key, ItemsByKey& out) {
  if (!list.is_array()) return true;
  for (const auto& item : list.items()) {
    const Value* key = item.Find(merge_key);
    if (key == nullptr || !out.emplace(IdentityOf(*key), &item).second) return false;
  }
  return true;
}

Value Diff(const Value& original,
           const Value& modified,
           const Value& current,
           const TypeInfo* type);

// Adds the patch of one list to `patch`. False if it must be replaced whole.
bool DiffByKey(std::string_view name,
               const Value& original,
               const Value& modified,
               const Value& current,
               const MemberSchema& schema,
               Value& patch) {
  ItemsByKey before;
  ItemsByKey wanted;
  ItemsByKey now;
  if (!IndexItems(original, schema.merge_key, before) ||
      !IndexItems(modified, schema.merge_key, wanted) ||
      !IndexItems(current, schema.merge_key, now)) {
    return false;
  }
  Value changes = Value::Array();
  Value order = Value::Array();
  for (const auto& item : modified.items()) {
    const Value& key = *item.Find(schema.merge_key);
    Value reference = Value::Object();
    reference.Set(schema.merge_key, key);
    order.Append(reference);
    const auto there = now.find(IdentityOf(key));
    if (there == now.end()) {
      changes.Append(item);
      continue;
    }
    const auto was = before.find(there->first);
    Value part = Diff(
        was == before.end() ? kNothing : *was->second, item, *there->second, ItemType(schema.type));
    if (part.members().empty()) continue;
    part.Set(schema.merge_key, key);
    changes.Append(std::move(part));
  }
  for (const auto& [identity, item] : before) {
    if (wanted.contains(identity) || !now.contains(identity)) continue;
    Value deletion = Value::Object();
    deletion.Set("$patch", "delete");
    deletion.Set(schema.merge_key, *item->Find(schema.merge_key));
    changes.Append(std::move(deletion));
  }
  // The wanted items, as far as they are there: in the wanted order already?
  std::vector<std::string> order_now;
  for (const auto& item : current.items()) {
    auto identity = IdentityOf(*item.Find(schema.merge_key));
    if (wanted.contains(identity)) order_now.push_back(std::move(identity));
  }
  size_t at = 0;
  bool same_order = true;
  for (const auto& item : modified.items()) {
    const auto identity = IdentityOf(*item.Find(schema.merge_key));
    if (now.contains(identity)) same_order = same_order && order_now[at++] == identity;
  }
  if (changes.items().empty() && same_order) return true;
  patch.Set("$setElementOrder/" + std::string(name), std::move(order));
  if (!changes.items().empty()) patch.Set(name, std::move(changes));
  return true;
}

void DiffMember(std::string_view key,
                const Value& original,
                const Value& modified,
                const Value& current,
                const TypeInfo* type,
                Value& patch) {
  const MemberSchema schema = SchemaOf(type, key);
  if (modified.is_object() && current.is_object()) {
    Value part = Diff(original, modified, current, schema.type);
    if (!part.members().empty()) patch.Set(key, std::move(part));
    return;
  }
  if (modified.is_array() && current.is_array()) {
    if (modified == current) return;
    if (schema.merge == ListMerge::kByKey &&
        DiffByKey(key, original, modified, current, schema, patch)) {
      return;
    }
    if (schema.merge != ListMerge::kReplace) {
      // A set, or items without keys: say the whole list.
      Value gone = Value::Array();
      for (const auto& item : current.items()) {
        const auto& wanted = modified.items();
        const bool was_ours = original.is_array() &&
                              std::ranges::find(original.items(), item) != original.items().end();
        if (was_ours && std::ranges::find(wanted, item) == wanted.end()) gone.Append(item);
      }
      if (!gone.items().empty()) {
        patch.Set("$deleteFromPrimitiveList/" + std::string(key), std::move(gone));
      }
    }
    patch.Set(key, modified);
    return;
  }
  if (!(modified == current)) patch.Set(key, modified);
}

Value Diff(const Value& original,
           const Value& modified,
           const Value& current,
           const TypeInfo* type) {
  Value patch = Value::Object();
  for (const auto& [key, value] : modified.members()) {
    const Value* now = current.Find(key);
    const Value* was = original.Find(key);
    if (now == nullptr) {
      if (!value.is_null()) patch.Set(key, value);
    } else {
      DiffMember(key, was == nullptr ? kNothing : *was, value, *now, type, patch);
    }
  }
  if (original.is_object()) {
    for (const auto& [key, value] : original.members()) {
      if (modified.Find(key) == nullptr && current.Find(key) != nullptr) patch.Set(key, Value());
    }
  }
  return patch;
}

}  // namespace

Value ThreeWayMergePatch(const Value& original,
                         const Value& modified,
                         const Value& current,
                         const TypeInfo& type) {
  if (!modified.is_object() || !current.is_object()) return modified;
  return Diff(original, modified, current, &type);
}

}  // namespace berth::meta
