// SPDX-License-Identifier: Apache-2.0
// The BulkPlacer finds places for copies that do not exist yet, asks their hosts, and creates them
// bound. Every copy is decided, assumed and asked for by itself, as the Placer does (S1 to S3);
// what they share is the shape, the messages to hosts and the commits. Whoever gets no yes the
// first time is created without a place: the Placer then takes over, with its retries and its
// reasons.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "client/binder.h"
#include "client/bulk_creator.h"
#include "client/client.h"
#include "fleet/fleet.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "scheduler/core/board.h"
#include "scheduler/placing/object_directory.h"
#include "scheduler/placing/placer.h"
#include "scheduler/placing/pool_directory.h"

namespace berth::scheduler {

struct BulkOptions {
  // Thousands of offers leave at once: the last host answers later than a single one would.
  Duration answer_limit = Duration::Seconds(2);
  Duration hold_ttl = Duration::Seconds(10);  // used within half of it, S5
  size_t decide_per_turn = 256;               // as the Placer's turns
  // Copies of one call to the binder, and calls under way. A copy is about 2 KiB, a call a few
  // commits.
  size_t slice = 256;
  size_t slices_at_once = 8;
};

class BulkPlacer final : public client::BulkCreator {
 public:
  // Everything outlives the placer.
  struct Deps {
    rt::Loop& loop;
    Board& board;
    const PoolDirectory& pools;
    ObjectDirectory& objects;
    const Placer& placer;
    fleet::Fleet& fleet;
    client::Client& client;
    client::Binder& binder;
    metrics::Registry& metrics;
  };
  explicit BulkPlacer(Deps deps, BulkOptions options = {});
  ~BulkPlacer() override { *self_ = nullptr; }

  // Without it everything is created without a place (S1).
  void SetLeadership(std::optional<Leadership> leadership) { leadership_ = std::move(leadership); }

  using Verdicts = std::vector<Result<meta::Object>>;
  rt::Task<Verdicts> CreateBulk(std::vector<meta::Object> copies) override;

 private:
  struct Copy;
  struct Bulk;
  using Copies = std::vector<Copy*>;

  // The shape of all copies; null if they cannot be placed before they exist.
  Shape ShapeFor(const std::vector<meta::Object>& copies);
  rt::Task<Status> Decide(std::shared_ptr<Bulk> bulk, const std::vector<meta::Object>* copies);
  void Ask(const std::shared_ptr<Bulk>& bulk, size_t index, fleet::Offer offer);
  void OnAnswer(Bulk& bulk, size_t index, const fleet::Answer& answer);
  rt::Task<Status> Bind(Bulk* bulk, std::vector<meta::Object>* copies);
  rt::Task<Status> BindSlice(Bulk* bulk, std::vector<meta::Object>* copies, Copies slice);
  void Drop(Copy& copy);

  rt::Loop& loop_;
  Board& board_;
  const PoolDirectory& pools_;
  ObjectDirectory& objects_;
  const Placer& placer_;
  fleet::Fleet& fleet_;
  client::Client& client_;
  client::Binder& binder_;
  const BulkOptions options_;
  metrics::Counter& placed_;
  std::optional<Leadership> leadership_;
  uint64_t last_offer_;
  Decision decision_;  // kept for its memory
  // Answers may come after the placer: they hold this.
  std::shared_ptr<BulkPlacer*> self_ = std::make_shared<BulkPlacer*>(this);
};

}  // namespace berth::scheduler
