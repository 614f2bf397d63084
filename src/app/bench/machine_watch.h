// SPDX-License-Identifier: Apache-2.0
// A watch on machines, as a client sees it over HTTPS, and what it has shown of each.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "base/time.h"
#include "net/http_client.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::app {

class MachineWatch {
 public:
  struct Seen {
    std::string pool;
    std::string uid;
    std::string id;  // of its runtime's object; "" until it is told
    Time bound;      // when it was first seen bound
    Time moved;      // when it was last seen bound to another pool than before; zero: never
    Time running;    // when it was first seen running; zero: never
  };

  explicit MachineWatch(rt::Loop& loop) : loop_(loop) {}

  // Follows the machines of a namespace from now on, until it is cancelled. Unavailable if the
  // server ends it.
  rt::Task<Status> Follow(net::HttpClient* client, std::string namespace_);
  bool is_open() const { return is_open_; }

  // By name. Machines that were never bound are not in it.
  const std::unordered_map<std::string, Seen>& machines() const { return machines_; }
  size_t bound() const { return machines_.size(); }
  size_t running() const { return running_; }
  const Seen* Find(const std::string& name) const;
  void Clear();

  // The bytes of a watch's body, in any portions.
  void Take(std::string_view bytes);

 private:
  void TakeEvent(std::string_view line);

  rt::Loop& loop_;
  bool is_open_ = false;
  std::string rest_;   // of an event that is not complete
  std::string error_;  // the last event that is none
  std::unordered_map<std::string, Seen> machines_;
  size_t running_ = 0;
};

}  // namespace berth::app
