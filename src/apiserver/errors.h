// SPDX-License-Identifier: Apache-2.0
// Errors about objects in the words of Kubernetes, which clients and people know. Each carries the
// object that it is about.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "meta/field_errors.h"
#include "meta/kind.h"
#include "meta/scheme.h"

namespace berth::apiserver {

// Makes errors about objects of one kind: machines.compute.ironcore.dev "web-1" ...
class KindErrors {
 public:
  KindErrors(const meta::Scheme& scheme, const meta::KindInfo& kind);

  Status NotFound(std::string_view name) const;
  Status AlreadyExists(std::string_view name) const;
  // Someone else was faster.
  Status Modified(std::string_view name) const;
  Status Conflict(std::string_view name, std::string_view why) const;
  Status Forbidden(std::string_view name, std::string_view why) const;
  Status NamespaceTerminating(std::string_view name, std::string_view namespace_) const;
  // It is there, but somebody else wrote it, or it was damaged.
  Status Unreadable(std::string_view name, std::string_view why) const;
  Status TooLarge(std::string_view name, size_t bytes, size_t limit) const;
  // Machine.compute.ironcore.dev "web-1" is invalid: ... Ok if there are no errors.
  Status Invalid(std::string_view name, const meta::FieldErrors& errors) const;
  // An update that does not say which state it replaces.
  Status ResourceVersionRequired(std::string_view name) const;
  Status MethodNotSupported(std::string_view verb) const;

 private:
  Status Make(Reason reason, std::string_view name, std::string text) const;
  std::string Subject(std::string_view name) const;  // machines.compute.ironcore.dev "web-1"

  std::string group_;
  std::string_view plural_;
  std::string_view kind_;
};

}  // namespace berth::apiserver
