// SPDX-License-Identifier: Apache-2.0
// Reading YAML. yaml-cpp parses and calls the Builder; its exceptions end here. The Builder cannot
// stop the parser, so after an error it ignores what follows.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <sstream>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/strings.h"
#include "meta/internal/yaml_scalar.h"
#include "meta/json.h"
#include "meta/yaml.h"

namespace berth::meta {
namespace {

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";

std::string Position(int line, int column) {
  return "invalid YAML at line " + std::to_string(line + 1) + ", column " +
         std::to_string(column + 1) + ": ";
}

// How much copying a value costs: its characters and nodes.
size_t Weight(const Value& value) {
  switch (value.type()) {
    case Value::Type::kString: return 1 + value.as_string().size();
    case Value::Type::kArray: {
      size_t sum = 1;
      for (const auto& item : value.items()) sum += Weight(item);
      return sum;
    }
    case Value::Type::kObject: {
      size_t sum = 1;
      for (const auto& member : value.members())
        sum += 1 + member.key.size() + Weight(member.value);
      return sum;
    }
    default: return 1;
  }
}

// yaml-cpp makes one byte each of the escapes \N and \_, which stand for U+0085 and U+00A0. In a
// document that is UTF-8 nothing else puts such a byte where a character begins.
std::string WithWholeEscapes(std::string_view text) {
  constexpr unsigned char kNextLine = 0x85;
  constexpr unsigned char kHardSpace = 0xa0;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    if (first == kNextLine || first == kHardSpace) out += '\xc2';
    const size_t size = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    out += text.substr(at, size);
    at += size;
  }
  return out;
}

class Builder : public YAML::EventHandler {
 public:
  explicit Builder(size_t documents_max) : documents_max_(documents_max) {}
  const Status& error() const { return error_; }
  std::vector<Value> TakeDocuments() { return std::move(documents_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_.size() == documents_max_) {
      Fail(mark, "more than " + std::to_string(documents_max_) + " documents");
    }
    documents_.emplace_back();
    anchors_.clear();
    stack_.clear();
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Add(mark, anchor, {}, KeyText{});
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (!error_.ok()) return;
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) return Fail(mark, "an alias to something around it");
    if (!Expand(mark, found->second)) return;
    const Value& value = found->second;
    Add(mark,
        0,
        value,
        value.is_string() ? KeyText{.text = value.as_string(), .valid = true} : KeyText{});
  }

  void OnScalar(const YAML::Mark& mark,
                const std::string& tag,
                YAML::anchor_t anchor,
                const std::string& parsed) override {
    if (!error_.ok()) return;
    const std::string text = IsValidUtf8(parsed) ? parsed : WithWholeEscapes(parsed);
    if (!IsValidUtf8(text)) return Fail(mark, "a text that is not UTF-8");
    Value value = tag == "?" ? internal::ResolvePlain(text) : Value(text);
    const auto name = std::string_view(tag).starts_with(kTagPrefix)
                          ? std::string_view(tag).substr(kTagPrefix.size())
                          : std::string_view();
    if (name == "int" || name == "float" || name == "bool" || name == "null") {
      value = internal::ResolvePlain(text);
    } else if (name == "binary") {
      auto bytes = Base64Decode(text);
      if (!bytes || !IsValidUtf8(*bytes)) return Fail(mark, "!!binary that is no base64 of text");
      value = Value(*std::move(bytes));
    }
    if (tag == "?" && (text == ".inf" || text == "-.inf" || text == "+.inf" || text == ".nan")) {
      return Fail(mark, text + " is no number in JSON");
    }
    KeyText key{.valid = !value.is_null(), .is_merge = tag == "?" && text == "<<"};
    // A number as a key keeps its JSON form: 0x10 is the key "16".
    key.text = value.is_string() ? value.as_string() : WriteJson(value);
    Add(mark, anchor, std::move(value), std::move(key));
  }

  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string& /*tag*/,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    Open(mark, anchor, Value::Array());
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark,
                  const std::string& /*tag*/,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    Open(mark, anchor, Value::Object());
  }
  void OnMapEnd() override { Close(); }

 private:
  // A scalar as a key of a mapping, if it can be one.
  struct KeyText {
    std::string text;
    bool valid = false;
    bool is_merge = false;
  };
  struct Frame {
    Value value;
    YAML::anchor_t anchor = 0;
    YAML::Mark mark;
    // Mappings: the key whose value comes next, and all keys so far.
    bool has_key = false;
    KeyText key;
    std::unordered_set<std::string> keys;
    std::vector<Value> merges;
  };

  void Fail(const YAML::Mark& mark, const std::string& why) {
    if (error_.ok()) error_ = BadRequest(Position(mark.line, mark.column) + why);
  }

  bool Expand(const YAML::Mark& mark, const Value& value) {
    expanded_ += Weight(value);
    if (expanded_ <= kMaxYamlExpansion) return true;
    Fail(mark, "aliases expand to more than " + std::to_string(kMaxYamlExpansion) + " characters");
    return false;
  }

  void Open(const YAML::Mark& mark, YAML::anchor_t anchor, Value empty) {
    if (!error_.ok()) return;
    if (stack_.size() >= kMaxJsonDepth) {
      return Fail(mark, "nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
    }
    if (!stack_.empty() && stack_.back().value.is_object() && !stack_.back().has_key) {
      return Fail(mark, "a key must be a word, not a list or a mapping");
    }
    Frame& frame = stack_.emplace_back();
    frame.value = std::move(empty);
    frame.anchor = anchor;
    frame.mark = mark;
  }

  void Close() {
    if (!error_.ok()) return;
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    // Merged keys never replace the mapping's own; of several merges the first wins.
    for (auto& merge : frame.merges) {
      for (auto& member : merge.members()) {
        if (frame.keys.insert(member.key).second)
          frame.value.members().push_back(std::move(member));
      }
    }
    Add(frame.mark, frame.anchor, std::move(frame.value), KeyText{});
  }

  void Add(const YAML::Mark& mark, YAML::anchor_t anchor, Value value, KeyText key) {
    if (!error_.ok()) return;
    if (anchor != 0) {
      if (!Expand(mark, value)) return;
      anchors_[anchor] = value;
    }
    if (stack_.empty()) {
      documents_.back() = std::move(value);
      return;
    }
    Frame& frame = stack_.back();
    if (frame.value.is_array()) {
      frame.value.items().push_back(std::move(value));
    } else if (!frame.has_key) {
      TakeKey(mark, frame, std::move(key));
    } else {
      frame.has_key = false;
      if (frame.key.is_merge) return Merge(mark, frame, std::move(value));
      frame.value.members().push_back({std::move(frame.key.text), std::move(value)});
    }
  }

  void TakeKey(const YAML::Mark& mark, Frame& frame, KeyText key) {
    if (!key.valid) return Fail(mark, "null is no key");
    if (!key.is_merge && !frame.keys.insert(key.text).second) {
      return Fail(mark, "key " + Quote(key.text) + " stands twice in this mapping");
    }
    frame.key = std::move(key);
    frame.has_key = true;
  }

  void Merge(const YAML::Mark& mark, Frame& frame, Value value) {
    if (value.is_object()) {
      frame.merges.push_back(std::move(value));
      return;
    }
    bool ok = value.is_array();
    for (size_t i = 0; ok && i < value.items().size(); ++i) ok = value.items()[i].is_object();
    if (!ok) return Fail(mark, "<< needs a mapping or a list of mappings");
    for (auto& item : value.items()) frame.merges.push_back(std::move(item));
  }

  Status error_;
  const size_t documents_max_;
  std::vector<Value> documents_;
  std::vector<Frame> stack_;
  std::unordered_map<YAML::anchor_t, Value> anchors_;
  size_t expanded_ = 0;
};

// The parser takes some control characters for the end of the text, and repairs bad UTF-8 silently.
Status CheckCharacters(std::string_view text) {
  int line = 0;
  size_t line_start = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<uint8_t>(text[at]);
    if (byte == '\n') {
      ++line;
      line_start = at + 1;
    } else if ((byte < 0x20 && byte != '\t' && byte != '\r') || byte == 0x7f) {
      return BadRequest(Position(line, static_cast<int>(at - line_start)) +
                        "control characters are not allowed");
    }
  }
  if (!IsValidUtf8(text)) return BadRequest("invalid YAML: the text is not UTF-8");
  return OkStatus();
}

bool LooksLikeJson(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && (text[start] == '{' || text[start] == '[');
}

}  // namespace

Result<std::vector<Value>> ParseYamlDocuments(std::string_view text, YamlLimits limits) {
  if (text.size() > limits.bytes) {
    return Status(Reason::kRequestTooLarge,
                  "YAML of " + std::to_string(text.size()) + " bytes is larger than the limit of " +
                      std::to_string(limits.bytes));
  }
  if (LooksLikeJson(text)) {
    if (auto json = ParseJson(text, limits.bytes); json.ok()) {
      std::vector<Value> documents;
      documents.push_back(*std::move(json));
      return documents;
    }
  }
  TRY_STATUS(CheckCharacters(text));
  Builder builder(limits.documents);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (builder.error().ok() && parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    if (!builder.error().ok()) return builder.error();
    return BadRequest(Position(error.mark.line, error.mark.column) + Printable(error.msg));
  } catch (const std::exception& error) {
    return BadRequest(std::string("invalid YAML: ") + Printable(error.what()));
  }
  if (!builder.error().ok()) return builder.error();
  return builder.TakeDocuments();
}

Result<Value> ParseYaml(std::string_view text) {
  TRY(auto documents, ParseYamlDocuments(text));
  if (documents.size() > 1) {
    return BadRequest("expected one YAML document, got " + std::to_string(documents.size()));
  }
  return documents.empty() ? Value() : std::move(documents.front());
}

}  // namespace berth::meta
