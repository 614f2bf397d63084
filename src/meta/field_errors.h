// SPDX-License-Identifier: Apache-2.0
// FieldErrors collects everything that is wrong with an object, in Kubernetes' words, so that a
// user sees all of it at once:
//
//   errors.Required(FieldPath("spec").Child("volumes").Index(i).Child("name"));
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace berth::meta {

// "spec.volumes[1].name", "metadata.labels[app]".
class FieldPath {
 public:
  FieldPath() = default;
  explicit FieldPath(std::string text) : text_(std::move(text)) {}
  FieldPath Child(std::string_view name) const;
  FieldPath Index(size_t index) const;
  FieldPath Key(std::string_view key) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// What is wrong beyond this many causes is not told: an object of 1 MiB could be wrong in 100,000
// places.
constexpr size_t kMaxFieldErrors = 256;

class FieldErrors {
 public:
  // `value` is shown quoted; pass "" where there is none.
  void Invalid(const FieldPath& path, std::string_view value, std::string_view why);
  // A number is shown as it is.
  void Invalid(const FieldPath& path, int64_t value, std::string_view why);
  void Invalid(const FieldPath& path, const char* value, std::string_view why) {
    Invalid(path, std::string_view(value), why);
  }
  void Invalid(const FieldPath& path, int value, std::string_view why) {
    Invalid(path, int64_t{value}, why);
  }
  void Required(const FieldPath& path, std::string_view why = {});
  void NotFound(const FieldPath& path, std::string_view value);
  void Duplicate(const FieldPath& path, std::string_view value);
  void NotSupported(const FieldPath& path,
                    std::string_view value,
                    const std::vector<std::string_view>& supported);
  void Forbidden(const FieldPath& path, std::string_view why);
  void TooLong(const FieldPath& path, size_t bytes, size_t limit);
  void TooMany(const FieldPath& path, size_t count, size_t limit);
  void TypeInvalid(const FieldPath& path, std::string_view value, std::string_view why);

  bool empty() const { return causes_.empty(); }
  bool Has(CauseKind kind) const;
  const std::vector<Cause>& causes() const { return causes_; }

  // Forgets what is as much too long as it was `before`, to the byte: in the same field, of
  // whichever item.
  void ForgiveTooLong(const FieldErrors& before);

  // Ok, or Invalid with every cause: Machine.compute.ironcore.dev "x" is invalid: [a, b].
  Status ToStatus(std::string_view kind, std::string_view group, std::string_view name) const;

 private:
  void Add(CauseKind kind, const FieldPath& path, std::string message);
  std::vector<Cause> causes_;
};

}  // namespace berth::meta
