// SPDX-License-Identifier: Apache-2.0
// Which fields a tree states, and which differ between two.
#include <unordered_map>
#include <utility>

#include "meta/apply/fields_v1.h"
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
bool IsEmptyObject(const Value& value) { return value.is_object() && value.members().empty(); }

class Stating {
 public:
  Status Walk(const NodeSchema& schema, const Value& value) {
    if (schema.shape == Shape::kLeaf) return Insert();
    if (value.is_null()) return OkStatus();  // the parent has stated it
    if (IsList(schema.shape)) return WalkItems(schema, value);
    for (const auto& [name, member] : value.members()) {
      path_.push_back(FieldElement(name));
      TRY_STATUS(Walk(MemberSchema(schema, name), member));
      if (member.is_null() || IsEmptyObject(member) || schema.shape == Shape::kMap) {
        TRY_STATUS(Insert());
      }
      path_.pop_back();
    }
    return OkStatus();
  }

  FieldSet Take() { return std::move(set_); }

 private:
  Status WalkItems(const NodeSchema& schema, const Value& value) {
    const ListElements list = ElementsOf(schema, value);
    if (!list.problem.empty()) return BadRequest(PathText(path_) + ": " + list.problem);
    const NodeSchema item = ItemSchema(schema);
    for (size_t i = 0; i < list.elements.size(); ++i) {
      path_.push_back(list.elements[i]);
      TRY_STATUS(Walk(item, value.items()[i]));
      TRY_STATUS(Insert());
      path_.pop_back();
    }
    return OkStatus();
  }

  Status Insert() {
    if (path_.empty()) return OkStatus();
    if (set_.Contains(path_)) return OkStatus();
    if (++inserted_ > kMaxOwnedFields) {
      return Status(Reason::kRequestTooLarge,
                    "the configuration states more than " + std::to_string(kMaxOwnedFields) +
                        " fields, which is all that one manager can own");
    }
    set_.Insert(path_);
    return OkStatus();
  }

  PathElements path_;
  FieldSet set_;
  size_t inserted_ = 0;
};

// Two lists or two objects side by side.
struct Pairs {
  struct Pair {
    std::string element;
    const Value* before = nullptr;
    const Value* after = nullptr;
    NodeSchema schema;
  };
  std::vector<Pair> all;
  std::unordered_map<std::string, size_t> index;

  Pair& At(std::string element) {
    const auto [found, is_new] = index.try_emplace(element, all.size());
    if (is_new) all.push_back({.element = std::move(element)});
    return all[found->second];
  }
};

class Comparing {
 public:
  void Walk(const NodeSchema& schema, const Value* before, const Value* after) {
    if (before != nullptr && before->is_null()) before = nullptr;
    if (after != nullptr && after->is_null()) after = nullptr;
    if (before == nullptr && after == nullptr) return;
    Pairs pairs;
    if (!Split(schema, before, after, pairs)) return Leaf(schema, before, after);
    for (const Pairs::Pair& pair : pairs.all) {
      path_.push_back(pair.element);
      Walk(pair.schema, pair.before, pair.after);
      path_.pop_back();
    }
    if (path_.empty() || schema.is_permanent) return;
    if (before == nullptr) out_.added.Insert(path_);
    if (after == nullptr) out_.removed.Insert(path_);
  }

  Differences Take() { return std::move(out_); }

 private:
  void Leaf(const NodeSchema& schema, const Value* before, const Value* after) {
    if (path_.empty() || schema.is_permanent) return;
    if (before == nullptr) {
      out_.added.Insert(path_);
    } else if (after == nullptr) {
      out_.removed.Insert(path_);
    } else if (!internal::SameLeaf(schema, *before, *after)) {
      out_.modified.Insert(path_);
    }
  }

  // False: the two are to be compared whole.
  static bool Split(const NodeSchema& schema,
                    const Value* before,
                    const Value* after,
                    Pairs& pairs) {
    if (schema.shape == Shape::kLeaf) return false;
    for (const bool is_after : {false, true}) {
      const Value* value = is_after ? after : before;
      if (value == nullptr) continue;
      if (IsList(schema.shape)) {
        if (!SplitItems(schema, *value, is_after, pairs)) return false;
      } else if (value->is_object()) {
        for (const auto& [name, member] : value->members()) {
          Put(pairs.At(FieldElement(name)), MemberSchema(schema, name), member, is_after);
        }
      } else {
        return false;
      }
    }
    return !pairs.all.empty();
  }
  static bool SplitItems(const NodeSchema& schema,
                         const Value& value,
                         bool is_after,
                         Pairs& pairs) {
    if (!value.is_array()) return false;
    const ListElements list = ElementsOf(schema, value);
    if (!list.problem.empty()) return false;
    for (size_t i = 0; i < list.elements.size(); ++i) {
      Put(pairs.At(list.elements[i]), ItemSchema(schema), value.items()[i], is_after);
    }
    return true;
  }
  static void Put(Pairs::Pair& pair, const NodeSchema& schema, const Value& value, bool is_after) {
    pair.schema = schema;
    (is_after ? pair.after : pair.before) = &value;
  }

  PathElements path_;
  Differences out_;
};

}  // namespace

Result<FieldSet> FieldsOf(const TypeInfo& type, const Value& configuration) {
  Stating stating;
  TRY_STATUS(stating.Walk(internal::RootSchema(type), configuration));
  return stating.Take();
}

Differences Compare(const TypeInfo& type, const Value& before, const Value& after) {
  Comparing comparing;
  comparing.Walk(internal::RootSchema(type), &before, &after);
  return comparing.Take();
}

}  // namespace berth::meta
