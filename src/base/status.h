// SPDX-License-Identifier: Apache-2.0
// A Status says how an operation ended. Its reasons are Kubernetes StatusReasons, so a Status
// crosses HTTP and gRPC without losing meaning (the table is net/status_map.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace berth {

enum class Reason : uint8_t {
  kOk,
  kBadRequest,
  kUnauthorized,
  kForbidden,
  kNotFound,
  kMethodNotSupported,
  kNotAcceptable,
  kAlreadyExists,
  kConflict,
  kExpired,  // the revision asked for was compacted: list again
  kRequestTooLarge,
  kUnsupportedMediaType,
  kInvalid,
  kTooManyRequests,
  kTimeout,
  kCancelled,  // never leaves the process
  kInternal,
  kUnavailable,
};

// The Kubernetes spelling: "NotFound", "InternalError". kOk is "".
std::string_view ReasonName(Reason reason);
// The inverse; an unknown name is kInternal.
Reason ReasonFromName(std::string_view name);

// What is wrong with one field. Kinds are Kubernetes CauseTypes.
enum class CauseKind : uint8_t {
  kInvalid,               // FieldValueInvalid
  kRequired,              // FieldValueRequired
  kNotFound,              // FieldValueNotFound
  kDuplicate,             // FieldValueDuplicate
  kNotSupported,          // FieldValueNotSupported
  kForbidden,             // FieldValueForbidden
  kTooLong,               // FieldValueTooLong
  kTooMany,               // FieldValueTooMany
  kTypeInvalid,           // FieldValueTypeInvalid
  kNamespaceTerminating,  // NamespaceTerminating
};
std::string_view CauseKindName(CauseKind kind);

struct Cause {
  CauseKind kind = CauseKind::kInvalid;
  std::string field;    // "spec.volumes[1].name"
  std::string message;  // "Required value: ..." as Kubernetes words it, value and limit included
  bool operator==(const Cause&) const = default;
};

// The object that an error is about; becomes metav1.Status.details.
struct ErrorObject {
  std::string group;
  std::string kind;  // resource ("machines") or kind, as Kubernetes does for the reason at hand
  std::string name;
  std::string uid;
  bool operator==(const ErrorObject&) const = default;
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Reason reason, std::string message, std::vector<Cause> causes = {});

  bool ok() const { return rep_ == nullptr; }
  Reason reason() const { return rep_ ? rep_->reason : Reason::kOk; }
  bool Is(Reason reason) const { return this->reason() == reason; }
  // For a person: what failed, on which object, why. Lower case, no final full stop.
  std::string_view message() const {
    return rep_ ? std::string_view(rep_->message) : std::string_view();
  }
  std::span<const Cause> causes() const;
  const ErrorObject& object() const;
  std::optional<Duration> retry_after() const { return rep_ ? rep_->retry_after : std::nullopt; }

  // The same error with what was being done in front: "bind machine a/b: update: conflict". Ok
  // stays ok.
  Status Wrap(std::string_view doing) const;
  Status WithObject(ErrorObject object) const;
  Status WithRetryAfter(Duration after) const;

  // "NotFound: machines \"x\" not found" for logs and test failures.
  std::string ToString() const;
  bool operator==(const Status& other) const;

 private:
  struct Rep {
    Reason reason;
    std::string message;
    std::vector<Cause> causes;
    ErrorObject object;
    std::optional<Duration> retry_after;
    bool operator==(const Rep&) const = default;
  };
  std::shared_ptr<const Rep> rep_;  // null means ok: success costs nothing
};

std::ostream& operator<<(std::ostream& out, const Status& status);

inline Status OkStatus() { return {}; }
Status BadRequest(std::string message);
Status NotFound(std::string message);
Status AlreadyExists(std::string message);
Status Conflict(std::string message);
Status Expired(std::string message);
Status Forbidden(std::string message);
Status Unauthorized(std::string message);
Status Internal(std::string message);
Status Unavailable(std::string message);
Status Timeout(std::string message);
Status Cancelled(std::string message = "cancelled");

}  // namespace berth
