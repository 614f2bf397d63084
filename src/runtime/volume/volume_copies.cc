// SPDX-License-Identifier: Apache-2.0
// Copies of disks, whether a guest uses them or not.
#include <fmt/core.h>

#include <utility>

#include "rt/backoff.h"
#include "rt/sleep.h"
#include "runtime/volume/volume_host.h"

namespace berth::runtime {
namespace {

// Another attempt may find it otherwise: guests end, and libvirtd comes back.
bool MayPass(const Status& status) {
  return status.Is(Reason::kNotFound) || status.Is(Reason::kConflict) ||
         status.Is(Reason::kUnavailable) || status.Is(Reason::kTimeout);
}

}  // namespace

// A person sees what it waits for: some of that does not pass without him.
VolumeHost::Waits VolumeHost::ToldOf(iri::ObjectKind kind,
                                     std::shared_ptr<Worked> worked,
                                     iri::ObjectMetadata metadata) {
  return
      [this, kind, worked = std::move(worked), metadata = std::move(metadata)](const Status& why) {
        // Also true while the next attempt copies, which takes its time.
        std::string words = fmt::format("{}; it is tried again", why.message());
        if (worked->waits == words) return;
        worked->waits = std::move(words);
        Say(kind, metadata, iri::EventType::kWarning, "Waiting", "Make", worked->waits);
        changes_.Add(kind, iri::ChangeType::kChanged, metadata, "state");
      };
}

rt::Task<Status> VolumeHost::CopyDisk(DiskCopy copy, Waits waits) {
  rt::Backoff backoff(options_.retry);
  for (int attempt = 1;; ++attempt) {
    const Status copied = co_await deps_.disks.Copy(copy);
    if (!copied.Is(Reason::kConflict)) co_return copied;
    // Its guest would copy what it reads, in the clear.
    if (copy.source.format == DiskFormat::kLuks || copy.target.format == DiskFormat::kLuks) {
      co_return Conflict(
          fmt::format("{}, and encrypted: only while its machine is off does a copy stay "
                      "encrypted, so stop the machine",
                      copied.message()));
    }
    if (deps_.live == nullptr) co_return copied;
    CO_TRY(const int64_t bytes, co_await deps_.disks.VirtualBytes(copy.source));
    if (bytes > copy.bytes) {
      co_return BadRequest(fmt::format(
          "copy {}: a disk of {} bytes, at most {}", copy.source.path, bytes, copy.bytes));
    }
    const Status live = co_await deps_.live->Copy(copy.source, copy.target);
    if (!MayPass(live) || attempt >= options_.live_attempts) co_return live;
    waits(live);
    CO_TRY_STATUS(co_await rt::Sleep(backoff.Next(deps_.loop.random())));
  }
}

}  // namespace berth::runtime
