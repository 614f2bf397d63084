// SPDX-License-Identifier: Apache-2.0
// Defends: nobody picks a host, goes where restricted taints keep others away, or says that a host
// is off, without the right to do so.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "apis/berth/machine_set.h"
#include "apis/compute/machine.h"
#include "apis/placement.h"
#include "apis/registry.h"
#include "apis/storage/bucket.h"
#include "apis/storage/volume.h"
#include "apiserver/authz/escalation.h"

namespace berth::apiserver {
namespace {

const meta::KindInfo* const kPlaceable[] = {
    &apis::compute::kMachineKind, &apis::storage::kVolumeKind, &apis::storage::kBucketKind};

using Tolerations = std::vector<apis::core::Toleration>;

// What may tolerate something, each with its own way to say so.
struct Tolerating {
  const char* what;
  std::function<meta::Object(const Tolerations&)> make;
};

apis::compute::MachineVolume VolumeFrom(const apis::storage::VolumeSpec& spec) {
  apis::compute::MachineVolume volume;
  volume.name = "data";
  volume.ephemeral.emplace().volume_template.emplace().spec = spec;
  return volume;
}

meta::Object MachineWith(const apis::compute::MachineSpec& spec) {
  apis::compute::Machine machine;
  machine.spec = spec;
  return meta::Object::Of(apis::compute::kMachineKind, std::move(machine));
}

meta::Object SetWith(const apis::compute::MachineSpec& spec) {
  apis::berth_dev::MachineSet set;
  set.spec.machine_template.spec = spec;
  return meta::Object::Of(apis::berth_dev::kMachineSetKind, std::move(set));
}

apis::compute::MachineSpec SpecTolerating(const Tolerations& tolerations) {
  apis::compute::MachineSpec spec;
  spec.tolerations = tolerations;
  return spec;
}

apis::compute::MachineSpec SpecOfVolumeTolerating(const Tolerations& tolerations) {
  apis::storage::VolumeSpec volume;
  volume.tolerations = tolerations;
  apis::compute::MachineSpec spec;
  spec.volumes.push_back(VolumeFrom(volume));
  return spec;
}

std::vector<Tolerating> EverythingThatTolerates() {
  return {
      {"machine", [](const Tolerations& t) { return MachineWith(SpecTolerating(t)); }},
      {"set", [](const Tolerations& t) { return SetWith(SpecTolerating(t)); }},
      {"volume of a machine",
       [](const Tolerations& t) { return MachineWith(SpecOfVolumeTolerating(t)); }},
      {"volume of a set", [](const Tolerations& t) { return SetWith(SpecOfVolumeTolerating(t)); }},
      {"volume",
       [](const Tolerations& t) {
         apis::storage::Volume volume;
         volume.spec.tolerations = t;
         return meta::Object::Of(apis::storage::kVolumeKind, std::move(volume));
       }},
      {"bucket",
       [](const Tolerations& t) {
         apis::storage::Bucket bucket;
         bucket.spec.tolerations = t;
         return meta::Object::Of(apis::storage::kBucketKind, std::move(bucket));
       }},
  };
}

class PlacementRights : public testing::Test {
 protected:
  // Gives `user` a verb on one pool of the kind's pools, named through a domain.
  void Grant(const std::string& user,
             const meta::KindInfo& placeable,
             std::string verb,
             std::string pool,
             std::string_view domain) {
    const meta::KindInfo& kind = apis::PoolKindOf(placeable);
    authorizer_.SetRole({"", user},
                        std::vector<PolicyRule>{
                            {.verbs = {std::move(verb)},
                             .api_groups = {std::string(kind.group) + "." + std::string(domain)},
                             .resources = {std::string(kind.plural)},
                             .resource_names = {std::move(pool)}}});
    authorizer_.SetBinding(
        {"", user}, {.role = {"", user}, .subjects = {{.kind = SubjectKind::kUser, .name = user}}});
  }
  Status Write(const std::string& user, const meta::Object* before, const meta::Object& after) {
    return CheckPrivilegedWrite(
        authorizer_, {.user = user, .groups = {"system:authenticated"}}, before, after);
  }
  static meta::Object On(const meta::KindInfo& kind, std::string pool) {
    meta::Object object(kind);
    if (!pool.empty()) {
      apis::PoolRefOf(object) = apis::core::LocalObjectReference{.name = std::move(pool)};
    }
    return object;
  }
  static meta::Object BoundTo(const meta::KindInfo& kind, const std::string& pool) {
    meta::Object object = On(kind, pool);
    apis::PlacementOf(object) =
        apis::core::PlacementStatus{.pool = pool, .pool_uid = "u", .epoch = 1};
    object.metadata().finalizers = {std::string(apis::kPlacementFinalizer)};
    return object;
  }

  const meta::Scheme scheme_{apis::AllKinds(), {"ironcore.dev", "OpenKCM.dev"}};
  Authorizer authorizer_{scheme_};
};

TEST_F(PlacementRights, R4_1_ChoosingAPoolNeedsTheVerbBindOnThatPool) {
  for (const meta::KindInfo* kind : kPlaceable) {
    for (const std::string_view domain : {"ironcore.dev", "OpenKCM.dev", "openkcm.dev"}) {
      Grant("binder", *kind, "bind", "a", domain);
      const meta::Object none = On(*kind, "");
      const meta::Object a = On(*kind, "a");
      const meta::Object b = On(*kind, "b");
      EXPECT_TRUE(Write("tenant", nullptr, none).ok()) << kind->kind;
      EXPECT_TRUE(Write("tenant", nullptr, a).Is(Reason::kForbidden)) << kind->kind;
      EXPECT_TRUE(Write("tenant", &none, a).Is(Reason::kForbidden)) << kind->kind;
      EXPECT_TRUE(Write("binder", nullptr, a).ok()) << kind->kind << domain;
      EXPECT_TRUE(Write("binder", &none, a).ok()) << kind->kind << domain;
      EXPECT_TRUE(Write("binder", nullptr, b).Is(Reason::kForbidden)) << kind->kind;
      // What is set already is nobody's choice any more.
      EXPECT_TRUE(Write("tenant", &a, a).ok()) << kind->kind;
    }
  }
}

TEST_F(PlacementRights, R4_1_ThePoolOfAVolumeThatIsMadeForAMachineIsChosenToo) {
  Grant("binder", apis::storage::kVolumeKind, "bind", "a", "ironcore.dev");
  const auto on = [](const std::string& pool) {
    apis::storage::VolumeSpec volume;
    if (!pool.empty()) volume.volume_pool_ref = apis::core::LocalObjectReference{.name = pool};
    apis::compute::MachineSpec spec;
    spec.volumes.push_back(VolumeFrom(volume));
    return spec;
  };
  for (const auto& make : {&MachineWith, &SetWith}) {
    const meta::Object none = make(on(""));
    const meta::Object a = make(on("a"));
    const meta::Object b = make(on("b"));
    EXPECT_TRUE(Write("tenant", nullptr, none).ok());
    EXPECT_TRUE(Write("tenant", nullptr, a).Is(Reason::kForbidden));
    EXPECT_TRUE(Write("tenant", &none, a).Is(Reason::kForbidden));
    EXPECT_TRUE(Write("tenant", &a, a).ok());
    EXPECT_TRUE(Write("tenant", &a, b).Is(Reason::kForbidden));
    EXPECT_TRUE(Write("binder", nullptr, a).ok());
    EXPECT_TRUE(Write("binder", &a, b).Is(Reason::kForbidden));
  }
}

TEST_F(PlacementRights, NamingARestrictedTaintNeedsTheVerbTolerateOnIt) {
  const Tolerations all = {{.key = "", .operator_ = "Exists"}};
  const Tolerations other = {{.key = "gpu", .operator_ = "Exists"}};
  const Tolerations gpu = {{.key = "restricted.berth.dev/gpu", .operator_ = "Equal", .value = "a"}};
  const Tolerations wider = {{.key = "restricted.berth.dev/gpu", .operator_ = "Exists"}};
  const Tolerations more = {gpu[0], {.key = "restricted.berth.dev/fpga", .operator_ = "Exists"}};
  for (const char* group : {"core.ironcore.dev", "core.OpenKCM.dev"}) {
    authorizer_.SetRole({"", "user"},
                        std::vector<PolicyRule>{{.verbs = {"tolerate"},
                                                 .api_groups = {group},
                                                 .resources = {"taints"},
                                                 .resource_names = {"gpu"}}});
    authorizer_.SetBinding(
        {"", "user"},
        {.role = {"", "user"}, .subjects = {{.kind = SubjectKind::kUser, .name = "user"}}});
    for (const auto& [what, make] : EverythingThatTolerates()) {
      const meta::Object none = make({});
      const meta::Object named = make(gpu);
      for (const Tolerations& free : {all, other}) {
        EXPECT_TRUE(Write("tenant", nullptr, make(free)).ok()) << what;
        EXPECT_TRUE(Write("tenant", &none, make(free)).ok()) << what;
      }
      EXPECT_TRUE(Write("tenant", nullptr, none).ok()) << what;
      EXPECT_TRUE(Write("tenant", nullptr, named).Is(Reason::kForbidden)) << what;
      EXPECT_TRUE(Write("tenant", &none, named).Is(Reason::kForbidden)) << what;
      // What others have written stays, and does not grow.
      EXPECT_TRUE(Write("tenant", &named, named).ok()) << what;
      EXPECT_TRUE(Write("tenant", &named, none).ok()) << what;
      EXPECT_TRUE(Write("tenant", &named, make(wider)).Is(Reason::kForbidden)) << what;
      EXPECT_TRUE(Write("tenant", &named, make(more)).Is(Reason::kForbidden)) << what;
      EXPECT_TRUE(Write("user", nullptr, named).ok()) << what;
      EXPECT_TRUE(Write("user", &named, make(wider)).ok()) << what;
      EXPECT_TRUE(Write("user", nullptr, make(more)).Is(Reason::kForbidden)) << what;
    }
  }
}

TEST_F(PlacementRights, WhatAMachineToleratesIsNotWhatItsVolumesTolerate) {
  const Tolerations gpu = {{.key = "restricted.berth.dev/gpu", .operator_ = "Exists"}};
  const meta::Object before = MachineWith(SpecTolerating(gpu));
  apis::compute::MachineSpec both = SpecOfVolumeTolerating(gpu);
  both.tolerations = gpu;
  const Status status = Write("tenant", &before, MachineWith(both));
  EXPECT_TRUE(status.Is(Reason::kForbidden));
  EXPECT_EQ(status.message(),
            "taints.core.ironcore.dev \"gpu\" is forbidden: User \"tenant\" cannot tolerate "
            "resource \"taints\" in API group \"core.ironcore.dev\" at the cluster scope");
}

TEST_F(PlacementRights, R8_3_NamingAPriorityClassNeedsTheVerbUseOnThatClass) {
  authorizer_.SetRole({"", "user"},
                      std::vector<PolicyRule>{{.verbs = {"use"},
                                               .api_groups = {"scheduling.k8s.io"},
                                               .resources = {"priorityclasses"},
                                               .resource_names = {"high"}}});
  authorizer_.SetBinding(
      {"", "user"},
      {.role = {"", "user"}, .subjects = {{.kind = SubjectKind::kUser, .name = "user"}}});
  const auto machine = [](const std::string& name) {
    apis::compute::Machine made;
    made.spec.placement.emplace().priority_class_name = name;
    return meta::Object::Of(apis::compute::kMachineKind, std::move(made));
  };
  const auto set = [](const std::string& name) {
    apis::berth_dev::MachineSet made;
    made.spec.machine_template.spec.placement.emplace().priority_class_name = name;
    return meta::Object::Of(apis::berth_dev::kMachineSetKind, std::move(made));
  };
  for (const auto& make : {std::function<meta::Object(const std::string&)>(machine),
                           std::function<meta::Object(const std::string&)>(set)}) {
    const meta::Object none = make("");
    const meta::Object high = make("high");
    EXPECT_TRUE(Write("tenant", nullptr, none).ok());
    EXPECT_TRUE(Write("tenant", nullptr, high).Is(Reason::kForbidden));
    EXPECT_TRUE(Write("tenant", &none, high).Is(Reason::kForbidden));
    EXPECT_TRUE(Write("tenant", &high, high).ok());
    EXPECT_TRUE(Write("user", nullptr, high).ok());
    EXPECT_TRUE(Write("user", nullptr, make("highest")).Is(Reason::kForbidden));
  }
}

TEST_F(PlacementRights, G4_LettingGoOfWhatAHostMayRunNeedsTheVerbFenceOnItsPool) {
  for (const meta::KindInfo* kind : kPlaceable) {
    Grant("operator", *kind, "fence", "a", "ironcore.dev");
    for (const auto& [pool, allowed] : {std::pair{"a", true}, std::pair{"b", false}}) {
      const meta::Object bound = BoundTo(*kind, pool);
      meta::Object let_go = bound;
      let_go.metadata().finalizers.clear();
      EXPECT_EQ(Write("operator", &bound, let_go).ok(), allowed) << kind->kind;
      EXPECT_TRUE(Write("tenant", &bound, let_go).Is(Reason::kForbidden)) << kind->kind;
      EXPECT_TRUE(Write("tenant", &bound, bound).ok()) << kind->kind;
      const Identity who{.user = "operator", .groups = {}};
      EXPECT_EQ(CheckLettingGo(authorizer_, who, bound).ok(), allowed) << kind->kind;
    }
    EXPECT_TRUE(CheckLettingGo(authorizer_, {.user = "tenant"}, On(*kind, "a")).ok());
  }
}

}  // namespace
}  // namespace berth::apiserver
