// SPDX-License-Identifier: Apache-2.0
// A GuestLink opens WebSockets to the subresources of one machine, as the session's user.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/https/servers.h"
#include "cli/session/session.h"
#include "net/http.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"

namespace berth::cli {

// The newest of the protocols that both ends know.
inline constexpr std::string_view kChannelProtocols = "v5.channel.k8s.io, v4.channel.k8s.io";

class GuestLink {
 public:
  using Query = std::vector<std::pair<std::string, std::string>>;

  // The machine that the word names: "web" or "machine/web". BadRequest for another kind.
  static Result<std::unique_ptr<GuestLink>> Make(Session& session, const std::string& machine);

  rt::AsioLoop& loop() { return loop_; }
  const std::string& machine() const { return machine_; }
  // Refused with the server's own words.
  rt::Task<Result<std::unique_ptr<net::WebSocket>>> Open(std::string subresource, Query query);

 private:
  GuestLink() = default;

  std::string machine_;
  std::string path_;
  rt::AsioLoop loop_{"cli"};
  std::unique_ptr<Servers> servers_;  // after the loop they run on
};

// "/apis/compute.ironcore.dev/v1alpha1/namespaces/shop/machines/web" of the word.
Result<std::string> FindMachinePath(Session& session, const std::string& word, std::string& name);

}  // namespace berth::cli
