// SPDX-License-Identifier: Apache-2.0
// A ServerList says in the API where this server is, and knows where the others are: hosts are told
// all of them, so that they find the next leader.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "client/client.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::app {

struct ServerPlace {
  std::string id;                     // of its data folder
  std::string url;                    // of its API
  std::vector<std::string> gateways;  // "host:port" where hosts connect while it leads
};

class ServerList {
 public:
  // Everything outlives it.
  ServerList(rt::Loop& loop, client::Client& client, ServerPlace own);

  // Says that this server is there, again and again, until it is cancelled.
  rt::Task<Status> Run();
  // The gateways of all servers that were there lately, this one's first.
  rt::Task<Result<std::vector<std::string>>> Gateways();
  // Where the APIs of the others are that were there lately.
  rt::Task<Result<std::vector<std::string>>> OtherUrls();
  // This server is gone. REQUIRES: Run() has ended.
  rt::Task<Status> Leave();

 private:
  rt::Task<Status> Say();
  // What the servers that were there lately say of themselves, by name.
  rt::Task<Result<std::vector<std::string>>> Said(std::string annotation);

  rt::Loop& loop_;
  client::Client& client_;
  const ServerPlace own_;
};

}  // namespace berth::app
