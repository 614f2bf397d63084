// SPDX-License-Identifier: Apache-2.0
// What a bench of a whole cluster works in: a server process on a folder of its own, processes full
// of hosts, a client over HTTPS, and a watch on machines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/bench/host_process.h"
#include "app/bench/machine_watch.h"
#include "app/bench/server_process.h"
#include "base/result.h"
#include "base/time.h"
#include "net/http_client.h"
#include "rt/asio/asio_loop.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::app {

// Machines that are created as fast as `creators` can, one after the other each.
struct CreateRun {
  std::string prefix;  // of names: "prefix-0", "prefix-1", …
  std::string policy = "spread";
  std::string on_pool_loss;  // "" for the default
  std::string pool;          // that its machines name themselves; "" for any
  int creators = 64;
  size_t limit = 0;        // 0: as many as there is time for
  Duration duration;       // of creating; zero: until `limit`
  Time start;              // filled in
  std::vector<Time> sent;  // by number
};

class BenchWorld {
 public:
  // Connections that all creators of a bench have together at most.
  static constexpr size_t kConnections = 64;

  BenchWorld(rt::AsioLoop& loop, std::string folder)
      : loop_(loop), folder_(std::move(folder)), watch_(loop) {}

  // Starts the server, or starts it again on what is in the folder.
  rt::Task<Status> StartServer();
  // kill -9. The watch ends.
  rt::Task<Status> KillServer();
  rt::Task<Status> Close();

  // The class of all machines, and a namespace.
  rt::Task<Status> MakeClass();
  rt::Task<Status> MakeNamespace(std::string name);
  // Follows this namespace instead of another, and forgets what was seen.
  rt::Task<Status> Watch(std::string name);
  // Lets hosts first … first + count - 1 join, and waits until all are in contact.
  rt::Task<Status> Join(HostProcess* hosts, int first, int count);
  // Creates in the watched namespace; ok when every machine of the run was seen bound.
  rt::Task<Status> Create(CreateRun* run);
  rt::Task<Status> CreateSet(std::string name, int replicas, std::string policy);
  // Ok when all its machines are gone.
  rt::Task<Status> DeleteSet(std::string name, Duration limit);

  rt::Task<Status> Post(std::string target, std::string body);
  rt::Task<Status> Delete(std::string target);
  // The body of an answer with 200.
  rt::Task<Result<std::string>> Get(std::string target);
  rt::Task<Status> WaitForBound(size_t count, Duration limit);
  rt::Task<Status> WaitForRunning(size_t count, Duration limit);

  rt::AsioLoop& loop() { return loop_; }
  ServerProcess& server() { return *server_; }
  const MachineWatch& watch() const { return watch_; }
  // Requests that the server was too busy for, and that were sent again.
  size_t refused() const { return refused_; }
  const std::string& folder() const { return folder_; }
  std::string gateway() const { return "127.0.0.1:" + std::to_string(gateway_port_); }
  // Of one machine as it is sent.
  static size_t object_bytes();

 private:
  rt::Task<Status> CreateSome(CreateRun* run);
  rt::Task<Status> WriteHostRecords(int first, int count, int* next);
  rt::Task<Status> Note(rt::Task<Status> work);

  rt::AsioLoop& loop_;
  const std::string folder_;
  uint16_t gateway_port_ = 0;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<net::HttpClient> client_;
  std::unique_ptr<net::HttpClient> watch_client_;
  std::string namespace_;
  size_t refused_ = 0;
  MachineWatch watch_;
  Status failed_;                            // the first thing that went wrong in a task of its own
  std::unique_ptr<rt::TaskScope> watching_;  // the watch
};

// From when each machine of the run was sent to when it was seen bound, in milliseconds.
std::vector<double> LatenciesMs(const CreateRun& run, const MachineWatch& watch);
// From the start of the run to when its last machine was seen bound.
Duration TimeToBind(const CreateRun& run, const MachineWatch& watch);

// What `berth pool join-token` and a join leave behind of a host; its certificate comes from the
// authority.
inline constexpr std::string_view kHostRecords = "/api/v1/namespaces/berth-system/configmaps";
std::string HostRecordJson(const std::string& host, WallTime now);
// A machine of the benches' class.
std::string MachineJson(const std::string& name, const CreateRun& run);

// How this program was built: a figure of a debug build says nothing.
std::string BuildType();

}  // namespace berth::app
