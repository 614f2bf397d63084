// SPDX-License-Identifier: Apache-2.0
// Defends: what pool A's identity can read or write of pool B is nothing, over every kind, verb and
// alias domain; of its own pool it is what it needs, and no spec.
#include "apiserver/authz/pool_authorizer.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/k8s/event.h"
#include "apis/k8s/lease.h"
#include "apis/k8s/secret.h"
#include "apis/networking/network_interface.h"
#include "apis/placement.h"
#include "apis/registry.h"
#include "apis/storage/bucket.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_snapshot.h"
#include "apiserver/authz/authorizer.h"

namespace berth::apiserver {
namespace {

using apis::compute::kMachineKind;
using apis::core::LocalObjectReference;
using apis::storage::kBucketKind;
using apis::storage::kVolumeKind;

class FakeObjects final : public PoolObjects {
 public:
  void Add(meta::Object object) { objects_.push_back(std::move(object)); }
  std::optional<meta::Object> Find(const meta::KindInfo& kind,
                                   const client::ObjectKey& key) const override {
    for (const meta::Object& object : objects_) {
      if (&object.kind() == &kind && object.metadata().name == key.name &&
          object.metadata().namespace_ == key.namespace_) {
        return object;
      }
    }
    return std::nullopt;
  }
  std::vector<meta::Object> OnPool(const meta::KindInfo& kind,
                                   const std::string& namespace_,
                                   const std::string& pool) const override {
    std::vector<meta::Object> found;
    for (const meta::Object& object : objects_) {
      if (&object.kind() != &kind || object.metadata().namespace_ != namespace_) continue;
      const auto& reference = apis::PoolRefOf(object);
      if (reference && reference->name == pool) found.push_back(object);
    }
    return found;
  }

 private:
  std::vector<meta::Object> objects_;
};

meta::Object Named(const meta::KindInfo& kind, std::string name) {
  meta::Object object(kind);
  object.metadata().name = std::move(name);
  if (kind.scope == meta::Scope::kNamespaced) object.metadata().namespace_ = "default";
  return object;
}

// For each pool kind: pools a and b with one object each, which names a few others.
class PoolRights : public testing::Test {
 protected:
  PoolRights() {
    authorizer_.UsePools(pools_);
    for (const std::string pool : {"a", "b"}) {
      for (const meta::KindInfo* kind : {&kMachineKind, &kVolumeKind, &kBucketKind}) {
        meta::Object place = Named(apis::PoolKindOf(*kind), pool);
        place.metadata().uid = "uid-" + pool;
        objects_.Add(std::move(place));
        objects_.Add(Bound(*kind, pool));
      }
      apis::storage::Volume disk;
      disk.metadata.namespace_ = "default";
      disk.metadata.name = "disk-" + pool;
      disk.status.access =
          apis::storage::VolumeAccess{.secret_ref = LocalObjectReference{.name = "access-" + pool}};
      objects_.Add(meta::Object::Of(kVolumeKind, std::move(disk)));
    }
  }

  static meta::Object Bound(const meta::KindInfo& kind, const std::string& pool) {
    meta::Object object = Named(kind, "on-" + pool);
    apis::PoolRefOf(object) = LocalObjectReference{.name = pool};
    apis::PlacementOf(object) =
        apis::core::PlacementStatus{.pool = pool, .pool_uid = "uid-" + pool, .epoch = 1};
    if (&kind == &kMachineKind) {
      auto& spec = object.as<apis::compute::Machine>().spec;
      spec.ignition_ref = apis::core::SecretKeySelector{.name = "ignition-" + pool};
      apis::compute::MachineVolume disk;
      disk.name = "disk";
      disk.volume_ref = LocalObjectReference{.name = "disk-" + pool};
      spec.volumes.push_back(std::move(disk));
      apis::compute::MachineNetworkInterface nic;
      nic.name = "nic";
      nic.network_interface_ref = LocalObjectReference{.name = "nic-" + pool};
      spec.network_interfaces.push_back(std::move(nic));
    } else if (&kind == &kVolumeKind) {
      object.as<apis::storage::Volume>().spec.encryption =
          apis::storage::VolumeEncryption{.secret_ref = {.name = "key-" + pool}};
    } else {
      object.as<apis::storage::Bucket>().status.access =
          apis::storage::BucketAccess{.secret_ref = LocalObjectReference{.name = "bucket-" + pool}};
    }
    return object;
  }

  Identity Pool(const meta::KindInfo& placeable, const std::string& pool) const {
    const meta::KindInfo& kind = apis::PoolKindOf(placeable);
    const std::string system = scheme_.GroupOf(kind) + ":system:";
    return {.user = system + std::string(kind.singular) + ":" + pool,
            .groups = {system + std::string(kind.plural), "system:authenticated"}};
  }

  // A request as the router makes it from a path below a domain.
  RequestInfo Asking(std::string verb,
                     const meta::KindInfo& kind,
                     std::string name,
                     std::string subresource = "",
                     std::string_view domain = "ironcore.dev") const {
    const std::string asked = kind.naming == meta::GroupNaming::kDomain
                                  ? std::string(kind.group) + "." + std::string(domain)
                                  : std::string(kind.group);
    RequestInfo request{.is_resource = true,
                        .verb = std::move(verb),
                        .group = scheme_.CanonicalGroup(asked),
                        .requested_group = asked,
                        .version = std::string(kind.version),
                        .resource = std::string(kind.plural),
                        .subresource = std::move(subresource),
                        .name = std::move(name)};
    request.kind = scheme_.FindResource(asked, request.version, request.resource);
    if (kind.scope == meta::Scope::kNamespaced) request.namespace_ = "default";
    return request;
  }

  const meta::Scheme scheme_{apis::AllKinds(), {"ironcore.dev", "OpenKCM.dev"}};
  FakeObjects objects_;
  PoolAuthorizer pools_{scheme_, objects_};
  Authorizer authorizer_{scheme_};
};

const std::vector<std::string> kVerbs = {
    "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"};

TEST_F(PoolRights, OfPoolAToAnythingOfPoolBAreNone) {
  const std::vector<std::string> names = {
      "b", "on-b", "disk-b", "nic-b", "ignition-b", "access-b", "key-b", "bucket-b", "other"};
  size_t asked = 0;
  for (const meta::KindInfo* placeable : {&kMachineKind, &kVolumeKind, &kBucketKind}) {
    const Identity who = Pool(*placeable, "a");
    for (const meta::KindInfo* kind : scheme_.kinds()) {
      const bool is_class =
          kind->scope == meta::Scope::kCluster && kind->plural.ends_with("classes");
      for (const std::string_view domain : {"ironcore.dev", "OpenKCM.dev", "openkcm.DEV"}) {
        for (const std::string& verb : kVerbs) {
          for (const std::string& name : names) {
            for (const char* subresource : {"",
                                            "status",
                                            "binding",
                                            "finalize",
                                            "scale",
                                            "usage",
                                            "exec",
                                            "console",
                                            "log",
                                            "portforward"}) {
              const RequestInfo request = Asking(verb, *kind, name, subresource, domain);
              const bool may_read_class = is_class && *subresource == '\0' &&
                                          (verb == "get" || verb == "list" || verb == "watch");
              // About what is in its body: EventsAreAboutWhatIsOnThePool.
              const bool may_tell =
                  kind->kind == "Event" && verb == "create" && *subresource == '\0';
              EXPECT_EQ(authorizer_.Allows(who, request), may_read_class || may_tell)
                  << who.user << " " << verb << " " << kind->plural << "/" << name << "/"
                  << subresource << " in " << domain;
              ++asked;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(asked, 100'000U);
}

TEST_F(PoolRights, OfAPoolToWhatIsItsOwn) {
  struct Case {
    const meta::KindInfo* who;
    const meta::KindInfo* kind;
    std::string name;
    bool writes;         // main and status
    bool writes_status;  // status only
  };
  const Case cases[] = {
      {&kMachineKind, &apis::compute::kMachinePoolKind, "a", true, true},
      {&kMachineKind, &kMachineKind, "on-a", true, true},
      {&kMachineKind, &kVolumeKind, "disk-a", false, false},
      {&kMachineKind, &apis::networking::kNetworkInterfaceKind, "nic-a", false, true},
      {&kMachineKind, &apis::k8s::kSecretKind, "ignition-a", false, false},
      {&kMachineKind, &apis::k8s::kSecretKind, "access-a", false, false},
      {&kVolumeKind, &kVolumeKind, "on-a", true, true},
      {&kVolumeKind, &apis::k8s::kSecretKind, "key-a", false, false},
      {&kBucketKind, &kBucketKind, "on-a", true, true},
      {&kBucketKind, &apis::k8s::kSecretKind, "bucket-a", false, false},
  };
  for (const Case& test : cases) {
    const Identity who = Pool(*test.who, "a");
    for (const std::string_view domain : {"ironcore.dev", "OpenKCM.dev"}) {
      SCOPED_TRACE(std::string(test.who->kind) + " " + std::string(test.kind->kind) + " " +
                   test.name + " " + std::string(domain));
      for (const char* verb : {"get", "list", "watch"}) {
        EXPECT_TRUE(authorizer_.Allows(who, Asking(verb, *test.kind, test.name, "", domain)))
            << verb;
      }
      for (const char* verb : {"update", "patch"}) {
        EXPECT_EQ(authorizer_.Allows(who, Asking(verb, *test.kind, test.name, "", domain)),
                  test.writes)
            << verb;
        EXPECT_EQ(authorizer_.Allows(who, Asking(verb, *test.kind, test.name, "status", domain)),
                  test.writes_status)
            << verb;
      }
      for (const char* verb : {"create", "delete", "deletecollection"}) {
        EXPECT_FALSE(authorizer_.Allows(who, Asking(verb, *test.kind, test.name, "", domain)));
      }
      for (const char* verb : {"get", "create", "delete"}) {
        for (const char* closed : {"binding", "exec", "console", "log", "portforward"}) {
          EXPECT_FALSE(authorizer_.Allows(who, Asking(verb, *test.kind, test.name, closed, domain)))
              << verb << " " << closed;
        }
      }
    }
  }
}

TEST_F(PoolRights, D17_ManyAreListedAndWatchedThroughTheSelectorOfThePoolOnly) {
  for (const meta::KindInfo* kind : {&kMachineKind, &kVolumeKind, &kBucketKind}) {
    const Identity who = Pool(*kind, "a");
    const std::string field = "spec." + std::string(apis::PoolRefField(*kind)) + ".name";
    const std::pair<std::string, bool> selectors[] = {
        {"", false},
        {field + "=a", true},
        {field + "==a", true},
        {field + "=a,metadata.namespace=x", true},
        {field + "=b", false},
        {field + "!=b", false},
        {field + "!=a", false},
        {"spec.machineClassRef.name=a", false},
        {"metadata.namespace=a", false},
        {field + "=", false},
        {field, false},
    };
    for (const auto& [selector, allowed] : selectors) {
      for (const char* verb : {"list", "watch", "deletecollection"}) {
        for (const char* namespace_ : {"", "default"}) {
          RequestInfo request = Asking(verb, *kind, "");
          request.namespace_ = namespace_;
          request.field_selector = selector;
          EXPECT_EQ(authorizer_.Allows(who, request),
                    allowed && std::string_view(verb) != "deletecollection")
              << verb << " " << selector;
        }
      }
    }
  }
}

TEST_F(PoolRights, D14_ASnapshotIsWorkedOnByThePoolOfItsVolumeOnly) {
  meta::Object snapshot = Named(apis::storage::kVolumeSnapshotKind, "nightly");
  snapshot.as<apis::storage::VolumeSnapshot>().spec.volume_ref.name = "on-a";
  objects_.Add(std::move(snapshot));
  struct Case {
    Identity who;
    bool allowed;
  };
  const Case cases[] = {{Pool(kVolumeKind, "a"), true},
                        {Pool(kVolumeKind, "b"), false},
                        {Pool(kMachineKind, "a"), false},
                        {Pool(kBucketKind, "a"), false}};
  for (const Case& test : cases) {
    for (const char* subresource : {"", "status"}) {
      for (const char* verb : {"get", "watch", "update", "patch"}) {
        EXPECT_EQ(
            authorizer_.Allows(
                test.who, Asking(verb, apis::storage::kVolumeSnapshotKind, "nightly", subresource)),
            test.allowed)
            << test.who.user << " " << verb << " " << subresource;
      }
      EXPECT_FALSE(authorizer_.Allows(
          test.who, Asking("delete", apis::storage::kVolumeSnapshotKind, "nightly", subresource)));
    }
    EXPECT_FALSE(authorizer_.Allows(
        test.who, Asking("update", apis::storage::kVolumeSnapshotKind, "unknown", "status")));
  }
}

// A claim points from a volume or interface back to the machine that has it, which may be anywhere.
TEST_F(PoolRights, D17_AClaimOpensNeitherTheMachineThatHasItNorWhatThatNames) {
  const auto claimed = [](const meta::KindInfo& kind) {
    meta::Object part = Named(kind, "lent");
    const apis::core::LocalUidReference holder{.name = "on-b", .uid = "uid-of-on-b"};
    if (&kind == &kVolumeKind) {
      apis::PoolRefOf(part) = LocalObjectReference{.name = "a"};
      part.as<apis::storage::Volume>().spec.claim_ref = holder;
    } else {
      part.as<apis::networking::NetworkInterface>().spec.machine_ref = holder;
    }
    return part;
  };
  objects_.Add(claimed(kVolumeKind));
  objects_.Add(claimed(apis::networking::kNetworkInterfaceKind));
  meta::Object waiting = Named(kMachineKind, "waiting");
  apis::PoolRefOf(waiting) = LocalObjectReference{.name = "a"};
  auto& spec = waiting.as<apis::compute::Machine>().spec;
  spec.volumes.emplace_back().volume_ref = LocalObjectReference{.name = "lent"};
  spec.network_interfaces.emplace_back().network_interface_ref =
      LocalObjectReference{.name = "lent"};
  objects_.Add(std::move(waiting));
  for (const meta::KindInfo* who : {&kMachineKind, &kVolumeKind}) {
    const Identity pool = Pool(*who, "a");
    EXPECT_TRUE(authorizer_.Allows(pool, Asking("get", kVolumeKind, "lent"))) << pool.user;
    EXPECT_FALSE(authorizer_.Allows(pool, Asking("get", kMachineKind, "on-b"))) << pool.user;
    EXPECT_FALSE(authorizer_.Allows(pool, Asking("get", apis::k8s::kSecretKind, "ignition-b")))
        << pool.user;
  }
}

TEST_F(PoolRights, NeedTheNameAndTheGroup) {
  const Identity real = Pool(kMachineKind, "a");
  const RequestInfo request = Asking("get", kMachineKind, "on-a");
  ASSERT_TRUE(authorizer_.Allows(real, request));
  Identity without_group = real;
  without_group.groups = {"system:authenticated"};
  EXPECT_FALSE(authorizer_.Allows(without_group, request));
  Identity wrong_group = real;
  wrong_group.groups = Pool(kVolumeKind, "a").groups;
  EXPECT_FALSE(authorizer_.Allows(wrong_group, request));
  Identity nameless = real;
  nameless.user = real.user.substr(0, real.user.size() - 1);
  EXPECT_FALSE(authorizer_.Allows(nameless, Asking("get", apis::compute::kMachinePoolKind, "")));
  EXPECT_FALSE(authorizer_.Allows(Pool(kVolumeKind, "a"), request));
}

TEST_F(PoolRights, Seq19_EndWithThePoolsUid) {
  meta::Object old = Named(kMachineKind, "old");
  apis::PoolRefOf(old) = LocalObjectReference{.name = "a"};
  apis::PlacementOf(old) =
      apis::core::PlacementStatus{.pool = "a", .pool_uid = "an earlier one", .epoch = 1};
  objects_.Add(std::move(old));
  EXPECT_FALSE(authorizer_.Allows(Pool(kMachineKind, "a"), Asking("get", kMachineKind, "old")));
  // Without a placement the reference alone counts: a poollet of the API takes it as it is.
  meta::Object named = Named(kMachineKind, "named");
  apis::PoolRefOf(named) = LocalObjectReference{.name = "a"};
  objects_.Add(std::move(named));
  EXPECT_TRUE(authorizer_.Allows(Pool(kMachineKind, "a"), Asking("get", kMachineKind, "named")));
}

TEST_F(PoolRights, KeepTheirOwnLeaseOnly) {
  const Identity who = Pool(kMachineKind, "a");
  const auto asking = [this](std::string verb, std::string namespace_, std::string name) {
    RequestInfo request = Asking(std::move(verb), apis::k8s::kLeaseKind, std::move(name));
    request.namespace_ = std::move(namespace_);
    return request;
  };
  EXPECT_TRUE(authorizer_.Allows(who, asking("get", "ironcore-machinepool-lease", "a")));
  EXPECT_TRUE(authorizer_.Allows(who, asking("update", "ironcore-machinepool-lease", "a")));
  EXPECT_TRUE(authorizer_.Allows(who, asking("create", "ironcore-machinepool-lease", "")));
  EXPECT_FALSE(authorizer_.Allows(who, asking("update", "ironcore-machinepool-lease", "b")));
  EXPECT_FALSE(authorizer_.Allows(who, asking("delete", "ironcore-machinepool-lease", "a")));
  EXPECT_FALSE(authorizer_.Allows(who, asking("update", "berth-system", "a")));
  EXPECT_FALSE(authorizer_.Allows(who, asking("list", "ironcore-machinepool-lease", "")));
}

TEST_F(PoolRights, AreThoseOfAPoolUnderAnyDomain) {
  const auto pool_of = [this](std::string user, std::string group) {
    return PoolIdentityOf(scheme_, Identity{.user = std::move(user), .groups = {std::move(group)}});
  };
  for (const std::string domain : {"ironcore.dev", "OpenKCM.dev", "openkcm.dev"}) {
    const std::string system = "compute." + domain + ":system:";
    const auto who = pool_of(system + "machinepool:a", system + "machinepools");
    ASSERT_TRUE(who) << domain;
    EXPECT_EQ(who->pool, "a");
    EXPECT_EQ(who->object_kind, &kMachineKind);
    EXPECT_FALSE(pool_of(system + "machinepool:", system + "machinepools"));
    EXPECT_FALSE(pool_of(system + "machinepool", system + "machinepools"));
    EXPECT_FALSE(pool_of(system + "volumepool:a", system + "volumepools"));
    EXPECT_FALSE(pool_of(system + "machinepool:a", system + "machines"));
  }
  for (const std::string domain : {"example.org", "ironcore.dev.example.org", "dev"}) {
    const std::string system = "compute." + domain + ":system:";
    EXPECT_FALSE(pool_of(system + "machinepool:a", system + "machinepools")) << domain;
    EXPECT_FALSE(pool_of("compute.ironcore.dev:system:machinepool:a", system + "machinepools"));
  }
}

TEST_F(PoolRights, EndAtTheSpec) {
  const PoolIdentity who = *PoolIdentityOf(scheme_, Pool(kMachineKind, "a"));
  const meta::Object before = Bound(kMachineKind, "a");
  struct Case {
    std::string_view what;
    void (*change)(meta::Object&);
    bool allowed;
  };
  const Case cases[] = {
      {"nothing", [](auto&) {}, true},
      {"finalizers", [](auto& o) { o.metadata().finalizers = {"x.dev/y"}; }, true},
      {"status",
       [](auto& o) { o.template as<apis::compute::Machine>().status.state = "Running"; },
       true},
      {"spec", [](auto& o) { o.template as<apis::compute::Machine>().spec.power = "Off"; }, false},
      {"labels", [](auto& o) { o.metadata().labels["tier"] = "secure"; }, false},
      {"annotations", [](auto& o) { o.metadata().annotations["a"] = "b"; }, false},
      {"owners", [](auto& o) { o.metadata().owner_references.resize(1); }, false},
  };
  for (const Case& test : cases) {
    meta::Object after = before;
    test.change(after);
    EXPECT_EQ(pools_.CheckWrite(who, &before, after).ok(), test.allowed) << test.what;
  }
  EXPECT_FALSE(pools_.CheckWrite(who, nullptr, before).ok());
  EXPECT_TRUE(pools_.CheckWrite(who, nullptr, Named(apis::k8s::kLeaseKind, "a")).ok());
  EXPECT_FALSE(pools_.CheckWrite(who, nullptr, Named(apis::k8s::kLeaseKind, "b")).ok());
}

TEST_F(PoolRights, EventsAreAboutWhatIsOnThePool) {
  const PoolIdentity who = *PoolIdentityOf(scheme_, Pool(kMachineKind, "a"));
  struct Case {
    const char* kind;
    const char* name;
    bool allowed;
  };
  const Case cases[] = {{"MachinePool", "a", true},
                        {"Machine", "on-a", true},
                        {"NetworkInterface", "nic-a", true},
                        {"Volume", "disk-a", true},
                        {"MachinePool", "b", false},
                        {"VolumePool", "a", false},
                        {"Machine", "on-b", false},
                        {"Volume", "on-a", false},
                        {"Volume", "disk-b", false},
                        {"Machine", "missing", false},
                        {"Namespace", "default", false},
                        {"Nothing", "a", false},
                        {"", "", false}};
  for (const Case& test : cases) {
    apis::k8s::CoreEvent event;
    event.metadata.namespace_ = "default";
    event.metadata.name = "e";
    event.involved_object.kind = test.kind;
    event.involved_object.name = test.name;
    event.involved_object.namespace_ = "default";
    const meta::Object after = meta::Object::Of(apis::k8s::kCoreEventKind, event);
    EXPECT_EQ(pools_.CheckWrite(who, nullptr, after).ok(), test.allowed)
        << test.kind << " " << test.name;
  }
}

}  // namespace
}  // namespace berth::apiserver
