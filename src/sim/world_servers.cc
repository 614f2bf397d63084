// SPDX-License-Identifier: Apache-2.0
// Life of the servers of a world, and what is known of them.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/world.h"

namespace berth::sim {
namespace {

constexpr Duration kStartAgain = Duration::Seconds(1);
// A server that was just started has not seen yet for how long the leader's lease is.
constexpr Duration kWellAfter = Duration::Seconds(4);
// What happens to a host has its consequences for some time.
constexpr Duration kHostsWellAfter = Duration::Seconds(6);

}  // namespace

// ---- Which of them.

ServerProcess* World::server() {
  for (size_t i = 0; i < seats_.size(); ++i) {
    const Seat& seat = *seats_[(door_ + i) % seats_.size()];
    const bool is_there = seat.process != nullptr && seat.process->is_serving();
    if (is_there && !seat.loop.paused() && !seat.link.is_cut()) return seat.process.get();
  }
  return nullptr;
}

ServerProcess* World::leader() {
  ServerProcess* found = nullptr;
  for (const auto& seat : seats_) {
    ServerProcess* one = seat->process.get();
    if (one == nullptr || !one->is_leading() || seat->loop.paused()) continue;
    if (found == nullptr || one->reign() > found->reign()) found = one;
  }
  return found;
}

Seat& World::SeatOf(const ServerProcess& process) {
  for (const auto& seat : seats_) {
    if (seat->process.get() == &process) return *seat;
  }
  CHECK(false) << "a process without a seat";
  return *seats_.front();
}

bool World::IsWell(const Seat& seat) const {
  return seat.process != nullptr && seat.process->is_serving() && !seat.loop.paused() &&
         !seat.link.is_cut() && !seat.is_isolated;
}

void World::Send(std::string_view what, rt::Task<Status> request) {
  ServerProcess* to = server();
  if (!is_shared()) return to->requests().Spawn(what, std::move(request));
  // This may be an event of another server.
  const auto held = std::make_shared<rt::Task<Status>>(std::move(request));
  Soon([this, what, held, life = to->life()] {
    for (const auto& seat : seats_) {
      if (seat->process == nullptr || seat->process->life() != life) continue;
      seat->process->requests().Spawn(what, std::move(*held));
    }
  });
  ++door_;
}

// The promise is made if all others have been well for a while, and so have the hosts, which were
// with the leader. Hosts that find two servers silent need longer to get to the third.
void World::LeaderIsLost(Seat& seat) {
  failover_checker_->Excuse();
  if (is_shared()) lost_reigns_.insert(seat.process->reign());
  if (!is_shared() || now() - host_trouble_ < kHostsWellAfter || seat.is_isolated) return;
  const auto synced = std::ranges::count_if(
      hosts_, [](const std::unique_ptr<HostProcess>& host) { return host->is_synced(); });
  const bool are_well = std::ranges::all_of(seats_, [&](const std::unique_ptr<Seat>& other) {
    if (other.get() == &seat) return true;
    return IsWell(*other) && now() - *other->serving_since > kWellAfter;
  });
  if (are_well && static_cast<size_t>(synced) * 2 > hosts_.size()) failover_checker_->Lost();
}

// ---- What a shared store tells.

void World::WatchStore() {
  following_ = std::make_unique<rt::TaskScope>(shared_->loop());
  following_->Spawn("sim.follow", FollowStore());
}

rt::Task<Status> World::FollowStore() {
  store::WatchRequest request;
  request.start = "/";
  request.end = store::PrefixEnd("/");
  request.from = store::Revision{2};
  CO_TRY(const std::unique_ptr<store::Watch> watch,
         co_await shared_->own().StartWatch(std::move(request)));
  for (;;) {
    CO_TRY(const store::WatchBatch batch, co_await watch->Next());
    Changed(batch);
  }
}

// ---- Life.

void World::SetFaults(store::StoreFaults faults) {
  store_faults_ = faults;
  for (const auto& seat : seats_) {
    if (seat->process != nullptr && seat->process->is_serving()) seat->process->SetFaults(faults);
  }
}

void World::StartServers() {
  constexpr Duration kLimit = Duration::Minutes(1);
  if (is_shared()) WatchStore();
  for (const auto& seat : seats_) StartServer(*seat);
  if (!is_shared()) return;
  const bool leads = loop_.RunUntil([this] { return leader() != nullptr; }, kLimit);
  CHECK(leads) << "seed " << seed_ << ": no server leads";
}

void World::StartServer(Seat& seat) {
  CHECK(seat.process == nullptr);
  network_.Restart(seat.node);
  const uint64_t life = ++starts_;
  ServerProcess::Deps deps{.loop = seat.loop,
                           .network = network_,
                           .disk = disk_,
                           .scheme = scheme_,
                           .authority = authority_,
                           .entropy = *entropy_,
                           .acknowledged = acknowledged_,
                           .reader = *this,
                           .moments = *moments_};
  ServerProcess::Options options;
  options.node = seat.node;
  options.life = life;
  options.seed = seed_ * 1000 + life;
  options.faults = store_faults_;
  options.broken = broken_;
  options.rewound = rewound_;
  if (is_shared()) {
    deps.shared = shared_.get();
    deps.link = &seat.link;
    deps.witness = one_leader_checker_;
    options.on_deposed = [this, &seat, life] { StartAnew(seat, life, "is deposed"); };
  }
  seat.process = std::make_unique<ServerProcess>(std::move(deps), std::move(options));
  if (is_shared()) {
    seat.process->Begin([this, &seat, life](const Status& status) { Started(seat, life, status); });
    return;
  }
  const Status started = RunOn(seat.loop, seat.process->Start());
  CHECK(started.ok()) << "seed " << seed_ << ": the server does not start: " << started;
  serving_since_ = now();
  incarnation_ = seat.process->cluster().incarnation;
  Started(seat, life, started);
  // The store may be older than a host: its operator lets it join again.
  if (std::exchange(rewound_, std::nullopt)) {
    for (const auto& host : hosts_) Enrol(host->name());
  }
}

void World::Started(Seat& seat, uint64_t life, const Status& status) {
  if (!status.ok()) return StartAnew(seat, life, "does not start: " + status.ToString());
  seat.serving_since = now();
  TroubleForAll();
  Say(fmt::format("the {} runs: start {}, incarnation {}",
                  seat.node,
                  seat.process->cluster().start,
                  seat.process->cluster().incarnation));
  for (size_t i = 0; i < seats_.size(); ++i) {
    if (seats_[i].get() != &seat) continue;
    for (WatchChecker* watch : watch_checkers_[i]) {
      seat.process->requests().Spawn("sim.watch", watch->Follow(&seat.process->client()));
    }
  }
}

// As a process that ends and is started again by whoever looks after it.
void World::StartAnew(Seat& seat, uint64_t life, std::string why) {
  Soon([this, &seat, life, why = std::move(why)] {
    if (seat.process == nullptr || seat.process->life() != life) return;
    Say(fmt::format("the {} {}", seat.node, why));
    KillServer(seat);
    At(kStartAgain, [this, &seat] {
      if (seat.process == nullptr) StartServer(seat);
    });
  });
}

void World::KillServer(Seat& seat) {
  if (seat.process == nullptr || seat.loop.paused()) return;
  network_.Crash(seat.node, net::CrashStyle::kReset);
  if (!is_shared()) serving_since_.reset();
  seat.serving_since.reset();
  const Status killed = RunOn(seat.loop, seat.process->Kill());
  CHECK(killed.ok()) << killed;
  seat.process.reset();
  TroubleForAll();
  if (broken_ == Broken::kLostWrite) LosePartOfDisk();
}

void World::KillServers() {
  network_.HealAll();
  for (const auto& seat : seats_) {
    seat->link.Heal();
    if (seat->loop.paused()) seat->loop.Resume();
    KillServer(*seat);
  }
}

// Of a shared store, which no server has to read before it serves: what was acknowledged by any of
// them is there when all are gone.
void World::CheckStore() {
  if (!is_shared()) return;
  store::RangeRequest all;
  all.start = "/";
  all.end = store::PrefixEnd("/");
  const auto range = RunOn(shared_->loop(), shared_->own().Range(std::move(all)));
  CHECK(range.ok()) << range.status();
  for (const auto& checker : checkers_) checker->OnLoaded(*range);
}

void World::KillEverything() {
  ClearAgenda();
  urgent_.clear();
  KillServers();
  for (const auto& host : hosts_) {
    if (host->loop().paused()) host->loop().Resume();
    KillHost(*host, net::CrashStyle::kReset);
  }
  if (shared_ == nullptr) return;
  Status closed = RunOn(shared_->loop(), following_->Close());
  CHECK(closed.ok()) << closed;
  closed = RunOn(shared_->loop(), shared_->Close());
  CHECK(closed.ok()) << closed;
}

}  // namespace berth::sim
