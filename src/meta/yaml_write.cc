// SPDX-License-Identifier: Apache-2.0
// Writing YAML.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/strings.h"
#include "meta/internal/yaml_scalar.h"
#include "meta/json.h"
#include "meta/yaml.h"

namespace berth::meta {
namespace {

constexpr size_t kIndentStep = 2;
constexpr size_t kLineWidth = 80;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0;
}

// Takes a run of digits, or one other character, off the front.
std::string_view TakePiece(std::string_view& text) {
  size_t size = 1;
  if (IsDigit(text.front())) {
    while (size < text.size() && IsDigit(text[size])) ++size;
  }
  const auto piece = text.substr(0, size);
  text.remove_prefix(size);
  return piece;
}

// Punctuation before digits before letters; runs of digits compare as numbers: k2 before k10.
bool NaturalLess(std::string_view a, std::string_view b) {
  const auto rank = [](char c) { return IsLetter(c) ? 2 : IsDigit(c) ? 1 : 0; };
  while (!a.empty() && !b.empty()) {
    const auto x = TakePiece(a);
    const auto y = TakePiece(b);
    if (x == y) continue;
    if (rank(x[0]) != rank(y[0])) return rank(x[0]) < rank(y[0]);
    if (rank(x[0]) != 1) return static_cast<uint8_t>(x[0]) < static_cast<uint8_t>(y[0]);
    const auto significant = [](std::string_view digits) {
      return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
    };
    const auto p = significant(x);
    const auto q = significant(y);
    if (p.size() != q.size()) return p.size() < q.size();
    return p == q ? x.size() < y.size() : p < q;
  }
  return a.empty() && !b.empty();
}

bool HasControl(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<uint8_t>(c);
    return (byte < 0x20 && byte != '\n') || byte == 0x7f;
  });
}

// Whether a text of one line may stand without quotes.
bool IsPlain(std::string_view text) {
  if (text.empty() || text.front() == ' ' || text.back() == ' ' || text.back() == ':') return false;
  if (text.starts_with("---") || text.starts_with("...")) return false;
  if (std::string_view("#,[]{}&*!|>'\"%@`").contains(text.front())) return false;
  if (std::string_view("-?:").contains(text.front()) && (text.size() == 1 || text[1] == ' ')) {
    return false;
  }
  return !text.contains(": ") && !text.contains(" #");
}

// Characters that must be escaped even though they are valid UTF-8: C1 controls, separators, marks.
bool HasUnprintable(std::string_view text) {
  for (size_t at = 0; at + 1 < text.size(); ++at) {
    const auto first = static_cast<uint8_t>(text[at]);
    const auto second = static_cast<uint8_t>(text[at + 1]);
    if (first == 0xc2 && second < 0xa0) return true;
    if (first == 0xe2 && second == 0x80 && at + 2 < text.size()) {
      const auto third = static_cast<uint8_t>(text[at + 2]);
      if (third == 0xa8 || third == 0xa9) return true;
    }
    if (first == 0xef && second == 0xbb) return true;
  }
  return false;
}

// A block literal keeps text exactly if no line ends in a space and there are no controls.
bool MayBeLiteral(std::string_view text) {
  return text.contains('\n') && !HasControl(text) && !HasUnprintable(text) &&
         !text.contains(" \n") && !text.ends_with(' ') && IsValidUtf8(text);
}

class Writer {
 public:
  std::string Take() { return std::move(out_); }

  void Document(const Value& value) {
    if (IsFilled(value)) {
      Block(value, 0, /*at_line_start=*/true);
    } else {
      Scalar(value, 0);
      out_ += '\n';
    }
  }

 private:
  static bool IsFilled(const Value& value) {
    return (value.is_array() && !value.items().empty()) ||
           (value.is_object() && !value.members().empty());
  }

  void Indent(size_t indent) { out_.append(indent, ' '); }

  // Writes items or members, one per line. If something stands on the line already ("- "), the
  // first follows it.
  void Block(const Value& value, size_t indent, bool at_line_start) {
    if (value.is_array()) {
      for (const auto& item : value.items()) {
        if (at_line_start) Indent(indent);
        at_line_start = true;
        out_ += "- ";
        if (IsFilled(item)) {
          Block(item, indent + kIndentStep, false);
        } else {
          Scalar(item, indent);
          out_ += '\n';
        }
      }
      return;
    }
    std::vector<const Value::Member*> members;
    for (const auto& member : value.members()) members.push_back(&member);
    std::ranges::sort(members,
                      [](const auto* a, const auto* b) { return NaturalLess(a->key, b->key); });
    for (const auto* member : members) {
      if (at_line_start) Indent(indent);
      at_line_start = true;
      Member(*member, indent);
    }
  }

  void Member(const Value::Member& member, size_t indent) {
    Key(member.key);
    out_ += ':';
    const Value& value = member.value;
    if (!IsFilled(value)) {
      out_ += ' ';
      Scalar(value, indent);
      out_ += '\n';
      return;
    }
    out_ += '\n';
    Block(value, value.is_array() ? indent : indent + kIndentStep, true);
  }

  void Key(std::string_view key) {
    if (key.contains('\n') || HasControl(key) || HasUnprintable(key) || !IsValidUtf8(key) ||
        internal::NeedsQuotes(key)) {
      DoubleQuoted(key);
    } else if (IsPlain(key)) {
      out_ += key;
    } else {
      SingleQuoted(key);
    }
  }

  void Scalar(const Value& value, size_t indent) {
    switch (value.type()) {
      case Value::Type::kArray: out_ += "[]"; break;
      case Value::Type::kObject: out_ += "{}"; break;
      case Value::Type::kString: String(value.as_string(), indent); break;
      case Value::Type::kDouble: Double(value.as_double()); break;
      default: WriteJson(value, out_);
    }
  }

  void String(std::string_view text, size_t indent) {
    if (MayBeLiteral(text)) {
      Literal(text, indent + kIndentStep);
    } else if (text.contains('\n') || HasControl(text) || HasUnprintable(text) ||
               !IsValidUtf8(text) || internal::NeedsQuotes(text)) {
      DoubleQuoted(text);
    } else if (IsPlain(text)) {
      Folded(text, indent + kIndentStep);
    } else {
      SingleQuoted(text);
    }
  }

  // Long lines break at single spaces, which a reader turns into spaces again.
  void Folded(std::string_view text, size_t indent) {
    size_t line_start = out_.rfind('\n') + 1;  // 0 if there is none
    for (size_t i = 0; i < text.size(); ++i) {
      const bool single_space = text[i] == ' ' && text[i - 1] != ' ' && text[i + 1] != ' ';
      if (single_space && out_.size() - line_start > kLineWidth) {
        out_ += '\n';
        line_start = out_.size();
        Indent(indent);
      } else {
        out_ += text[i];
      }
    }
  }

  void Literal(std::string_view text, size_t indent) {
    out_ += '|';
    // Without an explicit indentation the first line would set it.
    if (text.front() == ' ' || text.front() == '\n') out_ += std::to_string(kIndentStep);
    const bool ends_with_newline = text.ends_with('\n');
    if (!ends_with_newline) {
      out_ += '-';
    } else if (text.size() == 1 || text[text.size() - 2] == '\n') {
      out_ += '+';
    }
    if (ends_with_newline) text.remove_suffix(1);
    for (const auto line : Split(text, '\n')) {
      out_ += '\n';
      if (line.empty()) continue;
      Indent(indent);
      out_ += line;
    }
  }

  void SingleQuoted(std::string_view text) {
    out_ += '\'';
    for (const char c : text) {
      out_ += c;
      if (c == '\'') out_ += c;
    }
    out_ += '\'';
  }

  // JSON's escapes are all YAML's too.
  void DoubleQuoted(std::string_view text) {
    std::string json;
    AppendJsonString(text, json);
    for (size_t at = 0; at < json.size(); ++at) {
      if (json[at] == 0x7f) {
        out_ += "\\x7f";
      } else if ((json[at] & 0x80) == 0) {
        out_ += json[at];
      } else {
        at += Multibyte(std::string_view(json).substr(at)) - 1;
      }
    }
  }

  size_t Multibyte(std::string_view text) {
    const auto first = static_cast<uint8_t>(text[0]);
    const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    const auto character = text.substr(0, size);
    if (!HasUnprintable(character)) {
      out_ += character;
      return size;
    }
    unsigned code = size == 2 ? first & 0x1fU : first & 0x0fU;
    for (size_t i = 1; i < size; ++i) code = code << 6 | (static_cast<uint8_t>(text[i]) & 0x3fU);
    std::array<char, 16> escaped{};
    std::snprintf(escaped.data(), escaped.size(), "\\u%04X", code);
    out_ += escaped.data();
    return size;
  }

  // With an exponent only where JSON would have one, or below 0.0001.
  void Double(double value) {
    if (!std::isfinite(value)) {
      out_ += "null";
      return;
    }
    if (value == 0) value = 0;  // without a sign, as in JSON
    std::array<char, 64> buffer;
    const auto scientific = std::to_chars(
        buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
    const std::string_view text(buffer.data(), scientific.ptr);
    int exponent = 0;
    const auto digits = text.substr(text.find('e') + 1);
    std::from_chars(
        digits.data() + (digits.starts_with('+') ? 1 : 0), digits.data() + digits.size(), exponent);
    constexpr int kExponentFrom = 21;
    if (exponent < -4 || exponent >= kExponentFrom) {
      out_ += text;
    } else {
      const auto fixed = std::to_chars(
          buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
      out_.append(buffer.data(), fixed.ptr);
    }
  }

  std::string out_;
};

}  // namespace

std::string WriteYaml(const Value& value) {
  Writer writer;
  writer.Document(value);
  return writer.Take();
}

}  // namespace berth::meta
