// SPDX-License-Identifier: Apache-2.0
// Questions about permissions: may someone do something? They are asked with a create and answered
// in status; nothing is stored.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "meta/kind.h"

namespace berth::apis::k8s {

struct ResourceAttributes {
  std::string namespace_;
  std::string verb;
  std::string group;
  std::string version;
  std::string resource;
  std::string subresource;
  std::string name;
  bool operator==(const ResourceAttributes&) const = default;
};
BERTH_DESCRIBE(ResourceAttributes,
               "io.k8s.api.authorization.v1.ResourceAttributes",
               "A request to a resource.",
               BERTH_FIELD(namespace_, "namespace", "Its namespace; empty for all or none."),
               BERTH_FIELD(verb, "verb", "get, list, watch, create, ...; * for all."),
               BERTH_FIELD(group, "group", "Group of the resource; * for all."),
               BERTH_FIELD(version, "version", "Version of the resource; * for all."),
               BERTH_FIELD(resource, "resource", "Plural name of the resource; * for all."),
               BERTH_FIELD(subresource, "subresource", "Subresource; empty for none."),
               BERTH_FIELD(name, "name", "Name of the object; empty for all."))

struct NonResourceAttributes {
  std::string path;
  std::string verb;
  bool operator==(const NonResourceAttributes&) const = default;
};
BERTH_DESCRIBE(NonResourceAttributes,
               "io.k8s.api.authorization.v1.NonResourceAttributes",
               "A request to a path that is no resource.",
               BERTH_FIELD(path, "path", "The path."),
               BERTH_FIELD(verb, "verb", "The HTTP method in lower case."))

struct SubjectAccessReviewSpec {
  std::optional<ResourceAttributes> resource_attributes;
  std::optional<NonResourceAttributes> non_resource_attributes;
  std::string user;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
  std::string uid;
};
BERTH_DESCRIBE(SubjectAccessReviewSpec,
               "io.k8s.api.authorization.v1.SubjectAccessReviewSpec",
               "Who wants to do what.",
               BERTH_FIELD(resource_attributes, "resourceAttributes", "A request to a resource."),
               BERTH_FIELD(non_resource_attributes,
                           "nonResourceAttributes",
                           "A request to a path that is no resource."),
               BERTH_FIELD(user, "user", "Name of the user."),
               BERTH_FIELD(groups, "groups", "Groups of the user.", {.list_type = "atomic"}),
               BERTH_FIELD(extra, "extra", "What else is known about the user."),
               BERTH_FIELD(uid, "uid", "UID of the user."))

struct SubjectAccessReviewStatus {
  bool allowed = false;
  bool denied = false;
  std::string reason;
  std::string evaluation_error;
  bool operator==(const SubjectAccessReviewStatus&) const = default;
};
BERTH_DESCRIBE(SubjectAccessReviewStatus,
               "io.k8s.api.authorization.v1.SubjectAccessReviewStatus",
               "The answer.",
               BERTH_FIELD(allowed, "allowed", "Whether it is allowed.", {.always = true}),
               BERTH_FIELD(denied, "denied", "Whether it is refused whatever others say."),
               BERTH_FIELD(reason, "reason", "Why."),
               BERTH_FIELD(evaluation_error,
                           "evaluationError",
                           "What went wrong while looking for the answer."))

struct SubjectAccessReview {
  meta::ObjectMeta metadata;
  SubjectAccessReviewSpec spec;
  SubjectAccessReviewStatus status;
};
BERTH_DESCRIBE(SubjectAccessReview,
               "io.k8s.api.authorization.v1.SubjectAccessReview",
               "Asks whether someone may do something.",
               BERTH_FIELD(metadata, "metadata", "Unused."),
               BERTH_FIELD(spec, "spec", "The question.", {.always = true}),
               BERTH_FIELD(status, "status", "The answer."))

struct LocalSubjectAccessReview {
  meta::ObjectMeta metadata;
  SubjectAccessReviewSpec spec;
  SubjectAccessReviewStatus status;
};
BERTH_DESCRIBE(LocalSubjectAccessReview,
               "io.k8s.api.authorization.v1.LocalSubjectAccessReview",
               "Asks whether someone may do something in one namespace.",
               BERTH_FIELD(metadata, "metadata", "Its namespace is the one asked about."),
               BERTH_FIELD(spec, "spec", "The question.", {.always = true}),
               BERTH_FIELD(status, "status", "The answer."))

struct SelfSubjectAccessReviewSpec {
  std::optional<ResourceAttributes> resource_attributes;
  std::optional<NonResourceAttributes> non_resource_attributes;
};
BERTH_DESCRIBE(SelfSubjectAccessReviewSpec,
               "io.k8s.api.authorization.v1.SelfSubjectAccessReviewSpec",
               "What the asker wants to do.",
               BERTH_FIELD(resource_attributes, "resourceAttributes", "A request to a resource."),
               BERTH_FIELD(non_resource_attributes,
                           "nonResourceAttributes",
                           "A request to a path that is no resource."))

struct SelfSubjectAccessReview {
  meta::ObjectMeta metadata;
  SelfSubjectAccessReviewSpec spec;
  SubjectAccessReviewStatus status;
};
BERTH_DESCRIBE(SelfSubjectAccessReview,
               "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
               "Asks whether the asker may do something.",
               BERTH_FIELD(metadata, "metadata", "Unused."),
               BERTH_FIELD(spec, "spec", "The question.", {.always = true}),
               BERTH_FIELD(status, "status", "The answer."))

struct SelfSubjectRulesReviewSpec {
  std::string namespace_;
};
BERTH_DESCRIBE(SelfSubjectRulesReviewSpec,
               "io.k8s.api.authorization.v1.SelfSubjectRulesReviewSpec",
               "Where the asker wants to do something.",
               BERTH_FIELD(namespace_, "namespace", "The namespace asked about."))

struct ResourceRule {
  std::vector<std::string> verbs;
  std::vector<std::string> api_groups;
  std::vector<std::string> resources;
  std::vector<std::string> resource_names;
  bool operator==(const ResourceRule&) const = default;
};
BERTH_DESCRIBE(ResourceRule,
               "io.k8s.api.authorization.v1.ResourceRule",
               "Verbs that are allowed on resources.",
               BERTH_FIELD(verbs, "verbs", "The verbs.", {.always = true, .list_type = "atomic"}),
               BERTH_FIELD(api_groups, "apiGroups", "The groups.", {.list_type = "atomic"}),
               BERTH_FIELD(resources, "resources", "The resources.", {.list_type = "atomic"}),
               BERTH_FIELD(resource_names,
                           "resourceNames",
                           "Only objects with these names; empty for all.",
                           {.list_type = "atomic"}))

struct NonResourceRule {
  std::vector<std::string> verbs;
  std::vector<std::string> non_resource_urls;
  bool operator==(const NonResourceRule&) const = default;
};
BERTH_DESCRIBE(
    NonResourceRule,
    "io.k8s.api.authorization.v1.NonResourceRule",
    "Verbs that are allowed on paths.",
    BERTH_FIELD(verbs, "verbs", "The verbs.", {.always = true, .list_type = "atomic"}),
    BERTH_FIELD(non_resource_urls, "nonResourceURLs", "The paths.", {.list_type = "atomic"}))

struct SubjectRulesReviewStatus {
  std::vector<ResourceRule> resource_rules;
  std::vector<NonResourceRule> non_resource_rules;
  bool incomplete = false;
  std::string evaluation_error;
};
BERTH_DESCRIBE(
    SubjectRulesReviewStatus,
    "io.k8s.api.authorization.v1.SubjectRulesReviewStatus",
    "Everything that is allowed.",
    BERTH_FIELD(resource_rules,
                "resourceRules",
                "What is allowed on resources.",
                {.always = true, .list_type = "atomic"}),
    BERTH_FIELD(non_resource_rules,
                "nonResourceRules",
                "What is allowed on paths.",
                {.always = true, .list_type = "atomic"}),
    BERTH_FIELD(incomplete, "incomplete", "Whether there may be more.", {.always = true}),
    BERTH_FIELD(evaluation_error,
                "evaluationError",
                "What went wrong while looking for the answer."))

struct SelfSubjectRulesReview {
  meta::ObjectMeta metadata;
  SelfSubjectRulesReviewSpec spec;
  SubjectRulesReviewStatus status;
};
BERTH_DESCRIBE(SelfSubjectRulesReview,
               "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
               "Asks for everything that the asker may do in one namespace.",
               BERTH_FIELD(metadata, "metadata", "Unused."),
               BERTH_FIELD(spec, "spec", "The question.", {.always = true}),
               BERTH_FIELD(status, "status", "The answer."))

extern const meta::KindInfo kSubjectAccessReviewKind;
extern const meta::KindInfo kLocalSubjectAccessReviewKind;
extern const meta::KindInfo kSelfSubjectAccessReviewKind;
extern const meta::KindInfo kSelfSubjectRulesReviewKind;
inline const meta::KindInfo& BerthKind(meta::Tag<SubjectAccessReview>) {
  return kSubjectAccessReviewKind;
}
inline const meta::KindInfo& BerthKind(meta::Tag<LocalSubjectAccessReview>) {
  return kLocalSubjectAccessReviewKind;
}
inline const meta::KindInfo& BerthKind(meta::Tag<SelfSubjectAccessReview>) {
  return kSelfSubjectAccessReviewKind;
}
inline const meta::KindInfo& BerthKind(meta::Tag<SelfSubjectRulesReview>) {
  return kSelfSubjectRulesReviewKind;
}

}  // namespace berth::apis::k8s
