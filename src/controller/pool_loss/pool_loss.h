// SPDX-License-Identifier: Apache-2.0
// PoolLoss acts on hosts that fell silent: machines with Move are unbound once their host must have
// killed them, machines of a set with Replace are deleted so that the set makes new ones, room that
// is reserved there is looked for elsewhere, everything else stays as it is. The LossJudge says
// when; this is the hand. It sees the machine pool of each host: nothing of its other pools is ever
// moved, and counted in they would make a loss of hosts three times as large.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "base/result.h"
#include "base/text_map.h"
#include "client/binder.h"
#include "client/cache/health_report.h"
#include "client/cache/informer.h"
#include "client/cache/reflector.h"
#include "client/cache/twins.h"
#include "client/client.h"
#include "client/events/event_recorder.h"
#include "controller/pool_loss/loss_judge.h"
#include "fleet/fleet.h"
#include "meta/scheme.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::controller {

// The ConfigMap that says whether the brake is on: data.massLoss is "" or what fell silent. An
// operator releases the brake by writing that same text into data.override, which counts for that
// text only and goes with it. A server that starts goes on from what is there; if that cannot be
// read, as if a brake had been on, and writes it again once it is mended or removed.
inline constexpr char kClusterStatusNamespace[] = "berth-system";
inline constexpr char kClusterStatusName[] = "cluster-status";

class PoolLoss final : private client::Sink {
 public:
  struct Deps {
    rt::Loop& loop;
    client::Client& client;
    client::Binder& binder;
    fleet::Fleet& fleet;
    const meta::Scheme& scheme;
  };
  // Everything outlives the controller.
  explicit PoolLoss(Deps deps, LossOptions options = {});

  // Runs until it is cancelled.
  rt::Task<Status> Run();
  // How well it keeps up.
  void Report(client::HealthReport& report) const;

 private:
  // The little that is known of a machine or reservation with a place.
  struct Guest {
    const meta::KindInfo* kind = nullptr;
    client::ObjectKey key;
    std::string pool_uid;
    int64_t placement = 0;
    enum class OnLoss : uint8_t { kKeep, kMove, kReplace, kReserve } on_loss = OnLoss::kKeep;
  };

  // The machine pools that there are, and where: all that is kept of them.
  struct Zones final : client::Sink {
    // By UID and name: who wrote in the store by hand may have made two pools with one UID, and the
    // end of one is not that of the other. "" without a zone.
    using ByPool = std::map<std::pair<std::string, std::string>, std::string>;
    ByPool known;
    // Of the list that is being told: until its end nobody is taken for gone.
    ByPool coming;
    // Null if there is no machine pool with this UID.
    const std::string* Find(const std::string& uid) const;
    void OnListBegin() override { coming.clear(); }
    void OnListed(meta::Object object) override;
    void OnListEnd() override { known = std::exchange(coming, {}); }
    void OnEvent(client::WatchEvent event) override;
  };

  using Guests = TextMap<Guest>;  // by UID

  void OnListBegin() override {
    guests_.clear();
    twins_.RemoveAllOf(apis::compute::kMachineKind);
  }
  void OnListed(meta::Object object) override;
  void OnListEnd() override {}
  void OnEvent(client::WatchEvent event) override;
  // Nothing if it need not be thought of when its host falls silent.
  static std::optional<Guest> GuestOf(const apis::compute::Machine& machine);
  static std::optional<Guest> ReservedOf(const meta::Object& object);
  void File(Guests& guests, const meta::Object& object, std::optional<Guest> guest);

  rt::Task<Status> Watch();
  rt::Task<Status> Look();
  rt::Task<Status> Recall();
  rt::Task<Status> Act(LossVerdict verdict);
  // Both leave out what fails for one guest, and tell that in `failure`.
  rt::Task<Status> MoveAway(std::string pool_uid, Guest::OnLoss on_loss, Status* failure);
  rt::Task<Status> Replace(std::string pool_uid, Status* failure);
  bool IsStillDead(const std::string& pool_uid) const;
  rt::Task<Status> Unbind(std::string uid, Guest guest);
  rt::Task<Status> TellMassLoss(LossVerdict verdict);
  rt::Task<Status> WriteMassLoss(std::string text);
  rt::Task<bool> IsOverridden();
  std::vector<PoolSight> Sights() const;
  std::vector<std::pair<std::string, Guest>> GuestsOf(const std::string& pool_uid,
                                                      Guest::OnLoss on_loss) const;

  rt::Loop& loop_;
  client::Client& client_;
  client::Binder& binder_;
  fleet::Fleet& fleet_;
  client::EventRecorder events_;
  LossJudge judge_;
  Zones zones_;
  client::Reflector pools_;
  Guests guests_;        // machines with Move or Replace only
  Guests reservations_;  // all that still keep room
  client::Twins<Guest> twins_{"pool loss"};
  client::Reflector machines_;
  client::Informer reserved_;
  // The mass loss that was told; not known before the store was read.
  std::optional<std::string> told_;
  bool is_written_ = true;  // false: the store does not say so yet, it has what cannot be read
};

}  // namespace berth::controller
