// SPDX-License-Identifier: Apache-2.0
// VolumeHost is the volume runtime: volumes and snapshots that are files of this host.
//
// A call checks, writes the record down and answers; the disk is made, grown and removed behind it,
// by one task per object that does what NextStep (plan.h) says until there is nothing left to do. A
// step that fails shows as an event and is tried again.
//
// Invariants: 1. What was answered is on disk. 2. The sum of all promises never exceeds the budget.
// 3. A key is in the memory of its volume's making and nowhere else. 4. Only an object's own task
// changes its files and takes it away.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "iri/host.h"
#include "iri/volume.h"
#include "rt/backoff.h"
#include "rt/child_context.h"
#include "rt/event.h"
#include "rt/gate.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "runtime/changes/change_log.h"
#include "runtime/changes/event_log.h"
#include "runtime/volume/arriving_images.h"
#include "runtime/volume/budget.h"
#include "runtime/volume/disks.h"
#include "runtime/volume/image_source.h"
#include "runtime/volume/live_disks.h"
#include "runtime/volume/plan.h"
#include "runtime/volume/pull_progress.h"
#include "runtime/volume/records.h"
#include "runtime/volume/shared_budget.h"
#include "runtime/volume/shelf.h"
#include "runtime/volume/volume_classes.h"

namespace berth::runtime {

// About 2 KiB each in memory, and one folder each on disk.
constexpr size_t kVolumeObjectsMax = 10'000;

class VolumeHost final : public iri::VolumeRuntime, public iri::HostRuntime {
 public:
  // All outlive the host.
  struct Deps {
    rt::Loop& loop;
    Shelf& shelf;
    Disks& disks;
    ImageSource& images;
    LiveDisks* live = nullptr;  // null: disks that guests use are not copied
    SharedBudget* budget =
        nullptr;  // what other runtimes of the host promise; null: there are none
  };
  struct Options {
    std::vector<OfferedVolumeClass> classes;
    int64_t total_bytes = 0;  // of the budget (TotalBytes)
    Promise promise = Promise::kWhole;
    std::string images_folder;  // whose images are counted
    std::string boot_id;
    iri::StringMap facts;
    rt::BackoffOptions retry = {.initial = Duration::Seconds(1), .max = Duration::Minutes(1)};
    // How often a disk that its guest has to grow is looked at.
    Duration in_use_look = Duration::Seconds(5);
    // How often a copy of a disk in use is tried: guests end, and a libvirtd is away.
    int live_attempts = 10;
    Duration pull_interval = kPullInterval;  // from word to word of an image on its way
  };

  // Finds what is there and goes on with it.
  static rt::Task<Result<std::unique_ptr<VolumeHost>>> Start(Deps deps, Options options);
  // REQUIRES: Stop() was awaited.
  ~VolumeHost() override = default;
  VolumeHost(const VolumeHost&) = delete;
  VolumeHost& operator=(const VolumeHost&) = delete;

  // Ends watches and all work; what was begun is gone on with at the next start. Always ok.
  rt::Task<Status> Stop();

  rt::Task<Result<iri::RuntimeVersion>> Version() override;
  rt::Task<Result<std::vector<iri::Event>>> ListEvents(iri::EventFilter filter) override;
  rt::Task<Result<std::vector<iri::Volume>>> ListVolumes(iri::ObjectFilter filter) override;
  rt::Task<Result<iri::Volume>> CreateVolume(iri::Volume volume) override;
  rt::Task<Status> ExpandVolume(std::string id, int64_t storage_bytes) override;
  rt::Task<Status> DeleteVolume(std::string id) override;
  rt::Task<Result<std::vector<iri::VolumeSnapshot>>> ListVolumeSnapshots(
      iri::ObjectFilter filter) override;
  rt::Task<Result<iri::VolumeSnapshot>> CreateVolumeSnapshot(iri::VolumeSnapshot snapshot) override;
  rt::Task<Status> DeleteVolumeSnapshot(std::string id) override;
  rt::Task<Result<std::vector<iri::VolumeClassStatus>>> ClassStatus() override;

  rt::Task<Result<std::unique_ptr<iri::ChangeStream>>> Watch(std::string cursor) override;
  rt::Task<Result<iri::HostCapacity>> Capacity() override;
  // Guests and their reservations are the machine runtime's: MethodNotSupported.
  rt::Task<Result<std::vector<iri::LeaseState>>> RenewLease(iri::LeaseRenewal renewal) override;
  rt::Task<Status> SetReservations(std::vector<iri::Reservation> reservations) override;
  rt::Task<Result<std::vector<iri::Reservation>>> ListReservations() override;
  rt::Task<Status> SetPullSecret(iri::PullSecret secret) override;

 private:
  // What is known of an object beside its record.
  struct Worked {
    explicit Worked(const rt::BackoffOptions& retry) : backoff(retry) {}
    rt::Gate saving{1};  // whoever changes the record
    bool is_gone = false;
    bool is_tended = false;              // its task runs
    rt::Event nudge;                     // ends a pause of the task
    rt::ChildContext* making = nullptr;  // while the disk is made
    std::string error;                   // of the last attempt; "" if it was good
    std::string image_problem;           // its reason, if it is the image's
    std::string waits;                   // why the disk that it is made of is copied once more
    rt::Backoff backoff;
  };
  struct VolumeEntry : Worked {
    using Worked::Worked;
    VolumeRecord record;
    std::string key;
    bool grows_in_use = false;  // left to the guest's QEMU
    PullProgress pull;          // of its image
  };
  struct SnapshotEntry : Worked {
    using Worked::Worked;
    SnapshotRecord record;
  };
  // Shared with the calls and the task that work on it.
  using VolumePtr = std::shared_ptr<VolumeEntry>;
  using SnapshotPtr = std::shared_ptr<SnapshotEntry>;
  template <class Pointer>
  using Table = std::map<std::string, Pointer, std::less<>>;

  VolumeHost(Deps deps, Options options);
  rt::Task<Status> LoadAll();

  // Calls.
  Result<VolumePtr> FindVolume(std::string_view id) const;
  Result<SnapshotPtr> FindSnapshot(std::string_view id) const;
  Result<DiskSource> SourceOf(const iri::VolumeSpec& spec) const;
  iri::Volume Shown(const VolumeEntry& entry) const;
  static iri::VolumeSnapshot Shown(const SnapshotEntry& entry);
  Budget CountBudget(const ShelfRoom& room, int64_t images) const;
  FileSystemRoom CountRoom(const ShelfRoom& room) const;
  Status CheckCount() const;

  // Room (volume_room.cc). Whoever counts has its turn at telling others.
  struct Counted {
    Budget budget;
    FileSystemRoom left;
  };
  rt::Task<Result<Counted>> Count();
  // REQUIRES: admitted, with a ClaimedRoom until the object is in its table.
  rt::Task<Status> CheckRoomFor(int64_t more, std::string what);
  // Writes down what we promise then, if `more` fits to what was counted without it.
  rt::Task<Status> Claim(DiskShare mine, Counted counted, int64_t more, std::string what);
  DiskShare ShareOf(const Budget& budget) const;
  // Tells others what is promised now. A failure is logged: it is told again.
  rt::Task<Status> SettleBudget();
  // An image, for which there is room before anything of it is written.
  rt::Task<Result<image::ImageFiles>> FetchImage(ImageRequest request);
  // `claimed` by the same fetch before has come by then; the pieces take its place.
  rt::Task<Status> ClaimImage(ArrivingPieces* claimed, ArrivingPieces pieces);
  rt::Task<Status> ReleaseImage(ArrivingPieces claimed);

  iri::ObjectMetadata NewMetadata(iri::ObjectMetadata metadata, std::string_view prefix);

  // Changes a record, on disk first. The only way to change one. NotFound if the object is gone.
  rt::Task<Status> Save(VolumePtr entry, std::function<void(VolumeRecord&)> change);
  rt::Task<Status> Save(SnapshotPtr entry, std::function<void(SnapshotRecord&)> change);
  template <class Pointer, class Record>
  rt::Task<Status> SaveRecord(ShelfKind kind, Pointer entry, std::function<void(Record&)> change);
  template <class Pointer>
  rt::Task<Status> Delete(iri::ObjectKind kind, Pointer entry);

  // Tasks. Tend starts an object's task, or ends its pause.
  void Tend(const VolumePtr& entry);
  void Tend(const SnapshotPtr& entry);
  // The object, if there is one, of which another's disk was made.
  void TendSource(std::string_view id);
  rt::Task<Status> TendVolume(VolumePtr entry);
  rt::Task<Status> TendSnapshot(SnapshotPtr entry);
  rt::Task<Status> Perform(VolumePtr entry, Step step);
  rt::Task<Status> Perform(SnapshotPtr entry, Step step);
  Circumstances CircumstancesOf(const VolumeEntry& entry) const;
  Circumstances CircumstancesOf(const SnapshotEntry& entry) const;
  bool IsRead(std::string_view id) const;

  rt::Task<Status> MakeVolume(VolumePtr entry);
  rt::Task<Result<int64_t>> MakeDisk(VolumeRecord record, std::string key);
  rt::Task<Status> FillDisk(VolumeRecord record, DiskFile part, std::string key);
  // Begins to tell how far its image is.
  void TellPull(ImageRequest& request, VolumePtr entry);
  rt::Task<Status> FillFromImage(VolumeRecord record, DiskCopy copy);
  rt::Task<Status> FillFromDisk(VolumeRecord record, DiskCopy copy);
  rt::Task<Status> GrowVolume(VolumePtr entry);
  rt::Task<Status> AbandonVolume(VolumePtr entry);
  rt::Task<Status> MakeSnapshot(SnapshotPtr entry);
  struct SnapshotCopy {
    int64_t disk_bytes = 0;
    int64_t taken_bytes = 0;  // of the host's disk
  };
  rt::Task<Result<SnapshotCopy>> CopyVolume(SnapshotRecord record);

  // volume_copies.cc: also of a disk that a guest uses. `waits` is told why that is tried again.
  using Waits = std::function<void(const Status& why)>;
  rt::Task<Status> CopyDisk(DiskCopy copy, Waits waits);
  Waits ToldOf(iri::ObjectKind kind, std::shared_ptr<Worked> worked, iri::ObjectMetadata metadata);
  template <class Pointer>
  rt::Task<Status> RemoveFiles(ShelfKind kind, Pointer entry);
  // It has its image, or is gone.
  void ForgetPullSecret(const iri::ObjectMetadata& metadata);
  // Waits until it is worth another try; Cancelled.
  rt::Task<Status> Pause(std::shared_ptr<Worked> worked, Duration pause);

  // Words.
  void Say(iri::ObjectKind kind,
           const iri::ObjectMetadata& metadata,
           iri::EventType type,
           std::string_view reason,
           std::string_view action,
           std::string message);
  void Failed(Worked& worked,
              iri::ObjectKind kind,
              const iri::ObjectMetadata& metadata,
              std::string_view action,
              const Status& status);

  const Deps deps_;
  const Options options_;
  // One at a time checks for room and takes it.
  rt::Gate admission_{1};
  rt::Gate telling_{1};  // whoever tells others what is promised
  int64_t claimed_ = 0;  // by whoever is admitted, and not in a table yet
  ArrivingImages arriving_;
  Table<VolumePtr> volumes_;
  Table<SnapshotPtr> snapshots_;
  ChangeLog changes_;
  EventLog events_;
  rt::TaskScope work_;
};

}  // namespace berth::runtime
