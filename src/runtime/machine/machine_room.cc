// SPDX-License-Identifier: Apache-2.0
// What machines take of the host's disk: local disks, and beside them the logs of consoles, copies
// of kernels and images on their way, which count with others of the host alone (--disk-budget).
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "runtime/machine/machine_host.h"

namespace berth::runtime {
namespace {

// Of each machine: the variables of its firmware (OVMF: 528 KiB), the line of its kernel, and what
// libvirt says about it.
constexpr int64_t kSmallFilesBytes = (int64_t{1} << 20) + kLibvirtLogMax;

int64_t StorageIn(const iri::ResourceVector& resources) {
  const auto found = resources.find(iri::kStorage);
  return found == resources.end() ? 0 : found->second;
}

int64_t SumOf(const std::map<std::string, int64_t>& amounts) {
  int64_t sum = 0;
  for (const auto& [name, bytes] : amounts) sum += bytes;
  return sum;
}

// `mine` is what is promised without the `more` bytes of `what`.
Status CheckShare(const DiskShare& mine,
                  const OtherShares& others,
                  int64_t more,
                  std::string_view what) {
  const int64_t images = SumOf(mine.images) + SumOf(mine.arriving);
  const int64_t used = mine.promised + mine.beside + images + others.in_all();
  if (others.total == 0 || used + more <= others.total) return OkStatus();
  return {Reason::kTooManyRequests,
          fmt::format("no room for {}: {} of {} bytes are promised, {} are free (local disks {}, "
                      "logs and kernels of guests {}, volumes and snapshots {}, images {})",
                      what,
                      used,
                      others.total,
                      std::max<int64_t>(others.total - used, 0),
                      mine.promised,
                      mine.beside + others.beside,
                      others.promised,
                      images + others.images + others.arriving)};
}

}  // namespace

int64_t MachineHost::BesideOne() const { return options_.console_log_max + kSmallFilesBytes; }

DiskShare MachineHost::ShareNow(int64_t images) const {
  DiskShare share;
  for (const auto& [id, entry] : machines_) {
    share.promised += StorageIn(entry->record.resources);
    share.beside += BesideOne() + entry->kernel_bytes;
  }
  share.promised += claimed_;
  share.beside += claimed_beside_;
  share.images = {{options_.images_folder, images}};
  share.arriving = arriving_.pieces();
  return share;
}

rt::Task<Result<rt::Gate::Permit>> MachineHost::TellingTurn() {
  CO_TRY_STATUS(co_await is_taken_in_.Wait());
  co_return co_await telling_.Enter();
}

rt::Task<Status> MachineHost::ClaimShare(DiskShare before, int64_t more, std::string what) {
  DiskShare mine = ShareNow(SumOf(before.images));
  const SharedBudget::Check check = [&before, more, &what](const OtherShares& others) {
    return CheckShare(before, others, more, what);
  };
  co_return co_await deps_.budget->Claim(std::move(mine), check);
}

rt::Task<Status> MachineHost::ClaimDisk(int64_t more) {
  if (more <= 0) co_return OkStatus();
  co_return co_await ClaimAdmitted(more, 0, fmt::format("local disks of {} bytes", more));
}

rt::Task<Status> MachineHost::ClaimMachine(iri::ResourceVector resources) {
  const int64_t disks = StorageIn(resources);
  std::string what =
      fmt::format("local disks of {} bytes and {} for the log of its console", disks, BesideOne());
  co_return co_await ClaimAdmitted(disks, BesideOne(), std::move(what));
}

rt::Task<Status> MachineHost::ClaimAdmitted(int64_t disks, int64_t beside, std::string what) {
  if (deps_.budget == nullptr) co_return OkStatus();
  CO_TRY(const rt::Gate::Permit turn, co_await TellingTurn());
  // Measured in our turn: what comes meanwhile is claimed, and counted at least once.
  CO_TRY(const int64_t images, co_await deps_.images.TakenBytes());
  DiskShare before = ShareNow(images);
  claimed_ = disks;
  claimed_beside_ = beside;
  const Status taken = co_await ClaimShare(std::move(before), disks + beside, std::move(what));
  if (!taken.ok()) claimed_ = claimed_beside_ = 0;
  co_return taken;
}

rt::Task<Status> MachineHost::SettleBudget() {
  if (deps_.budget == nullptr) co_return OkStatus();
  CO_TRY(const rt::Gate::Permit turn, co_await TellingTurn());
  const Result<int64_t> images = co_await deps_.images.TakenBytes();
  Status settled = images.status();
  if (settled.ok()) settled = co_await deps_.budget->Settle(ShareNow(*images));
  if (settled.Is(Reason::kCancelled)) co_return settled;
  if (!settled.ok()) LOG_WARNING("{}", settled.message());
  co_return OkStatus();
}

rt::Task<Status> MachineHost::ClaimKernel(std::string machine_id,
                                          image::KernelFiles kernel,
                                          std::string image) {
  if (deps_.budget == nullptr) co_return OkStatus();
  CO_TRY(const Pointer entry, Find(machine_id));
  CO_TRY(const std::optional<KernelBoot> own, co_await deps_.folders.FindKernel(machine_id));
  if (own.has_value()) co_return OkStatus();  // it keeps that
  std::vector<std::string> paths = {kernel.kernel, kernel.initramfs};
  CO_TRY(const int64_t bytes, co_await deps_.folders.BytesOf(std::move(paths)));
  CO_TRY(const rt::Gate::Permit turn, co_await TellingTurn());
  CO_TRY(const int64_t images, co_await deps_.images.TakenBytes());
  DiskShare before = ShareNow(images);
  const int64_t had = std::exchange(entry->kernel_bytes, bytes);
  std::string what = fmt::format("its kernel of {} bytes", bytes);
  const Status taken = co_await ClaimShare(std::move(before), bytes - had, std::move(what));
  if (taken.ok()) co_return taken;
  entry->kernel_bytes = had;
  co_return OfImage(taken.Wrap("image " + Quote(image)), image);
}

rt::Task<Status> MachineHost::ClaimImage(ArrivingPieces* claimed, ArrivingPieces pieces) {
  if (deps_.budget == nullptr) co_return OkStatus();
  CO_TRY(const rt::Gate::Permit turn, co_await TellingTurn());
  CO_TRY(const int64_t images, co_await deps_.images.TakenBytes());
  // What it claimed before has come, and was measured just now.
  arriving_.Remove(*claimed);
  DiskShare before = ShareNow(images);
  const int64_t arriving = arriving_.bytes();
  arriving_.Add(pieces);
  const int64_t more = arriving_.bytes() - arriving;
  std::string what = fmt::format("its files of {} bytes", more);
  const Status taken = co_await ClaimShare(std::move(before), more, std::move(what));
  if (taken.ok()) {
    *claimed = std::move(pieces);
  } else {
    arriving_.Remove(pieces);
    arriving_.Add(*claimed);  // as others were told
  }
  co_return taken;
}

rt::Task<Status> MachineHost::ReleaseImage(ArrivingPieces claimed) {
  {
    // In our turn: whoever counts has either measured what came or counts it as arriving. Who is
    // cancelled does not wait for it.
    const Result<rt::Gate::Permit> turn = co_await telling_.Enter();
    arriving_.Remove(claimed);
  }
  co_return co_await SettleBudget();
}

rt::Task<Result<image::ImageFiles>> MachineHost::FetchImage(ImageRequest request) {
  ArrivingPieces claimed;
  request.claim = [this, &claimed](ArrivingPieces pieces) {
    return ClaimImage(&claimed, std::move(pieces));
  };
  Result<image::ImageFiles> files = co_await deps_.images.Fetch(std::move(request));
  if (claimed.empty()) co_return files;
  const Status released = co_await ReleaseImage(std::move(claimed));
  if (!released.ok() && files.ok()) co_return released;
  co_return files;
}

}  // namespace berth::runtime
