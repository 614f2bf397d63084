// SPDX-License-Identifier: Apache-2.0
// MachineSets keeps every set at its number of machines and brings them to its present template.
// PlanSet decides; this follows the sets and their machines and carries plans out.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apis/berth/machine_set.h"
#include "base/result.h"
#include "base/text_map.h"
#include "client/bulk_creator.h"
#include "client/cache/informer.h"
#include "client/cache/reflector.h"
#include "client/client.h"
#include "controller/machine_sets/set_plan.h"
#include "controller/runner.h"
#include "meta/object.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::controller {

class MachineSets final : private Reconciler, private client::Sink {
 public:
  // Machines that one step makes by itself, and through a BulkCreator, which holds few of them at a
  // time: the more it knows of, the more share a host, and with it messages and commits.
  static constexpr size_t kBatch = 4096;
  static constexpr size_t kBulk = 16'384;

  // Everything outlives the controller.
  MachineSets(rt::Loop& loop, client::Client& client);

  // New machines are made through it from now on, if it is not null. It outlives the controller's
  // run, or is taken away.
  void UseBulk(client::BulkCreator* bulk) { bulk_ = bulk; }
  // Runs until it is cancelled.
  rt::Task<Status> Run();
  bool idle() const { return machines_.synced() && runner_.queue().idle(); }
  // How well it keeps up.
  void Report(client::HealthReport& report) const { runner_.Report(report, sets_, machines_); }

 private:
  using Members = TextMap<SetMember>;  // by UID

  rt::Task<Result<std::optional<Duration>>> Reconcile(std::string key) override;
  rt::Task<Status> Create(meta::Object set, std::vector<SetMember> members, size_t count);
  // The UIDs, in order.
  rt::Task<std::vector<Result<std::string>>> CreateCopies(meta::Object model,
                                                          std::vector<std::string> names);
  rt::Task<Status> Remove(client::ObjectKey set,
                          std::string set_uid,
                          std::vector<std::string> uids);
  rt::Task<Status> WriteStatus(meta::Object set, SetPlan plan);
  std::vector<SetMember> MembersOf(const std::string& set_uid) const;

  void OnListBegin() override;
  void OnListed(meta::Object object) override { Put(object.as<apis::compute::Machine>()); }
  void OnListEnd() override;
  void OnEvent(client::WatchEvent event) override;
  void Put(const apis::compute::Machine& machine);
  bool IsTwin(const meta::ObjectMeta& metadata) const;
  void Forget(const std::string& uid);
  void Wake(const std::string& set_uid);

  rt::Loop& loop_;
  client::Client& client_;
  client::BulkCreator* bulk_ = nullptr;
  client::Informer sets_;
  client::Reflector machines_;
  std::map<std::string, std::string> keys_;  // of sets in the queue, by UID
  TextMap<Members> members_;                 // by UID of the set
  TextMap<std::string> set_of_;              // by UID of the machine
  std::set<std::string> unseen_;
  int creating_ = 0;            // calls that make machines
  std::set<std::string> gone_;  // UIDs of machines that went meanwhile
  Runner runner_;
};

// A machine of the set, ready to be made.
apis::compute::Machine MakeMember(const apis::berth_dev::MachineSet& set,
                                  const std::string& api_version,
                                  const std::string& name,
                                  const std::string& template_hash);

// The same for equal templates, ten hexadecimal digits.
std::string TemplateHashOf(const apis::berth_dev::MachineTemplate& machine_template);

}  // namespace berth::controller
