// SPDX-License-Identifier: Apache-2.0
#include "meta/jsonpath.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "meta/internal/jsonpath_tree.h"
#include "meta/json.h"

namespace berth::meta {

JsonPath::JsonPath(std::vector<Node> nodes) : nodes_(std::move(nodes)) {}
JsonPath::JsonPath(JsonPath&&) noexcept = default;
JsonPath& JsonPath::operator=(JsonPath&&) noexcept = default;
JsonPath::~JsonPath() = default;

class JsonPath::Evaluator {
 public:
  explicit Evaluator(const Value& root) : root_(root) {}

  Status Render(const std::vector<Node>& nodes, const Value& current, std::string& out) {
    for (const Node& node : nodes) {
      if (node.kind == Node::Kind::kText) {
        out += node.text;
        continue;
      }
      TRY(const auto results, Walk(node.path, node.from_root ? root_ : current));
      TRY_STATUS(RenderResults(node, results, out));
    }
    return OkStatus();
  }

  Status RenderResults(const Node& node,
                       const std::vector<const Value*>& results,
                       std::string& out) {
    for (size_t i = 0; i < results.size(); ++i) {
      if (node.kind == Node::Kind::kRange) {
        TRY_STATUS(Render(node.body, *results[i], out));
      } else {
        if (i > 0) out += ' ';
        Print(*results[i], out);
      }
      if (out.size() > kOutputMax) {
        return BadRequest("the JSONPath prints more than " + std::to_string(kOutputMax) + " bytes");
      }
    }
    return OkStatus();
  }

  Result<std::vector<const Value*>> Walk(const std::vector<Step>& steps, const Value& start) {
    std::vector<const Value*> current = {&start};
    for (const Step& step : steps) {
      std::vector<const Value*> next;
      for (const Value* value : current) {
        TRY_STATUS(Take(step, *value, next));
        visited_ += 1;
        if (next.size() + visited_ > kResultsMax) {
          return BadRequest("the JSONPath gives more than " + std::to_string(kResultsMax) +
                            " results");
        }
      }
      current = std::move(next);
    }
    return current;
  }

 private:
  static void Print(const Value& value, std::string& out) {
    if (value.is_string()) {
      out += value.as_string();
    } else {
      WriteJson(value, out);
    }
  }

  Status Take(const Step& step, const Value& value, std::vector<const Value*>& out) {
    switch (step.kind) {
      case Step::Kind::kField:
        if (const Value* found = value.Find(step.name)) out.push_back(found);
        break;
      case Step::Kind::kFields:
        for (const auto& name : step.names) {
          if (const Value* found = value.Find(name)) out.push_back(found);
        }
        break;
      case Step::Kind::kWildcard: Children(value, out); break;
      case Step::Kind::kRecursive: Descend(value, out); break;
      case Step::Kind::kIndexes:
        if (!value.is_array()) break;
        for (int64_t index : step.indexes) {
          const auto size = static_cast<int64_t>(value.items().size());
          if (index < 0) index += size;
          if (index >= 0 && index < size) {
            out.push_back(&value.items()[static_cast<size_t>(index)]);
          }
        }
        break;
      case Step::Kind::kSlice: Slice(step, value, out); break;
      case Step::Kind::kFilter: return Filter(step, value, out);
    }
    return OkStatus();
  }

  static void Children(const Value& value, std::vector<const Value*>& out) {
    if (value.is_array()) {
      for (const auto& item : value.items()) out.push_back(&item);
    } else if (value.is_object()) {
      for (const auto& member : value.members()) out.push_back(&member.value);
    }
  }

  static void Descend(const Value& value, std::vector<const Value*>& out) {
    out.push_back(&value);
    std::vector<const Value*> children;
    Children(value, children);
    for (const Value* child : children) {
      if (child->is_array() || child->is_object()) Descend(*child, out);
    }
  }

  static void Slice(const Step& step, const Value& value, std::vector<const Value*>& out) {
    if (!value.is_array()) return;
    const auto size = static_cast<int64_t>(value.items().size());
    const auto place = [&](std::optional<int64_t> at, int64_t otherwise) {
      const int64_t index = at.value_or(otherwise);
      return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size);
    };
    const int64_t stride = std::min(step.stride.value_or(1), size + 1);
    for (int64_t i = place(step.start, 0); i < place(step.end, size); i += stride) {
      out.push_back(&value.items()[static_cast<size_t>(i)]);
    }
  }

  Status Filter(const Step& step, const Value& value, std::vector<const Value*>& out) {
    std::vector<const Value*> candidates;
    Children(value, candidates);
    for (const Value* candidate : candidates) {
      TRY(const Value* left, OperandOf(step.left, *candidate));
      if (step.op.empty()) {
        if (left != nullptr) out.push_back(candidate);
        continue;
      }
      TRY(const Value* right, OperandOf(step.right, *candidate));
      if (left != nullptr && right != nullptr && Compare(step.op, *left, *right)) {
        out.push_back(candidate);
      }
    }
    return OkStatus();
  }

  Result<const Value*> OperandOf(const Step::Operand& operand, const Value& current) {
    if (!operand.is_path) return &operand.literal;
    TRY(const auto found, Walk(operand.path, operand.from_root ? root_ : current));
    return found.empty() ? static_cast<const Value*>(nullptr) : found.front();
  }

  static bool Compare(std::string_view op, const Value& left, const Value& right) {
    if (op == "==") return left == right;
    if (op == "!=") return !(left == right);
    int order = 0;
    if (left.is_number() && right.is_number()) {
      order = left.as_double() < right.as_double() ? -1 : left.as_double() > right.as_double();
    } else if (left.is_string() && right.is_string()) {
      order = left.as_string().compare(right.as_string());
    } else {
      return false;
    }
    if (op == "<") return order < 0;
    if (op == "<=") return order <= 0;
    if (op == ">") return order > 0;
    return order >= 0;
  }

  const Value& root_;
  size_t visited_ = 0;
};

Result<std::string> JsonPath::Render(const Value& value) const {
  std::string out;
  TRY_STATUS(Evaluator(value).Render(nodes_, value, out));
  return out;
}

Result<std::vector<const Value*>> JsonPath::Find(const Value& value) const {
  std::vector<const Value*> all;
  Evaluator evaluator(value);
  for (const Node& node : nodes_) {
    if (node.kind != Node::Kind::kPath) continue;
    TRY(const auto found, evaluator.Walk(node.path, value));
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

}  // namespace berth::meta
