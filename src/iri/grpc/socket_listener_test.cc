// SPDX-License-Identifier: Apache-2.0
// Defends: who may call a runtime is decided by who calls, not by where the socket is.
#include "iri/grpc/socket_listener.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "iri/grpc/endpoint.h"
#include "rt/asio/asio_loop.h"
#include "rt/join_all.h"
#include "rt/thread_pool.h"

namespace berth::iri {
namespace {

constexpr uid_t kStranger = 65534;
constexpr uid_t kOther = 65533;

// 'a': what was accepted is written to; 'r': hung up without a word; 'c': could not connect. As
// another user in a child.
char AskAs(uid_t user, const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    if (setresuid(user, user, user) != 0) _exit('u');
    const Result<int> connection = ConnectSocket(path, {0, user, kOther});
    if (!connection.ok()) _exit('c');
    char heard = 'r';
    fd_set set;
    FD_ZERO(&set);
    FD_SET(*connection, &set);
    select(*connection + 1, &set, nullptr, nullptr, nullptr);
    if (recv(*connection, &heard, 1, 0) != 1) heard = 'r';
    _exit(heard);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return static_cast<char>(WEXITSTATUS(status));
}

void Greet(int connection) {
  EXPECT_EQ(send(connection, "a", 1, 0), 1);
  close(connection);
}

rt::Task<Status> Serve(rt::ThreadPool* pool, SocketListener* listener) {
  const auto run = [listener] {
    listener->Run(&Greet);
    return OkStatus();
  };
  co_return co_await pool->Run("accept", run);
}

rt::Task<Status> AskAll(SocketListener* listener,
                        std::string path,
                        std::vector<uid_t> users,
                        std::string* heard) {
  for (const uid_t user : users) *heard += AskAs(user, path);
  listener->Stop();
  co_return OkStatus();
}

class SocketListenerTest : public testing::Test {
 protected:
  SocketListenerTest() {
    std::string pattern = testing::TempDir() + "listener-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~SocketListenerTest() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/x.sock"; }
  mode_t Mode() const {
    struct stat seen = {};
    return stat(path().c_str(), &seen) == 0 ? seen.st_mode & 0777U : 0;
  }
  // One letter for each of these users.
  std::string Heard(SocketListener& listener, const std::vector<uid_t>& users) const {
    rt::AsioLoop loop;
    rt::ThreadPool pool({.threads = 1, .queue_max = 1, .name = "accept"});
    std::string heard;
    std::vector<rt::Task<Status>> both;
    both.push_back(Serve(&pool, &listener));
    both.push_back(AskAll(&listener, path(), users, &heard));
    for (const Status& ended : rt::RunTask(loop, rt::JoinAll(std::move(both)))) {
      EXPECT_EQ(ended, OkStatus());
    }
    return heard;
  }
  std::string folder_;
};

TEST_F(SocketListenerTest, WithoutOthersItIsOurs) {
  ASSERT_TRUE(PrepareSocket(path()).ok());
  auto listener = SocketListener::Open(path(), {});
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  EXPECT_EQ(Mode(), 0600U);
  EXPECT_EQ(Heard(**listener, {geteuid()}), "a");
  EXPECT_FALSE(std::filesystem::exists(path()));
  (*listener)->Stop();
}

TEST_F(SocketListenerTest, OthersNeedAWayThere) {
  const auto closed = SocketListener::Open(path(), {kOther});
  EXPECT_EQ(closed.status().reason(), Reason::kBadRequest);
  EXPECT_NE(closed.status().message().find("chmod o+x " + folder_), std::string::npos)
      << closed.status().message();
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(SocketListenerTest, WhoIsNotNamedIsSentAway) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  ASSERT_EQ(chmod(folder_.c_str(), 0711), 0);
  auto listener = SocketListener::Open(path(), {kOther});
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  EXPECT_EQ(Mode(), 0666U);
  EXPECT_EQ(Heard(**listener, {kOther, kStranger, 0}), "ara");
}

// One letter, as AskAs gives it, of a process of the listener's own user, which is not root. It has
// a filter of system calls or has not.
char AskConfined(const std::string& path, bool is_filtered) {
  const pid_t child = fork();
  if (child == 0) {
    sock_filter all_pass = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const sock_fprog program{.len = 1, .filter = &all_pass};
    if (is_filtered && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)) {
      _exit('s');
    }
    _exit(AskAs(geteuid(), path));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return static_cast<char>(WEXITSTATUS(status));
}

// Whoever has broken out of a guest is its QEMU, under the filters of that, and may be our user.
TEST_F(SocketListenerTest, R9_AGuestsQemuIsSentAwayAlthoughItIsOurUser) {
  if (geteuid() == 0) ASSERT_EQ(chown(folder_.c_str(), kOther, kOther), 0);
  const pid_t child = fork();
  if (child == 0) {
    // Root may call whatever it is under.
    if (geteuid() == 0 && setresuid(kOther, kOther, kOther) != 0) _exit('u');
    auto listener = SocketListener::Open(path(), {});
    if (!listener.ok()) _exit('l');
    std::thread serving([&listener] { (*listener)->Run(&Greet); });
    const char plain = AskConfined(path(), false);
    const char confined = AskConfined(path(), true);
    (*listener)->Stop();
    serving.join();
    _exit(plain != 'a' ? plain : confined);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  const char said = static_cast<char>(WEXITSTATUS(status));
  if (said == 's') GTEST_SKIP() << "no filters of system calls here";
  EXPECT_EQ(said, 'r');
}

// The kernel says who made a connection, and whoever has it by now may be somebody else.
TEST_F(SocketListenerTest, R9_WhoIsGoneBeforeItIsAskedIsSentAwayAlthoughItWasOurUser) {
  if (geteuid() == 0) ASSERT_EQ(chown(folder_.c_str(), kOther, kOther), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setresuid(kOther, kOther, kOther) != 0) _exit('u');
    auto listener = SocketListener::Open(path(), {});
    if (!listener.ok()) _exit('l');
    const pid_t caller = fork();
    if (caller == 0) _exit(ConnectSocket(path()).ok() ? 0 : 'c');
    int connected = 0;
    if (waitpid(caller, &connected, 0) != caller || WEXITSTATUS(connected) != 0) _exit('c');
    int taken = 0;
    std::thread serving([&] {
      (*listener)->Run([&taken](int connection) {
        ++taken;
        (void)send(connection, "a", 1, MSG_NOSIGNAL);
        close(connection);
      });
    });
    const char next = AskAs(geteuid(), path());
    (*listener)->Stop();
    serving.join();
    _exit(next != 'a' ? next : '0' + taken);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(static_cast<char>(WEXITSTATUS(status)), '1') << "the next one alone";
}

// As with a runtime in a container, which sees its own processes only.
TEST_F(SocketListenerTest, R9_OurUserFromOutsideOfOurNamespaceOfProcessesIsLetIn) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a namespace of processes";
  ASSERT_EQ(chown(folder_.c_str(), kOther, kOther), 0);
  int told[2] = {-1, -1};
  ASSERT_EQ(pipe(std::data(told)), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(told[0]);
    if (unshare(CLONE_NEWPID) != 0) _exit('n');
    const pid_t inner = fork();
    if (inner != 0) _exit(inner > 0 ? 0 : 'n');
    // If nobody ever calls. The first process of a namespace is killed by handlers alone.
    (void)signal(SIGALRM, [](int) { _exit(1); });
    alarm(30);
    if (setresuid(kOther, kOther, kOther) != 0) _exit('u');
    auto listener = SocketListener::Open(path(), {});
    if (!listener.ok() || write(told[1], "r", 1) != 1) _exit('l');
    (*listener)->Run([&](int connection) {
      Greet(connection);
      (*listener)->Stop();
    });
    _exit(0);
  }
  close(told[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  char is_ready = 0;
  const bool is_there = read(told[0], &is_ready, 1) == 1;
  const char heard = is_there ? AskAs(kOther, path()) : 'n';
  close(told[0]);
  if (WEXITSTATUS(status) == 'n') GTEST_SKIP() << "no namespaces of processes here";
  EXPECT_EQ(heard, 'a');
}

TEST(UsersOf, KnowsNamesAndNumbers) {
  EXPECT_EQ(UsersOf({"root", "4711"}).value(), (std::vector<uid_t>{0, 4711}));
  EXPECT_NE(UsersOf({"no such user"}).status().message().find("no such user"), std::string::npos);
  EXPECT_EQ(UsersOf({"4294967296"}).status().reason(), Reason::kBadRequest);
}

}  // namespace
}  // namespace berth::iri
