// SPDX-License-Identifier: Apache-2.0
// Copies of a set come one after the other and differ in what their hosts are told of them by
// little more than their names: what they share is encoded once. Pure.
#pragma once

#include <optional>
#include <string>

#include "apis/compute/machine.h"
#include "apis/core/placement.h"

namespace berth::gateway {

// The part of an agent::Assign that says what is to be run, encoded.
struct EncodedBody {
  std::string bytes;
  std::string hash;
};

class CopiedBody {
 public:
  // Whether others like this one may follow. REQUIRES of both below: nothing outside of the machine
  // is part of its body.
  static bool IsCopy(const apis::compute::Machine& machine);
  // The body of the machine before this one, if it is this one's too; else null.
  const EncodedBody* Find(const apis::compute::Machine& machine) const;
  void Keep(const apis::compute::Machine& machine, EncodedBody body);

 private:
  struct Kept {
    apis::compute::Machine machine;  // only what Find compares
    EncodedBody body;
  };
  std::optional<Kept> kept_;
};

}  // namespace berth::gateway
