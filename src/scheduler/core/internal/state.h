// SPDX-License-Identifier: Apache-2.0
// The parts of a Board, and the verbs that work on all of them. One file per verb: board.cc (pools
// and objects), decide.cc, rules.cc, joint.cc, explain.cc, preempt.cc.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scheduler/core/board.h"
#include "scheduler/core/internal/census.h"
#include "scheduler/core/internal/fit_bank.h"
#include "scheduler/core/internal/fit_index.h"
#include "scheduler/core/internal/object_table.h"
#include "scheduler/core/internal/pool_table.h"
#include "scheduler/core/internal/views.h"

namespace berth::scheduler {

// A candidate in the making.
struct Ranked {
  uint32_t pool = 0;
  int32_t points = 0;
  uint8_t level = 0;
};

// A hard spread rule with its numbers of the moment: a domain may have at most `limit` matches.
struct SpreadLimit {
  const CompanyTerm* term = nullptr;
  int64_t limit = 0;
};

// The volume pools that could take one joint volume, best first.
struct JointRanking {
  const CompiledShape* shape = nullptr;
  std::vector<uint32_t> beyond_host;  // those with a reach beyond their host
  std::vector<uint32_t> position_of;  // by pool: its rank; kNoRank: cannot take it
};
inline constexpr uint32_t kNoRank = UINT32_MAX;

// What was found by trying (joint.cc). Machine pools within reach of the same volume pools have the
// same answer: it is looked for once.
struct JointAnswers {
  using Answer = std::optional<std::vector<PoolIndex>>;  // by volume; nullopt: none was found
  std::vector<uint32_t>
      beyond_host;  // ranked for any of the volumes, with a reach beyond their host
  std::map<std::vector<uint32_t>, Answer> by_reach;  // by ranked volume pools within reach
  int trials_left = 0;
};

// A request as the rules see it. Lives for one question.
struct Inquiry {
  const Request& request;
  CompiledShape& shape;
  const TaintView* taints = nullptr;
  const Bitmap* matching = nullptr;  // null: no selector
  std::vector<const Bitmap*> preferred_views;
  std::vector<SpreadLimit> spread;
  std::vector<JointRanking> joint;
  std::unique_ptr<JointAnswers> joint_answers;  // null: no joint volumes
};

// A pool that fails a rule, and how far it is from passing.
struct Miss {
  NearMiss near;
  double distance = 0;  // infinite unless it is only room that it lacks
};

enum class RoomCheck : uint8_t { kAsked, kSkipped };

class BoardState {
 public:
  explicit BoardState(BoardOptions given);
  ~BoardState();
  BoardState(const BoardState&) = delete;
  BoardState& operator=(const BoardState&) = delete;

  // ---- board.cc
  void PoolChanged(size_t pool);
  void ChargeObjects(size_t pool, int64_t sign);
  void CountUnseen(size_t pool);
  void RechargeAll();
  void CountObjects(size_t pool, int32_t sign);
  void Compile(CompiledShape& shape);
  void RefreshCounts(CompiledShape& shape);
  CompanyRef InternTerm(const Requirements& requirements, const Company& company);
  void Apply(const Request& request, Placed& object);
  void AddObject(const Request& request, size_t pool, ObjectKey reservation, bool is_settled);
  void RemoveObject(Placed& object);
  void MarkSeen(Placed& object);
  void TakeReport(PoolIndex pool, LedgerVersion version, std::span<const int64_t> amounts);

  // ---- rules.cc
  Inquiry Inquire(const Request& request);
  // The first rule that the pool fails. REQUIRES: a live pool of the request's kind.
  std::optional<Rule> FirstFailure(const Inquiry& inquiry, size_t pool, RoomCheck room);
  bool Reaches(size_t volume_pool, size_t machine_pool) const;
  // A copy of the reservation on that pool into which the request fits; null: none.
  const Placed* ReservedAt(const Inquiry& inquiry, size_t pool) const;
  bool IsRefused(const Request& request, size_t pool) const;
  int32_t PointsOf(const Inquiry& inquiry, size_t pool) const;
  Tier TierOf(const Inquiry& inquiry, size_t pool) const;

  // ---- decide.cc
  void Decide(const Request& request, size_t count, Decision& decision);
  void DecideAmongFew(const Inquiry& inquiry, size_t count, Decision& decision);
  void Search(const Inquiry& inquiry, FitIndex& index, const Clauses& clauses, size_t count);
  TaintScope ScopeOf(const Inquiry& inquiry) const;
  Clauses ClausesOf(const Inquiry& inquiry);
  size_t StartOf(const Request& request) const;
  AssumeVerdict Assume(const Request& request, const Candidate& candidate);

  // ---- joint.cc
  std::vector<JointRanking> RankJoint(const Request& request);
  // A volume pool for every joint volume of a machine on this pool; false: there is none for one.
  bool AssignJoint(const Inquiry& inquiry, size_t machine_pool, std::vector<PoolIndex>* chosen);
  // Where volumes that come first have to make way.
  bool SearchJoint(const Inquiry& inquiry,
                   size_t machine_pool,
                   std::vector<PoolIndex>* chosen) const;
  // The pools that could take the volume of a machine there, best first.
  std::vector<uint32_t> OptionsOf(const JointRanking& ranking, size_t machine_pool) const;
  // The ranked volume pools that machines there can use, by index.
  std::vector<uint32_t> RankedWithinReach(const Inquiry& inquiry, size_t machine_pool) const;
  static std::unique_ptr<JointAnswers> NoAnswersYet(const std::vector<JointRanking>& rankings);

  // ---- explain.cc
  Explanation Explain(const Request& request, size_t count);
  void Count(const Placed& object, int32_t sign);
  void ExplainJoint(const Request& request, Explanation& explanation);
  Miss MissOf(const Inquiry& inquiry, size_t pool, Rule rule) const;
  Fitting CountCopies(const Inquiry& inquiry, int64_t limit);

  BoardOptions options;
  PoolTable pools;
  Views views{pools};
  Census census{pools};
  ObjectTable objects;
  std::map<std::string, std::weak_ptr<CompiledShape>> shapes;
  std::weak_ptr<CompiledShape> last_interned;
  size_t shapes_swept = 64;
  FitBank indexes{pools};

  Time now;
  std::vector<Time> avoid_until;  // by pool
  std::set<std::pair<Time, uint32_t>> avoidances;
  Bitmap avoided;
  Bitmap scratch;              // of the clauses of the moment
  std::vector<Ranked> ranked;  // of the search of the moment
  uint64_t dimensions_version = 0;
};

}  // namespace berth::scheduler
