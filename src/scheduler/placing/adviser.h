// SPDX-License-Identifier: Apache-2.0
// The Adviser answers where something would go, and why something is or is not where it is, from
// the board. It takes no room and asks no host.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apis/berth/machine_set.h"
#include "apis/berth/placement_review.h"
#include "base/result.h"
#include "client/advice/placement_advice.h"
#include "client/advice/pool_rooms.h"
#include "meta/object.h"
#include "scheduler/core/board.h"
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
    std::function<bool()> is_ready;  // knows everything, and leads
  };
  explicit Adviser(Deps deps)
      : board_(deps.board),
        pools_(deps.pools),
        objects_(deps.objects),
        placer_(deps.placer),
        is_ready_(std::move(deps.is_ready)) {}

  Result<apis::berth_dev::PlacementReviewStatus> Review(const meta::Object& object,
                                                        int32_t copies) override;
  std::optional<client::PoolRoom> RoomOf(const meta::KindInfo& pool_kind,
                                         std::string_view name) const override;

 private:
  using Answer = apis::berth_dev::PlacementReviewStatus;

  Answer ReviewOne(const meta::Object& object, int64_t copies);
  Answer ReviewSet(const apis::berth_dev::MachineSet& set, int64_t copies);
  // What the board says of the request: rules, ranking, room.
  void Explain(const Ask& ask, const ObjectRecord& record, int64_t copies, Answer& answer);
  void Rank(const Explanation& explanation, const Ask& ask, Answer& answer) const;
  // Says what an object without a place waits for besides a pool, if it does.
  void TellHold(const Ask& ask, const ObjectRecord& record, Answer& answer) const;
  // Volumes that the machine's templates describe and that are not made yet.
  std::vector<Request> TakeUnmadeVolumes(const meta::Object& object, ObjectRecord& record);
  std::string NameOf(PoolIndex pool) const;

  Board& board_;
  const PoolDirectory& pools_;
  ObjectDirectory& objects_;
  const Placer& placer_;
  const std::function<bool()> is_ready_;
};

}  // namespace berth::scheduler
