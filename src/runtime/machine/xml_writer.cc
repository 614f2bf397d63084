// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/xml_writer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/strings.h"

namespace berth::runtime {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool IsForbidden(unsigned char c) {
  constexpr unsigned char kSpace = 0x20;
  return c < kSpace && c != '\t' && c != '\n' && c != '\r';
}

// U+FFFE and U+FFFF are UTF-8 and no XML.
bool IsNoCharacter(std::string_view text, size_t at) {
  const std::string_view three = text.substr(at, 3);
  return three == "\xEF\xBF\xBE" || three == "\xEF\xBF\xBF";
}

}  // namespace

bool IsXmlText(std::string_view text) {
  if (!IsValidUtf8(text)) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (IsForbidden(static_cast<unsigned char>(text[i])) || IsNoCharacter(text, i)) return false;
  }
  return true;
}

std::string XmlText(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const bool is_utf8 = IsValidUtf8(text);
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    constexpr unsigned char kAsciiEnd = 0x80;
    const bool is_ascii = static_cast<unsigned char>(c) < kAsciiEnd;
    if (IsForbidden(static_cast<unsigned char>(c)) || (!is_utf8 && !is_ascii)) {
      out += kReplacement;
      continue;
    }
    if (IsNoCharacter(text, i)) {
      out += kReplacement;
      i += 2;
      continue;
    }
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&apos;"; break;
      // A parser makes spaces of these inside attributes, and a newline of a carriage return.
      case '\t': out += "&#9;"; break;
      case '\n': out += "&#10;"; break;
      case '\r': out += "&#13;"; break;
      default: out += c;
    }
  }
  return out;
}

XmlWriter& XmlWriter::Open(std::string_view name) {
  EndTag();
  text_.append("<").append(name);
  open_.emplace_back(name);
  in_tag_ = true;
  return *this;
}

XmlWriter& XmlWriter::Attribute(std::string_view name, std::string_view value) {
  CHECK(in_tag_) << "an attribute stands in a tag";
  text_.append(" ").append(name).append("=\"").append(XmlText(value)).append("\"");
  return *this;
}

XmlWriter& XmlWriter::Attribute(std::string_view name, int64_t value) {
  return Attribute(name, std::to_string(value));
}

XmlWriter& XmlWriter::Text(std::string_view text) {
  EndTag();
  text_ += XmlText(text);
  return *this;
}

XmlWriter& XmlWriter::Close() {
  CHECK(!open_.empty()) << "nothing is open";
  if (in_tag_) {
    text_ += "/>";
    in_tag_ = false;
  } else {
    text_.append("</").append(open_.back()).append(">");
  }
  open_.pop_back();
  return *this;
}

XmlWriter& XmlWriter::Element(std::string_view name, std::string_view text) {
  return Open(name).Text(text).Close();
}

XmlWriter& XmlWriter::Element(std::string_view name, int64_t value) {
  return Element(name, std::to_string(value));
}

std::string XmlWriter::Take() {
  CHECK(open_.empty()) << open_.back() << " is not closed";
  return std::exchange(text_, {});
}

void XmlWriter::EndTag() {
  if (in_tag_) text_ += '>';
  in_tag_ = false;
}

}  // namespace berth::runtime
