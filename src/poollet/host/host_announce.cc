// SPDX-License-Identifier: Apache-2.0
// How a host introduces itself.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "berth/agent/v1/agent.pb.h"
#include "poollet/host/host.h"

namespace berth::poollet {
namespace {

namespace pb = ::berth::agent::v1;
using fleet::ObjectKind;

// A server that states no limit takes gRPC's 4 MiB; a quarter of that leaves room.
constexpr size_t kMessageBytes = size_t{1024} * 1024;
constexpr size_t kTextBytes = 1024;
// Batches leave at most every 10 ms.
constexpr size_t kBatchesPerSecond = 100;

void FillHost(const HardwareFacts& facts, const LeaseKeeper& leases, pb::HostFacts& out) {
  out.set_hostname(facts.hostname);
  out.set_os(facts.os);
  out.set_kernel(facts.kernel);
  out.set_architecture(facts.architecture);
  out.set_cpus(facts.cpus);
  out.set_memory_bytes(facts.memory_bytes);
  out.set_storage_bytes(facts.storage_bytes);
  out.set_machine_id(facts.machine_id);
  out.set_fence_ready(leases.is_ready());
  out.set_fence_problem(leases.problem());
}

ObjectKind KindOfPool(std::string_view kind) {
  if (kind == "VolumePool") return ObjectKind::kVolume;
  if (kind == "BucketPool") return ObjectKind::kBucket;
  return ObjectKind::kMachine;
}

}  // namespace

std::string Host::Hello() {
  pb::HostMessage message;
  pb::Hello& hello = *message.mutable_hello();
  hello.set_poollet_version(options_.version);
  hello.set_boot_id(options_.facts.boot_id);
  hello.set_lease_left_ms(static_cast<uint64_t>(std::max<int64_t>(leases_.left().millis(), 0)));
  hello.set_incarnation(host_.incarnation);
  hello.set_term(host_.term);
  return message.SerializeAsString();
}

Status Host::Welcomed(const pb::Welcome& welcome) {
  if (!host_.cluster_id.empty() && welcome.cluster_id() != host_.cluster_id) {
    return Forbidden("the server is of cluster " + welcome.cluster_id() +
                     ", this host belongs to " + host_.cluster_id);
  }
  in_session_ = true;
  synced_ = false;
  history_ = HistoryState::kSettled;
  tripped_ = false;
  held_deletes_.clear();
  incarnation_ = welcome.incarnation();
  // Terms are counted in the store: one that was rewound counts them again.
  if (incarnation_ > host_.incarnation) host_.term = 0;
  pending_deletes_.clear();
  for (auto& [_, item] : items_) item.is_confirmed = item.is_named = false;
  leases_.SessionBegan();
  const pb::Limits& limits = welcome.limits();
  limits_.message_bytes = limits.message_bytes() == 0
                              ? kMessageBytes
                              : std::min<size_t>(limits.message_bytes() * 3 / 4, kMessageBytes);
  limits_.text_bytes =
      limits.text_bytes() == 0 ? kTextBytes : std::min<size_t>(limits.text_bytes(), kTextBytes);
  limits_.statuses_per_batch =
      limits.status_per_second() == 0
          ? OutboxLimits().statuses_per_batch
          : std::max<size_t>(1, limits.status_per_second() / kBatchesPerSecond);
  limits_.events_per_second = limits.events_per_second();
  outbox_.Begin(limits_, loop_.Now());
  host_.cluster_id = welcome.cluster_id();
  if (welcome.servers_size() > 0) {
    host_.servers.assign(welcome.servers().begin(), welcome.servers().end());
  }
  reconciler_.SetClusterId(host_.cluster_id);
  StartWatches();
  PersistHost();
  return OkStatus();
}

void Host::FillKnown(const Item& item, pb::Known& known) const {
  known.set_uid(item.entry.uid);
  known.set_incarnation(item.entry.placement.incarnation);
  known.set_placement(item.entry.placement.number);
  if (!item.secrets_missing) known.set_hash(item.entry.hash);
  known.set_pool_uid(item.entry.pool_uid);
  known.set_gone(item.entry.phase == Phase::kGone);
  if (known.gone() || item.desired == nullptr || known.incarnation() == incarnation_) return;
  // The server may have forgotten that it was placed here. The proof is of the placement that was
  // assigned; that of a removal may be a later one.
  known.set_incarnation(item.desired->placement.incarnation);
  known.set_placement(item.desired->placement.number);
  known.set_proof(item.desired->proof);
  known.set_leased(Moves(*item.desired));
  for (const auto& [name, amount] : item.entry.amounts) {
    (*known.mutable_resources())[name] = amount;
  }
  for (const std::string& uid : ConsumersOf(*item.desired)) known.add_consumers(uid);
}

iri::StringMap Host::FactsOf(const Port& port) {
  iri::StringMap facts = port.facts;
  facts["runtime"] = port.runtime_name;
  return facts;
}

void Host::FillPool(const PoolSetup& setup, pb::PoolAnnounce& pool) const {
  const ObjectKind kind = KindOfPool(setup.kind);
  pool.set_kind(setup.kind);
  pool.set_name(setup.name);
  pool.set_provider_id(setup.provider_id);
  const auto port = ports_.find(kind);
  if (port == ports_.end()) return;
  for (const auto& [key, value] : FactsOf(port->second)) (*pool.mutable_facts())[key] = value;
  for (const auto& offered : port->second.classes) {
    pb::ClassOffer& made = *pool.add_classes();
    made.set_name(offered.name);
    for (const auto& [name, value] : offered.capabilities) {
      (*made.mutable_capabilities())[name] = value;
    }
    made.set_quantity(offered.quantity);
  }
  const std::string uid = PoolUidOf(kind);
  pb::Facts& facts = *pool.mutable_capacity();
  facts.mutable_ledger()->set_boot(ledger_.version().boot);
  facts.mutable_ledger()->set_counter(ledger_.version().counter);
  const bool shares = uid.empty() && port->second.host == nullptr;
  const Amounts capacity =
      shares ? Amounts{{std::string(kShare), fleet::kShareWhole}} : ledger_.CapacityOf(uid);
  for (const auto& [name, amount] : capacity) (*facts.mutable_capacity())[name] = amount;
  for (const auto& [name, amount] : ledger_.AllocatedOf(uid)) {
    (*facts.mutable_allocated())[name] = amount;
  }
  for (const auto& [name, amount] : ledger_.HeldOf(uid)) (*facts.mutable_held())[name] = amount;
  facts.set_fence_ready(leases_.is_ready());
  facts.set_fence_problem(leases_.problem());
}

std::vector<std::string> Host::Announce() {
  std::vector<std::string> chunks;
  pb::HostMessage message;
  pb::Announce* announce = message.mutable_announce();
  size_t bytes = 0;
  const auto room = [&](size_t more) {
    bytes += more + 8;
    if (bytes <= limits_.message_bytes) return;
    chunks.push_back(message.SerializeAsString());
    message.Clear();
    announce = message.mutable_announce();
    bytes = more + 8;
  };
  FillHost(options_.facts, leases_, *announce->mutable_host());
  for (const auto& setup : options_.pools) {
    pb::PoolAnnounce pool;
    FillPool(setup, pool);
    room(pool.ByteSizeLong());
    *announce->add_pools() = std::move(pool);
  }
  for (const auto& [_, item] : items_) {
    // A refusal that is not durable yet was never said: the server sends the assignment again. One
    // that was accepted and is being written down is here, and the server may know better by now.
    if (item.entry.phase == Phase::kGone && !item.MayBeSaid()) continue;
    pb::Known known;
    FillKnown(item, known);
    room(known.ByteSizeLong());
    *announce->add_known() = std::move(known);
  }
  for (const auto& [_, orphan] : orphans_) {
    pb::Orphan out;
    internal::FillOrphan(orphan, out);
    room(out.ByteSizeLong());
    *announce->add_orphans() = std::move(out);
  }
  announce->set_last(true);
  chunks.push_back(message.SerializeAsString());
  for (auto& [_, port] : ports_) port.classes_changed = port.facts_changed = false;
  return chunks;
}

std::vector<std::string> Host::Servers() const {
  std::vector<std::string> servers = options_.servers;
  for (const auto& server : host_.servers) {
    if (std::ranges::find(servers, server) == servers.end()) servers.push_back(server);
  }
  return servers;
}

}  // namespace berth::poollet
