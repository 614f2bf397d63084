// SPDX-License-Identifier: Apache-2.0
// metav1.Status: how a request ended, as clients read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meta/type.h"

namespace berth::apis::meta_v1 {

struct ListMeta {
  std::string self_link;
  std::string resource_version;
  std::string continue_;
  std::optional<int64_t> remaining_item_count;
  bool operator==(const ListMeta&) const = default;
};
BERTH_DESCRIBE(ListMeta,
               "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta",
               "What a list has besides its items.",
               BERTH_FIELD(self_link, "selfLink", "Deprecated; never set."),
               BERTH_FIELD(resource_version,
                           "resourceVersion",
                           "The state that the list shows; watch from here on."),
               BERTH_FIELD(continue_, "continue", "Send it back to get the next page."),
               BERTH_FIELD(remaining_item_count,
                           "remainingItemCount",
                           "How many items follow, if known."))

struct StatusCause {
  std::string reason;
  std::string message;
  std::string field;
  bool operator==(const StatusCause&) const = default;
};
BERTH_DESCRIBE(StatusCause,
               "io.k8s.apimachinery.pkg.apis.meta.v1.StatusCause",
               "One of the things that are wrong.",
               BERTH_FIELD(reason, "reason", "One word for programs, such as FieldValueRequired."),
               BERTH_FIELD(message, "message", "A sentence for people."),
               BERTH_FIELD(field, "field", "The field, such as spec.volumes[0].name."))

struct StatusDetails {
  std::string name;
  std::string group;
  std::string kind;
  std::string uid;
  std::vector<StatusCause> causes;
  int32_t retry_after_seconds = 0;
  bool operator==(const StatusDetails&) const = default;
};
BERTH_DESCRIBE(StatusDetails,
               "io.k8s.apimachinery.pkg.apis.meta.v1.StatusDetails",
               "What a failure is about.",
               BERTH_FIELD(name, "name", "Name of the object."),
               BERTH_FIELD(group, "group", "Group of the object."),
               BERTH_FIELD(kind, "kind", "Kind or resource of the object."),
               BERTH_FIELD(uid, "uid", "UID of the object."),
               BERTH_FIELD(causes, "causes", "Everything that is wrong.", {.list_type = "atomic"}),
               BERTH_FIELD(retry_after_seconds,
                           "retryAfterSeconds",
                           "When it is worth trying again."))

struct Status {
  std::string kind;
  std::string api_version;
  ListMeta metadata;
  std::string status;
  std::string message;
  std::string reason;
  std::optional<StatusDetails> details;
  int32_t code = 0;
  bool operator==(const Status&) const = default;
};
BERTH_DESCRIBE(Status,
               "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
               "How a request ended.",
               BERTH_FIELD(kind, "kind", "Status."),
               BERTH_FIELD(api_version, "apiVersion", "v1."),
               BERTH_FIELD(metadata, "metadata", "Nothing of interest."),
               BERTH_FIELD(status, "status", "Success or Failure."),
               BERTH_FIELD(message, "message", "A sentence for people."),
               BERTH_FIELD(reason, "reason", "One word for programs, such as NotFound."),
               BERTH_FIELD(details, "details", "What a failure is about."),
               BERTH_FIELD(code, "code", "The HTTP status code."))

}  // namespace berth::apis::meta_v1
