// SPDX-License-Identifier: Apache-2.0
#include "apiserver/policy/policy_feed.h"

#include <utility>

#include "apis/k8s/config_map.h"
#include "apis/k8s/secret.h"
#include "apiserver/authn/revoked_users.h"
#include "apiserver/authz/policy_objects.h"
#include "base/log.h"
#include "meta/at_rest.h"
#include "meta/field_selector.h"
#include "pki/token.h"
#include "rt/sleep.h"

namespace berth::apiserver {
namespace {

namespace k8s = apis::k8s;

// Between two tries to read policy while the registry is in trouble.
constexpr Duration kRetryPause = Duration::Millis(200);

Selection SelectionOf(const meta::KindInfo& kind) {
  Selection selection;
  if (&kind == &k8s::kSecretKind) selection.namespace_ = pki::kTokenNamespace;
  if (&kind == &k8s::kConfigMapKind) {
    selection.namespace_ = pki::kTokenNamespace;
    // Hosts have a record each in this namespace.
    selection.fields = meta::FieldSelector(
        {{.field = "metadata.name", .value = std::string(kRevokedUsersRecord), .equal = true}});
  }
  return selection;
}

}  // namespace

rt::Task<Result<std::unique_ptr<PolicyFeed>>> PolicyFeed::Start(rt::Loop& loop,
                                                                Registry& registry,
                                                                Authorizer& authorizer,
                                                                Authenticator& authenticator) {
  std::unique_ptr<PolicyFeed> feed(new PolicyFeed(loop, registry, authorizer, authenticator));
  auto kinds = PolicyKinds();
  kinds.push_back(&k8s::kSecretKind);
  kinds.push_back(&k8s::kConfigMapKind);
  for (const meta::KindInfo* kind : kinds) {
    auto watch = co_await feed->Load(kind);
    if (!watch.ok()) {
      CO_TRY_STATUS(co_await feed->Close());
      co_return watch.status().Wrap("read policy");
    }
    feed->scope_.Spawn("policy.follow", feed->Follow(kind, *std::move(watch)));
  }
  co_return feed;
}

rt::Task<Status> PolicyFeed::Close() { co_return co_await scope_.Close(); }

rt::Task<Result<std::shared_ptr<RegistryWatch>>> PolicyFeed::Load(const meta::KindInfo* kind) {
  ListRequest request;
  request.selection = SelectionOf(*kind);
  CO_TRY(const auto page, co_await registry_.List(*kind, std::move(request)));
  std::set<ObjectKey> present;
  // Whom it locks out is not known: nobody is let in.
  const bool is_revocation = kind == &k8s::kConfigMapKind;
  if (is_revocation && !page.passed_over.empty()) {
    co_return Internal("who was revoked cannot be read: " + page.passed_over.front().key);
  }
  for (const auto& item : page.items) {
    auto decoded =
        meta::DecodeAtRest(*kind, item.at_rest.view(), std::to_string(item.revision.value));
    if (is_revocation) CO_TRY_STATUS(decoded.status());
    if (!decoded.ok()) {
      // It grants nothing.
      LOG_ERROR("policy: {}", decoded.status().ToString());
      continue;
    }
    const meta::Object& object = *decoded;
    present.insert({.namespace_ = object.metadata().namespace_, .name = object.metadata().name});
    Apply(object);
  }
  const std::set<ObjectKey> before = fed_[kind];
  for (const auto& key : before) {
    if (!present.contains(key)) Forget(*kind, key);
  }
  fed_[kind] = std::move(present);
  WatchStart start;
  start.selection = SelectionOf(*kind);
  start.resource_version = std::to_string(page.revision.value);
  CO_TRY(auto watch, co_await registry_.Watch(*kind, std::move(start)));
  co_return std::shared_ptr<RegistryWatch>(std::move(watch));
}

rt::Task<Status> PolicyFeed::Follow(const meta::KindInfo* kind,
                                    std::shared_ptr<RegistryWatch> watch) {
  while (true) {
    auto events = co_await watch->Next();
    if (!events.ok()) {
      if (events.status().Is(Reason::kCancelled)) co_return events.status();
      auto again = co_await Load(kind);
      if (again.ok()) {
        watch = *std::move(again);
        continue;
      }
      LOG_WARNING("policy: {}", again.status().ToString());
      CO_TRY_STATUS(co_await rt::Sleep(kRetryPause));
      continue;
    }
    for (const auto& event : *events) {
      if (event.type == RegistryEvent::Type::kBookmark) continue;
      auto object = meta::DecodeAtRest(*kind, event.object.at_rest.view(), "");
      if (!object.ok()) {
        // Nothing tells which object it was; it keeps the rights that it had and the operator
        // learns of it.
        LOG_ERROR("policy: {}", object.status().ToString());
        continue;
      }
      const ObjectKey key{.namespace_ = object->metadata().namespace_,
                          .name = object->metadata().name};
      if (event.type == RegistryEvent::Type::kDeleted) {
        fed_[kind].erase(key);
        Forget(*kind, key);
      } else {
        fed_[kind].insert(key);
        Apply(*object);
      }
    }
  }
}

void PolicyFeed::Apply(const meta::Object& object) {
  if (&object.kind() == &k8s::kSecretKind) {
    authenticator_.OnSecretChanged(object.as<k8s::Secret>());
  } else if (&object.kind() == &k8s::kConfigMapKind) {
    authenticator_.SetRevokedUsers(RevokedUsers(object.as<k8s::ConfigMap>().data));
  } else {
    OnPolicyChanged(authorizer_, object);
  }
}

void PolicyFeed::Forget(const meta::KindInfo& kind, const ObjectKey& key) {
  if (&kind == &k8s::kSecretKind) {
    k8s::Secret gone;
    gone.metadata.namespace_ = key.namespace_;
    gone.metadata.name = key.name;
    authenticator_.OnSecretDeleted(gone);
    return;
  }
  if (&kind == &k8s::kConfigMapKind) {
    authenticator_.SetRevokedUsers({});
    return;
  }
  const PolicyKey policy_key{.namespace_ = key.namespace_, .name = key.name};
  if (IsRoleKind(kind)) {
    authorizer_.RemoveRole(policy_key);
  } else {
    authorizer_.RemoveBinding(policy_key);
  }
}

}  // namespace berth::apiserver
