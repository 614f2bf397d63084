// SPDX-License-Identifier: Apache-2.0
#include "apiserver/errors.h"

#include <utility>

#include "base/strings.h"

namespace berth::apiserver {

KindErrors::KindErrors(const meta::Scheme& scheme, const meta::KindInfo& kind)
    : group_(scheme.GroupOf(kind)), plural_(kind.plural), kind_(kind.kind) {}

std::string KindErrors::Subject(std::string_view name) const {
  std::string subject(plural_);
  if (!group_.empty()) subject += '.' + group_;
  return subject + ' ' + Quote(name);
}

Status KindErrors::Make(Reason reason, std::string_view name, std::string text) const {
  return Status(reason, std::move(text))
      .WithObject(
          {.group = group_, .kind = std::string(plural_), .name = std::string(name), .uid = ""});
}

Status KindErrors::NotFound(std::string_view name) const {
  return Make(Reason::kNotFound, name, Subject(name) + " not found");
}

Status KindErrors::AlreadyExists(std::string_view name) const {
  return Make(Reason::kAlreadyExists, name, Subject(name) + " already exists");
}

Status KindErrors::Modified(std::string_view name) const {
  return Conflict(name,
                  "the object has been modified; please apply your changes to the latest version "
                  "and try again");
}

Status KindErrors::Conflict(std::string_view name, std::string_view why) const {
  return Make(Reason::kConflict,
              name,
              "Operation cannot be fulfilled on " + Subject(name) + ": " + std::string(why));
}

Status KindErrors::Forbidden(std::string_view name, std::string_view why) const {
  return Make(Reason::kForbidden, name, Subject(name) + " is forbidden: " + std::string(why));
}

Status KindErrors::NamespaceTerminating(std::string_view name, std::string_view namespace_) const {
  const std::string space(namespace_);
  Cause cause{.kind = CauseKind::kNamespaceTerminating,
              .field = "metadata.namespace",
              .message = "namespace " + space + " is being terminated"};
  return Status(Reason::kForbidden,
                Subject(name) + " is forbidden: unable to create new content in namespace " +
                    space + " because it is being terminated",
                {std::move(cause)})
      .WithObject(
          {.group = group_, .kind = std::string(plural_), .name = std::string(name), .uid = ""});
}

Status KindErrors::Unreadable(std::string_view name, std::string_view why) const {
  return Make(Reason::kInternal,
              name,
              " cannot be read: " + std::string(why) + "; a deletion by force removes it");
}

Status KindErrors::TooLarge(std::string_view name, size_t bytes, size_t limit) const {
  return Make(Reason::kRequestTooLarge,
              name,
              Subject(name) + " is too large: " + std::to_string(bytes) + " bytes, the limit is " +
                  std::to_string(limit));
}

Status KindErrors::Invalid(std::string_view name, const meta::FieldErrors& errors) const {
  return errors.ToStatus(kind_, group_, name);
}

Status KindErrors::ResourceVersionRequired(std::string_view name) const {
  // Kubernetes shows the number as Go writes it, without quotes.
  Cause cause{.kind = CauseKind::kInvalid,
              .field = "metadata.resourceVersion",
              .message = "Invalid value: 0x0: must be specified for an update"};
  std::string text(kind_);
  if (!group_.empty()) text += '.' + group_;
  text += ' ' + Quote(name) + " is invalid: " + cause.field + ": " + cause.message;
  return Status(Reason::kInvalid, std::move(text), {std::move(cause)})
      .WithObject(
          {.group = group_, .kind = std::string(kind_), .name = std::string(name), .uid = ""});
}

Status KindErrors::MethodNotSupported(std::string_view verb) const {
  std::string resource(plural_);
  if (!group_.empty()) resource += '.' + group_;
  return Make(Reason::kMethodNotSupported,
              "",
              std::string(verb) + " is not supported on resources of kind \"" + resource + '"');
}

}  // namespace berth::apiserver
