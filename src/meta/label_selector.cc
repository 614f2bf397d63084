// SPDX-License-Identifier: Apache-2.0
#include "meta/label_selector.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/strings.h"
#include "meta/names.h"

namespace berth::meta {
namespace {

using Operator = Selector::Operator;
using Requirement = Selector::Requirement;

enum class TokenKind : uint8_t {
  kWord,
  kIn,
  kNotIn,
  kEquals,  // = and ==
  kNotEquals,
  kGreater,
  kLess,
  kNot,
  kOpen,
  kClose,
  kComma,
  kBad,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
};

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kSymbols = "=!(),><";

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { Advance(); }

  const Token& peek() const { return token_; }
  Token Take() {
    const Token token = token_;
    Advance();
    return token;
  }
  // As a key or a value, "in" and "notin" are words like any other.
  bool AtWord() const {
    return token_.kind == TokenKind::kWord || token_.kind == TokenKind::kIn ||
           token_.kind == TokenKind::kNotIn;
  }

 private:
  void Advance() {
    at_ = std::min(text_.find_first_not_of(kBlanks, at_), text_.size());
    if (at_ == text_.size()) {
      token_ = {};
      return;
    }
    if (kSymbols.contains(text_[at_])) {
      token_ = Symbol();
    } else {
      const size_t start = at_;
      while (at_ < text_.size() && !kBlanks.contains(text_[at_]) &&
             !kSymbols.contains(text_[at_])) {
        ++at_;
      }
      const auto word = text_.substr(start, at_ - start);
      token_ = {word == "in"      ? TokenKind::kIn
                : word == "notin" ? TokenKind::kNotIn
                                  : TokenKind::kWord,
                word};
    }
  }

  Token Symbol() {
    const auto take = [&](TokenKind kind, size_t size) {
      const auto symbol = text_.substr(at_, size);
      at_ += size;
      return Token{kind, symbol};
    };
    const bool then_equals = at_ + 1 < text_.size() && text_[at_ + 1] == '=';
    switch (text_[at_]) {
      case '=': return take(TokenKind::kEquals, then_equals ? 2 : 1);
      case '!': return then_equals ? take(TokenKind::kNotEquals, 2) : take(TokenKind::kNot, 1);
      case '(': return take(TokenKind::kOpen, 1);
      case ')': return take(TokenKind::kClose, 1);
      case ',': return take(TokenKind::kComma, 1);
      case '>': return take(TokenKind::kGreater, 1);
      case '<': return take(TokenKind::kLess, 1);
      default: return take(TokenKind::kBad, 1);
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  Token token_;
};

Status Unexpected(const Token& token, std::string_view expected) {
  return BadRequest("unable to parse requirement: found '" + Printable(token.text) +
                    "', expected: " + std::string(expected));
}

Status CheckKey(std::string_view key) {
  const auto problems = QualifiedNameProblems(key);
  if (problems.empty()) return OkStatus();
  return BadRequest("unable to parse requirement: <nil>: Invalid value: " + Quote(key) + ": " +
                    Join(problems, "; "));
}

Status CheckValues(const Requirement& requirement) {
  const bool compares =
      requirement.op == Operator::kGreaterThan || requirement.op == Operator::kLessThan;
  for (size_t i = 0; i < requirement.values.size(); ++i) {
    const auto& value = requirement.values[i];
    auto problems = LabelValueProblems(value);
    if (compares && !ParseInt(value)) {
      problems.insert(problems.begin(), "for 'Gt', 'Lt' operators, the value must be an integer");
    }
    if (problems.empty()) continue;
    return BadRequest("unable to parse requirement: values[" + std::to_string(i) + "][" +
                      requirement.key + "]: Invalid value: " + Quote(value) + ": " +
                      Join(problems, "; "));
  }
  return OkStatus();
}

// "(a,b)", "()", "(,a)": an empty place is the empty value.
Result<std::vector<std::string>> ParseSet(Lexer& lexer) {
  if (const auto open = lexer.Take(); open.kind != TokenKind::kOpen) {
    return Unexpected(open, "'('");
  }
  std::vector<std::string> values;
  while (true) {
    values.emplace_back(lexer.AtWord() ? lexer.Take().text : std::string_view());
    const auto next = lexer.Take();
    if (next.kind == TokenKind::kClose) return values;
    if (next.kind != TokenKind::kComma) return Unexpected(next, "',' or ')'");
  }
}

Result<std::vector<std::string>> ParseExact(Lexer& lexer) {
  const auto kind = lexer.peek().kind;
  if (kind == TokenKind::kEnd || kind == TokenKind::kComma) return std::vector<std::string>{""};
  if (!lexer.AtWord()) return Unexpected(lexer.peek(), "identifier");
  return std::vector<std::string>{std::string(lexer.Take().text)};
}

Result<Requirement> ParseRequirement(Lexer& lexer) {
  Requirement requirement;
  const bool negated = lexer.peek().kind == TokenKind::kNot;
  if (negated) lexer.Take();
  if (!lexer.AtWord()) return Unexpected(lexer.peek(), "identifier");
  requirement.key = lexer.Take().text;
  TRY_STATUS(CheckKey(requirement.key));
  const auto next = lexer.peek().kind;
  if (next == TokenKind::kEnd || next == TokenKind::kComma) {
    requirement.op = negated ? Operator::kDoesNotExist : Operator::kExists;
    return requirement;
  }
  const auto op = lexer.Take();
  if (negated) return Unexpected(op, "',' or 'end of string'");
  switch (op.kind) {
    case TokenKind::kIn:
    case TokenKind::kNotIn: {
      requirement.op = op.kind == TokenKind::kIn ? Operator::kIn : Operator::kNotIn;
      TRY(requirement.values, ParseSet(lexer));
      break;
    }
    case TokenKind::kEquals:
    case TokenKind::kNotEquals:
    case TokenKind::kGreater:
    case TokenKind::kLess: {
      requirement.op = op.kind == TokenKind::kEquals      ? Operator::kIn
                       : op.kind == TokenKind::kNotEquals ? Operator::kNotIn
                       : op.kind == TokenKind::kGreater   ? Operator::kGreaterThan
                                                          : Operator::kLessThan;
      TRY(requirement.values, ParseExact(lexer));
      break;
    }
    default: return Unexpected(op, "in, notin, =, ==, !=, gt, lt");
  }
  TRY_STATUS(CheckValues(requirement));
  return requirement;
}

std::optional<Operator> OperatorFromName(std::string_view name) {
  if (name == "In") return Operator::kIn;
  if (name == "NotIn") return Operator::kNotIn;
  if (name == "Exists") return Operator::kExists;
  if (name == "DoesNotExist") return Operator::kDoesNotExist;
  return std::nullopt;
}

void AppendRequirement(const Requirement& requirement, std::string& out) {
  const bool single = requirement.values.size() == 1;
  if (requirement.op == Operator::kDoesNotExist) out += '!';
  out += requirement.key;
  switch (requirement.op) {
    case Operator::kIn: out += single ? "=" : " in "; break;
    case Operator::kNotIn: out += single ? "!=" : " notin "; break;
    case Operator::kGreaterThan: out += '>'; break;
    case Operator::kLessThan: out += '<'; break;
    case Operator::kExists:
    case Operator::kDoesNotExist: return;
  }
  const auto values = Join(requirement.values, ",");
  out += single ? values : "(" + values + ")";
}

}  // namespace

void ValidateLabelSelector(const FieldPath& path,
                           const LabelSelector& selector,
                           FieldErrors& errors) {
  ValidateLabels(path.Child("matchLabels"), selector.match_labels, errors);
  for (size_t i = 0; i < selector.match_expressions.size(); ++i) {
    const auto& expression = selector.match_expressions[i];
    const auto at = path.Child("matchExpressions").Index(i);
    const auto op = OperatorFromName(expression.operator_);
    if (!op) {
      errors.Invalid(at.Child("operator"), expression.operator_, "not a valid selector operator");
    } else if (*op == Operator::kIn || *op == Operator::kNotIn) {
      if (expression.values.empty()) {
        errors.Required(at.Child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
      }
    } else if (!expression.values.empty()) {
      errors.Forbidden(at.Child("values"),
                       "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    }
    AddProblems(at.Child("key"), expression.key, QualifiedNameProblems(expression.key), errors);
    for (size_t k = 0; k < expression.values.size(); ++k) {
      AddProblems(at.Child("values").Index(k),
                  expression.values[k],
                  LabelValueProblems(expression.values[k]),
                  errors);
    }
  }
}

bool Selector::Requirement::Matches(std::optional<std::string_view> value) const {
  switch (op) {
    case Operator::kIn: return value && std::ranges::binary_search(values, *value, std::less<>());
    case Operator::kNotIn:
      return !value || !std::ranges::binary_search(values, *value, std::less<>());
    case Operator::kExists: return value.has_value();
    case Operator::kDoesNotExist: return !value;
    case Operator::kGreaterThan:
    case Operator::kLessThan: {
      const auto number = value ? ParseInt(*value) : std::nullopt;
      const auto limit = values.size() == 1 ? ParseInt(values.front()) : std::nullopt;
      if (!number || !limit) return false;
      return op == Operator::kGreaterThan ? *number > *limit : *number < *limit;
    }
  }
  return false;
}

Selector::Selector(std::vector<Requirement> requirements) : requirements_(std::move(requirements)) {
  for (auto& requirement : requirements_) {
    auto& values = requirement.values;
    std::ranges::sort(values);
    values.erase(std::ranges::unique(values).begin(), values.end());
  }
  std::ranges::sort(requirements_, [](const Requirement& a, const Requirement& b) {
    return std::tie(a.key, a.op, a.values) < std::tie(b.key, b.op, b.values);
  });
}

Result<Selector> Selector::Parse(std::string_view text) {
  if (text.size() > kTextMax) {
    return BadRequest("a label selector has at most " + std::to_string(kTextMax) +
                      " characters, not " + std::to_string(text.size()));
  }
  std::vector<Requirement> requirements;
  Lexer lexer(text);
  while (lexer.peek().kind != TokenKind::kEnd) {
    TRY(auto requirement, ParseRequirement(lexer));
    requirements.push_back(std::move(requirement));
    const auto next = lexer.Take();
    if (next.kind == TokenKind::kEnd) break;
    if (next.kind != TokenKind::kComma) return Unexpected(next, "',' or 'end of string'");
    if (!lexer.AtWord() && lexer.peek().kind != TokenKind::kNot) {
      return Unexpected(lexer.peek(), "identifier after ','");
    }
  }
  return Selector(std::move(requirements));
}

Result<Selector> Selector::From(const LabelSelector& selector) {
  std::vector<Requirement> requirements;
  requirements.reserve(selector.match_labels.size() + selector.match_expressions.size());
  for (const auto& [key, value] : selector.match_labels) {
    requirements.push_back({key, Operator::kIn, {value}});
  }
  for (const auto& expression : selector.match_expressions) {
    const auto op = OperatorFromName(expression.operator_);
    if (!op) {
      return BadRequest(Quote(expression.operator_) + " is not a valid label selector operator");
    }
    requirements.push_back({expression.key, *op, expression.values});
  }
  return Selector(std::move(requirements));
}

Selector Selector::FromLabels(const std::map<std::string, std::string>& labels) {
  std::vector<Requirement> requirements;
  requirements.reserve(labels.size());
  for (const auto& [key, value] : labels) requirements.push_back({key, Operator::kIn, {value}});
  return Selector(std::move(requirements));
}

bool Selector::Matches(const std::map<std::string, std::string>& labels) const {
  for (const auto& requirement : requirements_) {
    const auto found = labels.find(requirement.key);
    const auto value =
        found == labels.end() ? std::nullopt : std::optional<std::string_view>(found->second);
    if (!requirement.Matches(value)) return false;
  }
  return true;
}

std::optional<std::string_view> Selector::RequiredValue(std::string_view key) const {
  for (const auto& requirement : requirements_) {
    if (requirement.key == key && requirement.op == Operator::kIn &&
        requirement.values.size() == 1) {
      return requirement.values.front();
    }
  }
  return std::nullopt;
}

std::string Selector::ToString() const {
  std::string out;
  for (const auto& requirement : requirements_) {
    if (!out.empty()) out += ',';
    AppendRequirement(requirement, out);
  }
  return out;
}

}  // namespace berth::meta
