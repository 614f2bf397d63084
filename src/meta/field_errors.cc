// SPDX-License-Identifier: Apache-2.0
#include "meta/field_errors.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace berth::meta {

namespace {

// "spec.volumes[].name" of "spec.volumes[1].name": items move when others come and go.
std::string OfAnyItem(std::string_view path) {
  std::string out;
  bool is_inside = false;
  for (const char c : path) {
    if (c == ']') is_inside = false;
    if (!is_inside) out += c;
    if (c == '[') is_inside = true;
  }
  return out;
}

}  // namespace

FieldPath FieldPath::Child(std::string_view name) const {
  std::string text = text_;
  if (!text.empty()) text += '.';
  text += name;
  return FieldPath(std::move(text));
}

FieldPath FieldPath::Index(size_t index) const {
  return FieldPath(text_ + "[" + std::to_string(index) + "]");
}

FieldPath FieldPath::Key(std::string_view key) const {
  return FieldPath(text_ + "[" + std::string(key) + "]");
}

void FieldErrors::Add(CauseKind kind, const FieldPath& path, std::string message) {
  if (causes_.size() == kMaxFieldErrors) return;
  causes_.push_back({kind, path.text(), std::move(message)});
}

void FieldErrors::Invalid(const FieldPath& path, std::string_view value, std::string_view why) {
  Add(CauseKind::kInvalid, path, "Invalid value: " + Quote(value) + ": " + std::string(why));
}

void FieldErrors::Invalid(const FieldPath& path, int64_t value, std::string_view why) {
  Add(CauseKind::kInvalid,
      path,
      "Invalid value: " + std::to_string(value) + ": " + std::string(why));
}

void FieldErrors::Required(const FieldPath& path, std::string_view why) {
  std::string message = "Required value";
  if (!why.empty()) message.append(": ").append(why);
  Add(CauseKind::kRequired, path, std::move(message));
}

void FieldErrors::NotFound(const FieldPath& path, std::string_view value) {
  Add(CauseKind::kNotFound, path, "Not found: " + Quote(value));
}

void FieldErrors::Duplicate(const FieldPath& path, std::string_view value) {
  Add(CauseKind::kDuplicate, path, "Duplicate value: " + Quote(value));
}

void FieldErrors::NotSupported(const FieldPath& path,
                               std::string_view value,
                               const std::vector<std::string_view>& supported) {
  std::string message = "Unsupported value: " + Quote(value);
  for (size_t i = 0; i < supported.size(); ++i) {
    message += i == 0 ? ": supported values: " : ", ";
    message += Quote(supported[i]);
  }
  Add(CauseKind::kNotSupported, path, std::move(message));
}

void FieldErrors::Forbidden(const FieldPath& path, std::string_view why) {
  Add(CauseKind::kForbidden, path, "Forbidden: " + std::string(why));
}

void FieldErrors::TooLong(const FieldPath& path, size_t bytes, size_t limit) {
  Add(CauseKind::kTooLong,
      path,
      "Too long: " + std::to_string(bytes) + " bytes: may not be more than " +
          std::to_string(limit) + " bytes");
}

void FieldErrors::TooMany(const FieldPath& path, size_t count, size_t limit) {
  Add(CauseKind::kTooMany,
      path,
      "Too many: " + std::to_string(count) + ": must have at most " + std::to_string(limit) +
          " items");
}

void FieldErrors::TypeInvalid(const FieldPath& path, std::string_view value, std::string_view why) {
  Add(CauseKind::kTypeInvalid, path, "Invalid value: " + Quote(value) + ": " + std::string(why));
}

bool FieldErrors::Has(CauseKind kind) const {
  return std::ranges::find(causes_, kind, &Cause::kind) != causes_.end();
}

void FieldErrors::ForgiveTooLong(const FieldErrors& before) {
  // What was not noted any more may be worse.
  if (causes_.size() == kMaxFieldErrors) return;
  std::erase_if(causes_, [&before](const Cause& cause) {
    if (cause.kind != CauseKind::kTooLong) return false;
    return std::ranges::any_of(before.causes_, [&cause](const Cause& old) {
      return old.kind == cause.kind && old.message == cause.message &&
             OfAnyItem(old.field) == OfAnyItem(cause.field);
    });
  });
}

Status FieldErrors::ToStatus(std::string_view kind,
                             std::string_view group,
                             std::string_view name) const {
  if (causes_.empty()) return OkStatus();
  std::vector<std::string> lines;
  for (const auto& cause : causes_) {
    std::string line = cause.field.empty() ? cause.message : cause.field + ": " + cause.message;
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
  }
  std::string message(kind);
  if (!group.empty()) message.append(".").append(group);
  message += " " + Quote(name) + " is invalid: ";
  message += lines.size() == 1 ? lines.front() : "[" + Join(lines, ", ") + "]";
  return Status(Reason::kInvalid, std::move(message), causes_)
      .WithObject(
          {.group = std::string(group), .kind = std::string(kind), .name = std::string(name)});
}

}  // namespace berth::meta
