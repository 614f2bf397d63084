// SPDX-License-Identifier: Apache-2.0
// The controllers that every cluster runs, in one table.
#pragma once

#include "client/bulk_creator.h"
#include "client/cache/health_report.h"
#include "client/client.h"
#include "controller/claims/claim_release.h"
#include "controller/class_protection/class_protection.h"
#include "controller/ephemeral/ephemeral_maker.h"
#include "controller/gc/garbage_collector.h"
#include "controller/host_drain/host_drain.h"
#include "controller/in_use/in_use.h"
#include "controller/ipam/ipam.h"
#include "controller/machine_sets/machine_sets.h"
#include "controller/move_refusal/move_refusal.h"
#include "controller/namespaces/namespace_deletion.h"
#include "controller/pool_leases/pool_leases.h"
#include "controller/quota/quota_count.h"
#include "controller/taint_eviction/taint_eviction.h"
#include "meta/scheme.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::controller {

class BuiltinControllers {
 public:
  // Everything outlives the controllers.
  BuiltinControllers(rt::Loop& loop, client::Client& client, const meta::Scheme& scheme)
      : gc_(loop, client, scheme),
        namespaces_(loop, client, scheme),
        classes_(loop, client),
        in_use_(loop, client, scheme),
        quota_(loop, client, scheme),
        machine_sets_(loop, client),
        pool_leases_(loop, client),
        ephemeral_(loop, client, scheme),
        claims_(loop, client),
        ipam_(loop, client, scheme),
        taints_(loop, client, scheme),
        drains_(loop, client, scheme),
        moves_(loop, client) {}

  // Machines of sets are made through it from now on; null: as anybody would.
  void UseBulk(client::BulkCreator* bulk) { machine_sets_.UseBulk(bulk); }
  // Runs all of them until it is cancelled.
  rt::Task<Status> Run();
  // How well each of them keeps up.
  void Report(client::HealthReport& report) const;
  // Nothing is left to do, as far as they have heard.
  bool idle() const {
    return gc_.idle() && namespaces_.idle() && classes_.idle() && in_use_.idle() && quota_.idle() &&
           machine_sets_.idle() && ephemeral_.idle() && claims_.idle() && ipam_.idle() &&
           taints_.idle() && drains_.idle() && moves_.idle();
  }

 private:
  GarbageCollector gc_;
  NamespaceDeletion namespaces_;
  ClassProtection classes_;
  InUse in_use_;
  QuotaCount quota_;
  MachineSets machine_sets_;
  PoolLeases pool_leases_;
  EphemeralMaker ephemeral_;
  ClaimRelease claims_;
  Ipam ipam_;
  TaintEviction taints_;
  HostDrain drains_;
  MoveRefusal moves_;
};

}  // namespace berth::controller
