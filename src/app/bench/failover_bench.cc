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
#include "base/strings.h"
#include "meta/json.h"
#include "meta/value.h"
#include "rt/deadline.h"
#include "rt/scope.h"
#include "rt/sleep.h"
#include "store/etcd/testing/etcd_process.h"

namespace berth::app {
namespace {

constexpr char kEtcd[] = "/usr/bin/etcd";
constexpr Duration kPoll = Duration::Millis(5);
constexpr Duration kLimit = Duration::Minutes(1);
constexpr Duration kRequestLimit = Duration::Seconds(2);
// Load: machines that others create meanwhile.
constexpr int kCreators = 4;
constexpr Duration kCreatePause = Duration::Millis(100);
constexpr int kPage = 200;
constexpr std::string_view kMachines =
    "/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines";
constexpr std::string_view kClasses = "/apis/compute.ironcore.dev/v1alpha1/machineclasses";
constexpr std::string_view kLeader =
    "/apis/coordination.k8s.io/v1/namespaces/berth-system/leases/leader";

// One server process and where it is reached; it is started again and again.
struct Seat {
  std::string folder;
  uint16_t gateway_port = 0;
  std::unique_ptr<ServerProcess> process;
  std::shared_ptr<net::HttpClient> client;  // null while it is away
};

class FailoverRun {
 public:
  FailoverRun(rt::AsioLoop& loop, const FailoverBenchOptions& options, HostProcess& hosts)
      : loop_(loop), options_(options), hosts_(hosts), etcd_({.members = options.members}) {}

  rt::Task<Status> Run() {
    const Status measured = co_await Measure();
    stopping_ = true;
    if (load_) CO_TRY_STATUS(co_await load_->Close());
    for (Seat& seat : seats_) seat.client.reset();
    co_return measured;
  }
  std::vector<Figure> TakeFigures() { return std::move(figures_); }

 private:
  rt::Task<Status> Measure() {
    options_.progress("etcd and servers start, hosts join");
    CO_TRY_STATUS(co_await StartServers());
    CO_TRY_STATUS(co_await JoinHosts());
    load_.emplace(loop_);
    for (int i = 0; i < kCreators; ++i) load_->Spawn("bench.create", Create(i));
    std::vector<double> took;
    for (int i = 0; i < options_.failovers; ++i) {
      CO_TRY(const double ms, co_await FailOver(i));
      took.push_back(ms);
      options_.progress(
          fmt::format("{} {}: {:.0f} ms", i + 1, i % 2 == 0 ? "killed" : "paused", ms));
    }
    stopping_ = true;
    CO_TRY_STATUS(co_await load_->Join());
    Add("failover_ms", Median(took), "ms");
    Add("failover_p99_ms", Percentile(took, 0.99), "ms");
    Add("failover_max_ms", *std::ranges::max_element(took), "ms");
    co_return co_await CheckAll();
  }

  rt::Task<Status> StartServer(Seat* seat) {
    // All have the keys of the first.
    std::vector<std::string> more = {"--store",
                                     "etcd://" + Join(etcd_.endpoints(), ","),
                                     "--encryption-keys",
                                     options_.dir + "/keys/encryption-keys"};
    CO_TRY(seat->process,
           co_await ServerProcess::Start(loop_, seat->folder, seat->gateway_port, std::move(more)));
    CO_TRY(seat->client, seat->process->NewClient(kCreators + 2));
    co_return OkStatus();
  }

  rt::Task<Status> StartServers() {
    for (int i = 0; i < options_.servers; ++i) {
      Seat seat;
      seat.folder = options_.dir + "/server-" + std::to_string(i);
      CO_TRY(seat.gateway_port, FindFreePort());
      seats_.push_back(std::move(seat));
    }
    for (Seat& seat : seats_) CO_TRY_STATUS(co_await StartServer(&seat));
    co_return OkStatus();
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
    std::vector<std::string> gateways;
    for (const Seat& seat : seats_) {
      gateways.push_back("127.0.0.1:" + std::to_string(seat.gateway_port));
    }
    hosts_.board().reports_running.store(true);
    CO_TRY_STATUS(hosts_.Begin({.server = Join(gateways, ","),
                                .authority = seats_[0].folder + "/pki",
                                .first = 0,
                                .count = options_.hosts}));
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

  // The status of the answer, 0 if there is none.
  rt::Task<int> Send(std::shared_ptr<net::HttpClient> client,
                     std::string target,
                     std::string body,
                     std::string* answer) {
    if (client == nullptr) co_return 0;
    net::HttpClientRequest request;
    request.target = std::move(target);
    if (!body.empty()) {
      request.method = "POST";
      request.headers.Set("Content-Type", "application/json");
      request.body.emplace_back(std::move(body));
    }
    auto sent = co_await rt::WithDeadline(client->Send(std::move(request)), kRequestLimit);
    if (!sent.ok()) co_return 0;
    if (answer != nullptr) *answer = std::move(sent->body);
    co_return static_cast<int>(sent->status);
  }

  rt::Task<Status> Must(std::string target, std::string body) {
    std::string answer;
    const int status = co_await Send(seats_[0].client, target, std::move(body), &answer);
    if (status == 201) co_return OkStatus();
    co_return Internal("POST " + target + ": " + std::to_string(status) + " " + answer);
  }

  rt::Task<Status> Create(int creator) {
    const CreateRun run{.start = {}, .sent = {}};
    for (size_t number = 0; !stopping_; ++number) {
      const std::string name = fmt::format("load-{}-{}", creator, number);
      Seat& seat = seats_[(number + static_cast<size_t>(creator)) % seats_.size()];
      const int status =
          co_await Send(seat.client, std::string(kMachines), MachineJson(name, run), nullptr);
      if (status == 201) acknowledged_.insert(name);
      CO_TRY_STATUS(co_await rt::Sleep(kCreatePause));
    }
    co_return OkStatus();
  }

  // The seat that leads, as `asked` knows it.
  rt::Task<Seat*> FindLeader(Seat* asked) {
    std::string body;
    const int status = co_await Send(asked->client, std::string(kLeader), "", &body);
    if (status != 200) co_return nullptr;
    const auto lease = meta::ParseJson(body);
    if (!lease.ok() || lease->GetString({"spec", "holderIdentity"}).empty()) co_return nullptr;
    const std::string_view url = lease->GetString({"metadata", "annotations", "berth.dev/url"});
    const auto found = std::ranges::find_if(seats_, [url](const Seat& seat) {
      return seat.process != nullptr && seat.process->url() == url;
    });
    co_return found == seats_.end() ? nullptr : &*found;
  }

  rt::Task<Result<Seat*>> WaitForLeader() {
    const Time end = loop_.Now() + kLimit;
    while (loop_.Now() < end) {
      for (Seat& seat : seats_) {
        Seat* leader = co_await FindLeader(&seat);
        if (leader != nullptr) co_return leader;
      }
      CO_TRY_STATUS(co_await rt::Sleep(kPoll));
    }
    co_return Timeout("nobody leads");
  }

  rt::Task<Result<double>> FailOver(int number) {
    CO_TRY(Seat* const leader, co_await WaitForLeader());
    const auto asked = std::ranges::find_if(seats_, [&](Seat& seat) { return &seat != leader; });
    const std::shared_ptr<net::HttpClient> client = asked->client;
    const bool is_kill = number % 2 == 0;
    leader->client.reset();
    const Time start = loop_.Now();
    if (is_kill) {
      leader->process->Kill();
    } else {
      leader->process->Pause();
    }
    CO_TRY(const Time bound, co_await PlaceOne(client, "failover-" + std::to_string(number)));
    if (is_kill) {
      CO_TRY_STATUS(co_await StartServer(leader));
    } else {
      leader->process->Resume();
      CO_TRY(leader->client, leader->process->NewClient(kCreators + 2));
    }
    CO_TRY_STATUS(co_await WaitForReady(leader));
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
            co_await Send(client, std::string(kMachines), MachineJson(name, run), nullptr);
        is_made = status == 201 || status == 409;
        if (is_made) acknowledged_.insert(name);
      } else {
        std::string body;
        const int status = co_await Send(client, std::string(kMachines) + '/' + name, "", &body);
        if (status == 200 && body.find("\"poolUID\"") != std::string::npos) co_return loop_.Now();
      }
      CO_TRY_STATUS(co_await rt::Sleep(kPoll));
    }
    co_return Timeout("machine " + name + " was not placed within " + FormatDuration(kLimit));
  }

  rt::Task<Status> WaitForReady(Seat* seat) {
    const Time end = loop_.Now() + kLimit;
    while (loop_.Now() < end) {
      if (co_await Send(seat->client, "/readyz", "", nullptr) == 200) co_return OkStatus();
      CO_TRY_STATUS(co_await rt::Sleep(kPoll));
    }
    co_return Timeout("a server was not ready within " + FormatDuration(kLimit));
  }

  // What is bound, each with its placement number: page by page.
  rt::Task<Result<std::map<std::string, int64_t>>> ListBound() {
    std::map<std::string, int64_t> bound;
    std::string next;
    do {
      std::string body;
      const std::string target =
          fmt::format("{}?limit={}{}", kMachines, kPage, next.empty() ? "" : "&continue=" + next);
      const int status = co_await Send(seats_[1].client, target, "", &body);
      if (status != 200) co_return Unavailable("GET " + target + ": " + std::to_string(status));
      CO_TRY(const meta::Value list, meta::ParseJson(body));
      const meta::Value* items = list.Find("items");
      if (items == nullptr || !items->is_array()) co_return Internal("a list without items");
      for (const meta::Value& item : items->items()) {
        const meta::Value* epoch = item.Get({"status", "placement", "epoch"});
        if (item.GetString({"status", "placement", "pool"}).empty() || epoch == nullptr) continue;
        bound[std::string(item.GetString({"metadata", "name"}))] = epoch->as_int();
      }
      next = list.GetString({"metadata", "continue"});
    } while (!next.empty());
    co_return bound;
  }

  // Nothing lost, nothing placed twice.
  rt::Task<Status> CheckAll() {
    const Time end = loop_.Now() + kLimit;
    size_t missing = acknowledged_.size();
    size_t twice = 0;
    while (missing > 0 && loop_.Now() < end) {
      const auto bound = co_await ListBound();
      if (bound.status().Is(Reason::kCancelled)) co_return bound.status();
      if (bound.ok()) {
        missing = static_cast<size_t>(std::ranges::count_if(
            acknowledged_, [&](const std::string& name) { return !bound->contains(name); }));
        twice = static_cast<size_t>(
            std::ranges::count_if(*bound, [](const auto& item) { return item.second != 1; }));
      }
      CO_TRY_STATUS(co_await rt::Sleep(kPoll * 20));
    }
    Add("acknowledged", static_cast<double>(acknowledged_.size()), "machines");
    Add("lost", static_cast<double>(missing), "machines");
    Add("placed_twice", static_cast<double>(twice), "machines");
    co_return OkStatus();
  }

  void Add(std::string metric, double value, std::string unit) {
    figures_.push_back({.metric = std::move(metric),
                        .value = value,
                        .unit = std::move(unit),
                        .params = {{"servers", std::to_string(options_.servers)},
                                   {"members", std::to_string(options_.members)},
                                   {"pools", std::to_string(options_.hosts)},
                                   {"failovers", std::to_string(options_.failovers)},
                                   {"build", BuildType()}}});
  }

  rt::AsioLoop& loop_;
  const FailoverBenchOptions& options_;
  HostProcess& hosts_;
  store::EtcdProcesses etcd_;
  std::vector<Seat> seats_;
  bool stopping_ = false;
  std::optional<rt::TaskScope> load_;
  std::set<std::string> acknowledged_;
  std::vector<Figure> figures_;
};

}  // namespace

Result<std::vector<Figure>> RunFailoverBench(const FailoverBenchOptions& options) {
  if (::access(kEtcd, X_OK) != 0) {
    return NotFound(std::string(kEtcd) + " is missing: install Debian's etcd-server");
  }
  TRY(const auto hosts, HostProcess::Fork());
  rt::AsioLoop loop("bench");
  FailoverRun run(loop, options, *hosts);
  TRY_STATUS(rt::RunTask(loop, run.Run()));
  return run.TakeFigures();
}

}  // namespace berth::app
