// SPDX-License-Identifier: Apache-2.0
#include "meta/explain.h"

#include <vector>

#include "base/strings.h"
#include "meta/reflect.h"

namespace berth::meta {
namespace {

constexpr size_t kIndentStep = 2;
constexpr size_t kTextWidth = 80;

const TypeInfo& WithoutOptional(const TypeInfo& type) {
  return type.kind == TypeKind::kOptional ? WithoutOptional(*type.element) : type;
}

// The struct inside lists, maps and optionals; null if there is none.
const TypeInfo* StructInside(const TypeInfo& type) {
  switch (type.kind) {
    case TypeKind::kStruct: return &type;
    case TypeKind::kOptional:
    case TypeKind::kList:
    case TypeKind::kMap: return StructInside(*type.element);
    default: return nullptr;
  }
}

// "compute.v1alpha1.MachineSpec" -> "MachineSpec".
std::string_view ShortName(std::string_view name) {
  return name.substr(name.rfind('.') + 1);  // npos + 1 is 0
}

std::string TypeText(const TypeInfo& type) {
  switch (type.kind) {
    case TypeKind::kBool: return "boolean";
    case TypeKind::kInt32:
    case TypeKind::kInt64: return "integer";
    case TypeKind::kDouble: return "number";
    case TypeKind::kTime: return "Time";
    case TypeKind::kMicroTime: return "MicroTime";
    case TypeKind::kQuantity: return "Quantity";
    case TypeKind::kIp: return "IP";
    case TypeKind::kIpPrefix: return "IPPrefix";
    case TypeKind::kIntOrString: return "IntOrString";
    case TypeKind::kValue:
    case TypeKind::kRawJson: return "Object";
    case TypeKind::kStruct: return std::string(ShortName(type.name));
    case TypeKind::kOptional: return TypeText(*type.element);
    case TypeKind::kList: return "[]" + TypeText(*type.element);
    case TypeKind::kMap: return "map[string]" + TypeText(*type.element);
    case TypeKind::kString:
    case TypeKind::kBase64: return "string";
  }
  return "";
}

void AppendWrapped(std::string_view text, size_t indent, std::string& out) {
  size_t column = 0;
  for (const auto word : Split(text, ' ')) {
    if (word.empty()) continue;
    if (column > 0 && column + 1 + word.size() > kTextWidth) {
      out += '\n';
      column = 0;
    }
    if (column == 0) {
      out.append(indent, ' ');
      column = indent;
    } else {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  out += '\n';
}

std::string FieldHead(const Field& field) {
  std::string head(field.name);
  head += "\t<" + TypeText(*field.type) + ">";
  if (field.options.required || field.options.always) head += " -required-";
  return head;
}

void AppendEnum(const Field& field, size_t indent, std::string& out) {
  std::vector<std::string> values;
  for (const auto value : field.options.values) {
    if (!value.empty()) values.emplace_back(value);
  }
  if (values.empty()) return;
  out.append(indent, ' ');
  out += "enum: " + Join(values, ", ") + "\n";
}

class Printer {
 public:
  explicit Printer(ExplainDepth depth) : depth_(depth) {}

  void Fields(const TypeInfo& type, size_t indent) {
    for (const Field& field : type.fields) {
      if (field.options.inlined) {
        Fields(WithoutOptional(*field.type), indent);
        continue;
      }
      out.append(indent, ' ');
      out += FieldHead(field) + "\n";
      AppendEnum(field, indent, out);
      if (depth_ == ExplainDepth::kRecursive) {
        Inner(*field.type, indent);
      } else {
        AppendWrapped(field.doc, indent + kIndentStep, out);
        out += '\n';
      }
    }
  }

  std::string out;

 private:
  void Inner(const TypeInfo& type, size_t indent) {
    const TypeInfo* inner = StructInside(type);
    if (inner == nullptr) return;
    // A type that contains itself is shown once.
    for (const TypeInfo* seen : stack_) {
      if (seen == inner) return;
    }
    stack_.push_back(inner);
    Fields(*inner, indent + kIndentStep);
    stack_.pop_back();
  }

  ExplainDepth depth_;
  std::vector<const TypeInfo*> stack_;
};

// apiVersion and kind are no fields of our structs, but of every object.
constexpr Field kTypeFields[] = {
    {.name = "apiVersion",
     .type = &TypeInfoOf<std::string>(),
     .doc = "Group and version of the schema that this object is written in."},
    {.name = "kind", .type = &TypeInfoOf<std::string>(), .doc = "What the object is."},
};

Status NoSuchField(std::string_view part, std::string_view path, const TypeInfo* type) {
  std::vector<std::string> names;
  if (type != nullptr) {
    for (const Field& field : type->fields) names.emplace_back(field.name);
  }
  std::string message = "field " + Quote(part) + " does not exist in " + Quote(path);
  if (const auto nearest = Nearest(part, names))
    message += ", did you mean " + Quote(*nearest) + "?";
  return NotFound(std::move(message));
}

}  // namespace

Result<std::string> Explain(const KindInfo& kind,
                            std::string_view group,
                            std::string_view path,
                            ExplainDepth depth) {
  const TypeInfo* type = kind.type;
  const Field* field = nullptr;
  for (const auto part : Split(path, '.')) {
    if (path.empty()) break;
    const TypeInfo* outer = type;
    FoundField found = outer == nullptr ? FoundField{} : FindField(*outer, part);
    if (field == nullptr && found.field == nullptr) {
      for (const Field& candidate : kTypeFields) {
        if (candidate.name == part) found.field = &candidate;
      }
    }
    if (found.field == nullptr) return NoSuchField(part, path, outer);
    field = found.field;
    type = StructInside(*field->type);
  }
  Printer printer(depth);
  std::string& out = printer.out;
  if (!group.empty()) out += "GROUP:      " + std::string(group) + "\n";
  out += "KIND:       " + std::string(kind.kind) + "\n";
  out += "VERSION:    " + std::string(kind.version) + "\n\n";
  if (field != nullptr) {
    out += "FIELD: " + std::string(field->name) + " <" + TypeText(*field->type) + ">";
    if (field->options.required || field->options.always) out += " -required-";
    out += "\n";
    AppendEnum(*field, 0, out);
    out += "\n";
  }
  out += "DESCRIPTION:\n";
  AppendWrapped(field != nullptr ? field->doc : kind.type->doc, 2 * kIndentStep, out);
  if (type == nullptr) return std::move(out);
  if (field != nullptr && !type->doc.empty() && type->doc != field->doc) {
    AppendWrapped(type->doc, 2 * kIndentStep, out);
  }
  out += "\nFIELDS:\n";
  if (field == nullptr) {
    static constexpr TypeInfo kTypeMeta = {.kind = TypeKind::kStruct, .fields = kTypeFields};
    printer.Fields(kTypeMeta, kIndentStep);
  }
  printer.Fields(*type, kIndentStep);
  return std::move(out);
}

}  // namespace berth::meta
