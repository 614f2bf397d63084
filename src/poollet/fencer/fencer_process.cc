// SPDX-License-Identifier: Apache-2.0
#include "poollet/fencer/fencer_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <list>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/proc_file.h"
#include "base/strings.h"
#include "iri/grpc/boot_clock.h"
#include "pki/private_file.h"
#include "poollet/fencer/fence_table.h"
#include "poollet/fencer/fence_words.h"
#include "poollet/fencer/guest_handles.h"

namespace berth::poollet {
namespace {

constexpr size_t kClientsMax = 8;
// A kill that failed, a state or a line that could not be written, a handle or a connection for
// which there was no descriptor, is tried again.
constexpr int kRetryMillis = 200;
// A poollet that left for good left nothing to do.
constexpr int kIdleMillis = 60'000;
constexpr int64_t kNanosPerSecond = 1'000'000'000;
// 8,192 lines of 115 bytes = 1 MiB while the log cannot be written; the oldest go first.
constexpr size_t kUnwrittenMax = kFenceLeasesMax;

Status Failed(std::string_view doing, const std::string& what) {
  return Internal(fmt::format("fencer: {} {}: {}", doing, what, std::strerror(errno)));
}

int64_t BootNow() { return iri::ToBootNanos(Time(), Time()); }

std::string BootId() { return std::string(Trim(ReadProcFile("/proc/sys/kernel/random/boot_id"))); }

class FencerProcess {
 public:
  explicit FencerProcess(std::string folder) : folder_(std::move(folder)) {}

  Status Open() {
    TRY_STATUS(pki::EnsurePrivateFolder(folder_));
    TRY_STATUS(Lock());
    TRY_STATUS(Load());
    TRY_STATUS(Listen());
    timer_ = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer_ < 0) return Failed("timer", "CLOCK_BOOTTIME");
    return OkStatus();
  }

  // Until there is nobody to speak to and nobody to kill; what it knows is in its state then.
  void Run() {
    do {
      NoteSaved(Settle());
    } while (Wait());
  }

 private:
  struct Client {
    int fd = -1;
    std::string in;
    std::string out;
    bool over = false;
  };

  std::string Path(std::string_view name) const { return folder_ + "/" + std::string(name); }

  Status Lock() {
    const std::string path = Path("fencer.lock");
    lock_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock_ < 0) return Failed("open", path);
    if (flock(lock_, LOCK_EX | LOCK_NB) == 0) return OkStatus();
    if (errno == EWOULDBLOCK) return AlreadyExists("fencer: another one has " + path);
    return Failed("lock", path);
  }

  // Only the death of a fencer makes this file needed; that of the host takes the guests with it.
  // One that cannot be read now is an error, and not nothing: another fencer is started soon.
  Status Load() {
    const auto text = pki::ReadPrivateFile(Path("fencer.state"));
    if (text.status().Is(Reason::kNotFound)) return OkStatus();
    if (!text.ok()) return text.status();
    const std::string boot = BootId();
    if (boot.empty()) return Failed("read", "the boot id");
    const size_t line_end = text->find('\n');
    if (line_end == std::string::npos || text->substr(0, line_end) != "boot " + boot) {
      return OkStatus();
    }
    auto leases = DecodeFenceLeases(std::string_view(*text).substr(line_end + 1));
    if (leases.ok()) {
      table_.Restore(*std::move(leases));
      saved_ = EncodeFenceLeases(table_.leases());
    } else {
      LOG_ERROR("fencer.state: {}", leases.status().message());
    }
    return OkStatus();
  }

  Status Listen() {
    const int folder = open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return Failed("open", folder_);
    // By descriptor: the path of the folder may be longer than an address can be.
    const std::string path = fmt::format("/proc/self/fd/{}/{}", folder, kFencerSocket);
    unlink(Path(kFencerSocket).c_str());  // the lock says that nobody serves it
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const mode_t mask = umask(0177);
    const bool bound =
        listener_ >= 0 &&
        bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
        listen(listener_, kClientsMax) == 0;
    const int error = errno;
    umask(mask);
    close(folder);
    errno = error;
    return bound ? OkStatus() : Failed("listen", Path(kFencerSocket));
  }

  // Everything that follows from the table as it is: who is held, who dies, what is written. An
  // error if that could not be; all else is done then, too.
  Status Settle() {
    table_.Expire(BootNow());
    for (const auto& process : handles_.Hold(table_.Processes())) table_.Died(process);
    handles_.Kill(table_.Condemned());
    for (const auto& uid : table_.TakeFenced()) NoteFenced(uid);
    const Status logged = WriteFenced();
    if (!logged.ok() && !is_log_failing_) LOG_ERROR("{}", logged.message());
    is_log_failing_ = !logged.ok();
    const Status saved = Save();
    ArmTimer();
    return saved;
  }

  // Said once: it is tried five times a second.
  void NoteSaved(const Status& saved) {
    if (!saved.ok() && !is_save_failing_) LOG_ERROR("{}", saved.message());
    is_save_failing_ = !saved.ok();
  }

  void NoteFenced(const std::string& uid) {
    const auto lease = table_.leases().find(uid);
    const int64_t deadline = lease == table_.leases().end() ? 0 : lease->second.deadline;
    if (unwritten_.size() >= kUnwrittenMax) unwritten_.pop_front();
    unwritten_.push_back(fmt::format("fenced {} {} {}\n", uid, deadline, BootNow()));
    LOG_WARNING("fencer: {} is fenced", uid);
  }

  // All that waits or nothing: what is not whole and durable is taken back, and comes once.
  Status WriteFenced() {
    if (unwritten_.empty()) return OkStatus();
    std::string text;
    for (const std::string& line : unwritten_) text += line;
    const std::string path = Path(kFencedLog);
    const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return Failed("open", path);
    const off_t end = lseek(fd, 0, SEEK_END);
    errno = ENOSPC;  // of a short write, which does not say it
    const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                         fdatasync(fd) == 0;
    const Status status = written ? OkStatus() : Failed("write", path);
    if (!written && ftruncate(fd, end) != 0) {
      LOG_DEBUG("{}: {}", path, std::strerror(errno));
    }
    close(fd);
    if (written) unwritten_.clear();
    return status;
  }

  Status Save() {
    const std::string text = EncodeFenceLeases(table_.leases());
    if (text == saved_) return OkStatus();
    const std::string boot = BootId();
    if (boot.empty()) return Failed("read", "the boot id");  // it would be of no boot
    const std::string path = Path("fencer.state");
    const std::string draft = path + ".new";
    errno = 0;
    std::ofstream file(draft, std::ios::trunc | std::ios::binary);
    file << "boot " << boot << '\n' << text;
    file.close();
    if (file.fail()) return Failed("write", draft);
    if (chmod(draft.c_str(), 0600) != 0) return Failed("close to others", draft);
    if (rename(draft.c_str(), path.c_str()) != 0) return Failed("put in place", path);
    saved_ = text;
    return OkStatus();
  }

  void ArmTimer() const {
    itimerspec spec = {};
    if (const auto next = table_.NextDeadline(); next.has_value()) {
      const int64_t at = std::max<int64_t>(*next, 1);  // 0 would disarm it
      spec.it_value.tv_sec = at / kNanosPerSecond;
      spec.it_value.tv_nsec = at % kNanosPerSecond;
    }
    timerfd_settime(timer_, TFD_TIMER_ABSTIME, &spec, nullptr);
  }

  bool IsIdle() const {
    return clients_.empty() && !table_.NextDeadline().has_value() && table_.Condemned().empty();
  }

  // Whether the next turn has to do what this one could not.
  bool Retries() const {
    return is_deaf_ || !unwritten_.empty() || !handles_.unheld().empty() ||
           !table_.Condemned().empty() || EncodeFenceLeases(table_.leases()) != saved_;
  }

  // False: nothing has happened for long, and nothing will.
  bool Wait() {
    const bool retries = Retries();
    // Who cannot be let in is not listened to for a moment: poll would return at once.
    const int listener = std::exchange(is_deaf_, false) ? -1 : listener_;
    std::vector<pollfd> polled = {{.fd = listener, .events = POLLIN, .revents = 0},
                                  {.fd = timer_, .events = POLLIN, .revents = 0}};
    for (const Client& client : clients_) {
      const auto events = static_cast<int16_t>(client.out.empty() ? POLLIN : POLLOUT);
      polled.push_back({.fd = client.fd, .events = events, .revents = 0});
    }
    const size_t first_guest = polled.size();
    std::vector<FenceProcess> guests;
    for (const auto& [process, fd] : handles_.descriptors()) {
      polled.push_back({.fd = fd, .events = POLLIN, .revents = 0});
      guests.push_back(process);
    }
    const int timeout = retries ? kRetryMillis : IsIdle() ? kIdleMillis : -1;
    const int ready = poll(polled.data(), polled.size(), timeout);
    if (ready < 0) return true;  // a signal
    if (ready == 0 && !retries && IsIdle()) return false;
    uint64_t fired = 0;
    if (polled[1].revents != 0 && read(timer_, &fired, sizeof(fired)) < 0) {
      LOG_DEBUG("fencer: timer: {}", std::strerror(errno));
    }
    // The dead first: what is answered below is true then.
    for (size_t i = 0; i < guests.size(); ++i) {
      if ((polled[first_guest + i].revents & (POLLIN | POLLHUP)) != 0) table_.Died(guests[i]);
    }
    size_t place = 2;
    for (Client& client : clients_) {
      if (polled[place++].revents != 0) Serve(client);
    }
    std::erase_if(clients_, [](const Client& client) {
      if (client.over) close(client.fd);
      return client.over;
    });
    if (polled[0].revents != 0) Accept();
    return true;
  }

  void Accept() {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    is_deaf_ = fd < 0;
    if (fd < 0) return;
    ucred peer = {};
    socklen_t size = sizeof(peer);
    const bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
                       (peer.uid == geteuid() || peer.uid == 0);
    if (!known) LOG_ERROR("fencer: refused a peer of user {}", peer.uid);
    if (!known || clients_.size() >= kClientsMax) {
      close(fd);
      return;
    }
    clients_.emplace_back().fd = fd;
  }

  void Serve(Client& client) {
    std::array<char, 65536> chunk = {};
    if (!client.out.empty()) {
      const ssize_t sent = send(client.fd, client.out.data(), client.out.size(), MSG_NOSIGNAL);
      if (sent > 0) client.out.erase(0, static_cast<size_t>(sent));
      client.over = sent < 0 && errno != EAGAIN && errno != EINTR;
      return;
    }
    const ssize_t got = recv(client.fd, chunk.data(), chunk.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0 || client.in.size() + static_cast<size_t>(got) > kFenceMessageBytesMax) {
      client.over = true;
      return;
    }
    client.in.append(chunk.data(), static_cast<size_t>(got));
    while (auto message = TakeFenceMessage(client.in)) client.out += Answer(*message);
  }

  std::string Answer(std::string_view message) {
    const auto request = DecodeFenceRequest(message);
    Status status = request.status();
    if (request.ok()) status = table_.Apply(*request, BootNow());
    const Status saved = Settle();
    NoteSaved(saved);
    if (status.ok()) status = saved;
    return EncodeFenceAnswer(status, Held()) + std::string(kFenceEnd);
  }

  // Only what is held and saved is said to be: whoever asks lets those guests run.
  FenceTable::Leases Held() const {
    FenceTable::Leases leases = table_.leases();
    for (auto& [uid, lease] : leases) {
      std::erase_if(lease.processes, [this](const FenceProcess& process) {
        return handles_.unheld().contains(process);
      });
    }
    return leases;
  }

  const std::string folder_;
  FenceTable table_;
  GuestHandles handles_;
  std::string saved_;  // what the state file says
  bool is_save_failing_ = false;
  std::deque<std::string> unwritten_;  // lines of the log that are not there yet
  bool is_log_failing_ = false;
  bool is_deaf_ = false;  // there was no descriptor for who wanted in
  int lock_ = -1;
  int listener_ = -1;
  int timer_ = -1;
  std::list<Client> clients_;
};

// The last one that the kernel should take memory from. Needs a privilege; without it we go on.
void AvoidOutOfMemoryKiller() {
  std::ofstream file("/proc/self/oom_score_adj");
  file << "-1000";
}

}  // namespace

Status RunFencer(const std::string& folder) {
  prctl(PR_SET_NAME, "berth-fencer");
  AvoidOutOfMemoryKiller();
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // nobody of our user gets in; needs the line above first
  FencerProcess fencer(folder);
  TRY_STATUS(fencer.Open());
  fencer.Run();
  return OkStatus();
}

}  // namespace berth::poollet
