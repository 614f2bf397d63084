// SPDX-License-Identifier: Apache-2.0
// BridgeNetworks are the HostNetworks of a Linux host: a bridge per Network, a tap per interface,
// rules for what comes out of it, and a responder that tells guests their addresses.
//
// The rules of a port are there before its tap and go after it. A bridge goes with its last port.
// Nothing is written down: names follow from what is asked for (network_port.h), and Adopt, at the
// start, makes what is missing and removes what no machine has.
//
// Across hosts: whatever carries frames to other hosts becomes one more port of the bridge.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "rt/blocking_pool.h"
#include "rt/event.h"
#include "rt/gate.h"
#include "rt/loop.h"
#include "rt/process/process_runner.h"
#include "rt/scope.h"
#include "runtime/machine/host_networks.h"
#include "runtime/network/address_responder.h"
#include "runtime/network/network_port.h"

namespace berth::runtime {

class BridgeNetworks final : public HostNetworks {
 public:
  // All outlive this.
  struct Deps {
    rt::Loop& loop;
    rt::ProcessRunner& processes;
    rt::BlockingPool& links;    // for short calls to the kernel
    rt::BlockingPool& answers;  // one thread of it is the responder's until Stop
  };
  struct Options {
    std::string owner;  // tells runtimes of one host apart
    std::string nft = "/usr/sbin/nft";
    // Rules are written again this often: somebody may have flushed them.
    Duration repeat = Duration::Seconds(30);
  };

  // Whether this host has all that is needed. An error says what is missing.
  static rt::Task<Status> Check(Deps deps, Options options);
  static Result<std::unique_ptr<BridgeNetworks>> Start(Deps deps, Options options);
  // REQUIRES: Stop() was awaited.
  ~BridgeNetworks() override = default;
  // Guests keep their networks; nobody tells them their addresses. Always ok.
  rt::Task<Status> Stop();

  Result<DomainNic> Describe(std::string_view machine_id,
                             const iri::MachineNic& nic) const override;
  // Both wait for Adopt: who does not know all ports cannot write the rules of all.
  rt::Task<Status> Plug(PluggedNic plugged) override;
  rt::Task<Status> Unplug(std::string machine_id, iri::MachineNic nic) override;
  rt::Task<Status> Adopt(std::vector<PluggedNic> plugged) override;

 private:
  BridgeNetworks(Deps deps, Options options, std::unique_ptr<AddressResponder> responder);

  rt::Task<Status> WriteRules();
  rt::Task<Status> RepeatRules();
  rt::Task<Status> AnswerGuests();
  // Its bridge, its tap, and answers at it.
  rt::Task<Status> Make(NetworkPort port);
  // Its tap, and its bridge if nobody else is there.
  rt::Task<Status> Take(NetworkPort port);
  rt::Task<Status> Sweep();
  bool IsNeeded(const std::string& link) const;

  const Deps deps_;
  const Options options_;
  const NetworkOwner owner_;
  const std::unique_ptr<AddressResponder> responder_;
  rt::Event adopted_;
  rt::Gate changing_{1};
  std::map<std::string, NetworkPort> ports_;  // by tap
  bool are_rules_old_ = false;                // ports_ and the rules differ
  rt::TaskScope work_;
};

}  // namespace berth::runtime
