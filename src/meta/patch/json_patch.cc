// SPDX-License-Identifier: Apache-2.0
// JSON patch, RFC 6902.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "meta/patch/patch.h"

namespace berth::meta {
namespace {

Status Unfit(std::string message) { return Status(Reason::kInvalid, std::move(message)); }

// "/a~1b/0" -> {"a/b", "0"}.
Result<std::vector<std::string>> ParsePointer(std::string_view text) {
  std::vector<std::string> tokens;
  if (text.empty()) return tokens;
  if (text.front() != '/') return BadRequest("path " + Quote(text) + " must begin with '/'");
  for (const auto part : Split(text.substr(1), '/')) {
    std::string token;
    for (size_t i = 0; i < part.size(); ++i) {
      if (part[i] != '~') {
        token += part[i];
        continue;
      }
      const char next = i + 1 < part.size() ? part[i + 1] : '\0';
      if (next != '0' && next != '1') {
        return BadRequest("path " + Quote(text) + ": '~' must be followed by 0 or 1");
      }
      token += next == '0' ? '~' : '/';
      ++i;
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

size_t Weight(const Value& value) {
  size_t sum = 1;
  if (value.is_string()) {
    sum += value.as_string().size();
  } else if (value.is_array()) {
    for (const auto& item : value.items()) sum += Weight(item);
  } else if (value.is_object()) {
    for (const auto& member : value.members()) sum += member.key.size() + Weight(member.value);
  }
  return sum;
}

std::optional<size_t> ParseIndex(std::string_view token) {
  if (token.empty() || (token.size() > 1 && token[0] == '0')) return std::nullopt;
  return ParseUint(token);
}

class Patcher {
 public:
  explicit Patcher(Value document) : document_(std::move(document)) {}

  Status Apply(const Value& operation) {
    if (!operation.is_object()) return BadRequest("an operation must be an object");
    const auto op = operation.GetString({"op"});
    const Value* path = operation.Find("path");
    if (path == nullptr || !path->is_string()) return BadRequest("an operation needs a path");
    const Value* value = operation.Find("value");
    if ((op == "add" || op == "replace" || op == "test") && value == nullptr && op != "test") {
      return BadRequest("operation " + Quote(op) + " needs a value");
    }
    if (op == "add") return Add(path->as_string(), *value);
    if (op == "replace") return Replace(path->as_string(), *value);
    if (op == "remove") return Remove(path->as_string());
    if (op == "test") return Test(path->as_string(), value == nullptr ? Value() : *value);
    if (op != "move" && op != "copy") return BadRequest("unknown operation " + Quote(op));
    const Value* from = operation.Find("from");
    if (from == nullptr || !from->is_string()) {
      return BadRequest("operation " + Quote(op) + " needs from");
    }
    if (op == "move") return Move(from->as_string(), path->as_string());
    return Copy(from->as_string(), path->as_string());
  }

  Value Take() { return std::move(document_); }

 private:
  Status Step(size_t count) {
    steps_ += count;
    if (steps_ <= kMaxJsonPatchSteps) return OkStatus();
    return Status(Reason::kRequestTooLarge, "the patch touches too much of the object");
  }

  // Null if there is nothing at the end of the tokens.
  Result<Value*> Find(const std::vector<std::string>& tokens, size_t count) {
    Value* at = &document_;
    for (size_t i = 0; i < count && at != nullptr; ++i) {
      if (at->is_object()) {
        TRY_STATUS(Step(at->members().size()));
        at = at->Find(tokens[i]);
      } else if (at->is_array()) {
        const auto index = ParseIndex(tokens[i]);
        at = index && *index < at->items().size() ? &at->items()[*index] : nullptr;
      } else {
        at = nullptr;
      }
    }
    return at;
  }
  Result<Value*> Existing(std::string_view path) {
    TRY(const auto tokens, ParsePointer(path));
    TRY(Value * found, Find(tokens, tokens.size()));
    if (found == nullptr) return Unfit("path " + Quote(path) + " does not exist");
    return found;
  }

  Status Add(std::string_view path, Value value) {
    TRY(const auto tokens, ParsePointer(path));
    if (tokens.empty()) {
      document_ = std::move(value);
      return OkStatus();
    }
    TRY(Value * parent, Find(tokens, tokens.size() - 1));
    const std::string& last = tokens.back();
    if (parent == nullptr || !(parent->is_object() || parent->is_array())) {
      return Unfit("add to " + Quote(path) + ": its parent does not exist");
    }
    if (parent->is_object()) {
      TRY_STATUS(Step(parent->members().size()));
      parent->Set(last, std::move(value));
      return OkStatus();
    }
    auto& items = parent->items();
    const auto index = last == "-" ? items.size() : ParseIndex(last);
    if (!index || *index > items.size()) {
      return Unfit("add to " + Quote(path) + ": the list has " + std::to_string(items.size()) +
                   " items");
    }
    TRY_STATUS(Step(items.size() - *index));
    items.insert(items.begin() + static_cast<ptrdiff_t>(*index), std::move(value));
    return OkStatus();
  }

  Status Replace(std::string_view path, const Value& value) {
    TRY(Value * found, Existing(path));
    *found = value;
    return OkStatus();
  }

  Status Remove(std::string_view path) {
    TRY_STATUS(Existing(path));
    TRY(const auto tokens, ParsePointer(path));
    if (tokens.empty()) return Unfit("the whole object cannot be removed");
    TRY(Value * parent, Find(tokens, tokens.size() - 1));
    if (parent->is_object()) {
      TRY_STATUS(Step(parent->members().size()));
      parent->Remove(tokens.back());
      return OkStatus();
    }
    auto& items = parent->items();
    const size_t index = *ParseIndex(tokens.back());
    TRY_STATUS(Step(items.size() - index));
    items.erase(items.begin() + static_cast<ptrdiff_t>(index));
    return OkStatus();
  }

  Status Test(std::string_view path, const Value& value) {
    TRY(const auto tokens, ParsePointer(path));
    TRY(const Value* found, Find(tokens, tokens.size()));
    // Testing for null holds for what is absent too.
    if (found == nullptr ? value.is_null() : *found == value) return OkStatus();
    return Unfit("testing value " + Quote(path) + " failed");
  }

  Status Move(std::string_view from, std::string_view path) {
    if (path.starts_with(from) && (path.size() == from.size() || path[from.size()] == '/')) {
      if (path.size() == from.size()) {
        TRY_STATUS(Existing(from));
        return OkStatus();
      }
      return Unfit("cannot move " + Quote(from) + " into itself");
    }
    TRY(Value * found, Existing(from));
    Value value = std::move(*found);
    TRY_STATUS(Remove(from));
    return Add(path, std::move(value));
  }

  Status Copy(std::string_view from, std::string_view path) {
    TRY(Value * found, Existing(from));
    copied_ += Weight(*found);
    if (copied_ > kMaxJsonPatchCopied) {
      return Status(
          Reason::kRequestTooLarge,
          "the patch copies more than " + std::to_string(kMaxJsonPatchCopied) + " characters");
    }
    return Add(path, *found);
  }

  Value document_;
  size_t steps_ = 0;
  size_t copied_ = 0;
};

}  // namespace

Result<Value> ApplyJsonPatch(const Value& current, const Value& patch) {
  if (!patch.is_array()) return BadRequest("a JSON patch must be a list of operations");
  const auto& operations = patch.items();
  if (operations.size() > kMaxJsonPatchOperations) {
    return Status(Reason::kRequestTooLarge,
                  "the allowed maximum operations in a JSON patch is " +
                      std::to_string(kMaxJsonPatchOperations) + ", got " +
                      std::to_string(operations.size()));
  }
  Patcher patcher(current);
  for (size_t i = 0; i < operations.size(); ++i) {
    const Status status = patcher.Apply(operations[i]);
    if (!status.ok()) return status.Wrap("JSON patch operation " + std::to_string(i));
  }
  return patcher.Take();
}

}  // namespace berth::meta
