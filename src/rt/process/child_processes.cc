// SPDX-License-Identifier: Apache-2.0
#include "rt/process/child_processes.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/strings.h"
#include "rt/process/confinement.h"

namespace berth::rt {
namespace {

constexpr int kFirstSecretFd = 3;
constexpr size_t kSecretsMax = 4;
// Where descriptors wait until the standard ones are in place: above all that they become.
constexpr int kScratchFd = 64;
constexpr int kCouldNotExec = 127;

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void Close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

struct Pipe {
  Descriptor read;
  Descriptor write;
};

Status Failed(std::string_view doing) {
  return Unavailable(std::string(doing) + ": " + std::strerror(errno));
}

Result<Pipe> NewPipe() {
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return Failed("pipe");
  return Pipe{.read = Descriptor(ends[0]), .write = Descriptor(ends[1])};
}

Result<Pipe> SecretPipe(const std::string& secret) {
  if (secret.size() > kProcessSecretBytesMax) {
    return BadRequest("a secret of " + std::to_string(secret.size()) + " bytes, at most " +
                      std::to_string(kProcessSecretBytesMax));
  }
  TRY(Pipe pipe, NewPipe());
  // An empty pipe takes this much at once.
  const ssize_t written = ::write(pipe.write.get(), secret.data(), secret.size());
  if (written != static_cast<ssize_t>(secret.size())) return Failed("write a secret to a pipe");
  pipe.write.Close();
  return pipe;
}

// What a program may read at its own pace: a file in memory that has no name.
Result<Descriptor> InputFile(const std::string& input) {
  if (input.size() > kProcessInputBytesMax) {
    return BadRequest("an input of " + std::to_string(input.size()) + " bytes, at most " +
                      std::to_string(kProcessInputBytesMax));
  }
  if (input.empty()) return Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Descriptor file(memfd_create("input", MFD_CLOEXEC));
  if (!file.is_open()) return Failed("memfd_create");
  size_t done = 0;
  while (done < input.size()) {
    const ssize_t count = ::write(file.get(), input.data() + done, input.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Failed("write the input of a program");
    done += static_cast<size_t>(count);
  }
  if (lseek(file.get(), 0, SEEK_SET) != 0) return Failed("lseek");
  return file;
}

// Tells the thread that waits for a process to kill it.
class KillSwitch final : public CancelHook {
 public:
  explicit KillSwitch(Context& context)
      : context_(context), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!context.cancelled()) context.Register(*this);
  }
  ~KillSwitch() { context_.Unregister(*this); }
  KillSwitch(const KillSwitch&) = delete;
  KillSwitch& operator=(const KillSwitch&) = delete;

  void Cancel() override {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t told = ::write(event_.get(), &one, sizeof one);
  }
  int fd() const { return event_.get(); }

 private:
  Context& context_;
  Descriptor event_;
};

// Everything that the child needs, made before the fork: it may not allocate.
struct Launch {
  std::vector<char*> argv;
  Descriptor input;
  Pipe output;
  Pipe errors;
  Pipe failure;  // carries errno if exec fails, closes if it works
  std::vector<Pipe> secrets;
  pid_t parent = 0;
  int64_t file_bytes_max = 0;
  int64_t memory_bytes_max = 0;
  Confinement confinement;
};

void Limit(int resource, int64_t most) {
  const rlimit limit = {.rlim_cur = static_cast<rlim_t>(most),
                        .rlim_max = static_cast<rlim_t>(most)};
  // g++ and clang differ on the type of the first argument.
  syscall(SYS_prlimit64, 0, resource, &limit, nullptr);
}

// Only calls that are safe between fork and exec in a process of many threads.
[[noreturn]] void BecomeProgram(const Launch& launch) {
  const auto give_up = [&launch] {
    const int error = errno;
    [[maybe_unused]] const ssize_t told = ::write(launch.failure.write.get(), &error, sizeof error);
    for (;;) syscall(SYS_exit_group, kCouldNotExec);
  };
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launch.parent) give_up();  // it died before we asked
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (!launch.confinement.Enter()) give_up();
  setsid();
  std::array<int, kFirstSecretFd + kSecretsMax> wanted = {
      launch.input.get(), launch.output.write.get(), launch.errors.write.get()};
  size_t count = kFirstSecretFd;
  for (const Pipe& secret : launch.secrets) wanted[count++] = secret.read.get();
  // First out of the way, then into place: a source may have the number of another's target.
  for (size_t i = 0; i < count; ++i) {
    wanted[i] = fcntl(wanted[i], F_DUPFD_CLOEXEC, kScratchFd);
    if (wanted[i] < 0) give_up();
  }
  const int failure = fcntl(launch.failure.write.get(), F_DUPFD_CLOEXEC, kScratchFd);
  for (size_t i = 0; i < count; ++i) {
    if (dup2(wanted[i], static_cast<int>(i)) < 0) give_up();
  }
  // What has no O_CLOEXEC, from whatever library, stays here.
  syscall(SYS_close_range, static_cast<unsigned>(count), ~0U, 4U /* CLOSE_RANGE_CLOEXEC */);
  Limit(RLIMIT_CORE, 0);
  if (launch.file_bytes_max > 0) Limit(RLIMIT_FSIZE, launch.file_bytes_max);
  if (launch.memory_bytes_max > 0) Limit(RLIMIT_AS, launch.memory_bytes_max);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  std::array<char*, 2> environment = {const_cast<char*>("LC_ALL=C"), nullptr};
  execve(launch.argv[0], launch.argv.data(), environment.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t told = ::write(failure, &error, sizeof error);
  for (;;) syscall(SYS_exit_group, kCouldNotExec);
}

Result<Launch> Prepare(const ProcessRequest& request) {
  if (request.argv.empty()) return BadRequest("a process without a program");
  if (request.secrets.size() > kSecretsMax) return BadRequest("too many secrets for a process");
  Launch launch;
  for (const std::string& word : request.argv) {
    if (word.find('\0') != std::string::npos) {
      return BadRequest("argument " + Quote(word) + " has a NUL byte");
    }
    launch.argv.push_back(const_cast<char*>(word.c_str()));
  }
  launch.argv.push_back(nullptr);
  TRY(launch.input, InputFile(request.input));
  TRY(launch.output, NewPipe());
  TRY(launch.errors, NewPipe());
  TRY(launch.failure, NewPipe());
  for (const std::string& secret : request.secrets) {
    TRY(Pipe pipe, SecretPipe(secret));
    launch.secrets.push_back(std::move(pipe));
  }
  if (request.reach.has_value()) {
    TRY(launch.confinement, Confinement::Prepare(*request.reach, request.argv.front()));
  }
  launch.parent = getpid();
  launch.file_bytes_max = request.file_bytes_max;
  launch.memory_bytes_max = request.memory_bytes_max;
  return launch;
}

// Reads what there is; closes the pipe at its end.
void Drain(Descriptor& pipe, std::string& into) {
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(pipe.get(), buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return;
  if (count <= 0) {
    pipe.Close();
    return;
  }
  const size_t room = kProcessOutputBytesMax - into.size();
  into.append(buffer.data(), std::min(room, static_cast<size_t>(count)));
}

Descriptor Alarm(Duration limit) {
  Descriptor alarm(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  const int64_t nanos = std::max<int64_t>(limit.nanos(), 1);
  const itimerspec when = {
      .it_interval = {},
      .it_value = {.tv_sec = nanos / kNanosPerSecond, .tv_nsec = nanos % kNanosPerSecond}};
  timerfd_settime(alarm.get(), 0, &when, nullptr);
  return alarm;
}

// A child that was not yet waited for: its number cannot be another's.
class Child {
 public:
  explicit Child(pid_t pid)
      : pid_(pid), pidfd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}
  ~Child() {
    if (!reaped_) {
      Kill();
      Reap();
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int pidfd() const { return pidfd_.get(); }
  void Kill() const { ::kill(pid_, SIGKILL); }
  int Reap() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    reaped_ = true;
    return status;
  }

 private:
  const pid_t pid_;
  const Descriptor pidfd_;
  bool reaped_ = false;
};

// Reads until the child has ended, or kills it.
Status Attend(Child& child, Launch& launch, int kill_switch, Duration limit, ProcessEnd& end) {
  const Descriptor alarm = Alarm(limit);
  for (;;) {
    std::array<pollfd, 5> polled = {
        {{.fd = kill_switch, .events = POLLIN, .revents = 0},
         {.fd = alarm.get(), .events = POLLIN, .revents = 0},
         {.fd = child.pidfd(), .events = POLLIN, .revents = 0},
         {.fd = launch.output.read.get(), .events = POLLIN, .revents = 0},
         {.fd = launch.errors.read.get(), .events = POLLIN, .revents = 0}}};
    if (poll(polled.data(), polled.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return Failed("poll");
    }
    if (polled[0].revents != 0) return Cancelled();
    if (polled[1].revents != 0) return Timeout("no end within " + FormatDuration(limit));
    const bool has_output = polled[3].revents != 0;
    const bool has_errors = polled[4].revents != 0;
    if (has_output) Drain(launch.output.read, end.output);
    if (has_errors) Drain(launch.errors.read, end.errors);
    // Its last words are read first. Grandchildren that hold the pipes are nobody's concern.
    if (polled[2].revents != 0 && !has_output && !has_errors) return OkStatus();
  }
}

Result<ProcessEnd> RunToEnd(const ProcessRequest& request, int kill_switch) {
  TRY(Launch launch, Prepare(request));
  // Without the handlers of libraries for forks: nothing of them runs in the child.
  const pid_t pid = _Fork();
  if (pid < 0) return Failed("fork");
  if (pid == 0) BecomeProgram(launch);
  Child child(pid);
  if (child.pidfd() < 0) return Failed("pidfd_open");
  launch.output.write.Close();
  launch.errors.write.Close();
  launch.failure.write.Close();
  launch.secrets.clear();
  int error = 0;
  ssize_t told = 0;
  do {
    told = ::read(launch.failure.read.get(), &error, sizeof error);
  } while (told < 0 && errno == EINTR);
  if (told == sizeof error) return Unavailable(std::strerror(error));
  ProcessEnd end;
  TRY_STATUS(Attend(child, launch, kill_switch, request.limit, end));
  const int status = child.Reap();
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return end;
}

}  // namespace

Task<Result<ProcessEnd>> ChildProcesses::Run(ProcessRequest request) {
  Context& context = co_await CurrentContext();
  const KillSwitch kill_switch(context);
  if (kill_switch.fd() < 0) co_return Unavailable("no descriptor left for a process");
  const auto job = [&request, &kill_switch] { return RunToEnd(request, kill_switch.fd()); };
  Result<ProcessEnd> end = co_await pool_.Run("process", job);
  if (!end.ok() && !end.status().Is(Reason::kCancelled)) {
    co_return end.status().Wrap(request.argv.empty() ? "process" : request.argv.front());
  }
  co_return end;
}

}  // namespace berth::rt
