// SPDX-License-Identifier: Apache-2.0
// PeerLinks stand between the members of an etcd: each is reached by the others through a port
// here, so that a member can be cut off from them while clients still reach it (way.h). On-loop
// only; nothing passes while the loop does not run.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "net/acceptor.h"
#include "net/stream.h"
#include "rt/asio/asio_loop.h"
#include "rt/event.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::store {

class PeerLinks {
 public:
  explicit PeerLinks(rt::AsioLoop& loop) : loop_(loop), scope_(loop) {}
  PeerLinks(const PeerLinks&) = delete;
  PeerLinks& operator=(const PeerLinks&) = delete;
  // REQUIRES: the loop does not run.
  ~PeerLinks();

  // The next member, which listens on `target`; the port that others are to use instead.
  uint16_t Add(uint16_t target);
  // Which process the member is; connections are told apart by who has made them. 0: none.
  void SetProcess(size_t member, pid_t pid) { members_[member]->pid = pid; }
  // Nothing comes to the member or from it.
  void Cut(size_t member) { members_[member]->is_cut = true; }
  void Heal(size_t member);

 private:
  struct Member {
    uint16_t target = 0;
    pid_t pid = 0;
    bool is_cut = false;
    std::unique_ptr<net::Acceptor> acceptor;
  };

  rt::Task<Status> Close();
  rt::Task<Status> Carry(const Member* to, std::unique_ptr<net::Stream> near);
  const Member* MakerOf(const net::Stream& near, const Member& to) const;

  rt::AsioLoop& loop_;
  rt::TaskScope scope_;
  std::vector<std::unique_ptr<Member>> members_;
  rt::Event healed_;
};

}  // namespace berth::store
