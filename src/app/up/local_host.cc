// SPDX-License-Identifier: Apache-2.0
#include "app/up/local_host.h"

#include <fmt/core.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/folders.h"
#include "base/log.h"
#include "base/strings.h"
#include "rt/join_all.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

constexpr const char* kGuestUser = "libvirt-qemu";
constexpr Duration kLook = Duration::Millis(50);
// A pool is ready well within, if nothing is wrong.
constexpr Duration kPoolLook = Duration::Seconds(5);

struct NeededProgram {
  const char* path;
  std::string_view package;
};
constexpr std::array<NeededProgram, 4> kPrograms = {
    NeededProgram{.path = "/usr/sbin/libvirtd", .package = "libvirt-daemon-system"},
    NeededProgram{.path = "/usr/bin/qemu-system-x86_64", .package = "qemu-system-x86"},
    NeededProgram{.path = "/usr/bin/qemu-img", .package = "qemu-utils"},
    NeededProgram{.path = "/usr/bin/setpriv", .package = "util-linux"},
};

FolderUser FolderUserOf(const ProcessUser& user) { return {.uid = user.uid, .groups = {user.gid}}; }

}  // namespace

std::string MissingForGuests(const std::string& folder,
                             const std::string& run_folder,
                             const std::optional<ProcessUser>& user) {
  std::vector<std::string> programs;
  std::vector<std::string> packages;
  for (const NeededProgram& program : kPrograms) {
    if (access(program.path, X_OK) == 0) continue;
    programs.emplace_back(program.path);
    packages.emplace_back(program.package);
  }
  if (!programs.empty()) {
    return "there is no " + Join(programs, ", ") + ": apt-get install " + Join(packages, " ");
  }
  if (run_folder.size() > kRunFolderBytesMax) {
    return fmt::format("{} has {} characters: libvirt's sockets in it allow {}",
                       run_folder,
                       run_folder.size(),
                       kRunFolderBytesMax);
  }
  if (!user.has_value()) return {};
  const std::string closed = ClosedFolder(folder, FolderUserOf(*user));
  if (closed.empty()) return {};
  return "the guests' user " + std::string(kGuestUser) + " may not enter " + closed +
         ": chmod o+x it, or name another folder with --host-dir";
}

std::string WhyUnreadable(const std::string& path, const std::optional<ProcessUser>& user) {
  struct stat seen{};
  if (stat(path.c_str(), &seen) != 0) return std::strerror(errno);
  if (!user.has_value()) return access(path.c_str(), R_OK) == 0 ? "" : std::strerror(errno);
  const std::string guests = "the guests' user " + std::string(kGuestUser);
  const std::string closed = ClosedFolder(path, FolderUserOf(*user));
  if (!closed.empty()) return guests + " may not enter " + closed + ": chmod o+x it";
  const bool is_readable =
      (seen.st_mode & S_IROTH) != 0 || (seen.st_uid == user->uid && (seen.st_mode & S_IRUSR) != 0);
  if (is_readable) return {};
  return fmt::format("{} may not read it: chown -R {} it", guests, kGuestUser);
}

Result<std::optional<ProcessUser>> GuestUserOfThisMachine() {
  if (geteuid() != 0) return std::optional<ProcessUser>();
  const passwd* found = getpwnam(kGuestUser);  // before there are threads
  if (found == nullptr) {
    return NotFound("there is no user " + std::string(kGuestUser) +
                    " for guests: apt-get install libvirt-daemon-system");
  }
  return std::optional(ProcessUser{.uid = found->pw_uid, .gid = found->pw_gid});
}

Status PrepareImages(const std::string& host_dir) {
  HostOptions options;
  options.folder = host_dir;
  TRY(options.user, GuestUserOfThisMachine());
  return HostLayout(std::move(options)).PrepareImages();
}

std::string NetworkRights() {
  constexpr uint64_t kNetAdmin = uint64_t{1} << 12;
  constexpr uint64_t kNetRaw = uint64_t{1} << 13;
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    if (word != "CapEff:") continue;
    uint64_t rights = 0;
    file >> std::hex >> rights;
    const bool has_both = (rights & kNetAdmin) != 0 && (rights & kNetRaw) != 0;
    return has_both ? "+net_admin,+net_raw" : "";
  }
  return {};
}

LocalHost::LocalHost(rt::Loop& loop, HostOptions options)
    : loop_(loop), layout_(std::move(options)), scope_(loop) {}

void LocalHost::Keep(PartCommand command) {
  parts_.push_back(std::make_unique<Part>(loop_, std::move(command)));
  scope_.Spawn("up.part", parts_.back()->Keep());
}

rt::Task<Status> LocalHost::RunOnce(PartCommand command) {
  Part part(loop_, std::move(command));
  co_return co_await part.RunOnce();
}

// Until it is there: whoever makes it is started again until it does.
static rt::Task<Status> AwaitFile(std::string path) {
  while (access(path.c_str(), F_OK) != 0) CO_TRY_STATUS(co_await rt::Sleep(kLook));
  co_return OkStatus();
}

rt::Task<Status> LocalHost::Join() {
  if (std::filesystem::exists(layout_.identity())) co_return OkStatus();
  const std::string& name = layout_.options().name;
  PartCommand command = layout_.Client("join-token", {"pool", "join-token", name});
  command.output = layout_.token();
  CO_TRY_STATUS(co_await RunOnce(std::move(command)));
  co_return layout_.GiveToken();
}

std::optional<WrittenBytes> LastProgress(const std::string& path) {
  constexpr size_t kLinesMax = 1000;  // a hundred, and a little more
  std::ifstream file(path);
  std::string line;
  std::optional<WrittenBytes> last;
  for (size_t i = 0; i < kLinesMax && std::getline(file, line) && !file.eof(); ++i) {
    std::istringstream words(line);
    std::string what;
    WrittenBytes now;
    char slash = 0;
    words >> what >> now.bytes >> slash >> now.of;
    if (!words || what != "image" || slash != '/') continue;
    words.get();
    std::getline(words, now.text);
    last = std::move(now);
  }
  return last;
}

rt::Task<Status> LocalHost::RunToEnd(PartCommand command, bool* is_over) {
  const Status ended = co_await RunOnce(std::move(command));
  *is_over = true;
  co_return ended;
}

// Until somebody says that it is over, with a last look then.
static rt::Task<Status> FollowBuild(std::string path, LocalHost::ImageTold told, bool* is_over) {
  std::string shown;
  for (;;) {
    const bool was_over = *is_over;
    const auto now = LastProgress(path);
    if (told != nullptr && now.has_value() && now->text != shown) {
      shown = now->text;
      told(now->bytes, now->of, now->text);
    }
    if (was_over) co_return OkStatus();
    CO_TRY_STATUS(co_await rt::Sleep(kLook));
  }
}

rt::Task<Status> LocalHost::MakeDemoImage(ImageTold told) {
  if (std::filesystem::exists(layout_.demo_image())) co_return OkStatus();
  bool is_over = false;
  std::vector<rt::Task<Status>> both;
  both.push_back(RunToEnd(layout_.DemoImage(), &is_over));
  both.push_back(FollowBuild(layout_.demo_progress(), std::move(told), &is_over));
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(both));
  const Status& made = ends.front();
  if (made.Is(Reason::kCancelled)) co_return made;
  // A host without it is a host.
  if (!made.ok()) LOG_WARNING("there is no demo image: {}", made.message());
  co_return OkStatus();
}

rt::Task<Status> LocalHost::AwaitReady(std::string pool, bool* is_over) {
  Status ended;
  for (const std::string_view goal : {"create", "condition=Ready"}) {
    const std::vector<std::string> words = {
        "wait", pool, "--for=" + std::string(goal), "--timeout=0"};
    if (ended.ok()) ended = co_await RunOnce(layout_.Client("wait", words));
  }
  *is_over = true;
  co_return ended;
}

rt::Task<Status> LocalHost::SayWhyNotReady(std::string pool, Said said, bool* is_over) {
  Time next = loop_.Now() + kPoolLook;
  while (!*is_over) {
    CO_TRY_STATUS(co_await rt::Sleep(kLook));
    if (loop_.Now() < next) continue;
    const std::vector<std::string> words = {
        "get", pool, "-o", "jsonpath={.status.conditions[?(@.type==\"Ready\")].message}"};
    PartCommand command = layout_.Client("pool-words", words);
    command.output = layout_.pool_words();
    const Status asked = co_await RunOnce(std::move(command));
    if (asked.Is(Reason::kCancelled)) co_return asked;
    std::string why;
    std::ifstream file(layout_.pool_words());
    std::getline(file, why);
    if (asked.ok() && !why.empty() && !*is_over) said(pool + ": " + why);
    next = loop_.Now() + kPoolLook;
  }
  co_return OkStatus();
}

rt::Task<Status> LocalHost::AwaitPool(std::string pool, Said said) {
  bool is_over = false;
  std::vector<rt::Task<Status>> both;
  both.push_back(AwaitReady(pool, &is_over));
  both.push_back(SayWhyNotReady(pool, std::move(said), &is_over));
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(both));
  co_return ends.front();
}

rt::Task<Status> LocalHost::Bring(Told told, ImageTold image_told) {
  constexpr size_t kSteps = 7;
  told(0, kSteps, "libvirtd");
  CO_TRY_STATUS(layout_.Prepare());
  Keep(layout_.Libvirtd());
  CO_TRY_STATUS(co_await AwaitFile(layout_.libvirt_socket()));
  told(1, kSteps, "demo image");
  CO_TRY_STATUS(co_await MakeDemoImage(std::move(image_told)));
  told(2, kSteps, "volume runtime");
  Keep(layout_.VolumeRuntime());
  CO_TRY_STATUS(co_await AwaitFile(layout_.volume_socket()));
  const bool tries_kvm = layout_.options().acceleration != "tcg";
  told(3, kSteps, tries_kvm ? "machine runtime, which tries KVM first" : "machine runtime");
  Keep(layout_.MachineRuntime());
  CO_TRY_STATUS(co_await AwaitFile(layout_.machine_socket()));
  told(4, kSteps, "poollet");
  CO_TRY_STATUS(co_await Join());
  Keep(layout_.Poollet());
  told(5, kSteps, "classes");
  const std::vector<std::string> classes = {"apply", "-f", layout_.api_classes()};
  CO_TRY_STATUS(co_await RunOnce(layout_.Client("classes", classes)));
  told(6, kSteps, "pools");
  const Said said = [&told](std::string_view words) { told(6, kSteps, words); };
  // First what needs no libvirt.
  CO_TRY_STATUS(co_await AwaitPool("volumepool/" + layout_.volume_pool(), said));
  CO_TRY_STATUS(co_await AwaitPool("machinepool/" + layout_.machine_pool(), said));
  told(kSteps, kSteps, "ready");
  co_return OkStatus();
}

rt::Task<Status> LocalHost::Stop() {
  CO_TRY_STATUS(co_await scope_.Close());
  while (!parts_.empty()) {
    CO_TRY_STATUS(co_await parts_.back()->Stop());
    parts_.pop_back();
  }
  co_return OkStatus();
}

}  // namespace berth::app
