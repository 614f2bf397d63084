// SPDX-License-Identifier: Apache-2.0
// What checkers see of a simulated world: the store's truth, the hosts' truth, what users asked for
// and when something was in the way.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/time.h"
#include "sim/host_process.h"
#include "sim/truth.h"

namespace berth::sim {

class Sight {
 public:
  virtual ~Sight() = default;

  virtual const Truth& truth() const = 0;
  virtual Time now() const = 0;
  virtual std::span<const std::unique_ptr<HostProcess>> hosts() const = 0;
  // Whose pool it is; null if that is not known.
  virtual HostProcess* HostOf(const std::string& pool_uid) const = 0;
  virtual bool WasDeletionAsked(const std::string& uid) const = 0;
  // A restore took the store back to before it was last placed, or asked to leave: its host has it,
  // or removes it, on a word that the store has lost.
  virtual bool WasRewound(const std::string& uid) const = 0;
  // The server runs, and since when without a break.
  virtual std::optional<Time> ServingSince() const = 0;
  // When contact with the host was last disturbed, by anything.
  virtual Time LastTrouble(const HostProcess& host) const = 0;
  virtual uint64_t incarnation() const = 0;

  virtual void Fail(std::string_view checker, std::string what) = 0;
};

}  // namespace berth::sim
