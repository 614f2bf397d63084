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
  std::vector<std::string> gateways;  // "host:port" where hosts connect
  // Everything that hosts may call it and all its addresses, without ports: whoever answers for it
  // has a certificate for these.
  std::vector<std::string> names = {};
};

// Of all servers together, in one certificate: 256 * 16 bytes = 4 KB.
inline constexpr size_t kServerNamesMax = 256;

// What a server knows of another one that leads.
struct LeaderPlace {
  ServerPlace place;
  std::vector<std::string> answers_for;  // names
};
// Where `own` passes on the connections of its hosts: "host:port", those that people have named
// first. Nowhere if the leader's certificate does not have all of its own names yet, or if the
// leader has no name and no address but those that are this server's, too.
std::vector<std::string> WayTo(const ServerPlace& own, const LeaderPlace& leader);

class ServerList {
 public:
  // Everything outlives it.
  ServerList(rt::Loop& loop, client::Client& client, ServerPlace own);

  // Says that this server is there, again and again, until it is cancelled.
  rt::Task<Status> Run();
  // The gateways of all servers that were there lately, this one's first.
  rt::Task<Result<std::vector<std::string>>> Gateways();
  // The names and addresses of all servers that were there lately.
  rt::Task<Result<std::vector<std::string>>> Names();
  // Says that this server, which leads, has a certificate for these names.
  rt::Task<Status> AnswerFor(std::vector<std::string> names);
  // Where hosts' connections go while the server with this id leads. NotFound if it is not known.
  rt::Task<Result<std::vector<std::string>>> WayToLeader(std::string id);
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
  ServerPlace own_;
  std::vector<std::string> answers_for_;
  std::vector<std::string> said_answers_for_;  // the last that was written
};

}  // namespace berth::app
