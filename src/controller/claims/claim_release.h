// SPDX-License-Identifier: Apache-2.0
// ClaimRelease frees Volumes and NetworkInterfaces of machines that are gone or have let go of
// them, so that others may have them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/result.h"
#include "base/strings.h"
#include "client/cache/reflector.h"
#include "client/client.h"
#include "controller/runner.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::controller {

class ClaimRelease final : private Reconciler {
 public:
  // Everything outlives the controller.
  ClaimRelease(rt::Loop& loop, client::Client& client);

  // Runs until it is cancelled.
  rt::Task<Status> Run();
  bool idle() const {
    return machines_.synced() && volumes_.synced() && nics_.synced() && runner_.queue().idle();
  }
  // How well it keeps up.
  void Report(client::HealthReport& report) const {
    runner_.Report(report, machines_, volumes_, nics_);
  }

 private:
  // Which machines there are: UIDs.
  class Machines final : public client::Sink {
   public:
    explicit Machines(ClaimRelease& owner) : owner_(owner) {}
    void OnListBegin() override { unseen_ = known_; }
    void OnListed(meta::Object object) override;
    void OnListEnd() override;
    void OnEvent(client::WatchEvent event) override;
    bool Has(std::string_view uid) const { return known_.contains(uid); }

   private:
    // There is one entry for every machine: hashed.
    using Uids = std::unordered_set<std::string, StringHash, std::equal_to<>>;

    ClaimRelease& owner_;
    Uids known_;
    Uids unseen_;
  };
  // Claims of one kind: which objects name which machine.
  class Claims final : public client::Sink {
   public:
    Claims(ClaimRelease& owner, const meta::KindInfo& kind) : owner_(owner), kind_(kind) {}
    void OnListBegin() override;
    void OnListed(meta::Object object) override { Put(object); }
    void OnListEnd() override;
    void OnEvent(client::WatchEvent event) override;
    // Everything of this machine.
    void LookOf(const std::string& uid);
    // Everything whose machine is not known.
    void LookAll();

   private:
    void Put(const meta::Object& object);
    void Forget(const client::ObjectKey& key);
    void Look(const client::ObjectKey& key, const std::string& machine_uid);

    ClaimRelease& owner_;
    const meta::KindInfo& kind_;
    std::map<client::ObjectKey, std::string> machine_of_;         // UIDs
    std::map<std::string, std::set<client::ObjectKey>> claimed_;  // by UID of the machine
    std::set<client::ObjectKey> unseen_;
  };

  rt::Task<Result<std::optional<Duration>>> Reconcile(std::string key) override;

  client::Client& client_;
  Machines machine_sink_;
  Claims volume_sink_;
  Claims nic_sink_;
  client::Reflector machines_;
  client::Reflector volumes_;
  client::Reflector nics_;
  Runner runner_;
};

}  // namespace berth::controller
