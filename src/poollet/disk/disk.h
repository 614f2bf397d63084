// SPDX-License-Identifier: Apache-2.0
// A Disk keeps a few small files of one folder. Two bodies: FileDisk on real files, SimDisk with
// crashes that tear and lose what was not yet durable.
#pragma once

#include <string>

#include "base/result.h"
#include "rt/task.h"

namespace berth::poollet {

class Disk {
 public:
  virtual ~Disk() = default;

  // NotFound if there is no such file.
  virtual rt::Task<Result<std::string>> Read(std::string name) = 0;
  // Durable on return. After a crash before that, any part of the beginning of `bytes` may be
  // there; after an error likewise.
  virtual rt::Task<Status> Append(std::string name, std::string bytes) = 0;
  // Durable on return. After a crash or an error the file is the old one or the new one.
  virtual rt::Task<Status> Replace(std::string name, std::string bytes) = 0;
};

}  // namespace berth::poollet
