// SPDX-License-Identifier: Apache-2.0
// The Adviser answers where something would go, and why something is or is not where it is, from
// the board. It takes no room and asks no host.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apis/berth/machine_group.h"
#include "apis/berth/machine_set.h"
#include "apis/berth/placement_review.h"
#include "base/result.h"
#include "client/advice/placement_advice.h"
#include "client/advice/pool_rooms.h"
#include "meta/object.h"
#include "scheduler/core/board.h"
#include "scheduler/core/supposition.h"
#include "scheduler/placing/drafts.h"
#include "scheduler/placing/group_directory.h"
#include "scheduler/placing/object_directory.h"
#include "scheduler/placing/placer.h"
#include "scheduler/placing/pool_directory.h"

namespace berth::scheduler {

class Adviser final : public client::PlacementAdvice, public client::PoolRooms {
 public:
  // The best pools that an answer names.
  static constexpr size_t kRankedMax = 10;

  struct Deps {
    Board& board;
    const PoolDirectory& pools;
    ObjectDirectory& objects;
    const Placer& placer;
    const GroupDirectory& groups;
    std::function<bool()> is_ready;  // knows everything, and leads
  };
  explicit Adviser(Deps deps)
      : board_(deps.board),
        pools_(deps.pools),
        objects_(deps.objects),
        placer_(deps.placer),
        groups_(deps.groups),
        is_ready_(std::move(deps.is_ready)) {}

  Result<apis::berth_dev::PlacementReviewStatus> Review(
      const client::PlacementQuestion& question) override;
  std::optional<client::PoolRoom> RoomOf(const meta::KindInfo& pool_kind,
                                         std::string_view name) const override;

 private:
  using Answer = apis::berth_dev::PlacementReviewStatus;

  // One question, with what is supposed for it.
  struct Case {
    Case(ObjectDirectory& objects, Board& on, int64_t limit)
        : copies(limit), with_drafts(objects, drafts), board(on) {}

    int64_t copies;  // counted at most
    Drafts drafts;
    const ObjectDirectory::WithDrafts with_drafts;
    Supposition board;
  };
  // A machine of a group: it has a pool, or asks for one, or waits for something else.
  struct Member {
    std::string name;
    std::string pool;
    std::optional<Ask> ask;
    std::string not_yet;
  };

  Answer ReviewOne(const meta::Object& object, Case& one);
  // A volume that is placed with a machine which has no place yet.
  Answer ReviewJoint(const ObjectRecord& volume, const ObjectRecord& machine, int64_t copies);
  // A reservation for all pools: each of them by itself.
  Answer ReviewParts(const ObjectRecord& whole);
  Answer ReviewSet(const apis::berth_dev::MachineSet& set, Case& one);
  Answer ReviewGroup(const apis::berth_dev::MachineGroup& group, Case& one);

  // What comes with the question, and its object, if that does not exist either.
  void ReadDrafts(const client::PlacementQuestion& question, Case& one);
  // A reservation that is a draft gets the room that it would get, so that the machine, which names
  // it, can go into it.
  void SupposeReservation(const ObjectRecord& machine, Case& one);
  // The draft of a machine with which the draft of a volume would be placed; null: it goes alone.
  const meta::Object* UserOf(const ObjectRecord& volume, const Case& one) const;

  // Of the store and of the drafts, by name.
  std::vector<Member> MembersOf(const client::ObjectKey& group, Case& one);
  Member ReadMember(const ObjectRecord& record);
  Member ReadMember(const Drafts::Draft& draft, Case& one);
  // How many of the members that ask for a pool can have one at once. Of very many only whether all
  // can, or as many as are needed.
  size_t CountFitting(const std::vector<Request>& requests, size_t needed);
  // Says where those go who are the first to ask.
  void TellPlaces(const std::vector<Member>& members,
                  std::span<const Request> requests,
                  Answer& answer);

  // What the board says of the request: rules, ranking, room.
  void Explain(const Ask& ask, const ObjectRecord& record, int64_t copies, Answer& answer);
  // By rule, with what is said of volumes that tie a machine.
  static void TellFailed(const std::array<int64_t, kRules>& counts,
                         const std::string& ties,
                         Answer& answer);
  void TellNearest(const NearMiss& miss, Answer& answer) const;
  static void TellRefusals(const std::vector<Refusal>& refusals, Answer& answer);
  void Rank(const Explanation& explanation, const Ask& ask, Answer& answer) const;
  // Says what an object without a place waits for besides a pool, if it does.
  void TellHold(const Ask& ask, const ObjectRecord& record, Answer& answer) const;
  // Says of a machine that does not exist and fits nowhere whether others may be stopped for it.
  void TellPreemption(const meta::Object& draft,
                      const ObjectRecord& record,
                      const Ask& ask,
                      Answer& answer);
  // Volumes that a machine's templates describe and that are not made yet.
  struct Unmade {
    std::vector<std::string> names;
    std::vector<Request> requests;
    void AddTo(Ask& ask);
  };
  Unmade TakeUnmadeVolumes(const meta::Object& object, ObjectRecord& record);
  std::string NameOf(PoolIndex pool) const;

  Board& board_;
  const PoolDirectory& pools_;
  ObjectDirectory& objects_;
  const Placer& placer_;
  const GroupDirectory& groups_;
  const std::function<bool()> is_ready_;
};

}  // namespace berth::scheduler
