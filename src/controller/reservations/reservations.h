// SPDX-License-Identifier: Apache-2.0
// The Reservations controller ends reservations whose time is over, and keeps a part on every pool
// of those with mode All. Placing them is the scheduler's, lost pools are PoolLoss'.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "apis/core/reservation.h"
#include "base/result.h"
#include "base/time.h"
#include "client/binder.h"
#include "client/cache/informer.h"
#include "client/cache/reflector.h"
#include "client/client.h"
#include "client/events/event_recorder.h"
#include "controller/runner.h"
#include "meta/scheme.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::controller {

class Reservations final : private Reconciler {
 public:
  struct Deps {
    rt::Loop& loop;
    client::Client& client;
    client::Binder& binder;
    const meta::Scheme& scheme;
  };
  // Everything outlives the controller.
  explicit Reservations(Deps deps);

  // Runs until it is cancelled.
  rt::Task<Status> Run();
  bool synced() const { return reservations_.synced() && pools_.synced(); }
  // How well it keeps up.
  void Report(client::HealthReport& report) const {
    runner_.Report(report, reservations_, pools_);
    events_.Report(report);
  }

 private:
  // Labels of the machine pools there are.
  class Pools final : public client::Sink {
   public:
    explicit Pools(Reservations& owner) : owner_(owner) {}
    using Labels = std::map<std::string, std::string>;
    const std::map<std::string, Labels>& all() const { return labels_; }

   private:
    void OnListBegin() override { labels_.clear(); }
    void OnListed(meta::Object object) override { Put(object); }
    void OnListEnd() override { owner_.LookAtWholes(); }
    void OnEvent(client::WatchEvent event) override;
    bool Put(const meta::Object& pool);  // whether anything is new

    Reservations& owner_;
    std::map<std::string, Labels> labels_;
  };
  // A time that runs, from `since` with so much left.
  struct Clock {
    Time since;
    Duration left;
  };

  void OnChange(const meta::Object* before, const meta::Object* now);
  void LookAtWholes();
  rt::Task<Result<std::optional<Duration>>> Reconcile(std::string key) override;
  rt::Task<Result<std::optional<Duration>>> KeepTime(meta::Object object);
  rt::Task<Result<std::optional<Duration>>> Stop(meta::Object object);
  rt::Task<Status> Expire(meta::Object object);
  rt::Task<Status> LetGo(meta::Object object);
  rt::Task<Result<std::optional<Duration>>> KeepParts(meta::Object object);
  rt::Task<Status> WriteRemaining(meta::Object object, Duration left);

  rt::Loop& loop_;
  client::Client& client_;
  client::Binder& binder_;
  client::EventRecorder events_;
  Runner runner_;
  std::map<std::string, Clock> clocks_;  // by UID
  client::Informer reservations_;
  Pools pool_sink_;
  client::Reflector pools_;
};

}  // namespace berth::controller
