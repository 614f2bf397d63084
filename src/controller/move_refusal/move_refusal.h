// SPDX-License-Identifier: Apache-2.0
// MoveRefusal keeps the condition Movable of machines that ask to be moved when their pool is lost:
// those with state on their host only are kept instead, and say what ties them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/cache/informer.h"
#include "client/cache/reflector.h"
#include "client/client.h"
#include "controller/runner.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::controller {

class MoveRefusal final : private Reconciler {
 public:
  // Everything outlives the controller.
  MoveRefusal(rt::Loop& loop, client::Client& client);

  // Runs until it is cancelled.
  rt::Task<Status> Run();
  bool idle() const { return machines_.synced() && volumes_.synced() && runner_.queue().idle(); }
  // How well it keeps up.
  void Report(client::HealthReport& report) const {
    runner_.Report(report, machines_, volumes_, pools_);
  }

 private:
  // Machines that ask to be moved, and the volumes that they name.
  class Movers final : public client::Sink {
   public:
    explicit Movers(MoveRefusal& owner) : owner_(owner) {}
    void OnListBegin() override;
    void OnListed(meta::Object object) override { Put(object); }
    void OnListEnd() override {}
    void OnEvent(client::WatchEvent event) override;
    // Those who use this volume are looked at.
    void LookAtUsers(const client::ObjectKey& volume);
    void LookAtAll();

   private:
    void Put(const meta::Object& object);
    void Forget(const client::ObjectKey& machine);
    void Look(const client::ObjectKey& machine);

    MoveRefusal& owner_;
    std::map<client::ObjectKey, std::vector<client::ObjectKey>> volumes_of_;
    std::map<client::ObjectKey, std::set<client::ObjectKey>> users_of_;  // by volume
  };
  // Volumes get places, and go.
  class Volumes final : public client::Sink {
   public:
    explicit Volumes(MoveRefusal& owner) : owner_(owner) {}
    void OnListBegin() override {}
    void OnListed(meta::Object) override {}
    // What changed while nobody watched is not known.
    void OnListEnd() override { owner_.movers_.LookAtAll(); }
    void OnEvent(client::WatchEvent event) override;

   private:
    MoveRefusal& owner_;
  };

  void OnPool(const meta::Object* before, const meta::Object* now);
  // Keys are NAMESPACE/NAME of machines.
  rt::Task<Result<std::optional<Duration>>> Reconcile(std::string key) override;

  rt::Loop& loop_;
  client::Client& client_;
  Movers movers_;
  Volumes volume_sink_;
  client::Reflector machines_;
  client::Reflector volumes_;
  client::Informer pools_;  // of volumes
  Runner runner_;
};

}  // namespace berth::controller
