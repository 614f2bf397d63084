// SPDX-License-Identifier: Apache-2.0
// RuntimeServer serves any C++ runtimes on a unix socket, for Berth's poollet and for others'.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "iri/runtimes.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::iri {

class RuntimeServer {
 public:
  // Listens at `path` (see PrepareSocket), for us, root and the users of `allowed_uids`. Others
  // pass through the folder, if it is made, where some are allowed or we are root. Services for the
  // runtimes that are null are not served. Requests are checked before a runtime sees them.
  // Everything runs on `loop`; the runtimes outlive the server.
  static Result<std::unique_ptr<RuntimeServer>> Start(rt::Loop& loop,
                                                      std::string path,
                                                      const Runtimes& runtimes,
                                                      std::vector<uid_t> allowed_uids = {});
  // REQUIRES: Stop() was awaited.
  ~RuntimeServer();
  RuntimeServer(const RuntimeServer&) = delete;
  RuntimeServer& operator=(const RuntimeServer&) = delete;

  const std::string& path() const;

  // Ends all watches, gives calls in progress `grace`, then cancels them; all have ended when this
  // returns. Always ok. Idempotent.
  rt::Task<Status> Stop(Duration grace);

 private:
  class Body;
  explicit RuntimeServer(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace berth::iri
