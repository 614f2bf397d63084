// SPDX-License-Identifier: Apache-2.0
// A SocketListener takes connections on a unix socket, and asks the kernel who is behind each: only
// root, we and the users that were named get further. Of our own user's processes those do not that
// are more confined than we are (a guest's QEMU), or may be: whoever is gone before it is asked,
// and whom /proc hides.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::iri {

class SocketListener {
 public:
  // Gets the connections that are taken. The callee owns the descriptor, which does not block.
  using Accepted = std::function<void(int connection)>;

  // Whoever connects waits for Run(). REQUIRES: PrepareSocket(path) was ok. Without other users
  // the socket has mode 0600. With some, everybody may knock: its folder has to let them through
  // (BadRequest if it does not).
  static Result<std::unique_ptr<SocketListener>> Open(std::string path,
                                                      std::vector<uid_t> allowed_uids);
  // REQUIRES: Run() has returned.
  ~SocketListener();
  SocketListener(const SocketListener&) = delete;
  SocketListener& operator=(const SocketListener&) = delete;

  // Takes connections until Stop(). Blocks.
  void Run(const Accepted& accepted) const;
  // Removes the socket, and ends Run() soon, or at once if it comes later. Idempotent.
  void Stop();

 private:
  SocketListener(std::string path, std::vector<uid_t> allowed_uids);
  Status Listen();
  void Take(int connection, const Accepted& accepted) const;
  // "" if that process may call; else the reason.
  std::string_view WhyNot(pid_t pid, uid_t uid) const;

  const std::string path_;
  const std::vector<uid_t> allowed_uids_;
  int socket_ = -1;
  bool is_there_ = false;  // in its folder
  int wake_ = -1;          // readable: stop
};

}  // namespace berth::iri
