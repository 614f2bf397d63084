// SPDX-License-Identifier: Apache-2.0
// A Fencer kills guests whose lease has run out, whoever else is alive (PROTOCOL 3.3). It is what
// makes it safe to start a machine elsewhere. Bodies: RuntimeFencer for runtimes that keep leases
// themselves, ProcessFencer for a process of its own that holds the guests' pidfds.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "iri/host.h"
#include "rt/task.h"

namespace berth::poollet {

class Fencer {
 public:
  virtual ~Fencer() = default;
  // The words of iri::HostRuntime::RenewLease. An error: nothing is known, and no guest that may
  // be moved is started.
  virtual rt::Task<Result<std::vector<iri::LeaseState>>> Renew(iri::LeaseRenewal renewal) = 0;
  // The runtime's guests may be other ones than before.
  virtual void GuestsChanged() {}
};

// The runtime itself kills at the deadline.
class RuntimeFencer final : public Fencer {
 public:
  // The host outlives the fencer.
  explicit RuntimeFencer(iri::HostRuntime& host) : host_(host) {}
  rt::Task<Result<std::vector<iri::LeaseState>>> Renew(iri::LeaseRenewal renewal) override {
    return host_.RenewLease(std::move(renewal));
  }

 private:
  iri::HostRuntime& host_;
};

}  // namespace berth::poollet
