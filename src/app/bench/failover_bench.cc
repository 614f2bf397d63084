// SPDX-License-Identifier: Apache-2.0
#include "app/bench/failover_bench.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "app/bench/bench_world.h"
#include "app/bench/holdings.h"
#include "app/bench/placement_tally.h"
#include "app/bench/server_group.h"
#include "base/strings.h"
#include "meta/json.h"
#include "meta/value.h"
#include "rt/scope.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

constexpr char kEtcd[] = "/usr/bin/etcd";
constexpr double kFailoverMaxMs = 3'000;  // what a lost leader may cost
constexpr Duration kPoll = Duration::Millis(5);
constexpr Duration kCheckPause = Duration::Millis(100);
constexpr Duration kLimit = Duration::Minutes(1);
// Load: machines that others create meanwhile.
constexpr int kCreators = 4;
constexpr Duration kCreatePause = Duration::Millis(100);
// Of what hosts have room for, load takes half: whatever is not bound at the end has a place.
constexpr int kLoadShare = 2;
constexpr int kPage = 200;
constexpr std::string_view kMachines =
    "/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines";
constexpr std::string_view kClasses = "/apis/compute.ironcore.dev/v1alpha1/machineclasses";

using Params = std::map<std::string, std::string>;

Loss LossAt(int number) { return kLosses[static_cast<size_t>(number) % kLosses.size()]; }

double Largest(std::vector<double> values) { return std::ranges::max(values); }

// How long each failover took, by what the leader was lost to.
class Times {
 public:
  void Add(Loss loss, double ms) { by_loss_[loss].push_back(ms); }
  std::vector<double> all() const {
    std::vector<double> all;
    for (const auto& [_, each] : by_loss_) all.insert(all.end(), each.begin(), each.end());
    return all;
  }
  // "killed_ms" and so on.
  Params EachBy(double (*pick)(std::vector<double>)) const {
    Params params;
    for (const auto& [loss, each] : by_loss_) {
      params[std::string(LossName(loss)) + "_ms"] = fmt::format("{:.0f}", pick(each));
    }
    return params;
  }

 private:
  std::map<Loss, std::vector<double>> by_loss_;
};

class FailoverRun {
 public:
  FailoverRun(rt::AsioLoop& loop, const FailoverBenchOptions& options, HostProcess& hosts)
      : loop_(loop),
        options_(options),
        hosts_(hosts),
        load_max_(static_cast<size_t>(options.hosts * kBenchMachinesPerHost / kLoadShare)),
        group_(loop,
               {.dir = options.dir,
                .servers = options.servers,
                .members = options.members,
                .connections = kCreators + 2}) {}

  rt::Task<Status> Run() {
    const Status measured = co_await Measure();
    stopping_ = true;
    if (load_) CO_TRY_STATUS(co_await load_->Close());
    group_.DropClients();
    co_return measured;
  }
  FailoverOutcome TakeOutcome() { return std::move(outcome_); }

 private:
  rt::Task<Status> Measure() {
    options_.progress("etcd and servers start, hosts join");
    CO_TRY_STATUS(co_await group_.Start());
    CO_TRY_STATUS(co_await JoinHosts());
    load_.emplace(loop_);
    for (int i = 0; i < kCreators; ++i) load_->Spawn("bench.create", Create(i));
    Times times;
    for (int i = 0; i < options_.losses; ++i) {
      CO_TRY(const double ms, co_await FailOver(i));
      times.Add(LossAt(i), ms);
      options_.progress(fmt::format("{} {}: {:.0f} ms", i + 1, LossName(LossAt(i)), ms));
    }
    stopping_ = true;
    CO_TRY_STATUS(co_await load_->Join());
    Add("failover_ms", Median(times.all()), "ms", times.EachBy(&Median));
    AddBar(outcome_.figures.back(), kFailoverMaxMs);
    Add("failover_p99_ms", Percentile(times.all(), 0.99), "ms", {});
    Add("failover_max_ms", Largest(times.all()), "ms", times.EachBy(&Largest));
    AddBar(outcome_.figures.back(), kFailoverMaxMs);
    co_return co_await CheckAll();
  }

  rt::Task<Status> JoinHosts() {
    const std::string kind(kBenchClass);
    std::string bench_class =
        R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"MachineClass","metadata":{"name":")" +
        kind + R"("},"capabilities":{"cpu":"1","memory":"1Gi"}})";
    CO_TRY_STATUS(co_await Must(std::string(kClasses), std::move(bench_class)));
    for (int i = 0; i < options_.hosts; ++i) {
      CO_TRY_STATUS(co_await Must(std::string(kHostRecords),
                                  HostRecordJson(BenchHostName(i), loop_.WallNow())));
    }
    hosts_.board().reports_running.store(true);
    CO_TRY_STATUS(hosts_.Begin({.server = group_.gateways(),
                                .authority = group_.seats()[0].folder + "/pki",
                                .first = 0,
                                .count = options_.hosts,
                                .holdings = HoldingsPath()}));
    co_return co_await WaitForHosts();
  }

  rt::Task<Status> WaitForHosts() {
    const Time end = loop_.Now() + kLimit;
    while (hosts_.board().synced.load() < options_.hosts) {
      if (loop_.Now() > end) {
        co_return Timeout(fmt::format("{} of {} hosts are in contact after {}",
                                      hosts_.board().synced.load(),
                                      options_.hosts,
                                      FormatDuration(kLimit)));
      }
      CO_TRY_STATUS(co_await rt::Sleep(kPoll));
    }
    co_return OkStatus();
  }

  rt::Task<Status> Must(std::string target, std::string body) {
    std::string answer;
    const int status = co_await SendTo(group_.seats()[0].client, target, std::move(body), &answer);
    if (status == 201) co_return OkStatus();
    co_return Internal("POST " + target + ": " + std::to_string(status) + " " + answer);
  }

  // One server after the other is asked, a leader that is cut off too: it is alive, and must not
  // acknowledge what it cannot keep.
  rt::Task<Status> Create(int creator) {
    const CreateRun run{.start = {}, .sent = {}};
    for (size_t number = 0; !stopping_ && sent_ < load_max_; ++number, ++sent_) {
      const std::string name = fmt::format("load-{}-{}", creator, number);
      const size_t seat = (number + static_cast<size_t>(creator)) % group_.seats().size();
      const int status = co_await SendTo(
          group_.seats()[seat].client, std::string(kMachines), MachineJson(name, run), nullptr);
      if (status == 201) acknowledged_.insert(name);
      CO_TRY_STATUS(co_await rt::Sleep(kCreatePause));
    }
    co_return OkStatus();
  }

  rt::Task<Result<double>> FailOver(int number) {
    CO_TRY(Seat* const leader, co_await group_.WaitForLeader());
    const std::shared_ptr<net::HttpClient> client = group_.Beside(*leader).client;
    const Time start = loop_.Now();
    group_.Lose(*leader, LossAt(number));
    CO_TRY(const Time bound, co_await PlaceOne(client, "failover-" + std::to_string(number)));
    CO_TRY_STATUS(co_await group_.Return(leader, LossAt(number)));
    CO_TRY_STATUS(co_await WaitForHosts());
    co_return (bound - start).to_seconds() * 1e3;
  }

  // When the machine was seen bound.
  rt::Task<Result<Time>> PlaceOne(std::shared_ptr<net::HttpClient> client, std::string name) {
    const CreateRun run{.start = {}, .sent = {}};
    const Time end = loop_.Now() + kLimit;
    bool is_made = false;
    while (loop_.Now() < end) {
      if (!is_made) {
        const int status =
            co_await SendTo(client, std::string(kMachines), MachineJson(name, run), nullptr);
        is_made = status == 201 || status == 409;
        if (is_made) acknowledged_.insert(name);
      } else {
        std::string body;
        const int status = co_await SendTo(client, std::string(kMachines) + '/' + name, "", &body);
        if (status == 200 && body.find("\"poolUID\"") != std::string::npos) co_return loop_.Now();
      }
      CO_TRY_STATUS(co_await rt::Sleep(kPoll));
    }
    co_return Timeout("machine " + name + " was not placed within " + FormatDuration(kLimit));
  }

  // All machines as the API has them, by name: page by page.
  rt::Task<Result<std::map<std::string, ListedMachine>>> ListAll() {
    std::map<std::string, ListedMachine> listed;
    std::string next;
    do {
      std::string body;
      const std::string target =
          fmt::format("{}?limit={}{}", kMachines, kPage, next.empty() ? "" : "&continue=" + next);
      const int status = co_await SendTo(group_.seats()[1].client, target, "", &body);
      if (status != 200) co_return Unavailable("GET " + target + ": " + std::to_string(status));
      CO_TRY(const meta::Value list, meta::ParseJson(body));
      const meta::Value* items = list.Find("items");
      if (items == nullptr || !items->is_array()) co_return Internal("a list without items");
      for (const meta::Value& item : items->items()) {
        const meta::Value* epoch = item.Get({"status", "placement", "epoch"});
        ListedMachine& machine = listed[std::string(item.GetString({"metadata", "name"}))];
        machine.uid = item.GetString({"metadata", "uid"});
        machine.pool = item.GetString({"status", "placement", "pool"});
        machine.epoch = epoch == nullptr ? 0 : epoch->as_int();
        machine.is_deleting = !item.GetString({"metadata", "deletionTimestamp"}).empty();
      }
      next = list.GetString({"metadata", "continue"});
    } while (!next.empty());
    co_return listed;
  }

  std::string HoldingsPath() const { return options_.dir + "/holdings"; }

  rt::Task<Result<Holdings>> AskHosts() {
    HostBoard& board = hosts_.board();
    const int64_t question = board.asked.fetch_add(1) + 1;
    const Time end = loop_.Now() + kLimit;
    while (board.answered.load() < question) {
      if (!hosts_.is_alive()) co_return Unavailable("the process of the hosts has ended");
      if (loop_.Now() > end) co_return Timeout("hosts do not say what they hold");
      CO_TRY_STATUS(co_await rt::Sleep(kPoll));
    }
    co_return ReadHoldings(HoldingsPath());
  }

  rt::Task<Result<PlacementTally>> Count() {
    CO_TRY(const auto listed, co_await ListAll());
    CO_TRY(const Holdings holdings, co_await AskHosts());
    co_return CountPlacements(acknowledged_, listed, holdings);
  }

  // Nothing lost, nothing placed twice. The last machines may still be on their way, and a host
  // may still have to hear that it lets go.
  rt::Task<Status> CheckAll() {
    const Time end = loop_.Now() + kLimit;
    Result<PlacementTally> tally = co_await Count();
    while (!(tally.ok() && tally->is_clean()) && loop_.Now() < end) {
      CO_TRY_STATUS(co_await rt::Sleep(kCheckPause));
      tally = co_await Count();
    }
    CO_TRY_STATUS(tally.status());
    Add("acknowledged", static_cast<double>(tally->acknowledged), "machines", {});
    Add("lost", static_cast<double>(tally->lost.size()), "machines", {});
    Add("placed_twice", static_cast<double>(tally->placed_twice.size()), "machines", {});
    outcome_.verdict = tally->Verdict();
    co_return OkStatus();
  }

  void Add(std::string metric, double value, std::string unit, Params params) {
    std::vector<std::string> kinds;
    for (const Loss loss : kLosses) kinds.emplace_back(LossName(loss));
    params["servers"] = std::to_string(options_.servers);
    params["members"] = std::to_string(options_.members);
    params["hosts"] = std::to_string(options_.hosts);
    params["losses"] = std::to_string(options_.losses);
    params["kinds"] = Join(kinds, ",");
    params["build"] = BuildType();
    outcome_.figures.push_back({.metric = std::move(metric),
                                .value = value,
                                .unit = std::move(unit),
                                .params = std::move(params)});
  }

  rt::AsioLoop& loop_;
  const FailoverBenchOptions& options_;
  HostProcess& hosts_;
  const size_t load_max_;  // machines that creators send in all
  ServerGroup group_;
  bool stopping_ = false;
  size_t sent_ = 0;
  std::optional<rt::TaskScope> load_;
  std::set<std::string> acknowledged_;
  FailoverOutcome outcome_;
};

}  // namespace

Result<FailoverOutcome> RunFailoverBench(const FailoverBenchOptions& options) {
  if (::access(kEtcd, X_OK) != 0) {
    return NotFound(std::string(kEtcd) + " is missing: install Debian's etcd-server");
  }
  TRY(const auto hosts, HostProcess::Fork());
  rt::AsioLoop loop("bench");
  FailoverRun run(loop, options, *hosts);
  TRY_STATUS(rt::RunTask(loop, run.Run()));
  return run.TakeOutcome();
}

}  // namespace berth::app
