// SPDX-License-Identifier: Apache-2.0
// What there is room for: volumes, snapshots, and images before they are fetched.
#include <utility>

#include "base/log.h"
#include "runtime/volume/volume_host.h"

namespace berth::runtime {

rt::Task<Result<VolumeHost::Counted>> VolumeHost::Count() {
  CO_TRY(const ShelfRoom room, co_await deps_.shelf.Room());
  CO_TRY(const int64_t images, co_await deps_.images.TakenBytes());
  Counted counted{.budget = CountBudget(room, images), .left = CountRoom(room)};
  counted.budget.volumes += claimed_;
  counted.left.unwritten += claimed_;
  co_return counted;
}

rt::Task<Status> VolumeHost::CheckRoomFor(int64_t more, std::string what) {
  CO_TRY(const rt::Gate::Permit turn, co_await telling_.Enter());
  CO_TRY(Counted counted, co_await Count());
  DiskShare mine = ShareOf(counted.budget);
  mine.promised += more;
  claimed_ = more;
  const Status claimed = co_await Claim(std::move(mine), std::move(counted), more, std::move(what));
  if (!claimed.ok()) claimed_ = 0;
  co_return claimed;
}

rt::Task<Status> VolumeHost::Claim(DiskShare mine,
                                   Counted counted,
                                   int64_t more,
                                   std::string what) {
  const Promise promise = options_.promise;
  if (deps_.budget == nullptr) {
    co_return CheckRoom(counted.budget, counted.left, promise, more, what);
  }
  const SharedBudget::Check check = [&](const OtherShares& others) {
    counted.budget.elsewhere = others.in_all();
    return CheckRoom(counted.budget, counted.left, promise, more, what);
  };
  co_return co_await deps_.budget->Claim(std::move(mine), check);
}

DiskShare VolumeHost::ShareOf(const Budget& budget) const {
  DiskShare share;
  share.total = options_.total_bytes;
  share.promised = budget.volumes + budget.snapshots + budget.unknown;
  share.images = {{options_.images_folder, budget.images}};
  share.arriving = arriving_.pieces();
  return share;
}

rt::Task<Status> VolumeHost::SettleBudget() {
  if (deps_.budget == nullptr) co_return OkStatus();
  CO_TRY(const rt::Gate::Permit turn, co_await telling_.Enter());
  CO_TRY(const Counted counted, co_await Count());
  DiskShare mine = ShareOf(counted.budget);
  const Status settled = co_await deps_.budget->Settle(std::move(mine));
  if (settled.Is(Reason::kCancelled)) co_return settled;
  if (!settled.ok()) LOG_WARNING("{}", settled.message());
  co_return OkStatus();
}

rt::Task<Status> VolumeHost::ClaimImage(ArrivingPieces* claimed, ArrivingPieces pieces) {
  CO_TRY(const rt::Gate::Permit turn, co_await telling_.Enter());
  CO_TRY(Counted counted, co_await Count());
  // What it claimed before has come, and was measured just now.
  const int64_t former = arriving_.bytes();
  arriving_.Remove(*claimed);
  const int64_t before = arriving_.bytes();
  counted.budget.arriving -= former - before;
  counted.left.unwritten -= former - before;
  arriving_.Add(pieces);
  const int64_t more = arriving_.bytes() - before;
  DiskShare mine = ShareOf(counted.budget);
  const std::string what = "its files";
  const Status taken = co_await Claim(std::move(mine), std::move(counted), more, what);
  if (taken.ok()) {
    *claimed = std::move(pieces);
  } else {
    arriving_.Remove(pieces);
    arriving_.Add(*claimed);  // as others were told
  }
  co_return taken;
}

rt::Task<Status> VolumeHost::ReleaseImage(ArrivingPieces claimed) {
  {
    // In our turn: whoever counts has either measured what came or counts it as arriving. Who is
    // cancelled does not wait for it.
    const Result<rt::Gate::Permit> turn = co_await telling_.Enter();
    arriving_.Remove(claimed);
  }
  co_return co_await SettleBudget();
}

rt::Task<Result<image::ImageFiles>> VolumeHost::FetchImage(ImageRequest request) {
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
