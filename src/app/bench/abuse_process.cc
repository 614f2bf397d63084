// SPDX-License-Identifier: Apache-2.0
#include "app/bench/abuse_process.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "net/socket.h"
#include "rt/scope.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

constexpr Duration kLongest = Duration::Hours(1);
// Who is refused or cut off tries again, as the worst clients do, but not in a loop without a
// pause.
constexpr Duration kPause = Duration::Millis(100);
// Watchers come in groups, each a user.
constexpr int kWatchersPerUser = 100;
// What everybody may fetch.
constexpr std::array<std::string_view, 3> kDocuments = {"/openapi/v2", "/apis", "/metrics"};

class Abusers {
 public:
  Abusers(rt::AsioLoop& loop, const AbuseProcess::Options& options, AbuseBoard& board)
      : loop_(loop), options_(options), board_(board) {}

  rt::Task<Status> Run() {
    const AbuseCounts& counts = options_.counts;
    const int most = counts.watchers + counts.listers + counts.readers + counts.stalled +
                     counts.stalled_watches + 1;
    CO_TRY(client_, options_.new_client(loop_, static_cast<size_t>(most)));
    rt::TaskScope scope(loop_);
    for (int i = 0; i < counts.silent; ++i) scope.Spawn("abuse.silent", SayNothing());
    for (int i = 0; i < counts.watchers; ++i) {
      scope.Spawn("abuse.watch", Watch("watcher-" + std::to_string(i / kWatchersPerUser)));
    }
    while (board_.watching < counts.watchers) {
      CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(10)));
    }
    for (int i = 0; i < counts.listers; ++i) scope.Spawn("abuse.list", ListAll());
    for (int i = 0; i < counts.readers; ++i) scope.Spawn("abuse.read", ReadDocuments());
    for (int i = 0; i < counts.stalled; ++i) {
      scope.Spawn("abuse.stall", ReadNothing(options_.all, &board_.stalled));
    }
    for (int i = 0; i < counts.stalled_watches; ++i) {
      scope.Spawn("abuse.stall_watch", ReadNothing(options_.watch_all, &board_.stalled_watches));
    }
    board_.has_begun = true;
    co_return co_await scope.Join();
  }

 private:
  static net::HttpClientRequest Asking(const std::string& target, const std::string& user) {
    net::HttpClientRequest request;
    request.target = target;
    request.headers.Set("Impersonate-User", user);
    request.headers.Set("Impersonate-Group", "bench");
    return request;
  }

  rt::Task<Status> Watch(std::string user) {
    for (;;) {
      auto stream = co_await client_->Open(Asking(options_.watched, user), Duration::Seconds(60));
      if (stream.ok() && (*stream)->status() == 200) {
        ++board_.watching;
        for (;;) {
          const auto text = co_await (*stream)->Read();
          if (!text.ok() || text->empty()) break;
          board_.events += std::ranges::count(*text, '\n');
        }
        --board_.watching;
      } else if (stream.ok() && (*stream)->status() == 429) {
        ++board_.refused;
      }
      CO_TRY_STATUS(co_await rt::Sleep(kPause));
    }
  }

  rt::Task<Status> ListAll() {
    for (;;) {
      const auto answer = co_await client_->Send(Asking(options_.all, "lister"));
      if (answer.ok() && answer->status == 200) {
        ++board_.lists;
        continue;
      }
      if (answer.ok() && answer->status == 429) ++board_.refused;
      CO_TRY_STATUS(co_await rt::Sleep(kPause));
    }
  }

  rt::Task<Status> ReadDocuments() {
    for (size_t i = 0;; ++i) {
      const std::string target(kDocuments[i % kDocuments.size()]);
      const auto answer = co_await client_->Send(Asking(target, "reader"));
      if (answer.ok() && answer->status == 200) {
        ++board_.documents;
        continue;
      }
      if (answer.ok() && answer->status == 429) ++board_.refused;
      CO_TRY_STATUS(co_await rt::Sleep(kPause));
    }
  }

  // The server may cut it off; it does not read that either.
  rt::Task<Status> ReadNothing(std::string target, std::atomic<int32_t>* count) {
    for (;;) {
      auto stream = co_await client_->Open(Asking(target, "stalled"), Duration::Seconds(60));
      if (stream.ok() && (*stream)->status() == 200) {
        ++*count;
        CO_TRY_STATUS(co_await rt::Sleep(kLongest));
      }
      if (stream.ok() && (*stream)->status() == 429) ++board_.refused;
      CO_TRY_STATUS(co_await rt::Sleep(kPause));
    }
  }

  rt::Task<Status> SayNothing() {
    for (;;) {
      const auto fd = co_await net::ConnectTcp(&loop_, "127.0.0.1", options_.port);
      if (fd.ok()) {
        ++board_.silent;
        net::Socket socket(loop_, *fd);
        // Until the server has enough of it.
        (void)co_await socket.Readable();
        --board_.silent;
      }
      CO_TRY_STATUS(co_await rt::Sleep(kPause));
    }
  }

  rt::AsioLoop& loop_;
  const AbuseProcess::Options& options_;
  AbuseBoard& board_;
  std::unique_ptr<net::HttpClient> client_;
};

}  // namespace

Result<std::unique_ptr<AbuseProcess>> AbuseProcess::Start(const Options& options) {
  void* memory = ::mmap(
      nullptr, sizeof(AbuseBoard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Unavailable("mmap: " + std::string(std::strerror(errno)));
  auto* board = new (memory) AbuseBoard;
  const pid_t pid = ::fork();
  if (pid < 0) return Unavailable("fork: " + std::string(std::strerror(errno)));
  if (pid == 0) {
    rt::AsioLoop loop("abuse");
    Abusers abusers(loop, options, *board);
    const Status ended = rt::RunTask(loop, abusers.Run());
    ::_exit(ended.ok() ? 0 : 1);
  }
  return std::unique_ptr<AbuseProcess>(new AbuseProcess(pid, board));
}

AbuseProcess::~AbuseProcess() {
  ::kill(pid_, SIGKILL);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  ::munmap(board_, sizeof(AbuseBoard));
}

}  // namespace berth::app
