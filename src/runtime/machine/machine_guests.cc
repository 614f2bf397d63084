// SPDX-License-Identifier: Apache-2.0
// Guests as processes, for whoever kills them at their deadline, and what they said.
#include <fmt/core.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "base/proc_file.h"
#include "base/strings.h"
#include "iri/labels.h"
#include "runtime/machine/console_log.h"
#include "runtime/machine/machine_host.h"

namespace berth::runtime {
namespace {

namespace fs = std::filesystem;

// 0: it is gone.
uint64_t StartTicks(const fs::path& process) {
  const std::string stat = ReadProcFile((process / "stat").string());
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) return 0;
  const auto fields = Split(std::string_view(stat).substr(name_end + 2), ' ');
  constexpr size_t kStartField = 22 - 3;  // the state, behind the name, is field 3
  return fields.size() > kStartField ? ParseUint(fields[kStartField]).value_or(0) : 0;
}

struct Process {
  int64_t pid = 0;
  uint64_t start_ticks = 0;
};

// Processes of QEMU by the UUID that libvirt gives them as an argument.
std::map<std::string, Process> ProcessesByUuid() {
  constexpr std::string_view kUuidArgument("\0-uuid\0", 7);
  constexpr size_t kUuidBytes = 36;
  std::map<std::string, Process> processes;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator("/proc", failed)) {
    const auto pid = ParseInt(entry.path().filename().string());
    if (!pid.has_value()) continue;
    const std::string words = ReadProcFile((entry.path() / "cmdline").string());
    const size_t at = words.find(kUuidArgument);
    if (at == std::string::npos) continue;
    const uint64_t ticks = StartTicks(entry.path());
    if (ticks == 0) continue;
    processes[words.substr(at + kUuidArgument.size(), kUuidBytes)] = {.pid = *pid,
                                                                      .start_ticks = ticks};
  }
  return processes;
}

}  // namespace

rt::Task<Result<std::vector<iri::GuestProcess>>> MachineHost::ListGuests() {
  CO_TRY_STATUS(Known());
  const auto look = [] { return ProcessesByUuid(); };
  CO_TRY(const auto processes, co_await deps_.files.Run("machines.processes", look));
  std::vector<iri::GuestProcess> guests;
  for (const auto& [id, entry] : machines_) {
    const Result<DomainPlan> plan = Plan(*entry, entry->record);
    if (!plan.ok()) continue;
    const auto found = processes.find(plan->uuid);
    if (found == processes.end()) continue;
    iri::GuestProcess guest;
    guest.machine_uid = LabelOf(entry->record.object.metadata, iri::kMachineUidLabel);
    guest.pid = found->second.pid;
    guest.start_ticks = found->second.start_ticks;
    guest.held = IsHeld(entry->record.object, entry->observed);
    guests.push_back(std::move(guest));
  }
  co_return guests;
}

rt::Task<Status> MachineHost::ResumeGuest(std::string machine_uid) {
  CO_TRY_STATUS(Known());
  const Pointer entry = OfUid(machine_uid);
  if (entry == nullptr || !entry->observed.alive()) {
    co_return NotFound("no guest of machine uid " + Quote(machine_uid) + " is alive");
  }
  if (entry->observed.state == GuestState::kRunning) co_return OkStatus();
  const std::string name = DomainNameOf(entry->record.object.metadata.id);
  CO_TRY_STATUS(co_await deps_.hypervisor.Resume(name));
  Observe(*entry, {.state = GuestState::kRunning});
  Changed(*entry, "resumed");
  co_return OkStatus();
}

rt::Task<Result<std::unique_ptr<iri::AttachStream>>> MachineHost::Attach(
    iri::AttachRequest request) {
  CO_TRY_STATUS(Known());
  const Pointer entry = OfUid(request.machine_uid);
  if (entry == nullptr) {
    co_return NotFound("no machine of uid " + Quote(request.machine_uid));
  }
  if (request.what == "console") co_return co_await AttachConsole(entry);
  if (request.what == "exec") co_return co_await AttachCommand(entry, std::move(request.options));
  if (request.what != "logs") {
    co_return Status(Reason::kMethodNotSupported, "this runtime offers no " + request.what);
  }
  const std::string path = deps_.folders.ConsoleLog(entry->record.object.metadata.id);
  CO_TRY(LogRequest log, LogRequestOf(path, request.options));
  const auto is_over = [entry] { return entry->is_gone; };
  co_return co_await OpenLog(&deps_.files, std::move(log), is_over);
}

rt::Task<Result<std::unique_ptr<iri::AttachStream>>> MachineHost::AttachConsole(Pointer entry) {
  // One connects, the others look over its shoulder.
  CO_TRY(const rt::Gate::Permit permit, co_await entry->opening.Enter());
  std::shared_ptr<Console> console = entry->console.lock();
  if (console == nullptr || console->is_over()) {
    const std::string id = entry->record.object.metadata.id;
    if (!entry->observed.alive()) co_return Conflict("machine " + Quote(id) + " is off");
    CO_TRY(std::unique_ptr<SerialLine> line,
           co_await deps_.lines.Open(deps_.folders.ConsoleSocket(id)));
    console = Console::On(deps_.loop, std::move(line));
    entry->console = console;
  }
  co_return Console::Join(console);
}

rt::Task<Result<std::unique_ptr<iri::AttachStream>>> MachineHost::AttachConsoleOf(std::string id) {
  CO_TRY(const Pointer entry, Find(id));
  co_return co_await AttachConsole(entry);
}

rt::Task<Result<std::unique_ptr<iri::AttachStream>>> MachineHost::AttachCommand(
    Pointer entry, iri::StringMap options) {
  const std::string id = entry->record.object.metadata.id;
  const std::string subject = "machine " + Quote(id);
  if (!entry->observed.alive()) co_return Conflict(subject + " is off");
  if (entry->observed.state == GuestState::kPaused) co_return Conflict(subject + " is paused");
  CO_TRY(WantedCommand wanted, WantedCommandOf(options));
  std::optional<rt::Gate::Permit> permit = commands_.TryEnter();
  if (!permit.has_value()) {
    co_return Status(Reason::kTooManyRequests,
                     fmt::format("{} commands run in guests of this host already, which are the "
                                 "most: try again when one has ended",
                                 kCommandsMax));
  }
  // One line for all commands of a guest.
  std::shared_ptr<GuestAgent> agent = entry->agent.lock();
  if (agent == nullptr) {
    agent = std::make_shared<GuestAgent>(deps_.loop, deps_.lines, deps_.folders.AgentSocket(id));
    entry->agent = agent;
  }
  const Status there = co_await agent->Greet();
  if (!there.ok()) co_return there.Wrap(subject);
  const auto command = std::make_shared<GuestCommand>(
      GuestCommand::Deps{
          .agent = std::move(agent), .loop = deps_.loop, .pool = deps_.files, .machine = id},
      std::move(wanted));
  std::unique_ptr<iri::AttachStream> stream = GuestCommand::Stream(command);
  work_.Spawn("machines.exec", GuestCommand::Run(command, *std::move(permit)));
  co_return stream;
}

rt::Task<Result<std::string>> MachineHost::Exec(std::string id) {
  CO_TRY_STATUS(Known());
  CO_TRY(const Pointer entry, Find(id));
  if (!entry->observed.alive()) co_return Conflict("machine " + Quote(id) + " is off");
  co_return deps_.doors.Grant([this, id] { return AttachConsoleOf(id); });
}

}  // namespace berth::runtime
