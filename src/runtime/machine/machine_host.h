// SPDX-License-Identifier: Apache-2.0
// MachineHost is the machine runtime: guests of a Hypervisor on this host.
//
// A call checks, writes the record down (by defining the domain) and answers; guests are started,
// stopped and removed behind it, by one task per machine that does what NextStep (machine_plan.h)
// says until there is nothing left to do. What fails shows as an event and is tried again.
//
// Invariants: 1. What was answered is in libvirt. 2. The sum of all classes never exceeds the host.
// 3. Secrets are in memory, in a file that a reboot forgets, and in libvirt's memory; nowhere else.
// 4. Only a machine's own task starts and ends its guest and takes it away. 5. A guest that ended
// by itself stays off until it is switched on again: whoever asked for it decides.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "iri/host.h"
#include "iri/machine.h"
#include "rt/backoff.h"
#include "rt/event.h"
#include "rt/gate.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "runtime/changes/change_log.h"
#include "runtime/changes/event_log.h"
#include "runtime/machine/console.h"
#include "runtime/machine/console_doors.h"
#include "runtime/machine/machine_plan.h"
#include "runtime/machine/serial_line.h"
#include "runtime/machine/start_pace.h"
#include "runtime/volume/disks.h"
#include "runtime/volume/image_source.h"
#include "runtime/volume/pull_progress.h"
#include "runtime/volume/shared_budget.h"

namespace berth::runtime {

// About 4 KiB each in memory; far more than a host runs.
constexpr size_t kMachinesMax = 4096;

class MachineHost final : public iri::MachineRuntime, public iri::HostRuntime {
 public:
  // All outlive the host.
  struct Deps {
    rt::Loop& loop;
    Hypervisor& hypervisor;
    GuestFolders& folders;
    Disks& disks;
    ImageSource& images;
    HostNetworks& networks;
    SerialLines& lines;
    ConsoleDoors& doors;
    rt::BlockingPool& files;  // for /proc and logs
    SharedBudget* budget =
        nullptr;  // what other runtimes of the host promise; null: there are none
  };
  struct Options {
    std::vector<OfferedMachineClass> classes;
    iri::ResourceVector total;  // of the host, for guests
    std::string images_folder;  // whose images are counted
    std::string boot_id;
    iri::StringMap facts;
    Acceleration acceleration = Acceleration::kTcg;
    std::string emulator;  // "" for libvirt's choice
    std::string efi_code = "/usr/share/OVMF/OVMF_CODE_4M.fd";
    std::string efi_variables = "/usr/share/OVMF/OVMF_VARS_4M.fd";
    rt::BackoffOptions retry = {.initial = Duration::Seconds(1), .max = Duration::Minutes(1)};
    StartPace::Options start_pace;
    Duration pull_interval = kPullInterval;  // from word to word of an image on its way
    // From the power button to the plug.
    Duration shutdown_grace = Duration::Seconds(30);
    // How long a guest may take to let go of a device.
    Duration detach_limit = Duration::Seconds(15);
  };

  // Finds what is there and goes on with it.
  static rt::Task<Result<std::unique_ptr<MachineHost>>> Start(Deps deps, Options options);
  // REQUIRES: Stop() was awaited.
  ~MachineHost() override = default;
  MachineHost(const MachineHost&) = delete;
  MachineHost& operator=(const MachineHost&) = delete;

  // Ends watches and all work; guests run on. Always ok.
  rt::Task<Status> Stop();

  rt::Task<Result<iri::RuntimeVersion>> Version() override;
  rt::Task<Result<std::vector<iri::Event>>> ListEvents(iri::EventFilter filter) override;
  rt::Task<Result<std::vector<iri::Machine>>> ListMachines(iri::ObjectFilter filter) override;
  rt::Task<Result<iri::Machine>> CreateMachine(iri::Machine machine) override;
  rt::Task<Status> DeleteMachine(std::string id) override;
  rt::Task<Status> UpdateMachineAnnotations(std::string id, iri::StringMap annotations) override;
  rt::Task<Status> UpdateMachinePower(std::string id, iri::Power power) override;
  rt::Task<Status> AttachVolume(std::string id, iri::MachineVolume volume) override;
  rt::Task<Status> DetachVolume(std::string id, std::string name) override;
  rt::Task<Status> UpdateVolume(std::string id, iri::MachineVolume volume) override;
  rt::Task<Status> AttachNetworkInterface(std::string id, iri::MachineNic nic) override;
  rt::Task<Status> DetachNetworkInterface(std::string id, std::string name) override;
  rt::Task<Result<std::vector<iri::MachineClassStatus>>> ClassStatus() override;
  // For whoever knows no Attach: a URL of the guest's console. Conflict while it is off.
  rt::Task<Result<std::string>> Exec(std::string id) override;

  rt::Task<Result<std::unique_ptr<iri::ChangeStream>>> Watch(std::string cursor) override;
  rt::Task<Result<iri::HostCapacity>> Capacity() override;
  // Guests are processes, and leases are kept by the poollet's fencer: MethodNotSupported.
  rt::Task<Result<std::vector<iri::LeaseState>>> RenewLease(iri::LeaseRenewal renewal) override;
  rt::Task<Status> SetReservations(std::vector<iri::Reservation> reservations) override;
  rt::Task<Result<std::vector<iri::Reservation>>> ListReservations() override;
  rt::Task<Status> SetPullSecret(iri::PullSecret secret) override;
  rt::Task<Result<std::vector<iri::GuestProcess>>> ListGuests() override;
  rt::Task<Status> ResumeGuest(std::string machine_uid) override;
  // "console", and "logs": what it said. A console is for many at a time, and ends with its guest.
  rt::Task<Result<std::unique_ptr<iri::AttachStream>>> Attach(iri::AttachRequest request) override;

 private:
  struct Entry {
    explicit Entry(const rt::BackoffOptions& retry) : backoff(retry) {}
    MachineRecord record;
    iri::MachineSpec secrets;
    std::optional<KernelBoot> kernel;  // found before each start
    Observed observed;
    uint64_t looks = 0;  // of the host, when that was observed
    // Devices of the running guest. Not asked for yet: those that it was started with, all of them.
    std::optional<std::set<std::string>> live;
    bool Shows(const std::string& device) const {
      return !live.has_value() || live->contains(device);
    }
    struct {
      WallTime since;
      std::string why;
    } paused;            // the last time
    rt::Gate saving{1};  // whoever changes the record or the guest's devices
    bool is_gone = false;
    bool is_tended = false;  // its task runs
    rt::Event nudge;         // ends a pause of the task
    rt::Event device_event;  // the guest let go of something, or ended
    rt::Gate opening{1};     // whoever opens its console
    std::weak_ptr<Console> console;
    std::string error;          // of the last attempt; "" if it was good
    std::string image_problem;  // its reason, if it is the image's
    PullProgress pull;          // of its image
    rt::Backoff backoff;
  };
  // Shared with the calls and the task that work on it.
  using Pointer = std::shared_ptr<Entry>;

  MachineHost(Deps deps, Options options);

  // What libvirt has: at the start, and whenever it was away. New domains of ours are taken in.
  rt::Task<Status> Resync();
  rt::Task<Status> TakeIn(Domain domain);
  // Tells the networks what machines have.
  rt::Task<Status> AdoptNics();
  void OnEvent(const DomainEvent& event);
  Pointer OfDomain(std::string_view name) const;
  bool IsBeingCreated(std::string_view domain) const;
  void Observe(Entry& entry, Observed observed);
  // Folders of machines that libvirt never got to know. One with a disk is left: who knows why.
  rt::Task<Status> RemoveStrays(std::set<std::string> domains);
  rt::Task<Result<std::unique_ptr<iri::AttachStream>>> AttachConsole(Pointer entry);
  rt::Task<Result<std::unique_ptr<iri::AttachStream>>> AttachConsoleOf(std::string id);

  // Calls.
  Result<Pointer> Find(std::string_view id) const;
  Pointer OfUid(std::string_view uid) const;
  iri::Machine Shown(const Entry& entry) const;
  iri::ResourceVector Used(std::string_view for_uid) const;
  // Takes that much of the host's disk. REQUIRES: admitted, with a ClaimedRoom until it is counted.
  rt::Task<Status> ClaimDisk(int64_t more);
  // What is promised of the host's disk, told to others. A failure is logged: it is told again.
  rt::Task<Status> SettleBudget();
  DiskShare ShareNow(int64_t images) const;
  Result<MachineRecord> NewRecord(iri::Machine machine) const;
  Status CheckEfi(std::string_view class_name, std::string_view variables) const;
  Result<DomainPlan> Plan(const Entry& entry, const MachineRecord& record) const;
  rt::Task<Status> Save(Pointer entry, std::function<void(MachineRecord&)> change);
  rt::Task<Status> SaveInside(Pointer entry, MachineRecord next);
  rt::Task<Status> PutSecrets(Pointer entry);
  rt::Task<Status> SetKey(std::string machine_id, iri::MachineVolume volume);
  // Another key than before, for the next start.
  rt::Task<Status> TakeKey(Pointer entry, iri::MachineVolume volume);
  // Takes the device from the running guest and waits until it has let go.
  rt::Task<Status> Unplug(Pointer entry, std::string device, std::string xml);

  // Tasks.
  void Tend(const Pointer& entry);
  rt::Task<Status> TendMachine(Pointer entry);
  rt::Task<Status> Perform(Pointer entry, MachineStep step);
  rt::Task<Status> NoteEnd(Pointer entry);
  rt::Task<Status> StartGuest(Pointer entry);
  // Its firmware gets the variables that the machine has, if those are not what it got before.
  rt::Task<Status> PutEfiVariables(std::string id, MachineRecord* record);
  // On whose behalf its images are fetched.
  static ImageRequest ImageRequestOf(const Entry& entry);
  // The same, and how far they are is told from here on.
  ImageRequest ToldImageRequestOf(Pointer entry);
  // Counts local disks that have the size of their image, before they are made. TooManyRequests if
  // there is no room for one.
  rt::Task<Status> CountImageDisks(Pointer entry);
  // How large such a disk is, or will be.
  struct ImageDisk {
    int64_t bytes = 0;
    bool is_there = false;
  };
  rt::Task<Result<ImageDisk>> LookAtImageDisk(std::string machine_id,
                                              ImageRequest request,
                                              iri::MachineVolume volume);
  rt::Task<Status> MakeDisk(std::string machine_id,
                            ImageRequest request,
                            iri::MachineVolume volume);
  // A disk of `wanted`, from the image's if it has one, in the file `part`.
  rt::Task<Status> MakePart(image::ImageFiles files, iri::LocalDisk wanted, DiskFile part);
  rt::Task<Status> FillFromImage(image::RootDisk disk, iri::LocalDisk wanted, DiskFile part);
  rt::Task<Status> StopGuest(Pointer entry);
  rt::Task<Status> RemoveMachine(Pointer entry);

  // Words.
  void Say(const iri::ObjectMetadata& metadata,
           iri::EventType type,
           std::string_view reason,
           std::string_view action,
           std::string message);
  void Changed(const Entry& entry, std::string_view what);

  const Deps deps_;
  const Options options_;
  // One at a time checks for room and takes it. Entered last, inside of a machine's `saving`:
  // whoever changes a machine may wait for long.
  rt::Gate admission_{1};
  rt::Gate telling_{1};  // whoever tells others what is promised
  int64_t claimed_ = 0;  // of the host's disk, by whoever is admitted and not counted yet
  std::map<std::string, Pointer, std::less<>> machines_;
  std::set<std::string> creating_;  // they have folders, and perhaps no domain yet
  std::vector<iri::Reservation> reservations_;
  StartPace pace_;
  uint64_t looks_ = 0;
  ChangeLog changes_;
  EventLog events_;
  rt::TaskScope work_;
};

}  // namespace berth::runtime
