// SPDX-License-Identifier: Apache-2.0
// An AuditPolicy says how much the audit log tells of a request: audit.k8s.io/v1 Policy, as
// Kubernetes reads it. The first rule that fits decides; without one nothing is recorded.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/identity.h"
#include "base/result.h"

namespace berth::apiserver {

enum class AuditLevel : uint8_t {
  kNone,
  kMetadata,         // who, what, when, with what result
  kRequest,          // and what was sent
  kRequestResponse,  // and the answer
};

// When something can be told of a request. Kubernetes has RequestReceived and Panic, too, of which
// nothing is ever told here.
enum class AuditStage : uint8_t {
  kResponseStarted,   // a conversation with a guest has begun
  kResponseComplete,  // everything else: it has ended, or the request was answered
};

// Of resources, all of a group or some: "machines", "machines/status", "*/status", "*".
struct AuditResources {
  std::string group;
  std::vector<std::string> resources;       // empty: all
  std::vector<std::string> resource_names;  // empty: all
};

// Empty lists fit everything.
struct AuditRule {
  std::string level;
  std::vector<std::string> users;
  std::vector<std::string> user_groups;
  std::vector<std::string> verbs;
  std::vector<AuditResources> resources;       // with these or namespaces, only of resources
  std::vector<std::string> namespaces;         // "" is cluster-scoped
  std::vector<std::string> non_resource_urls;  // "/metrics", "/openapi/*"
  std::vector<std::string> omit_stages;        // beside those of the policy; empty: none
};

class AuditPolicy {
 public:
  // YAML or JSON. BadRequest names the field.
  static Result<AuditPolicy> Parse(std::string_view text);

  AuditLevel LevelOf(const Identity& identity, const RequestInfo& request) const;
  // Whether such a request is told of at this stage.
  bool Tells(const Identity& identity, const RequestInfo& request, AuditStage stage) const;

 private:
  struct Rule {
    AuditLevel level = AuditLevel::kNone;
    AuditRule rule;
    std::set<AuditStage> omitted = {};
  };
  // Null: none fits.
  const Rule* FindRule(const Identity& identity, const RequestInfo& request) const;

  std::vector<Rule> rules_;
};

// Whether bodies of such a request may be recorded at all: not of Secrets, nor of reviews, which
// carry tokens.
bool MayShowBodies(const RequestInfo& request);

}  // namespace berth::apiserver
