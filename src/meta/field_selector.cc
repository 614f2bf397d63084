// SPDX-License-Identifier: Apache-2.0
#include "meta/field_selector.h"

#include <utility>

#include "base/strings.h"

namespace berth::meta {
namespace {

std::vector<std::string_view> SplitTerms(std::string_view text) {
  std::vector<std::string_view> terms;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '\\') {
      ++i;  // whatever follows is part of the value
    } else if (i >= text.size() || text[i] == ',') {
      terms.push_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  if (start < text.size()) terms.push_back(text.substr(start));
  return terms;
}

Result<std::string> Unescape(std::string_view text) {
  std::string value;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      const auto next = text.substr(i + 1, 1);
      if (next != "\\" && next != "," && next != "=") {
        return BadRequest("invalid field selector: invalid escape sequence: " +
                          Printable(text.substr(i, 2)));
      }
      value += next;
      ++i;
    } else if (text[i] == '=') {
      return BadRequest("invalid field selector: unescaped character in value: " +
                        std::to_string(static_cast<int>(text[i])));
    } else {
      value += text[i];
    }
  }
  return value;
}

}  // namespace

Result<FieldSelector> FieldSelector::Parse(std::string_view text) {
  if (text.size() > kTextMax) {
    return BadRequest("a field selector has at most " + std::to_string(kTextMax) +
                      " characters, not " + std::to_string(text.size()));
  }
  std::vector<Term> terms;
  for (const auto part : SplitTerms(text)) {
    if (part.empty()) continue;
    const size_t at = part.find('=');
    if (at == std::string_view::npos) {
      return BadRequest("invalid selector: '" + Printable(text) + "'; can't understand '" +
                        Printable(part) + "'");
    }
    Term term;
    term.equal = at == 0 || part[at - 1] != '!';
    term.field = part.substr(0, term.equal ? at : at - 1);
    const bool is_double = term.equal && part.substr(at).starts_with("==");
    TRY(term.value, Unescape(part.substr(at + (is_double ? 2 : 1))));
    terms.push_back(std::move(term));
  }
  return FieldSelector(std::move(terms));
}

std::optional<std::string_view> FieldSelector::RequiredValue(std::string_view field) const {
  for (const auto& term : terms_) {
    if (term.equal && term.field == field) return term.value;
  }
  return std::nullopt;
}

std::string FieldSelector::ToString() const {
  std::string out;
  for (const auto& term : terms_) {
    if (!out.empty()) out += ',';
    out += term.field + (term.equal ? "=" : "!=");
    for (const char c : term.value) {
      if (c == '\\' || c == ',' || c == '=') out += '\\';
      out += c;
    }
  }
  return out;
}

}  // namespace berth::meta
