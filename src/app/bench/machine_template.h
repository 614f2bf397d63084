// SPDX-License-Identifier: Apache-2.0
// The machine that benches write: bench/machine.yaml under other names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "meta/object.h"

namespace berth::app {

class MachineTemplate {
 public:
  static Result<MachineTemplate> Load();

  // The JSON of a machine of this name, as parts of a request body.
  std::vector<Bytes> Body(std::string_view name) const;
  size_t body_bytes() const { return head_.size() + tail_.size(); }
  // The same as an object.
  const meta::Object& object() const { return object_; }

 private:
  MachineTemplate(Bytes head, Bytes tail, meta::Object object)
      : head_(std::move(head)), tail_(std::move(tail)), object_(std::move(object)) {}
  Bytes head_;  // up to the name
  Bytes tail_;  // from behind it
  meta::Object object_;
};

}  // namespace berth::app
