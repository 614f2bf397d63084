// SPDX-License-Identifier: Apache-2.0
// The GarbageCollector removes objects whose owners are all gone, and carries out the two slower
// ways of deletion: in the foreground (dependents first) and orphaning (dependents stay).
//
// It decides on the live state: the graph only says what to look at. An owner counts as gone when
// there is no object of its kind, name and UID in the dependent's namespace (or in none, for
// cluster-scoped owners). An owner of a kind that is not served, or a namespaced owner of a
// cluster-scoped object, can never be found: such an object is left alone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/text_map.h"
#include "client/cache/reflector.h"
#include "client/client.h"
#include "controller/gc/ownership_graph.h"
#include "controller/runner.h"
#include "meta/scheme.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::controller {

class GarbageCollector final : private Reconciler {
 public:
  // Everything outlives the collector.
  GarbageCollector(rt::Loop& loop, client::Client& client, const meta::Scheme& scheme);
  ~GarbageCollector() override;

  // Runs until it is cancelled.
  rt::Task<Status> Run();
  // Nothing is left to look at.
  bool idle() const;
  // How well it keeps up.
  void Report(client::HealthReport& report) const;

 private:
  class KindSink;
  // What has become of an object's owners.
  struct Owners {
    std::vector<std::string> solid;    // UIDs of those that are there
    std::vector<std::string> waiting;  // there, but waiting for their dependents to go
    std::vector<std::string> gone;
  };
  enum class Presence : uint8_t { kSolid, kWaiting, kGone };
  enum class OwnersState : uint8_t { kGone, kWaiting };

  rt::Task<Result<std::optional<Duration>>> Reconcile(std::string uid) override;
  rt::Task<Status> WaitForSync();
  rt::Task<Status> CollectIfUnowned(OwnershipGraph::Node node, std::string uid);
  rt::Task<Result<Owners>> ClassifyOwners(meta::Object object);
  rt::Task<Result<Presence>> Look(meta::OwnerReference owner, meta::Object dependent);
  rt::Task<Status> DropOwners(OwnershipGraph::Node node,
                              std::string uid,
                              std::vector<std::string> owners);
  rt::Task<Status> BreakCircle(OwnershipGraph::Node node, std::string uid);
  rt::Task<Status> Delete(OwnershipGraph::Node node, meta::Object object, OwnersState owners);
  rt::Task<Status> FinishForeground(OwnershipGraph::Node node, std::string uid);
  rt::Task<Status> FinishOrphaning(OwnershipGraph::Node node, std::string uid);
  void Touch(const std::vector<std::string>& uids);
  void OnObject(const meta::Object& object);
  // An object is gone, or on its way out: it owns nothing for sure any more.
  void OnLeaving(const std::string& uid);
  // All owners were found, and nothing was heard of their end since.
  bool IsOwnedForSure(const meta::ObjectMeta& metadata) const;

  rt::Loop& loop_;
  client::Client& client_;
  const meta::Scheme& scheme_;
  OwnershipGraph graph_;
  // An owner as a dependent names it, all but its UID.
  struct FoundOwner {
    std::string api_version;
    std::string kind;
    std::string namespace_;  // of the dependent
    std::string name;
  };
  // Owners that were found, as their dependents name them, by UID. Thousands of copies have one
  // owner: it is looked up once, and its end is an event.
  TextMap<FoundOwner> found_;
  uint64_t endings_ = 0;  // that were heard of
  Runner runner_;
  std::vector<std::unique_ptr<KindSink>> sinks_;
};

}  // namespace berth::controller
