// SPDX-License-Identifier: Apache-2.0
#include "app/bench/host_process.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "app/bench/child_process.h"
#include "app/bench/holdings.h"
#include "app/bench/packet_loss.h"
#include "base/log.h"
#include "base/strings.h"
#include "client/records/host_record.h"
#include "pki/certificate_authority.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

// Handshakes at once; more only wait for each other, and time out.
constexpr int kDialsAtOnce = 32;
constexpr Duration kPoll = Duration::Millis(2);
constexpr Duration kLossLimit = Duration::Seconds(10);
// Facts are said once a second by each host, not by all in one turn.
constexpr size_t kTicksPerSecond = 20;

Status ErrnoStatus(const char* what) {
  return Unavailable(std::string(what) + ": " + std::strerror(errno));
}

// "server authority first count holdings\n"
std::string FormatPlan(const HostPlan& plan) {
  return plan.server + ' ' + plan.authority + ' ' + std::to_string(plan.first) + ' ' +
         std::to_string(plan.count) + ' ' + plan.holdings + '\n';
}

std::optional<HostPlan> ReadPlan(int fd) {
  std::string line;
  std::array<char, 4096> buffer{};
  while (!line.ends_with('\n')) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got <= 0) return std::nullopt;
    line.append(buffer.data(), static_cast<size_t>(got));
  }
  line.pop_back();
  const std::vector<std::string_view> words = Split(line, ' ');
  if (words.size() != 5) return std::nullopt;
  const std::optional<int64_t> first = ParseInt(words[2]);
  const std::optional<int64_t> count = ParseInt(words[3]);
  if (!first || !count) return std::nullopt;
  return HostPlan{.server = std::string(words[0]),
                  .authority = std::string(words[1]),
                  .first = static_cast<int>(*first),
                  .count = static_cast<int>(*count),
                  .holdings = std::string(words[4])};
}

class Hosts {
 public:
  Hosts(rt::AsioLoop& loop, HostPlan plan, HostBoard& board)
      : loop_(loop), plan_(std::move(plan)), board_(board) {}

  rt::Task<Status> Run() {
    CO_TRY(const auto authority,
           pki::CertificateAuthority::LoadOrCreate(plan_.authority, loop_.WallNow()));
    for (int i = 0; i < plan_.count; ++i) {
      while (i - board_.syncs.load() >= kDialsAtOnce) CO_TRY_STATUS(co_await rt::Sleep(kPoll));
      CO_TRY_STATUS(Add(authority, BenchHostName(plan_.first + i)));
    }
    // Until the bench kills this process.
    for (size_t turn = 0;; ++turn) {
      CO_TRY_STATUS(co_await rt::Sleep(Duration::Seconds(1) / int64_t{kTicksPerSecond}));
      for (size_t i = turn % kTicksPerSecond; i < hosts_.size(); i += kTicksPerSecond) {
        hosts_[i]->Tick();
      }
      CO_TRY_STATUS(AnswerIfAsked());
      CO_TRY_STATUS(LoseIfAsked());
    }
  }

 private:
  Status AnswerIfAsked() {
    const int64_t asked = board_.asked.load();
    if (board_.answered.load() == asked) return OkStatus();
    Holdings holdings;
    for (const auto& host : hosts_) {
      for (const std::string& uid : host->held()) holdings[uid].push_back(host->name());
    }
    TRY_STATUS(WriteHoldings(plan_.holdings, holdings));
    board_.answered.store(asked);
    return OkStatus();
  }

  Status LoseIfAsked() {
    if (!board_.wants_loss.load() || board_.has_loss.load()) return OkStatus();
    TRY_STATUS(DropAllPackets());
    board_.has_loss.store(true);
    return OkStatus();
  }

  Status Add(const pki::CertificateAuthority& authority, std::string name) {
    const pki::ClientSubject subject{.user = std::string(client::kHostUserPrefix) + name,
                                     .groups = {std::string(client::kHostGroup)},
                                     .lifetime = pki::kClientLifetime};
    TRY(const pki::Credentials issued, authority.IssueClient(subject, loop_.WallNow()));
    BenchHost::Options options;
    options.name = std::move(name);
    for (const std::string_view server : Split(plan_.server, ',')) {
      options.servers.emplace_back(server);
    }
    options.credentials.ca_pem = authority.certificate_pem();
    options.credentials.certificate_pem = issued.certificate_pem;
    options.credentials.key_pem = issued.key_pem;
    hosts_.push_back(std::make_unique<BenchHost>(loop_, board_, std::move(options)));
    hosts_.back()->Start();
    return OkStatus();
  }

  rt::AsioLoop& loop_;
  const HostPlan plan_;
  HostBoard& board_;
  std::vector<std::unique_ptr<BenchHost>> hosts_;
};

[[noreturn]] void RunChild(int plan_fd, HostBoard& board) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::optional<HostPlan> plan = ReadPlan(plan_fd);
  if (!plan) ::_exit(0);
  log::Options quiet;
  quiet.level = log::Level::kError;
  log::Configure(quiet);
  rt::AsioLoop loop("hosts");
  Hosts hosts(loop, *plan, board);
  const Status ended = rt::RunTask(loop, hosts.Run());
  LOG_ERROR("hosts of the bench: {}", ended.message());
  ::_exit(1);
}

}  // namespace

std::string BenchHostName(int index) { return "bench-" + std::to_string(index); }

Result<std::unique_ptr<HostProcess>> HostProcess::Fork() {
  void* shared =
      ::mmap(nullptr, sizeof(HostBoard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return ErrnoStatus("mmap");
  auto* board = new (shared) HostBoard();
  std::array<int, 2> plan{};
  if (::pipe(plan.data()) != 0) return ErrnoStatus("pipe");
  const pid_t pid = ::fork();
  if (pid < 0) return ErrnoStatus("fork");
  if (pid == 0) {
    ::close(plan[1]);
    RunChild(plan[0], *board);
  }
  ::close(plan[0]);
  return std::unique_ptr<HostProcess>(new HostProcess(pid, plan[1], board));
}

HostProcess::~HostProcess() {
  ::close(plan_);
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  ::munmap(board_, sizeof(HostBoard));
}

Status HostProcess::Begin(const HostPlan& plan) {
  const std::string line = FormatPlan(plan);
  const ssize_t written = ::write(plan_, line.data(), line.size());
  return written == static_cast<ssize_t>(line.size()) ? OkStatus() : ErrnoStatus("hosts");
}

void HostProcess::Freeze() { ::kill(pid_, SIGSTOP); }
rt::Task<Status> HostProcess::Lose() {
  board_->wants_loss.store(true);
  for (Duration waited; !board_->has_loss.load(); waited += kPoll) {
    if (!is_alive()) co_return Unavailable("the process of the hosts has ended");
    if (waited > kLossLimit) {
      co_return Timeout("hosts still got packets after " + FormatDuration(kLossLimit));
    }
    CO_TRY_STATUS(co_await rt::Sleep(kPoll));
  }
  Freeze();
  co_return OkStatus();
}

void HostProcess::Thaw() { ::kill(pid_, SIGCONT); }

Result<double> HostProcess::CpuSeconds() const { return CpuSecondsOf(pid_); }

bool HostProcess::is_alive() const {
  siginfo_t info{};
  const int waited = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  return waited == 0 && info.si_pid == 0;
}

}  // namespace berth::app
