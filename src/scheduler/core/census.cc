// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/internal/census.h"

#include <algorithm>

namespace berth::scheduler {
namespace {

// One more or one less in a domain; whoever becomes first or last there changes the bits of all
// pools of the domain.
void Add(const Topology& topology,
         std::vector<int32_t>& counts,
         Bitmap& bits,
         uint32_t domain,
         int32_t sign) {
  const int32_t before = counts[domain];
  counts[domain] += sign;
  if ((before == 0) == (counts[domain] == 0)) return;
  const bool is_there = counts[domain] != 0;
  if (topology.is_identity) return bits.Assign(domain, is_there);
  for (const uint32_t pool : topology.members[domain]) bits.Assign(pool, is_there);
}

}  // namespace

bool CompanyTerm::Counts(const Requirements& requirements) const {
  return requirements.kind == kind &&
         std::ranges::find(company.namespaces, requirements.namespace_name) !=
             company.namespaces.end() &&
         company.selector.Matches(requirements.labels);
}

uint32_t Census::DomainFor(Topology& topology, size_t pool) {
  if (!pools_.IsLive(pool)) return kNoDomain;
  if (topology.is_identity) return static_cast<uint32_t>(pool);
  std::string value;
  if (topology.key == kHostTopology) {
    value = std::to_string(pools_.host_of(pool));
  } else {
    const auto& labels = pools_.spec(pool).labels;
    const auto label = labels.find(topology.key);
    if (label == labels.end()) return kNoDomain;
    value = label->second;
  }
  const auto [entry, is_new] =
      topology.by_value.emplace(value, static_cast<uint32_t>(topology.members.size()));
  if (is_new) topology.members.emplace_back();
  return entry->second;
}

void Census::Place(Topology& topology, size_t pool) {
  topology.domain_of.resize(pools_.slots(), kNoDomain);
  topology.present.Resize(pools_.words());
  const uint32_t old = topology.domain_of[pool];
  const uint32_t domain = DomainFor(topology, pool);
  topology.domain_of[pool] = domain;
  topology.present.Assign(pool, domain != kNoDomain);
  if (topology.is_identity || old == domain) return;
  if (old != kNoDomain) std::erase(topology.members[old], static_cast<uint32_t>(pool));
  if (domain != kNoDomain) topology.members[domain].push_back(static_cast<uint32_t>(pool));
}

std::shared_ptr<Topology> Census::TopologyOf(const std::string& key) {
  const std::string name(key == kNodeTopology ? kHostTopology : std::string_view(key));
  auto& topology = topologies_[name];
  if (topology == nullptr) {
    topology = std::make_shared<Topology>();
    topology->key = name;
    topology->is_identity = name == kPoolTopology;
    for (size_t pool = 0; pool < pools_.slots(); ++pool) Place(*topology, pool);
  }
  return topology;
}

void Census::Resize(CompanyTerm& term) const {
  const size_t domains =
      term.topology->is_identity ? pools_.slots() : term.topology->members.size();
  term.matches.resize(domains, 0);
  term.refusers.resize(domains, 0);
  term.occupied.Resize(pools_.words());
  term.refused.Resize(pools_.words());
}

std::pair<CompanyRef, bool> Census::Intern(PoolKind kind,
                                           const std::string& own_namespace,
                                           const Company& company) {
  Company full = company;
  if (full.namespaces.empty()) full.namespaces = {own_namespace};
  std::ranges::sort(full.namespaces);
  auto& term = terms_[{kind, full}];
  if (term != nullptr) return {term, false};
  term = std::make_shared<CompanyTerm>();
  term->kind = kind;
  term->company = full;
  term->topology = TopologyOf(full.topology_key);
  Resize(*term);
  ++version_;
  return {term, true};
}

void Census::Sweep() {
  if (terms_.size() < 2 * swept_size_) return;
  const size_t dropped =
      std::erase_if(terms_, [](const auto& entry) { return entry.second.use_count() == 1; });
  std::erase_if(topologies_, [](const auto& entry) { return entry.second.use_count() == 1; });
  if (dropped > 0) ++version_;
  swept_size_ = std::max<size_t>(16, terms_.size());
}

std::vector<CompanyTerm*> Census::CountedBy(const Requirements& requirements) const {
  std::vector<CompanyTerm*> counting;
  for (const auto& [key, term] : terms_)
    if (term->Counts(requirements)) counting.push_back(term.get());
  return counting;
}

void Census::CountOne(CompanyTerm& term, size_t pool, int32_t sign) {
  const uint32_t domain = term.topology->domain_of[pool];
  if (domain == kNoDomain) return;
  term.total_matches += sign;
  Add(*term.topology, term.matches, term.occupied, domain, sign);
}

void Census::Count(const CompiledShape& shape, size_t pool, int32_t sign) {
  for (const auto& term : shape.counted_by) CountOne(*term, pool, sign);
  for (const auto& term : shape.anti_affinity) {
    const uint32_t domain = term->topology->domain_of[pool];
    if (domain == kNoDomain) continue;
    term->total_refusers += sign;
    Add(*term->topology, term->refusers, term->refused, domain, sign);
  }
}

void Census::PoolChanged(size_t pool) {
  for (auto& [key, topology] : topologies_) Place(*topology, pool);
  for (auto& [key, term] : terms_) {
    Resize(*term);
    const uint32_t domain = term->topology->domain_of[pool];
    term->occupied.Assign(pool, domain != kNoDomain && term->matches[domain] != 0);
    term->refused.Assign(pool, domain != kNoDomain && term->refusers[domain] != 0);
  }
}

}  // namespace berth::scheduler
