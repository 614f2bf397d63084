// SPDX-License-Identifier: Apache-2.0
// Reading JSONPath templates.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "meta/internal/jsonpath_tree.h"
#include "meta/json.h"
#include "meta/jsonpath.h"

namespace berth::meta {

class JsonPath::Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  // Up to the end, or to {end} inside a loop.
  Result<std::vector<Node>> Template(size_t depth) {
    std::vector<Node> nodes;
    while (at_ < text_.size()) {
      const size_t brace = std::min(text_.find('{', at_), text_.size());
      if (brace > at_) {
        nodes.push_back(
            {.kind = Node::Kind::kText, .text = std::string(text_.substr(at_, brace - at_))});
      }
      at_ = brace;
      if (at_ == text_.size()) break;
      ++at_;
      TRY(const bool ended, Expression(nodes, depth));
      if (ended) return nodes;
    }
    if (depth > 0) return Fail("{range} without {end}");
    return nodes;
  }

 private:
  static constexpr size_t kNestingMax = 32;

  Status Fail(const std::string& why) const {
    return BadRequest("invalid JSONPath at character " + std::to_string(at_ + 1) + ": " + why);
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void SkipSpace() {
    while (Peek() == ' ' || Peek() == '\t') ++at_;
  }

  // Behind '{'. True if it was {end}.
  Result<bool> Expression(std::vector<Node>& nodes, size_t depth) {
    SkipSpace();
    if (Take("end")) {
      if (depth == 0) return Fail("{end} without {range}");
      SkipSpace();
      if (!Take("}")) return Fail("expected '}'");
      return true;
    }
    if (text_.substr(at_).starts_with("range ") || text_.substr(at_).starts_with("range\t")) {
      at_ += 5;
      SkipSpace();
      if (depth >= kNestingMax) return Fail("loops nested too deep");
      Node node{.kind = Node::Kind::kRange};
      TRY_STATUS(Path(node.path, node.from_root, 0));
      if (!Take("}")) return Fail("expected '}'");
      TRY(node.body, Template(depth + 1));
      nodes.push_back(std::move(node));
      return false;
    }
    while (true) {
      SkipSpace();
      if (Take("}")) return false;
      if (at_ >= text_.size()) return Fail("unclosed '{'");
      if (Peek() == '"' || Peek() == '\'') {
        TRY(auto text, Quoted());
        nodes.push_back({.kind = Node::Kind::kText, .text = std::move(text)});
        continue;
      }
      Node node{.kind = Node::Kind::kPath};
      TRY_STATUS(Path(node.path, node.from_root, 0));
      nodes.push_back(std::move(node));
    }
  }

  Result<std::string> Quoted() {
    const char quote = Peek();
    ++at_;
    std::string out;
    while (Peek() != quote) {
      if (at_ >= text_.size()) return Fail("unterminated text");
      if (Peek() == '\\' && at_ + 1 < text_.size()) {
        ++at_;
        switch (Peek()) {
          case 'n': out += '\n'; break;
          case 't': out += '\t'; break;
          case 'r': out += '\r'; break;
          default: out += Peek();
        }
      } else {
        out += Peek();
      }
      ++at_;
    }
    ++at_;
    return out;
  }

  static bool EndsName(char c) {
    return c == '\0' || std::string_view(".[]{}() \t,=!<>'\"").contains(c);
  }

  Result<std::string> Name() {
    std::string name;
    while (true) {
      if (Peek() == '\\' && at_ + 1 < text_.size()) {
        ++at_;
      } else if (EndsName(Peek())) {
        break;
      }
      name += text_[at_++];
    }
    if (name.empty()) return Fail("expected a field name");
    return name;
  }

  // "$.a.b[0]", ".a", "@.a".
  Status Path(std::vector<Step>& steps, bool& from_root, size_t depth) {
    const size_t start = at_;
    if (Take("$")) {
      from_root = true;
    } else {
      Take("@");
    }
    while (true) {
      if (Take("..")) {
        steps.push_back({.kind = Step::Kind::kRecursive});
        if (Peek() == '[' || Peek() == '*') {
          if (Take("*")) steps.push_back({.kind = Step::Kind::kWildcard});
          continue;
        }
        TRY(auto name, Name());
        steps.push_back({.kind = Step::Kind::kField, .name = std::move(name)});
      } else if (Take(".")) {
        if (Take("*")) {
          steps.push_back({.kind = Step::Kind::kWildcard});
        } else if (!EndsName(Peek()) || Peek() == '\\') {
          TRY(auto name, Name());
          steps.push_back({.kind = Step::Kind::kField, .name = std::move(name)});
        } else if (Peek() != '[' && at_ - start > 1) {
          return Fail("expected a field name");
        }
      } else if (Take("[")) {
        TRY_STATUS(Brackets(steps, depth));
      } else {
        break;
      }
    }
    if (at_ == start) return Fail("expected a path such as .metadata.name");
    return OkStatus();
  }

  // Behind '['.
  Status Brackets(std::vector<Step>& steps, size_t depth) {
    SkipSpace();
    if (Take("?(")) {
      if (depth >= kNestingMax) return Fail("filters nested too deep");
      return Filter(steps, depth);
    }
    Step step;
    if (Take("*")) {
      step.kind = Step::Kind::kWildcard;
    } else if (Peek() == '\'' || Peek() == '"') {
      step.kind = Step::Kind::kFields;
      do {
        SkipSpace();
        if (Peek() != '\'' && Peek() != '"') return Fail("expected a name in quotes");
        TRY(auto name, Quoted());
        step.names.push_back(std::move(name));
        SkipSpace();
      } while (Take(","));
    } else {
      TRY_STATUS(Numbers(step));
    }
    SkipSpace();
    if (!Take("]")) return Fail("expected ']'");
    steps.push_back(std::move(step));
    return OkStatus();
  }

  Result<std::optional<int64_t>> Number() {
    SkipSpace();
    const size_t start = at_;
    if (Peek() == '-') ++at_;
    while (Peek() >= '0' && Peek() <= '9') ++at_;
    if (at_ == start) return std::optional<int64_t>();
    const auto number = ParseInt(text_.substr(start, at_ - start));
    if (!number) return Fail("expected a number");
    SkipSpace();
    return number;
  }

  Status Numbers(Step& step) {
    TRY(step.start, Number());
    if (Take(":")) {
      step.kind = Step::Kind::kSlice;
      TRY(step.end, Number());
      if (Take(":")) {
        TRY(step.stride, Number());
        if (step.stride && *step.stride < 1) return Fail("the step of a slice must be positive");
      }
      return OkStatus();
    }
    step.kind = Step::Kind::kIndexes;
    std::optional<int64_t> index = step.start;
    while (true) {
      if (!index) return Fail("expected an index, a slice, '*' or a filter");
      step.indexes.push_back(*index);
      if (!Take(",")) return OkStatus();
      TRY(index, Number());
    }
  }

  Status Filter(std::vector<Step>& steps, size_t depth) {
    Step step{.kind = Step::Kind::kFilter};
    TRY_STATUS(Operand(step.left, depth));
    SkipSpace();
    for (const std::string_view op : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!Take(op)) continue;
      step.op = op;
      TRY_STATUS(Operand(step.right, depth));
      break;
    }
    SkipSpace();
    if (!Take(")")) return Fail("expected a comparison or ')'");
    SkipSpace();
    if (!Take("]")) return Fail("expected ']'");
    if (step.op.empty() && !step.left.is_path) return Fail("a filter needs a path");
    steps.push_back(std::move(step));
    return OkStatus();
  }

  Status Operand(Step::Operand& operand, size_t depth) {
    SkipSpace();
    const char c = Peek();
    if (c == '@' || c == '$' || c == '.') {
      operand.is_path = true;
      return Path(operand.path, operand.from_root, depth + 1);
    }
    if (c == '\'' || c == '"') {
      TRY(auto text, Quoted());
      operand.literal = std::move(text);
      return OkStatus();
    }
    const size_t start = at_;
    while (at_ < text_.size() && !std::string_view(" \t)=!<>").contains(Peek())) ++at_;
    const auto word = text_.substr(start, at_ - start);
    auto literal = ParseJson(word);
    if (!literal.ok()) return Fail("expected a path, a number, true, false or text in quotes");
    operand.literal = *std::move(literal);
    return OkStatus();
  }

  std::string_view text_;
  size_t at_ = 0;
};

Result<JsonPath> JsonPath::Parse(std::string_view text) {
  if (text.size() > kTextMax) {
    return BadRequest("a JSONPath has at most " + std::to_string(kTextMax) + " characters, not " +
                      std::to_string(text.size()));
  }
  Parser parser(text);
  TRY(auto nodes, parser.Template(0));
  return JsonPath(std::move(nodes));
}

Result<JsonPath> JsonPath::ParseRelaxed(std::string_view text) {
  if (text.starts_with('{')) return Parse(text);
  std::string full = "{";
  if (!text.starts_with('.') && !text.starts_with('$') && !text.starts_with('[')) full += '.';
  full.append(text).append("}");
  return Parse(full);
}

}  // namespace berth::meta
