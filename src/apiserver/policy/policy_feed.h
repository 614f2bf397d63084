// SPDX-License-Identifier: Apache-2.0
// The PolicyFeed keeps the Authorizer and the Authenticator in step with the stored objects.
#pragma once

#include <memory>
#include <set>

#include "apiserver/authn/authenticator.h"
#include "apiserver/authz/authorizer.h"
#include "apiserver/registry.h"
#include "base/result.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::apiserver {

class PolicyFeed {
 public:
  // Everything that is stored has been fed in when this returns; changes follow until Close. What
  // is handed in outlives the feed.
  static rt::Task<Result<std::unique_ptr<PolicyFeed>>> Start(rt::Loop& loop,
                                                             Registry& registry,
                                                             Authorizer& authorizer,
                                                             Authenticator& authenticator);
  rt::Task<Status> Close();

 private:
  PolicyFeed(rt::Loop& loop,
             Registry& registry,
             Authorizer& authorizer,
             Authenticator& authenticator)
      : registry_(registry), authorizer_(authorizer), authenticator_(authenticator), scope_(loop) {}

  // Follows one kind for ever; a watch that ends is begun again from the present state.
  rt::Task<Status> Follow(const meta::KindInfo* kind, std::shared_ptr<RegistryWatch> watch);
  rt::Task<Result<std::shared_ptr<RegistryWatch>>> Load(const meta::KindInfo* kind);
  void Apply(const meta::Object& object);
  void Forget(const meta::KindInfo& kind, const ObjectKey& key);

  Registry& registry_;
  Authorizer& authorizer_;
  Authenticator& authenticator_;
  // What has been fed in, so that what vanished while no watch ran is taken out again.
  std::map<const meta::KindInfo*, std::set<ObjectKey>> fed_;
  rt::TaskScope scope_;
};

}  // namespace berth::apiserver
