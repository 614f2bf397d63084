// SPDX-License-Identifier: Apache-2.0
// NamespaceDeletion empties namespaces that are being deleted and then lets them go. Nothing new
// can be created in them meanwhile (the API server refuses), so a namespace found empty stays
// empty.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client/cache/informer.h"
#include "client/client.h"
#include "controller/runner.h"
#include "meta/scheme.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::controller {

class NamespaceDeletion final : private Reconciler {
 public:
  // Everything outlives the controller.
  NamespaceDeletion(rt::Loop& loop, client::Client& client, const meta::Scheme& scheme);

  // Runs until it is cancelled.
  rt::Task<Status> Run();
  bool idle() const { return runner_.queue().idle(); }
  // How well it keeps up.
  void Report(client::HealthReport& report) const { runner_.Report(report, namespaces_); }

 private:
  // What is left in a namespace after everything was asked to go.
  struct Remains {
    std::map<std::string, size_t> by_resource;   // "machines.compute.ironcore.dev"
    std::map<std::string, size_t> by_finalizer;  // which finalizers keep how many
    std::vector<std::string> failures;
    void Add(const std::string& resource, const meta::ObjectMeta& metadata);
    bool empty() const { return by_resource.empty() && failures.empty(); }
  };

  rt::Task<Result<std::optional<Duration>>> Reconcile(std::string name) override;
  rt::Task<Result<Remains>> Empty(std::string name);
  rt::Task<Status> EmptyOf(const meta::KindInfo& kind, std::string name, Remains* remains);
  rt::Task<Status> Report(meta::Object object, Remains remains);
  rt::Task<Status> LetGo(meta::Object object);

  rt::Loop& loop_;
  client::Client& client_;
  const meta::Scheme& scheme_;
  Runner runner_;
  client::Informer namespaces_;
};

}  // namespace berth::controller
