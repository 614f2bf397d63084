// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <array>
#include <ostream>
#include <utility>

#include "base/check.h"

namespace berth {
namespace {

struct ReasonRow {
  Reason reason;
  std::string_view name;
};

constexpr std::array kReasons = {
    ReasonRow{Reason::kOk, ""},
    ReasonRow{Reason::kBadRequest, "BadRequest"},
    ReasonRow{Reason::kUnauthorized, "Unauthorized"},
    ReasonRow{Reason::kForbidden, "Forbidden"},
    ReasonRow{Reason::kNotFound, "NotFound"},
    ReasonRow{Reason::kMethodNotSupported, "MethodNotAllowed"},
    ReasonRow{Reason::kNotAcceptable, "NotAcceptable"},
    ReasonRow{Reason::kAlreadyExists, "AlreadyExists"},
    ReasonRow{Reason::kConflict, "Conflict"},
    ReasonRow{Reason::kExpired, "Expired"},
    ReasonRow{Reason::kRequestTooLarge, "RequestEntityTooLarge"},
    ReasonRow{Reason::kUnsupportedMediaType, "UnsupportedMediaType"},
    ReasonRow{Reason::kInvalid, "Invalid"},
    ReasonRow{Reason::kTooManyRequests, "TooManyRequests"},
    ReasonRow{Reason::kTimeout, "Timeout"},
    ReasonRow{Reason::kCancelled, "Cancelled"},
    ReasonRow{Reason::kInternal, "InternalError"},
    ReasonRow{Reason::kUnavailable, "ServiceUnavailable"},
};

constexpr std::array<std::string_view, 10> kCauseKinds = {
    "FieldValueInvalid",
    "FieldValueRequired",
    "FieldValueNotFound",
    "FieldValueDuplicate",
    "FieldValueNotSupported",
    "FieldValueForbidden",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
    "NamespaceTerminating",
};

}  // namespace

std::string_view ReasonName(Reason reason) {
  const auto& row = kReasons[static_cast<size_t>(reason)];
  DCHECK(row.reason == reason);
  return row.name;
}

Reason ReasonFromName(std::string_view name) {
  for (const auto& row : kReasons) {
    if (row.name == name) return row.reason;
  }
  return Reason::kInternal;
}

std::string_view CauseKindName(CauseKind kind) { return kCauseKinds[static_cast<size_t>(kind)]; }

Status::Status(Reason reason, std::string message, std::vector<Cause> causes) {
  CHECK(reason != Reason::kOk) << "an error needs a reason: " << message;
  rep_ = std::make_shared<const Rep>(Rep{.reason = reason,
                                         .message = std::move(message),
                                         .causes = std::move(causes),
                                         .object = {},
                                         .retry_after = std::nullopt});
}

std::span<const Cause> Status::causes() const {
  return rep_ ? std::span<const Cause>(rep_->causes) : std::span<const Cause>();
}

const ErrorObject& Status::object() const {
  static const ErrorObject kNone;
  return rep_ ? rep_->object : kNone;
}

Status Status::Wrap(std::string_view doing) const {
  if (ok()) return *this;
  Rep rep = *rep_;
  rep.message = std::string(doing) + ": " + rep.message;
  Status wrapped;
  wrapped.rep_ = std::make_shared<const Rep>(std::move(rep));
  return wrapped;
}

Status Status::WithObject(ErrorObject object) const {
  if (ok()) return *this;
  Rep rep = *rep_;
  rep.object = std::move(object);
  Status changed;
  changed.rep_ = std::make_shared<const Rep>(std::move(rep));
  return changed;
}

Status Status::WithRetryAfter(Duration after) const {
  if (ok()) return *this;
  Rep rep = *rep_;
  rep.retry_after = after;
  Status changed;
  changed.rep_ = std::make_shared<const Rep>(std::move(rep));
  return changed;
}

std::string Status::ToString() const {
  if (ok()) return "ok";
  std::string text(ReasonName(rep_->reason));
  text += ": ";
  text += rep_->message;
  return text;
}

bool Status::operator==(const Status& other) const {
  if (rep_ == other.rep_) return true;
  return rep_ != nullptr && other.rep_ != nullptr && *rep_ == *other.rep_;
}

std::ostream& operator<<(std::ostream& out, const Status& status) {
  return out << status.ToString();
}

Status BadRequest(std::string message) { return {Reason::kBadRequest, std::move(message)}; }
Status NotFound(std::string message) { return {Reason::kNotFound, std::move(message)}; }
Status AlreadyExists(std::string message) { return {Reason::kAlreadyExists, std::move(message)}; }
Status Conflict(std::string message) { return {Reason::kConflict, std::move(message)}; }
Status Expired(std::string message) { return {Reason::kExpired, std::move(message)}; }
Status Forbidden(std::string message) { return {Reason::kForbidden, std::move(message)}; }
Status Unauthorized(std::string message) { return {Reason::kUnauthorized, std::move(message)}; }
Status Internal(std::string message) { return {Reason::kInternal, std::move(message)}; }
Status Unavailable(std::string message) { return {Reason::kUnavailable, std::move(message)}; }
Status Timeout(std::string message) { return {Reason::kTimeout, std::move(message)}; }
Status Cancelled(std::string message) { return {Reason::kCancelled, std::move(message)}; }

}  // namespace berth
