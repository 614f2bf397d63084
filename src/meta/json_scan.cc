// SPDX-License-Identifier: Apache-2.0
#include "meta/internal/json_scan.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/strings.h"

namespace berth::meta::internal {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

class Scanner {
 public:
  Scanner(std::string_view json, size_t max_depth) : json_(json), max_depth_(max_depth) {}

  JsonFault Run() {
    if (Value(0)) {
      SkipSpace();
      if (at_ < json_.size()) Fail("unexpected text behind the value");
    }
    return {at_, why_};
  }

 private:
  bool Fail(std::string why) {
    if (why_.empty()) why_ = at_ >= json_.size() ? "unexpected end" : std::move(why);
    return false;
  }
  char Peek() const { return at_ < json_.size() ? json_[at_] : '\0'; }
  void SkipSpace() {
    while (at_ < json_.size() && std::string_view(" \t\r\n").contains(json_[at_])) ++at_;
  }

  bool Value(size_t depth) {
    SkipSpace();
    if (depth >= max_depth_) {
      return Fail("nested deeper than " + std::to_string(max_depth_) + " levels");
    }
    switch (Peek()) {
      case '{': return Container(depth, '}');
      case '[': return Container(depth, ']');
      case '"': return String();
      case 't': return Word("true");
      case 'f': return Word("false");
      case 'n': return Word("null");
      default: return Number();
    }
  }

  bool Container(size_t depth, char close) {
    ++at_;
    SkipSpace();
    if (Peek() == close) return ++at_, true;
    while (true) {
      SkipSpace();
      if (close == '}') {
        if (Peek() != '"') return Fail("expected a key in quotes");
        if (!String()) return false;
        SkipSpace();
        if (Peek() != ':') return Fail("expected ':' behind a key");
        ++at_;
      }
      if (!Value(depth + 1)) return false;
      SkipSpace();
      if (Peek() == close) return ++at_, true;
      if (Peek() != ',') return Fail(std::string("expected ',' or '") + close + "'");
      ++at_;
    }
  }

  bool Word(std::string_view word) {
    if (!json_.substr(at_).starts_with(word)) return Fail("expected a value");
    at_ += word.size();
    return true;
  }

  bool Digits() {
    if (!IsDigit(Peek())) return Fail("expected a digit");
    while (IsDigit(Peek())) ++at_;
    return true;
  }

  bool Number() {
    const size_t start = at_;
    if (Peek() == '-') ++at_;
    if (!IsDigit(Peek())) {
      at_ = start;
      return Fail("expected a value");
    }
    if (Peek() == '0' && at_ + 1 < json_.size() && IsDigit(json_[at_ + 1])) {
      return Fail("a number must not begin with 0");
    }
    Digits();
    bool is_integer = true;
    if (Peek() == '.') {
      is_integer = false;
      ++at_;
      if (!Digits()) return false;
    }
    if (Peek() == 'e' || Peek() == 'E') {
      is_integer = false;
      ++at_;
      if (Peek() == '+' || Peek() == '-') ++at_;
      if (!Digits()) return false;
    }
    return InRange(start, is_integer);
  }

  bool InRange(size_t start, bool is_integer) {
    const auto text = json_.substr(start, at_ - start);
    bool fits = true;
    if (is_integer) {
      fits = ParseInt(text).has_value() || ParseUint(text).has_value();
    } else {
      fits = std::isfinite(std::strtod(std::string(text).c_str(), nullptr));
    }
    if (fits) return true;
    at_ = start;
    return Fail("the number is out of range");
  }

  bool String() {
    ++at_;
    while (at_ < json_.size() && json_[at_] != '"') {
      const auto byte = static_cast<uint8_t>(json_[at_]);
      if (byte < 0x20) return Fail("a control character inside a string");
      if (byte == '\\') {
        if (!Escape()) return false;
      } else if (byte < 0x80) {
        ++at_;
      } else if (!Multibyte()) {
        return false;
      }
    }
    if (at_ >= json_.size()) return Fail("");
    ++at_;
    return true;
  }

  bool Multibyte() {
    const auto byte = static_cast<uint8_t>(json_[at_]);
    const size_t size = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    if (!IsValidUtf8(json_.substr(at_, size))) return Fail("invalid UTF-8");
    at_ += size;
    return true;
  }

  // The code unit of "\uXXXX" at `at`, or -1.
  int Unit(size_t at) const {
    if (at + 6 > json_.size() || json_[at] != '\\' || json_[at + 1] != 'u') return -1;
    int unit = 0;
    for (size_t i = at + 2; i < at + 6; ++i) {
      if (!IsHex(json_[i])) return -1;
    }
    std::from_chars(json_.data() + at + 2, json_.data() + at + 6, unit, 16);
    return unit;
  }

  bool Escape() {
    const char next = at_ + 1 < json_.size() ? json_[at_ + 1] : '\0';
    if (next == 'u') {
      const int unit = Unit(at_);
      if (unit < 0) return Fail("expected four hexadecimal digits behind \\u");
      if (unit >= 0xdc00 && unit <= 0xdfff) return Fail("half a surrogate pair");
      if (unit >= 0xd800 && unit <= 0xdbff) {
        const int low = Unit(at_ + 6);
        if (low < 0xdc00 || low > 0xdfff) return Fail("half a surrogate pair");
        at_ += 6;
      }
      at_ += 6;
      return true;
    }
    if (!std::string_view("\"\\/bfnrt").contains(next) || next == '\0') {
      return Fail("unknown escape in a string");
    }
    at_ += 2;
    return true;
  }

  std::string_view json_;
  size_t max_depth_;
  size_t at_ = 0;
  std::string why_;
};

}  // namespace

JsonFault FindJsonFault(std::string_view json, size_t max_depth) {
  return Scanner(json, max_depth).Run();
}

}  // namespace berth::meta::internal
