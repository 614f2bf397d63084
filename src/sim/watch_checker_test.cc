// SPDX-License-Identifier: Apache-2.0
// The checker of watches misses nothing that a watch of one of its kinds leaves out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/storage/volume.h"
#include "apiserver/cache/keys.h"
#include "apiserver/registry/registry_world.h"
#include "rt/scope.h"
#include "sim/checkers.h"

namespace berth::sim {
namespace {

constexpr char kTeam[] = "team";

// Nothing is there to be seen; what is said to be wrong is kept.
class EmptySight final : public Sight {
 public:
  const Truth& truth() const override { return truth_; }
  Time now() const override { return {}; }
  std::span<const std::unique_ptr<HostProcess>> hosts() const override { return {}; }
  HostProcess* HostOf(const std::string&) const override { return nullptr; }
  bool WasDeletionAsked(const std::string&) const override { return false; }
  bool WasRewound(const std::string&) const override { return false; }
  std::optional<Time> ServingSince() const override { return Time(); }
  Time LastTrouble(const HostProcess&) const override { return {}; }
  uint64_t incarnation() const override { return 1; }
  void Fail(std::string_view checker, std::string what) override {
    failures_.push_back(std::string(checker) + ": " + std::move(what));
  }
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  Truth truth_;
  std::vector<std::string> failures_;
};

meta::Object MakeVolume(const std::string& name) {
  apis::storage::Volume volume;
  volume.metadata.namespace_ = kTeam;
  volume.metadata.name = name;
  volume.spec.volume_class_ref = apis::core::LocalObjectReference{"disk"};
  volume.spec.resources = {{"storage", meta::Quantity(int64_t{1} << 30)}};
  return meta::Object::Of(apis::storage::kVolumeKind, std::move(volume));
}

meta::Object MakePool(const std::string& name) {
  apis::compute::MachinePool pool;
  pool.metadata.name = name;
  pool.spec.provider_id = "test://" + name;
  return meta::Object::Of(apis::compute::kMachinePoolKind, std::move(pool));
}

// A checker that watches one kind of an API server.
class Watched {
 public:
  explicit Watched(const meta::KindInfo& kind)
      : kind_(kind), checker_(sight_, kind, WatchChecker::Overwritten::kIsShown) {
    api_.MakeNamespace(kTeam);
    scope_.Spawn("watch", checker_.Follow(&api_.client()));
    Settle();
  }
  ~Watched() {
    const Status closed = api_.Run(scope_.Close());
    EXPECT_TRUE(closed.ok()) << closed;
  }

  // Makes it, and tells the checker what the store tells of it; its revision.
  int64_t Make(meta::Object object) {
    const auto made = api_.Run(api_.client().Create(std::move(object), {}));
    CHECK(made.ok()) << made.status();
    const meta::ObjectMeta& metadata = made->metadata();
    const int64_t revision = std::atoll(metadata.resource_version.c_str());
    Tell(kind_, {metadata.namespace_, metadata.name}, revision);
    return revision;
  }
  // The store says that it has changed.
  void Tell(const meta::KindInfo& kind, const client::ObjectKey& key, int64_t revision) {
    checker_.OnChange(
        {.key = apiserver::StoreKey(kind, key), .revision = store::Revision{revision}});
    Settle();
  }
  const std::vector<std::string>& failures() const { return sight_.failures(); }

 private:
  void Settle() { api_.loop().RunFor(Duration::Seconds(1)); }

  const meta::KindInfo& kind_;
  EmptySight sight_;
  apiserver::RegistryWorld api_{5};
  rt::TaskScope scope_{api_.loop()};
  WatchChecker checker_;
};

TEST(WatchChecker, NoticesWhatAWatchOfAnyOfItsKindsLeavesOut) {
  const struct {
    const meta::KindInfo* kind;
    meta::Object (*make)(const std::string& name);
    client::ObjectKey left_out;
  } cases[] = {{&apis::storage::kVolumeKind, &MakeVolume, {kTeam, "ghost"}},
               {&apis::compute::kMachinePoolKind, &MakePool, {"", "ghost"}}};
  for (const auto& [kind, make, left_out] : cases) {
    SCOPED_TRACE(kind->kind);
    EXPECT_EQ(std::ranges::count(WatchChecker::Kinds(), kind), 1);
    Watched watched(*kind);
    watched.Make(make("a"));
    const int64_t revision = watched.Make(make("b"));
    // Of no interest to this one.
    watched.Tell(apis::compute::kMachineKind, {kTeam, "ghost"}, revision);
    watched.Tell(*kind, left_out, revision);
    EXPECT_TRUE(watched.failures().empty()) << watched.failures().front();
    watched.Make(make("c"));
    ASSERT_EQ(watched.failures().size(), 1U);
    EXPECT_NE(watched.failures()[0].find("left out " + apiserver::StoreKey(*kind, left_out)),
              std::string::npos)
        << watched.failures()[0];
    EXPECT_TRUE(watched.failures()[0].starts_with("watch: "));
  }
}

}  // namespace
}  // namespace berth::sim
