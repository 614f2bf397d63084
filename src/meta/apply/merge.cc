// SPDX-License-Identifier: Apache-2.0
// What a configuration adds to a tree, and what is taken out of it again.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "meta/apply/internal/node_schema.h"
#include "meta/apply/trees.h"

namespace berth::meta {

namespace {

using internal::ElementsOf;
using internal::ItemSchema;
using internal::ListElements;
using internal::MemberSchema;
using internal::NodeSchema;
using internal::Shape;

bool IsList(Shape shape) { return shape == Shape::kKeyed || shape == Shape::kSet; }

Value Merged(const NodeSchema& schema, const Value* live, const Value& wanted);

Value MergedObject(const NodeSchema& schema, const Value* live, const Value& wanted) {
  Value out = live != nullptr && live->is_object() ? *live : Value::Object();
  auto& members = out.members();
  std::unordered_map<std::string, size_t> index;
  for (size_t i = 0; i < members.size(); ++i) index.emplace(members[i].key, i);
  for (const auto& [name, member] : wanted.members()) {
    const auto found = index.find(name);
    const NodeSchema below = MemberSchema(schema, name);
    if (found == index.end()) {
      members.push_back({name, Merged(below, nullptr, member)});
    } else {
      Value& present = members[found->second].value;
      present = Merged(below, &present, member);
    }
  }
  return out;
}

// Shared items come in the wanted order, and what only the live list has stays behind what it was
// behind.
Value MergedList(const NodeSchema& schema, const Value* live, const Value& wanted) {
  if (live == nullptr || !live->is_array()) return wanted;
  const ListElements present = ElementsOf(schema, *live);
  const ListElements asked = ElementsOf(schema, wanted);
  if (!present.problem.empty() || !asked.problem.empty()) return wanted;
  const NodeSchema item = ItemSchema(schema);
  std::unordered_map<std::string, size_t> at_live;
  std::unordered_map<std::string, size_t> at_wanted;
  for (size_t i = 0; i < present.elements.size(); ++i) at_live.emplace(present.elements[i], i);
  for (size_t i = 0; i < asked.elements.size(); ++i) at_wanted.emplace(asked.elements[i], i);
  std::vector<Value> out;
  size_t taken = 0;  // of the wanted items
  const auto take_until = [&](size_t end) {
    for (; taken < end; ++taken) {
      const auto found = at_live.find(asked.elements[taken]);
      const Value* before = found == at_live.end() ? nullptr : &live->items()[found->second];
      out.push_back(Merged(item, before, wanted.items()[taken]));
    }
  };
  for (size_t i = 0; i < present.elements.size(); ++i) {
    const auto found = at_wanted.find(present.elements[i]);
    if (found == at_wanted.end()) {
      out.push_back(live->items()[i]);
    } else {
      take_until(found->second + 1);
    }
  }
  take_until(asked.elements.size());
  return Value::Array(std::move(out));
}

Value Merged(const NodeSchema& schema, const Value* live, const Value& wanted) {
  if (wanted.is_null()) return wanted;
  if (IsList(schema.shape)) return MergedList(schema, live, wanted);
  if (schema.shape != Shape::kLeaf) return MergedObject(schema, live, wanted);
  return live != nullptr && internal::SameLeaf(schema, *live, wanted) ? *live : wanted;
}

class Pruning {
 public:
  // True if something went and nothing is left.
  static bool Walk(const NodeSchema& schema,
                   const FieldSet& unwanted,
                   const FieldSet* owned,
                   Value& tree) {
    if (IsList(schema.shape)) return tree.is_array() && WalkItems(schema, unwanted, owned, tree);
    if (schema.shape == Shape::kLeaf || !tree.is_object()) return false;
    const size_t before = tree.members().size();
    std::erase_if(tree.members(), [&](Value::Member& member) {
      const bool is_named = schema.shape == Shape::kStruct;
      return Goes(MemberSchema(schema, member.key),
                  FieldElement(member.key),
                  is_named,
                  unwanted,
                  owned,
                  member.value);
    });
    return tree.members().empty() && before > 0;
  }

 private:
  static bool WalkItems(const NodeSchema& schema,
                        const FieldSet& unwanted,
                        const FieldSet* owned,
                        Value& tree) {
    const ListElements list = ElementsOf(schema, tree);
    if (!list.problem.empty()) return false;
    const NodeSchema item = ItemSchema(schema);
    std::vector<Value> kept;
    for (size_t i = 0; i < list.elements.size(); ++i) {
      Value& value = tree.items()[i];
      if (!Goes(item, list.elements[i], false, unwanted, owned, value)) {
        kept.push_back(std::move(value));
      }
    }
    const bool is_gone = kept.empty() && !list.elements.empty();
    tree.items() = std::move(kept);
    return is_gone;
  }

  static bool Goes(const NodeSchema& schema,
                   const std::string& element,
                   bool is_named,
                   const FieldSet& unwanted,
                   const FieldSet* owned,
                   Value& value) {
    const FieldSet* owned_below = owned == nullptr ? nullptr : owned->Below(element);
    const bool is_owned =
        (owned != nullptr && owned->Has(element)) || (is_named && owned_below != nullptr);
    if (unwanted.Has(element) && !is_owned) return true;
    const FieldSet* below = unwanted.Below(element);
    if (below == nullptr) return false;
    return Walk(schema, *below, owned_below, value) && !is_owned;
  }
};

}  // namespace

Value Merge(const TypeInfo& type, const Value& live, const Value& configuration) {
  return Merged(internal::RootSchema(type), &live, configuration);
}

void Prune(const TypeInfo& type, const FieldSet& unwanted, const FieldSet& owned, Value& tree) {
  Pruning::Walk(internal::RootSchema(type), unwanted, &owned, tree);
}

}  // namespace berth::meta
