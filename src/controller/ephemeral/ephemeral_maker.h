// SPDX-License-Identifier: Apache-2.0
// EphemeralMaker makes what machines' templates ask for, and deletes what they ask for no more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "base/result.h"
#include "client/cache/reflector.h"
#include "client/client.h"
#include "client/events/event_recorder.h"
#include "controller/ephemeral/ephemeral_parts.h"
#include "controller/runner.h"
#include "meta/scheme.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::controller {

class EphemeralMaker final : private Reconciler {
 public:
  // Everything outlives the controller.
  EphemeralMaker(rt::Loop& loop, client::Client& client, const meta::Scheme& scheme);

  // Runs until it is cancelled.
  rt::Task<Status> Run();
  bool idle() const {
    return machines_.synced() && volumes_.synced() && nics_.synced() && runner_.queue().idle();
  }
  // How well it keeps up.
  void Report(client::HealthReport& report) const {
    runner_.Report(report, machines_, volumes_, nics_);
    events_.Report(report);
  }

 private:
  enum class Interest : uint8_t { kKept, kNone };
  // Follows one kind, and remembers those of interest by their UIDs.
  class Follower final : public client::Sink {
   public:
    using Changed = std::function<Interest(const meta::Object& object)>;
    using Gone = std::function<void(const meta::Object& object)>;
    using Lost = std::function<void(const std::string& uid)>;  // went while nobody watched
    Follower(Changed changed, Gone gone, Lost lost)
        : changed_(std::move(changed)), gone_(std::move(gone)), lost_(std::move(lost)) {}
    void OnListBegin() override;
    void OnListed(meta::Object object) override;
    void OnListEnd() override;
    void OnEvent(client::WatchEvent event) override;

   private:
    void Put(const meta::Object& object);

    const Changed changed_;
    const Gone gone_;
    const Lost lost_;
    std::set<std::string> kept_;
    std::set<std::string> unseen_;
  };
  // A part that is there.
  struct Part {
    const meta::KindInfo* kind = nullptr;
    client::ObjectKey key;
    bool is_deleting = false;
  };
  using Parts = std::map<std::string, Part>;  // by UID

  rt::Task<Result<std::optional<Duration>>> Reconcile(std::string key) override;
  rt::Task<Result<std::string>> ArchitectureOf(std::string machine_class);
  rt::Task<Status> Make(meta::Object machine, EphemeralPart part);
  rt::Task<Status> Prune(apis::compute::Machine machine, std::vector<EphemeralPart> wanted);

  Interest OnMachine(const meta::Object& machine);
  Interest OnPart(const meta::Object& part);
  void OnPartGone(const meta::Object& part);
  void ForgetPart(const std::string& uid);
  void WakeUid(const std::string& machine_uid);
  bool IsThere(const EphemeralPart& part, const std::string& machine_uid) const;

  client::Client& client_;
  client::EventRecorder events_;
  Follower machine_sink_;
  Follower volume_sink_;
  Follower nic_sink_;
  client::Reflector machines_;
  client::Reflector volumes_;
  client::Reflector nics_;
  std::map<std::string, std::string> keys_;        // of machines with templates, by UID
  std::map<std::string, Parts> parts_;             // by UID of the machine
  std::map<std::string, std::string> machine_of_;  // by UID of the part
  // What stands in the way, as "kind/namespace/name", and the machine that waits for its end.
  std::map<std::string, std::string> in_the_way_;
  Runner runner_;
};

}  // namespace berth::controller
