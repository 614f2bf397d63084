// SPDX-License-Identifier: Apache-2.0
// The Census counts placed objects per topology domain, for every company term that a live shape
// asks about.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/core/internal/bitmap.h"
#include "scheduler/core/internal/pool_table.h"
#include "scheduler/core/internal/shape.h"

namespace berth::scheduler {

inline constexpr uint32_t kNoDomain = UINT32_MAX;

// One way to group pools. Every pool by itself is the identity; it keeps no lists.
struct Topology {
  std::string key;
  bool is_identity = false;
  std::vector<uint32_t> domain_of;             // by pool
  std::vector<std::vector<uint32_t>> members;  // by domain
  std::map<std::string, uint32_t> by_value;
  Bitmap present;  // pools that are in a domain
};

struct CompanyTerm {
  PoolKind kind = PoolKind::kMachine;
  Company company;  // namespaces filled in
  std::shared_ptr<Topology> topology;
  // By domain: objects that match the selector, and objects that refuse such company.
  std::vector<int32_t> matches;
  std::vector<int32_t> refusers;
  int64_t total_matches = 0;
  int64_t total_refusers = 0;
  Bitmap occupied;  // pools in domains with matches
  Bitmap refused;   // pools in domains with refusers

  bool Counts(const Requirements& requirements) const;
  int32_t MatchesAt(size_t pool) const {
    const uint32_t domain = topology->domain_of[pool];
    return domain == kNoDomain ? 0 : matches[domain];
  }
};

class Census {
 public:
  explicit Census(const PoolTable& pools) : pools_(pools) {}

  // Changes whenever terms come or go.
  uint64_t version() const { return version_; }
  bool empty() const { return terms_.empty(); }

  // The term, and whether it is new: then the caller tells it every placed object with Count.
  std::pair<CompanyRef, bool> Intern(PoolKind kind,
                                     const std::string& own_namespace,
                                     const Company& company);
  // Drops terms that no shape asks about.
  void Sweep();

  // All terms that count objects with these requirements.
  std::vector<CompanyTerm*> CountedBy(const Requirements& requirements) const;

  // An object comes to (1) or leaves (-1) the pool.
  void Count(const CompiledShape& shape, size_t pool, int32_t sign);
  static void CountOne(CompanyTerm& term, size_t pool, int32_t sign);

  // A pool comes, changes its labels, or goes; no object may be counted on it meanwhile.
  void PoolChanged(size_t pool);

 private:
  std::shared_ptr<Topology> TopologyOf(const std::string& key);
  uint32_t DomainFor(Topology& topology, size_t pool);
  void Place(Topology& topology, size_t pool);
  void Resize(CompanyTerm& term) const;

  const PoolTable& pools_;
  std::map<std::pair<PoolKind, Company>, CompanyRef> terms_;
  std::map<std::string, std::shared_ptr<Topology>> topologies_;
  uint64_t version_ = 1;
  size_t swept_size_ = 16;
};

}  // namespace berth::scheduler
