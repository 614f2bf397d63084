// SPDX-License-Identifier: Apache-2.0
// Strategic merge patch. The patch is taken apart while it is merged: directives first, then lists
// whose order is given, then everything else.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/strings.h"
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

constexpr std::string_view kPatch = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kOrderPrefix = "$setElementOrder/";
constexpr std::string_view kDeletePrefix = "$deleteFromPrimitiveList/";

bool IsDirective(std::string_view key) {
  return key == kPatch || key == kRetainKeys || key.starts_with(kOrderPrefix) ||
         key.starts_with(kDeletePrefix);
}

bool IsScalar(const Value& value) { return !value.is_array() && !value.is_object(); }

// What becomes of a patch where the object has nothing yet: no directives, no nulls. False if the
// value itself is a deletion.
bool Clean(Value& value) {
  if (value.is_array()) {
    std::erase_if(value.items(), [](Value& item) { return !Clean(item); });
  } else if (value.is_object()) {
    if (value.GetString({kPatch}) == "delete") return false;
    std::erase_if(value.members(), [](Value::Member& member) {
      return IsDirective(member.key) || member.value.is_null() || !Clean(member.value);
    });
    return true;
  }
  return true;
}

// An element of a list that is nothing but "$patch: replace".
bool IsBareReplace(const Value& item) {
  return item.GetString({kPatch}) == "replace" && item.members().size() == 1;
}

Status NotAList(std::string_view key) {
  return BadRequest(Quote(key) + " in a strategic merge patch must be a list");
}

// Identities of items: by merge key for objects, by value for scalars.
class ItemKeys {
 public:
  ItemKeys(ListMerge merge, std::string_view merge_key) : merge_(merge), merge_key_(merge_key) {}

  Result<std::string> Of(const Value& item) const {
    if (merge_ != ListMerge::kByKey) {
      if (!IsScalar(item))
        return BadRequest("a list of scalars got " + std::string(item.type_name()));
      return IdentityOf(item);
    }
    if (!item.is_object()) {
      return BadRequest("a list that merges by " + Quote(merge_key_) + " got " +
                        std::string(item.type_name()));
    }
    const Value* key = item.Find(merge_key_);
    if (key == nullptr || !IsScalar(*key)) {
      return BadRequest("an item of a list that merges by " + Quote(merge_key_) +
                        " does not have this key");
    }
    return IdentityOf(*key);
  }

  // The position of each item's first appearance.
  Result<std::unordered_map<std::string, size_t>> Positions(const std::vector<Value>& items) const {
    std::unordered_map<std::string, size_t> positions;
    for (size_t i = 0; i < items.size(); ++i) {
      TRY(auto key, Of(items[i]));
      positions.emplace(std::move(key), i);
    }
    return positions;
  }

 private:
  ListMerge merge_;
  std::string_view merge_key_;
};

// Brings merged items into order: those that `order` names as it says, the others as they were on
// the server, and where both are known to the server, as they were there too.
Result<std::vector<Value>> Ordered(std::vector<Value> merged,
                                   const std::vector<Value>& order,
                                   const std::vector<Value>& server,
                                   const ItemKeys& keys) {
  TRY(const auto wanted, keys.Positions(order));
  TRY(const auto before, keys.Positions(server));
  struct Entry {
    Value value;
    size_t wanted = 0;
    size_t before = MemberIndex::kNone;
  };
  std::vector<Entry> ours;
  std::vector<Entry> others;
  for (auto& item : merged) {
    TRY(const auto key, keys.Of(item));
    const auto in_order = wanted.find(key);
    const auto on_server = before.find(key);
    Entry entry{.value = std::move(item)};
    if (on_server != before.end()) entry.before = on_server->second;
    if (in_order != wanted.end()) {
      entry.wanted = in_order->second;
      ours.push_back(std::move(entry));
    } else {
      others.push_back(std::move(entry));
    }
  }
  std::ranges::sort(ours, {}, &Entry::wanted);
  std::ranges::sort(others, {}, &Entry::before);
  std::vector<Value> out;
  size_t i = 0;
  for (auto& entry : ours) {
    while (i < others.size() && entry.before != MemberIndex::kNone &&
           others[i].before < entry.before) {
      out.push_back(std::move(others[i++].value));
    }
    out.push_back(std::move(entry.value));
  }
  for (; i < others.size(); ++i) out.push_back(std::move(others[i].value));
  return out;
}

Result<Value> MergeObject(Value original, Value patch, const TypeInfo* type);

Result<std::vector<Value>> MergeItems(std::vector<Value> original,
                                      std::vector<Value> patch,
                                      const MemberSchema& schema) {
  const ItemKeys keys(schema.merge, schema.merge_key);
  TRY(auto positions, keys.Positions(original));
  for (auto& item : patch) {
    TRY(auto key, keys.Of(item));
    const auto [found, is_new] = positions.emplace(std::move(key), original.size());
    if (is_new) {
      if (!Clean(item)) {
        positions.erase(found);
        continue;
      }
      original.push_back(std::move(item));
    } else if (schema.merge == ListMerge::kByKey) {
      Value& target = original[found->second];
      TRY(target, MergeObject(std::move(target), std::move(item), ItemType(schema.type)));
    }
  }
  return original;
}

// Items that carry $patch: "delete" takes the item with this key away, "replace" drops what was.
Result<Value> MergeList(Value original, Value patch, const MemberSchema& schema) {
  std::vector<Value>& server = original.items();
  std::vector<Value> plain;
  const ItemKeys keys(schema.merge, schema.merge_key);
  std::unordered_set<std::string> deleted;
  bool replace = schema.merge == ListMerge::kReplace;
  for (auto& item : patch.items()) {
    const Value* directive = item.Find(kPatch);
    const bool is_plain = directive == nullptr || *directive == Value("merge") ||
                          (*directive == Value("replace") && !IsBareReplace(item));
    if (is_plain) {
      plain.push_back(std::move(item));
    } else if (*directive == Value("replace")) {
      replace = true;
    } else if (*directive == Value("delete")) {
      TRY(auto key, keys.Of(item));
      deleted.insert(std::move(key));
    } else {
      return BadRequest("unknown $patch in a list item");
    }
  }
  if (replace) {
    Value list = Value::Array(std::move(plain));
    Clean(list);
    return list;
  }
  if (!deleted.empty()) {
    std::erase_if(server, [&](const Value& item) {
      const auto key = keys.Of(item);
      return key.ok() && deleted.contains(*key);
    });
  }
  const std::vector<Value> order = plain;
  const std::vector<Value> before = server;
  TRY(auto merged, MergeItems(std::move(server), std::move(plain), schema));
  TRY(auto ordered, Ordered(std::move(merged), order, before, keys));
  return Value::Array(std::move(ordered));
}

Status RetainKeys(Value& original, const Value& patch) {
  const Value* keys = patch.Find(kRetainKeys);
  if (keys == nullptr) return OkStatus();
  if (!keys->is_array()) return NotAList(kRetainKeys);
  std::unordered_set<std::string_view> retained;
  for (const auto& key : keys->items()) {
    if (!key.is_string()) {
      return BadRequest("$retainKeys must be a list of field names, not of " +
                        std::string(key.type_name()));
    }
    retained.insert(key.as_string());
  }
  for (const auto& member : patch.members()) {
    if (!IsDirective(member.key) && !member.value.is_null() && !retained.contains(member.key)) {
      return BadRequest("field " + Quote(member.key) + " of the patch is not in $retainKeys");
    }
  }
  std::erase_if(original.members(),
                [&](const Value::Member& member) { return !retained.contains(member.key); });
  return OkStatus();
}

// The lists whose order the patch gives. They are done here, and taken out of the patch.
Status MergeOrdered(Value& original, Value& patch, const TypeInfo* type) {
  std::vector<Value::Member> orders;
  for (auto& member : patch.members()) {
    if (member.key.starts_with(kOrderPrefix)) orders.push_back(std::move(member));
  }
  std::erase_if(patch.members(), [](const Value::Member& member) {
    return member.key.empty() || member.key.starts_with(kOrderPrefix);
  });
  for (const auto& order : orders) {
    const std::string name = order.key.substr(kOrderPrefix.size());
    const MemberSchema schema = SchemaOf(type, name);
    if (!order.value.is_array()) return NotAList(order.key);
    Value* current = original.Find(name);
    Value* changes = patch.Find(name);
    // Deletions of scalars come before the order: what is gone has no place.
    const std::string deletion = std::string(kDeletePrefix) + name;
    if (current == nullptr && changes == nullptr) continue;
    if ((current != nullptr && !current->is_array()) ||
        (changes != nullptr && !changes->is_array())) {
      continue;  // the plain rules replace or remove it
    }
    if (schema.merge == ListMerge::kReplace) continue;
    const ItemKeys keys(schema.merge, schema.merge_key);
    const std::vector<Value> server = current == nullptr ? std::vector<Value>() : current->items();
    Value merged = current == nullptr ? Value::Array() : std::move(*current);
    if (const Value* gone = patch.Find(deletion); gone != nullptr && gone->is_array()) {
      std::erase_if(merged.items(), [&](const Value& item) {
        return std::ranges::find(gone->items(), item) != gone->items().end();
      });
    }
    if (changes != nullptr) {
      TRY(merged, MergeList(std::move(merged), std::move(*changes), schema));
    }
    TRY(auto ordered, Ordered(std::move(merged.items()), order.value.items(), server, keys));
    original.Set(name, Value::Array(std::move(ordered)));
    patch.Remove(name);
    patch.Remove(deletion);
  }
  return OkStatus();
}

Status DeleteScalars(MemberIndex& index, std::string_view key, const Value& gone) {
  if (!gone.is_array()) return NotAList(key);
  const size_t at = index.Find(key.substr(kDeletePrefix.size()));
  if (at == MemberIndex::kNone || !index.at(at).is_array()) return OkStatus();
  std::unordered_set<std::string> identities;
  for (const auto& item : gone.items()) identities.insert(IdentityOf(item));
  std::erase_if(index.at(at).items(),
                [&](const Value& item) { return identities.contains(IdentityOf(item)); });
  return OkStatus();
}

Status MergeMember(MemberIndex& index, Value::Member& member, const TypeInfo* type) {
  const size_t at = index.Find(member.key);
  if (member.value.is_null()) {
    if (at != MemberIndex::kNone) index.Remove(at);
    return OkStatus();
  }
  if (at == MemberIndex::kNone || index.at(at).type() != member.value.type() ||
      IsScalar(member.value)) {
    const bool kept = Clean(member.value);
    if (kept) {
      index.Put(member.key, std::move(member.value));
    } else if (at != MemberIndex::kNone) {
      index.Remove(at);
    }
    return OkStatus();
  }
  const MemberSchema schema = SchemaOf(type, member.key);
  Value& target = index.at(at);
  if (member.value.is_array()) {
    TRY(target, MergeList(std::move(target), std::move(member.value), schema));
  } else {
    TRY(target, MergeObject(std::move(target), std::move(member.value), schema.type));
  }
  return OkStatus();
}

Result<Value> MergeObject(Value original, Value patch, const TypeInfo* type) {
  if (const Value* directive = patch.Find(kPatch); directive != nullptr) {
    const auto what = patch.GetString({kPatch});
    if (what == "delete") return Value::Object();
    if (what == "replace") {
      Clean(patch);
      return patch;
    }
    if (what != "merge") return BadRequest("unknown $patch " + Quote(what));
    patch.Remove(kPatch);
  }
  TRY_STATUS(RetainKeys(original, patch));
  TRY_STATUS(MergeOrdered(original, patch, type));
  MemberIndex index(original);
  // Deletions from lists of scalars first: a patch may take an item away and add another.
  for (const auto& member : patch.members()) {
    if (member.key.starts_with(kDeletePrefix)) {
      TRY_STATUS(DeleteScalars(index, member.key, member.value));
    }
  }
  for (auto& member : patch.members()) {
    if (IsDirective(member.key)) continue;
    const Status status = MergeMember(index, member, type);
    if (!status.ok()) return status;
  }
  index.Finish();
  return original;
}

}  // namespace

Result<Value> ApplyStrategicMergePatch(const Value& current,
                                       const Value& patch,
                                       const TypeInfo& type) {
  if (!patch.is_object()) {
    return BadRequest("a strategic merge patch must be an object, not " +
                      std::string(patch.type_name()));
  }
  if (!current.is_object())
    return Internal("a strategic merge patch of something that is no object");
  return MergeObject(current, patch, &type);
}

}  // namespace berth::meta
