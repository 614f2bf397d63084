// SPDX-License-Identifier: Apache-2.0
// PoolLeases marks machine pools of API mode whose poollet has fallen silent: neither the Lease
// that it renews nor the pool's condition Ready has changed for the grace time, so Ready becomes
// Unknown and nothing new is placed there. The poollet says Ready again itself when it is back.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "apis/compute/machine_pool.h"
#include "apis/k8s/lease.h"
#include "base/result.h"
#include "base/time.h"
#include "client/cache/health_report.h"
#include "client/cache/reflector.h"
#include "client/client.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::controller {

// Where IronCore's poollets keep their Leases, each under the name of its pool.
inline constexpr char kPoolLeaseNamespace[] = "ironcore-machinepool-lease";
inline constexpr char kPoolSilentReason[] = "MachinePoolStatusUnknown";

class PoolLeases {
 public:
  // Five renewals of a poollet with default settings.
  static constexpr Duration kGrace = Duration::Seconds(50);

  // Everything outlives the controller.
  PoolLeases(rt::Loop& loop, client::Client& client);

  // Runs until it is cancelled.
  rt::Task<Status> Run();
  void Report(client::HealthReport& report) const;

 private:
  // What was last seen of something, and since when it has been so.
  template <class T>
  struct Seen {
    T state;
    Time since;
    bool is_listed = true;  // by the list under way
  };
  template <class T>
  using Book = std::map<std::string, Seen<T>>;  // by name of the pool

  struct Leases final : client::Sink {
    explicit Leases(PoolLeases& owner) : owner(owner) {}
    void OnListBegin() override { Unlist(book); }
    void OnListed(meta::Object object) override { Put(object); }
    void OnListEnd() override { Sweep(book); }
    void OnEvent(client::WatchEvent event) override;
    void Put(const meta::Object& object);
    PoolLeases& owner;
    Book<apis::k8s::LeaseSpec> book;
  };
  // Only those of API mode that say that they are ready.
  struct Pools final : client::Sink {
    explicit Pools(PoolLeases& owner) : owner(owner) {}
    void OnListBegin() override { Unlist(book); }
    void OnListed(meta::Object object) override { Put(object); }
    void OnListEnd() override { Sweep(book); }
    void OnEvent(client::WatchEvent event) override;
    void Put(const meta::Object& object);
    PoolLeases& owner;
    Book<apis::compute::MachinePoolCondition> book;
  };

  template <class T>
  static void Unlist(Book<T>& book) {
    for (auto& [name, seen] : book) seen.is_listed = false;
  }
  template <class T>
  static void Sweep(Book<T>& book) {
    std::erase_if(book, [](const auto& entry) { return !entry.second.is_listed; });
  }
  // An unchanged state keeps its time.
  template <class T>
  void Note(Book<T>& book, const std::string& name, const T& state);

  rt::Task<Status> Watch();
  bool IsSilent(const std::string& pool) const;
  rt::Task<Status> MarkSilent(std::string pool);

  rt::Loop& loop_;
  client::Client& client_;
  Leases leases_;
  Pools pools_;
  client::Reflector follow_leases_;
  client::Reflector follow_pools_;
};

}  // namespace berth::controller
