// SPDX-License-Identifier: Apache-2.0
// Writes XML whose text is well-formed whatever it is given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::runtime {

// Text for an attribute or between tags. What XML cannot carry (control characters, broken UTF-8)
// becomes U+FFFD.
std::string XmlText(std::string_view text);
// Whether XmlText and a parser give exactly this back.
bool IsXmlText(std::string_view text);

// Elements in the order of the calls; an element without content closes itself. Names are literals.
class XmlWriter {
 public:
  XmlWriter& Open(std::string_view name);
  // REQUIRES: directly after Open or another attribute.
  XmlWriter& Attribute(std::string_view name, std::string_view value);
  XmlWriter& Attribute(std::string_view name, int64_t value);
  XmlWriter& Text(std::string_view text);
  XmlWriter& Close();
  // <name>text</name>
  XmlWriter& Element(std::string_view name, std::string_view text);
  XmlWriter& Element(std::string_view name, int64_t value);

  // REQUIRES: everything is closed.
  std::string Take();

 private:
  void EndTag();

  std::string text_;
  std::vector<std::string> open_;
  bool in_tag_ = false;
};

}  // namespace berth::runtime
