// SPDX-License-Identifier: Apache-2.0
#include "runtime/network/bridge_networks.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "rt/sleep.h"
#include "runtime/network/host_links.h"
#include "runtime/network/port_rules.h"

namespace berth::runtime {
namespace {

constexpr Duration kNftLimit = Duration::Seconds(20);

enum class NftMode : uint8_t { kCheck, kApply };

rt::ProcessRequest NftRequest(const std::string& nft, NftMode mode, std::string rules) {
  rt::ProcessRequest request;
  request.argv = {nft};
  if (mode == NftMode::kCheck) request.argv.emplace_back("--check");
  request.argv.insert(request.argv.end(), {"--file", "-"});
  request.input = std::move(rules);
  request.limit = kNftLimit;
  return request;
}

Status NftAnswer(const Result<rt::ProcessEnd>& end) {
  if (!end.ok()) return end.status();
  if (end->ok()) return OkStatus();
  constexpr size_t kWordsMax = 400;
  return Unavailable("nft refuses the rules of networks: " +
                     Printable(Trim(end->errors).substr(0, kWordsMax)));
}

// The host's end differs from the guest's in what nobody else has: libvirt's custom.
MacAddress HostMac(const NetworkPort& port) {
  MacAddress mac = port.mac;
  mac[0] = 0xfe;
  return mac;
}

std::string AliasOf(std::string text) {
  if (text.size() > kLinkAliasBytesMax) text.resize(kLinkAliasBytesMax);
  return text;
}

Result<int> MakeLinks(const NetworkPort& port) {
  BridgeLink bridge;
  bridge.name = port.bridge;
  bridge.alias = AliasOf("berth network " + port.network);
  TRY_STATUS(EnsureBridge(bridge));
  TapLink tap;
  tap.name = port.tap;
  tap.alias = AliasOf("berth interface " + Printable(port.owner));
  tap.bridge = port.bridge;
  tap.mac = HostMac(port);
  tap.user_id = geteuid();
  return EnsureTap(tap);
}

}  // namespace

BridgeNetworks::BridgeNetworks(Deps deps,
                               Options options,
                               std::unique_ptr<AddressResponder> responder)
    : deps_(deps),
      options_(std::move(options)),
      owner_(options_.owner),
      responder_(std::move(responder)),
      work_(deps.loop) {}

rt::Task<Status> BridgeNetworks::Check(Deps deps, Options options) {
  const auto look = [] { return CheckLinks(); };
  CO_TRY_STATUS(co_await deps.links.Run("networks.check", look));
  CO_TRY_STATUS(AddressResponder::Make().status());
  // Of every kind of rule one.
  const NetworkOwner owner(options.owner);
  iri::MachineNic nic;
  nic.name = "check";
  nic.network_id = "check";
  nic.ips = {"10.0.0.1", "fd00::1"};
  CO_TRY(const NetworkPort port, PortOf(owner, "check", nic));
  const std::vector<NetworkPort> ports = {port};
  rt::ProcessRequest request = NftRequest(options.nft, NftMode::kCheck, PortRules(owner, ports));
  const Result<rt::ProcessEnd> end = co_await deps.processes.Run(std::move(request));
  co_return NftAnswer(end);
}

Result<std::unique_ptr<BridgeNetworks>> BridgeNetworks::Start(Deps deps, Options options) {
  TRY(std::unique_ptr<AddressResponder> responder, AddressResponder::Make());
  std::unique_ptr<BridgeNetworks> networks(
      new BridgeNetworks(deps, std::move(options), std::move(responder)));
  networks->work_.Spawn("networks.answers", networks->AnswerGuests());
  networks->work_.Spawn("networks.rules", networks->RepeatRules());
  return networks;
}

rt::Task<Status> BridgeNetworks::Stop() {
  responder_->Stop();
  co_return co_await work_.Close();
}

rt::Task<Status> BridgeNetworks::AnswerGuests() {
  AddressResponder* const responder = responder_.get();
  const auto serve = [responder] { return responder->Serve(); };
  co_return co_await deps_.answers.Run("networks.answers", serve);
}

rt::Task<Status> BridgeNetworks::RepeatRules() {
  for (;;) {
    CO_TRY_STATUS(co_await rt::Sleep(options_.repeat));
    CO_TRY(const rt::Gate::Permit permit, co_await changing_.Enter());
    if (!adopted_.is_set() || (ports_.empty() && !are_rules_old_)) continue;
    const Status written = co_await WriteRules();
    if (written.Is(Reason::kCancelled)) co_return written;
    if (!written.ok()) LOG_ERROR("the rules of networks were not repeated: {}", written.message());
  }
}

rt::Task<Status> BridgeNetworks::WriteRules() {
  std::vector<NetworkPort> ports;
  for (const auto& [tap, port] : ports_) ports.push_back(port);
  are_rules_old_ = true;
  rt::ProcessRequest request = NftRequest(options_.nft, NftMode::kApply, PortRules(owner_, ports));
  const Result<rt::ProcessEnd> end = co_await deps_.processes.Run(std::move(request));
  CO_TRY_STATUS(NftAnswer(end));
  are_rules_old_ = false;
  co_return OkStatus();
}

Result<DomainNic> BridgeNetworks::Describe(std::string_view machine_id,
                                           const iri::MachineNic& nic) const {
  TRY(const NetworkPort port, PortOf(owner_, machine_id, nic));
  DomainNic described;
  described.kind = DomainNic::Kind::kTap;
  described.device = port.tap;
  described.mac = ToText(port.mac);
  return described;
}

rt::Task<Status> BridgeNetworks::Make(NetworkPort port) {
  const auto make = [&port] { return MakeLinks(port); };
  CO_TRY(const int index, co_await deps_.links.Run("networks.plug", make));
  co_return responder_->Add(port, index);
}

bool BridgeNetworks::IsNeeded(const std::string& link) const {
  return std::ranges::any_of(ports_, [&link](const auto& known) {
    return known.second.tap == link || known.second.bridge == link;
  });
}

rt::Task<Status> BridgeNetworks::Take(NetworkPort port) {
  responder_->Remove(port.tap);
  const bool is_last = !IsNeeded(port.bridge);
  const auto take = [&port, is_last]() -> Status {
    TRY_STATUS(RemoveLink(port.tap));
    return is_last ? RemoveLink(port.bridge) : OkStatus();
  };
  co_return co_await deps_.links.Run("networks.unplug", take);
}

rt::Task<Status> BridgeNetworks::Plug(PluggedNic plugged) {
  CO_TRY(const NetworkPort port, PortOf(owner_, plugged));
  const std::string& name = plugged.nic.name;
  CO_TRY_STATUS(co_await adopted_.Wait());
  CO_TRY(const rt::Gate::Permit permit, co_await changing_.Enter());
  const auto known = ports_.find(port.tap);
  const bool is_known = known != ports_.end();
  if (is_known && known->second.owner != port.owner) {
    co_return Conflict("network interface " + Quote(name) + ": tap " + port.tap + " is that of " +
                       Quote(known->second.owner));
  }
  // Names are short hashes: whoever may choose an id could look for one that is another's.
  const auto is_other = [&port](const auto& one) {
    return one.second.bridge == port.bridge && one.second.network_key != port.network_key;
  };
  if (std::ranges::any_of(ports_, is_other)) {
    co_return Conflict("network interface " + Quote(name) + ": bridge " + port.bridge +
                       " is that of another network");
  }
  if (!is_known && ports_.size() >= kPortsMax) {
    co_return Status(Reason::kTooManyRequests,
                     "the host has " + std::to_string(kPortsMax) + " network interfaces already");
  }
  // Rules first. Whatever fails, the port stays known: Unplug removes what there is of it.
  if (!is_known || known->second != port || are_rules_old_) {
    ports_[port.tap] = port;
    CO_TRY_STATUS(co_await WriteRules());
  }
  co_return co_await Make(port);
}

rt::Task<Status> BridgeNetworks::Unplug(std::string machine_id, iri::MachineNic nic) {
  const Result<NetworkPort> port = PortOf(owner_, machine_id, nic);
  if (!port.ok()) co_return OkStatus();  // it never was
  CO_TRY_STATUS(co_await adopted_.Wait());
  CO_TRY(const rt::Gate::Permit permit, co_await changing_.Enter());
  const auto known = ports_.find(port->tap);
  if (known != ports_.end() && known->second.owner != port->owner) co_return OkStatus();
  // Of the network that it was in, which is not always the one that is named now.
  NetworkPort gone = known == ports_.end() ? *port : known->second;
  const bool was_known = ports_.erase(gone.tap) > 0;
  are_rules_old_ = are_rules_old_ || was_known;
  CO_TRY_STATUS(co_await Take(std::move(gone)));
  if (!are_rules_old_) co_return OkStatus();
  co_return co_await WriteRules();
}

rt::Task<Status> BridgeNetworks::Adopt(std::vector<PluggedNic> plugged) {
  CO_TRY(const rt::Gate::Permit permit, co_await changing_.Enter());
  for (const PluggedNic& one : plugged) {
    Result<NetworkPort> port = PortOf(owner_, one);
    if (!port.ok() || ports_.size() >= kPortsMax) continue;  // its machine says so when it starts
    const std::string tap = port->tap;
    ports_.emplace(tap, *std::move(port));
  }
  CO_TRY_STATUS(co_await WriteRules());
  CO_TRY_STATUS(co_await Sweep());
  const std::map<std::string, NetworkPort> ports = ports_;
  for (const auto& [tap, port] : ports) {
    const Status made = co_await Make(port);
    if (made.Is(Reason::kCancelled)) co_return made;
    if (!made.ok()) LOG_WARNING("interface {}: {}", Printable(port.owner), made.message());
  }
  adopted_.Set();
  co_return OkStatus();
}

rt::Task<Status> BridgeNetworks::Sweep() {
  const auto list = [] { return ListLinks(); };
  CO_TRY(std::vector<HostLink> links, co_await deps_.links.Run("networks.list", list));
  std::erase_if(links, [this](const HostLink& link) {
    return !owner_.Owns(link.name) || IsNeeded(link.name);
  });
  for (const HostLink& link : links) {
    LOG_INFO("link {} is of no machine and goes", link.name);
    const std::string name = link.name;
    const auto remove = [&name] { return RemoveLink(name); };
    CO_TRY_STATUS(co_await deps_.links.Run("networks.sweep", remove));
  }
  co_return OkStatus();
}

}  // namespace berth::runtime
