// SPDX-License-Identifier: Apache-2.0
// A ServerGroup is several servers on one private etcd, of which one leads, each a process of its
// own. Each reaches etcd through links of its own, so that it can be cut off while it lives on.
// On-loop only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/bench/server_process.h"
#include "base/result.h"
#include "net/http_client.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"
#include "store/etcd/testing/client_links.h"
#include "store/etcd/testing/etcd_process.h"

namespace berth::app {

// How a server is lost.
enum class Loss : uint8_t {
  kKilled,  // kill -9
  kPaused,  // SIGSTOP: it does not know that time has passed
  kCutOff,  // it lives on and has its hosts and clients, but nothing passes between it and etcd
};
inline constexpr std::array kLosses = {Loss::kKilled, Loss::kPaused, Loss::kCutOff};
// "killed", "paused", "cut_off".
std::string_view LossName(Loss loss);

// One server and where it is reached; it is started again and again.
struct Seat {
  std::string folder;
  uint16_t gateway_port = 0;
  std::unique_ptr<store::ClientLinks> links;  // to etcd
  std::unique_ptr<ServerProcess> process;
  std::shared_ptr<net::HttpClient> client;  // null while nobody is there to answer
};

class ServerGroup {
 public:
  struct Options {
    std::string dir;  // where folders for the servers and for etcd are made
    int servers = 3;
    int members = 3;         // of etcd
    size_t connections = 8;  // to each server
  };
  // Starts the members. The loop outlives the group, and does not run when the group is destroyed.
  ServerGroup(rt::AsioLoop& loop, Options options);

  // Starts all servers, one after the other; ok when the last is ready.
  rt::Task<Status> Start();
  // Lets go of all clients. REQUIRES: Start() has ended.
  void DropClients();

  const std::vector<Seat>& seats() const { return seats_; }
  // "host:port,host:port" where hosts find whoever leads.
  std::string gateways() const;
  // Who leads, by the Lease; Timeout if that is nobody for a minute.
  rt::Task<Result<Seat*>> WaitForLeader();
  // A server beside this one, and not the one that was lost last if there is another: that one may
  // have to begin anew yet.
  const Seat& Beside(const Seat& leader) const;

  void Lose(Seat& seat, Loss loss);
  // The same server again; ok when it is ready.
  rt::Task<Status> Return(Seat* seat, Loss loss);

 private:
  rt::Task<Status> StartServer(Seat* seat);
  rt::Task<Status> WaitForReady(Seat* seat);
  // The seat that leads, as `asked` knows it; null if it does not.
  rt::Task<Seat*> FindLeader(Seat* asked);

  rt::AsioLoop& loop_;
  const Options options_;
  store::EtcdProcesses etcd_;
  std::vector<Seat> seats_;  // not moved after Start()
  const Seat* lost_ = nullptr;
};

// The status of the answer, 0 if there is none within two seconds. Without a body it is a GET.
rt::Task<int> SendTo(std::shared_ptr<net::HttpClient> client,
                     std::string target,
                     std::string body,
                     std::string* answer);

}  // namespace berth::app
