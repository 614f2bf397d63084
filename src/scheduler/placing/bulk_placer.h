// SPDX-License-Identifier: Apache-2.0
// The BulkPlacer finds places for copies that do not exist yet, asks their hosts, and creates them
// bound. Every copy is decided, assumed and asked for by itself, as the Placer does (S1 to S3);
// what they share is the shape, the messages to hosts and the commits:
//
//   decide for all  ─▶  sort by pool  ─▶  waves of whole pools: ask ─▶ answers ─▶ commit
//
// So a host hears of all its copies in one message and they come out of one commit, and while one
// wave is written the hosts of the next one answer. Whoever gets no yes the first time is created
// without a place: the Placer then takes over, with its retries and its reasons.
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
#include "client/events/event_recorder.h"
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
  // Copies of one wave, and waves that are written at once: 8 * 512 copies * 4 KB is 16 MB.
  size_t wave = 512;
  size_t waves_at_once = 8;
};

class BulkPlacer final : public client::BulkCreator {
 public:
  // Everything outlives the placer.
  struct Deps {
    rt::Loop& loop;
    Board& board;
    const PoolDirectory& pools;
    ObjectDirectory& objects;
    Placer& placer;
    fleet::Fleet& fleet;
    client::Client& client;
    client::Binder& binder;
    client::EventRecorder& events;
    metrics::Registry& metrics;
  };
  explicit BulkPlacer(Deps deps, BulkOptions options = {});
  ~BulkPlacer() override { *self_ = nullptr; }

  // Without it everything is created without a place (S1).
  void SetLeadership(std::optional<Leadership> leadership) { leadership_ = std::move(leadership); }

  using Verdicts = std::vector<Result<std::string>>;
  rt::Task<Verdicts> CreateBulk(meta::Object model, std::vector<std::string> names) override;

 private:
  struct Place;
  struct Copy;
  struct Bulk;
  struct Wave;

  // The shape of all copies; null if they cannot be placed before they exist.
  Shape ShapeFor(const meta::Object& model);
  rt::Task<Status> Decide(Bulk* bulk);
  static Place PlaceOn(const Bulk& bulk, const TranslatedPool& pool);
  static void SortByPool(Bulk& bulk);
  rt::Task<Status> PlaceAll(std::shared_ptr<Bulk> bulk);
  rt::Task<Status> PlaceWave(std::shared_ptr<Bulk> bulk, size_t first, size_t end);
  rt::Task<Status> AskAll(std::shared_ptr<Wave> wave, size_t first, size_t end);
  void Ask(const std::shared_ptr<Wave>& wave, size_t index);
  void OnAnswer(Wave& wave, size_t index, const fleet::Answer& answer);
  rt::Task<Status> Bind(Bulk* bulk, size_t first, size_t end);
  rt::Task<Status> CreateRest(Bulk* bulk);
  void Drop(const Bulk& bulk, Copy& copy);
  // Events: of each copy if they are few, else one of whom they belong to.
  void Tell(const Bulk& bulk);

  rt::Loop& loop_;
  Board& board_;
  const PoolDirectory& pools_;
  ObjectDirectory& objects_;
  Placer& placer_;
  fleet::Fleet& fleet_;
  client::Client& client_;
  client::Binder& binder_;
  client::EventRecorder& events_;
  const BulkOptions options_;
  metrics::Counter& placed_;
  std::optional<Leadership> leadership_;
  uint64_t last_offer_;
  Decision decision_;  // kept for its memory
  // Answers may come after the placer: they hold this.
  std::shared_ptr<BulkPlacer*> self_ = std::make_shared<BulkPlacer*>(this);
};

}  // namespace berth::scheduler
