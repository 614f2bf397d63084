// SPDX-License-Identifier: Apache-2.0
// How objects name each other.
#pragma once

#include <string>

#include "meta/type.h"

namespace berth::apis::core {

struct LocalObjectReference {
  std::string name;
  bool operator==(const LocalObjectReference&) const = default;
};
BERTH_DESCRIBE_ATOMIC(LocalObjectReference,
                      "io.k8s.api.core.v1.LocalObjectReference",
                      "Names an object in the same namespace, or a cluster-wide one.",
                      BERTH_FIELD(name, "name", "Name of the object."))

struct LocalUidReference {
  std::string name;
  std::string uid;
  bool operator==(const LocalUidReference&) const = default;
};
BERTH_DESCRIBE_ATOMIC(LocalUidReference,
                      "com.github.ironcore-dev.ironcore.api.common.v1alpha1.LocalUIDReference",
                      "Names one particular object in the same namespace: a later object with the "
                      "same name is another one.",
                      BERTH_FIELD(name, "name", "Name of the object.", {.required = true}),
                      BERTH_FIELD(uid, "uid", "UID of the object.", {.always = true}))

struct SecretKeySelector {
  std::string name;
  std::string key;
  bool operator==(const SecretKeySelector&) const = default;
};
BERTH_DESCRIBE_ATOMIC(SecretKeySelector,
                      "com.github.ironcore-dev.ironcore.api.common.v1alpha1.SecretKeySelector",
                      "Names one entry of a Secret in the same namespace.",
                      BERTH_FIELD(name, "name", "Name of the Secret."),
                      BERTH_FIELD(key, "key", "Entry of the Secret; empty takes the usual one."))

}  // namespace berth::apis::core
