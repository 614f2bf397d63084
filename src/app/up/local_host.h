// SPDX-License-Identifier: Apache-2.0
// A LocalHost makes this machine a host of the server beside it: libvirtd, runtimes and poollet as
// child processes, in the order in which they need each other.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/up/host_layout.h"
#include "app/up/part.h"
#include "base/result.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::app {

// What is missing on this machine to run guests: "" if nothing is. `folder` and `run_folder` are
// where the host would be, `user` who it would be.
std::string MissingForGuests(const std::string& folder,
                             const std::string& run_folder,
                             const std::optional<ProcessUser>& user);

// Why a file or folder is not this user's to read, or not ours if there is none; "" if it is.
std::string WhyUnreadable(const std::string& path, const std::optional<ProcessUser>& user);

// The unprivileged user of guests if we are root; none if we are not. NotFound if root has none.
Result<std::optional<ProcessUser>> GuestUserOfThisMachine();

// Makes the folder of images of a host as `berth up` would, for its user.
Status PrepareImages(const std::string& host_dir);

// "+net_admin,+net_raw" if we have both, else "".
std::string NetworkRights();

// The last whole line that `berth image build --progress` wrote to this file; nullopt if there is
// none.
struct WrittenBytes {
  size_t bytes = 0;
  size_t of = 0;
  std::string text;
};
std::optional<WrittenBytes> LastProgress(const std::string& path);

class LocalHost {
 public:
  // Told before each step: how many are done, of how many, and what comes now.
  using Told = std::function<void(size_t done, size_t of, std::string_view step)>;

  // Told how many bytes of the demo image are written, and of how many.
  using ImageTold = std::function<void(size_t bytes, size_t of, std::string_view text)>;

  // The loop outlives it.
  LocalHost(rt::Loop& loop, HostOptions options);

  // Brings everything up and returns when both pools are ready; `told` hears what keeps one from
  // that. Parts that fail are started again until then and afterwards; an error is something that
  // will not mend itself.
  rt::Task<Status> Bring(Told told, ImageTold image_told = {});
  // Ends the parts, last first. Guests run on.
  rt::Task<Status> Stop();

 private:
  void Keep(PartCommand command);
  rt::Task<Status> RunOnce(PartCommand command);
  rt::Task<Status> MakeDemoImage(ImageTold told);
  rt::Task<Status> RunToEnd(PartCommand command, bool* is_over);
  rt::Task<Status> Join();
  using Said = std::function<void(std::string_view words)>;
  rt::Task<Status> AwaitPool(std::string pool, Said said);
  rt::Task<Status> AwaitReady(std::string pool, bool* is_over);
  // Now and then, until somebody says that it is over: why the pool is not ready.
  rt::Task<Status> SayWhyNotReady(std::string pool, Said said, bool* is_over);

  rt::Loop& loop_;
  const HostLayout layout_;
  rt::TaskScope scope_;
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace berth::app
