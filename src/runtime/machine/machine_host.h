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
#include "rt/child_context.h"
#include "rt/event.h"
#include "rt/gate.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "runtime/changes/change_log.h"
#include "runtime/changes/event_log.h"
#include "runtime/machine/console.h"
#include "runtime/machine/console_doors.h"
#include "runtime/machine/console_log_cut.h"
#include "runtime/machine/guest_command.h"
#include "runtime/machine/machine_plan.h"
#include "runtime/machine/serial_line.h"
#include "runtime/machine/start_pace.h"
#include "runtime/volume/arriving_images.h"
#include "runtime/volume/disks.h"
#include "runtime/volume/image_source.h"
#include "runtime/volume/pull_progress.h"
#include "runtime/volume/shared_budget.h"

namespace berth::runtime {

// About 4 KiB each in memory; far more than a host runs.
constexpr size_t kMachinesMax = 4096;

// How long a guest may take to let go of a device, and how often it is asked meanwhile: one that
// boots does not listen yet. Whoever asked hears of a refusal after 15 s + 2 s.
constexpr Duration kDetachLimit = Duration::Seconds(15);
constexpr Duration kDetachPause = Duration::Seconds(2);

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
    // Told when a machine waited for its turn to start, and since when. None: nobody traces.
    std::function<void(const std::string& id, WallTime since)> paced;
    Duration pull_interval = kPullInterval;  // from word to word of an image on its way
    // What the log of one console takes of the disk (console_log_cut.h), and how often they are
    // looked at.
    int64_t console_log_max = kConsoleLogMax;
    Duration log_look = Duration::Seconds(1);
    // From the power button to the plug.
    Duration shutdown_grace = Duration::Seconds(30);
    Duration detach_limit = kDetachLimit;
    // From a device that the guest let go of to its getting it back, if it is to have it: whoever
    // wanted it away and was refused, because the guest took its time, asks again before.
    Duration give_back_after = Duration::Minutes(2);
    // Of a guest whose disk is full.
    rt::BackoffOptions resume = {.initial = Duration::Seconds(2), .max = Duration::Minutes(1)};
    // How long it must run to be said to run again.
    Duration resume_trial = Duration::Seconds(2);
  };

  // Finds what is there and goes on with it. A hypervisor that cannot be asked is asked behind
  // this: until it has answered, what this host has is not known. Then Version, ClassStatus and
  // Capacity answer, which says what is wrong, a Watch has nothing to tell, RenewLease is as ever,
  // and everything else is Unavailable: a list without what runs would have it made twice.
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
  rt::Task<Status> SetIgnition(iri::Ignition ignition) override;
  rt::Task<Result<std::vector<iri::GuestProcess>>> ListGuests() override;
  rt::Task<Status> ResumeGuest(std::string machine_uid) override;
  // "console", and "logs": what it said. A console is for many at a time, and ends with its guest.
  // "exec": a command of the guest's agent. Unavailable if it has none.
  rt::Task<Result<std::unique_ptr<iri::AttachStream>>> Attach(iri::AttachRequest request) override;

 private:
  struct Entry {
    explicit Entry(const Options& options) : resumes(options.resume), backoff(options.retry) {}
    MachineRecord record;
    iri::MachineSpec secrets;
    std::optional<KernelBoot> kernel;  // found before each start
    GuestFolders::Media media;         // the same
    int64_t kernel_bytes = 0;          // of its copy, as far as that is counted
    Observed observed;
    uint64_t looks = 0;  // of the host, when that was observed
    // Devices of the running guest. Not asked for yet: those that it was started with, all of them.
    std::optional<DeviceElements> live;
    bool Shows(const std::string& device) const {
      return !live.has_value() || live->contains(device);
    }
    std::optional<Time> match_at;   // its devices may differ from then on
    WallTime paused_since;          // the last time
    std::optional<Time> resume_at;  // the next attempt
    // It was resumed, and is said to run if it still does then.
    std::optional<Time> trial_ends;
    Time resumed;  // the last time
    rt::Backoff resumes;
    rt::Gate saving{1};  // whoever changes the record or the guest's devices
    // Whoever makes its disks, which takes as long as an image does: entered before `saving`, never
    // inside of it.
    rt::Gate making{1};
    rt::ChildContext* maker = nullptr;  // of what is being made, while it may be cancelled
    // The task that makes disks for the running guest, and how it fares.
    struct Late {
      bool is_on = false;
      rt::Event nudge;  // ends a pause of it
      std::string error;
      std::string image_problem;
    };
    Late late;
    std::set<std::string> kept;  // parts that the guest does not let go of, as far as that was said
    bool is_gone = false;
    bool is_tended = false;  // its task runs
    rt::Event nudge;         // ends a pause of the task
    rt::Event device_event;  // the guest let go of something, or ended
    rt::Gate opening{1};     // whoever opens its console
    std::weak_ptr<Console> console;
    std::weak_ptr<GuestAgent> agent;  // of those whose commands run
    std::string error;                // of the last attempt; "" if it was good
    std::string image_problem;        // its reason, if it is the image's
    PullProgress pull;                // of its image
    bool has_image = false;           // it came, and its disks are being made
    rt::Backoff backoff;
  };
  // Shared with the calls and the task that work on it.
  using Pointer = std::shared_ptr<Entry>;

  MachineHost(Deps deps, Options options);

  // Everything at the start; the same again until it is done.
  rt::Task<Status> TakeInAll();
  rt::Task<Status> TakeInLater();
  // Of the hypervisor, unless it has said it. Fails only if it is cancelled.
  rt::Task<Status> LearnVersion();
  // Unavailable, with the reason, before that.
  Status Known() const;
  // What libvirt has: at the start, and whenever it was away. New domains of ours are taken in.
  rt::Task<Status> Resync();
  rt::Task<Status> TakeIn(Domain domain);
  // Says so if it is gone, and writes down that there is some.
  void NoteIgnition(const Pointer& entry);
  // Tells the networks what machines have.
  rt::Task<Status> AdoptNics();
  void OnEvent(const DomainEvent& event);
  // What a look at libvirt shows of a machine that is known.
  void NoteLook(Entry& entry, const Domain& domain);
  Pointer OfDomain(std::string_view name) const;
  bool IsBeingCreated(std::string_view domain) const;
  void Observe(Entry& entry, Observed observed);
  // Folders of machines that libvirt never got to know. One with a disk is left: who knows why.
  rt::Task<Status> RemoveStrays(std::set<std::string> domains);
  rt::Task<Result<std::unique_ptr<iri::AttachStream>>> AttachConsole(Pointer entry);
  rt::Task<Result<std::unique_ptr<iri::AttachStream>>> AttachConsoleOf(std::string id);
  rt::Task<Result<std::unique_ptr<iri::AttachStream>>> AttachCommand(Pointer entry,
                                                                     iri::StringMap options);

  // Calls.
  Result<Pointer> Find(std::string_view id) const;
  Pointer OfUid(std::string_view uid) const;
  iri::Machine Shown(const Entry& entry) const;
  // What is said of its guest: one that was resumed to see whether it can go on does not run yet.
  static Observed SeenOf(const Entry& entry);
  iri::ResourceVector Used(std::string_view for_uid) const;

  // Room (machine_room.cc).
  // Takes that much of the host's disk. REQUIRES: admitted, with a ClaimedRoom until it is counted.
  rt::Task<Status> ClaimDisk(int64_t more);
  // The same for a new machine, with what it has beside its disks. REQUIRES: a ClaimedRoom for
  // that, too.
  rt::Task<Status> ClaimMachine(iri::ResourceVector resources);
  rt::Task<Status> ClaimAdmitted(int64_t disks, int64_t beside, std::string what);
  // What is promised of the host's disk, told to others. A failure is logged: it is told again.
  rt::Task<Status> SettleBudget();
  // Our turn to tell, once all machines are known: with half of them it would be too little.
  rt::Task<Result<rt::Gate::Permit>> TellingTurn();
  // What one machine has beside its disks and its kernel.
  int64_t BesideOne() const;
  DiskShare ShareNow(int64_t images) const;
  // Tells others what is promised now, if `more` bytes fit to what was `before`. REQUIRES: our
  // turn.
  rt::Task<Status> ClaimShare(DiskShare before, int64_t more, std::string what);
  // Room for the guest's copy of a kernel, unless it has one.
  rt::Task<Status> ClaimKernel(std::string machine_id,
                               image::KernelFiles kernel,
                               std::string image);
  // An image, for which there is room before anything of it is written.
  rt::Task<Result<image::ImageFiles>> FetchImage(ImageRequest request);
  // `claimed` by the same fetch before has come by then; the pieces take its place.
  rt::Task<Status> ClaimImage(ArrivingPieces* claimed, ArrivingPieces pieces);
  rt::Task<Status> ReleaseImage(ArrivingPieces claimed);

  Result<MachineRecord> NewRecord(iri::Machine machine) const;
  Status CheckEfi(std::string_view class_name, std::string_view variables) const;
  // The files of the firmware that machines of the class have are on this host. BadRequest names
  // what to install.
  rt::Task<Status> CheckFirmware(std::string class_name);
  Result<DomainPlan> Plan(const Entry& entry, const MachineRecord& record) const;
  rt::Task<Status> Save(Pointer entry, std::function<void(MachineRecord&)> change);
  rt::Task<Status> SaveInside(Pointer entry, MachineRecord next);
  rt::Task<Status> PutSecrets(Pointer entry);
  rt::Task<Status> SetKey(std::string machine_id, iri::MachineVolume volume);
  // Those of this volume, in place of those that there are.
  rt::Task<Status> KeepSecrets(Pointer entry, std::string volume, iri::MachineSpec secrets);
  // Another key than before, for the next start.
  rt::Task<Status> TakeKey(Pointer entry, iri::MachineVolume volume);
  // Gives it to the running guest, if there is one.
  rt::Task<Status> PlugIn(Pointer entry, std::string device, std::string xml);
  // REQUIRES: `saving` is entered. The disk is made, and the guest gets it, behind this.
  rt::Task<Status> AddLocalDisk(Pointer entry, MachineRecord next, iri::LocalDisk wanted);
  // Takes the device from the running guest and waits until it has let go. Conflict: it does not.
  rt::Task<Status> Unplug(Pointer entry, std::string device, std::string xml);

  // What became of an Unplug of this part, which an event says once if the guest keeps it.
  Status Told(Entry& entry, const Status& unplugged, const std::string& part);

  // Tasks.
  rt::Task<Status> KeepLogsShort();
  void Tend(const Pointer& entry);
  rt::Task<Status> TendMachine(Pointer entry);
  rt::Task<Status> WaitForTurn(Pointer entry, Duration early);
  rt::Task<Status> Perform(Pointer entry, MachineStep step);
  rt::Task<Status> NoteEnd(Pointer entry);
  MachineStep Next(const Entry& entry) const;
  // Until something is due; nullopt: nothing will be.
  std::optional<Duration> UntilDue(const Entry& entry) const;
  // From then on its devices may be others than those of its record.
  void Doubt(const Pointer& entry, Duration after);
  rt::Task<Status> MatchDevices(Pointer entry);
  rt::Task<Status> MatchInside(Pointer entry);
  rt::Task<Status> GiveMissing(Pointer entry, DeviceDrift drift);
  void NotePause(Entry& entry, PauseReason why);
  void ScheduleResume(Entry& entry);
  // Whether it stays as it is, if it was resumed to see.
  void EndTrial(Entry& entry);
  rt::Task<Status> ResumeStopped(Pointer entry);
  // It is off: nothing of its life is left.
  static void ForgetLife(Entry& entry);
  rt::Task<Status> StartGuest(Pointer entry);
  // What its first moments need, in folders of its own. Cancelled: it is not to start any more.
  rt::Task<Status> PutStartFiles(Pointer entry);
  // Its firmware gets the variables that the machine has, if those are not what it got before.
  rt::Task<Status> PutEfiVariables(std::string id, MachineRecord* record);
  // On whose behalf its images are fetched.
  static ImageRequest ImageRequestOf(const Entry& entry);
  // The same, and how far those are that its start waits for is told from here on.
  ImageRequest ToldImageRequestOf(Pointer entry);

  // Local disks (machine_disks.cc).
  // Whether its disks are to be made: it is to run.
  static bool WantsDisks(const Entry& entry);
  // What is being made of them ends as Cancelled. For whoever has written down that it is not to
  // be.
  static void CancelMaking(Entry& entry);
  // Does the part unless the disks are not wanted, and until they are not: Cancelled.
  template <class T>
  rt::Task<T> WhileWanted(Pointer entry, rt::Task<T> part);
  // Those of the record that are not there. Cancelled: other ones are wanted by now. REQUIRES: the
  // caller has not entered `saving`.
  rt::Task<Status> MakeDisks(Pointer entry);
  // The same behind a guest that is alive, which gets them then; tried until they are there.
  void MakeLater(const Pointer& entry);
  rt::Task<Status> MakeLate(Pointer entry);
  // Counts a disk that has the size of its image, before it is made. TooManyRequests if there is no
  // room for it.
  rt::Task<Status> CountImageDisk(Pointer entry, iri::MachineVolume volume);
  // How large such a disk is, or will be.
  struct ImageDisk {
    int64_t bytes = 0;
    bool is_there = false;
  };
  rt::Task<Result<ImageDisk>> LookAtImageDisk(Pointer entry, iri::MachineVolume volume);
  rt::Task<Status> MakeDisk(Pointer entry, iri::MachineVolume volume);
  // Its content, in the file `part`; a guest that is off gets all of its image.
  rt::Task<Status> FillDisk(Pointer entry, iri::MachineVolume volume, DiskFile part);
  // True for what is not made here.
  rt::Task<Result<bool>> HasDisk(std::string id, iri::MachineVolume volume);
  // Counts and refuses what an image has beside a disk. BadRequest if this machine cannot boot it.
  rt::Task<Status> AdmitMedia(Pointer entry, image::ImageFiles* files, std::string image);
  // All that it has beside disks and its kernel counts as so many bytes from now on.
  rt::Task<Status> CountMedia(Pointer entry, int64_t bytes);
  static void SetMediaBytes(MachineRecord& record, int64_t bytes);
  // What the guest has copies of, counted as what is there; how many bytes its media have.
  rt::Task<Result<int64_t>> FindBootFiles(Pointer entry);
  // The image that it starts with is there: told if it was told before that it is on its way.
  void NoteImage(Entry& entry);
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
  rt::Gate telling_{1};      // whoever tells others what is promised
  rt::Event is_taken_in_;    // all that libvirt had at the start is in the table
  std::string why_unknown_;  // before that: what became of the last attempt
  rt::Event look_now_;       // the connection is another one than for the last attempt
  // "" until libvirt has said it.
  std::string hypervisor_version_;
  int64_t claimed_ = 0;         // of the host's disk, by whoever is admitted and not counted yet
  int64_t claimed_beside_ = 0;  // the same, beside disks
  ArrivingImages arriving_;
  std::map<std::string, Pointer, std::less<>> machines_;
  std::set<std::string> creating_;  // they have folders, and perhaps no domain yet
  std::vector<iri::Reservation> reservations_;
  StartPace pace_;
  uint64_t looks_ = 0;
  ChangeLog changes_;
  EventLog events_;
  rt::Gate commands_{kCommandsMax};  // in guests
  rt::TaskScope work_;
};

}  // namespace berth::runtime
