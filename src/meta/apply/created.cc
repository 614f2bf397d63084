// SPDX-License-Identifier: Apache-2.0
#include "meta/apply/created.h"

#include <algorithm>
#include <string>
#include <utility>

#include "meta/apply/field_set.h"
#include "meta/apply/fields_v1.h"
#include "meta/apply/internal/node_schema.h"
#include "meta/apply/managers.h"
#include "meta/json.h"
#include "meta/reflect.h"

namespace berth::meta {

namespace {

using internal::ElementsOf;
using internal::ItemSchema;
using internal::ListElements;
using internal::NodeSchema;
using internal::Shape;

class Creation {
 public:
  RawJson Take(const TypeInfo& type, const void* object) {
    Members members;
    for (const Field& field : type.fields) {
      if (field.name == "status") continue;
      const bool is_metadata = field.name == "metadata";
      is_metadata ? AddMetadata(field, FieldAt(object, field), members)
                  : AddField(field, FieldAt(object, field), members);
    }
    if (members.empty() || count_ > kMaxOwnedFields) return {};
    return {Text(std::move(members))};
  }

 private:
  struct Member {
    std::string element;
    std::string below;  // JSON
  };
  using Members = std::vector<Member>;

  // In the order of WriteFieldsV1: the same set has one text.
  static std::string Text(Members members) {
    std::ranges::sort(members, {}, &Member::element);
    size_t size = 2;
    for (const Member& member : members) size += member.element.size() + member.below.size() + 4;
    std::string text;
    text.reserve(size);
    text += '{';
    for (const Member& member : members) {
      if (text.size() > 1) text += ',';
      AppendJsonString(member.element, text);
      text += ':';
      text += member.below;
    }
    text += '}';
    return text;
  }

  void AddMetadata(const Field& metadata, const void* value, Members& out) {
    Members members;
    for (const Field& field : metadata.type->fields) {
      if (!IsServersOwn(field.name)) AddField(field, FieldAt(value, field), members);
    }
    if (!members.empty()) out.push_back({FieldElement(metadata.name), Text(std::move(members))});
  }

  void AddFields(const TypeInfo& type, const void* value, Members& out) {
    for (const Field& field : type.fields) AddField(field, FieldAt(value, field), out);
  }

  void AddField(const Field& field, const void* value, Members& out) {
    if (field.options.inlined) {
      const TypeInfo* type = Unwrap(field.type, value);
      if (value != nullptr) AddFields(*type, value, out);
      return;
    }
    if (IsWritten(field, value)) {
      Add(internal::FieldSchema(field), field.type, FieldElement(field.name), value, out);
    }
  }

  // `type` without optionals, and the value in them: null if there is none.
  static const TypeInfo* Unwrap(const TypeInfo* type, const void*& value) {
    for (; type->kind == TypeKind::kOptional; type = type->element) {
      if (value != nullptr) value = type->optional->get(value);
    }
    return type;
  }

  void Add(const NodeSchema& schema,
           const TypeInfo* declared,
           std::string element,
           const void* value,
           Members& out) {
    Unwrap(declared, value);
    if (value == nullptr) return;
    Members below = Below(schema, value);
    if (below.empty() && schema.is_permanent) return;
    const bool is_member = !schema.is_permanent;
    if (is_member) ++count_;
    if (is_member && !below.empty()) below.push_back({".", "{}"});
    out.push_back({std::move(element), Text(std::move(below))});
  }

  Members Below(const NodeSchema& schema, const void* value) {
    Members members;
    switch (schema.shape) {
      case Shape::kLeaf: break;
      case Shape::kStruct: AddFields(*schema.type, value, members); break;
      case Shape::kMap: AddEntries(schema, value, members); break;
      case Shape::kKeyed:
      case Shape::kSet: AddItems(schema, value, members); break;
    }
    return members;
  }

  void AddEntries(const NodeSchema& schema, const void* value, Members& out) {
    struct Visit {
      Creation& self;
      const NodeSchema& schema;
      Members& out;
    } visit{.self = *this, .schema = schema, .out = out};
    schema.type->map->for_each(
        value, &visit, [](void* context, const std::string& key, const void* entry) {
          const auto& at = *static_cast<Visit*>(context);
          at.self.Add(internal::MemberSchema(at.schema, key),
                      at.schema.type->element,
                      FieldElement(key),
                      entry,
                      at.out);
        });
  }

  void AddItems(const NodeSchema& schema, const void* value, Members& out) {
    ListElements list = ElementsOf(schema, ToValue(*schema.type, value));
    if (!list.problem.empty()) return;
    const NodeSchema item = ItemSchema(schema);
    for (size_t i = 0; i < list.elements.size(); ++i) {
      Add(item,
          schema.type->element,
          std::move(list.elements[i]),
          schema.type->list->at(value, i),
          out);
    }
  }

  size_t count_ = 0;
};

}  // namespace

RawJson CreatedFields(const TypeInfo& type, const void* object) {
  return Creation().Take(type, object);
}

}  // namespace berth::meta
