// SPDX-License-Identifier: Apache-2.0
// The contract of ProcessRunner on real processes: how they end, what they are given, and that none
// is left.
#include "rt/process/child_processes.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "rt/asio/loop_thread.h"
#include "rt/deadline.h"
#include "rt/process/confinement.h"
#include "rt/scope.h"
#include "rt/thread_pool.h"

namespace berth::rt {
namespace {

class ChildProcessesTest : public testing::Test {
 protected:
  // One line for /bin/sh: here the shell is the program under test.
  static ProcessRequest Shell(std::string line) {
    ProcessRequest request;
    request.argv = {"/bin/sh", "-c", std::move(line)};
    request.limit = Duration::Minutes(1);
    return request;
  }
  Result<ProcessEnd> Run(ProcessRequest request) {
    return loop_.Await(processes_.Run(std::move(request)));
  }
  static bool HasChildren() { return waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD; }

  LoopThread loop_{"loop"};
  ThreadPool pool_{{.threads = 2, .queue_max = 1, .name = "process"}};
  ChildProcesses processes_{pool_};
};

TEST_F(ChildProcessesTest, TellsHowAProgramEndedAndWhatItSaid) {
  const auto end = Run(Shell("echo out; echo wrong >&2; exit 3"));
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_EQ(end->output, "out\n");
  EXPECT_EQ(end->errors, "wrong\n");
  EXPECT_FALSE(end->ok());
  EXPECT_TRUE(Run(Shell("exit 0"))->ok());
  const auto killed = Run(Shell("kill -9 $$"));
  ASSERT_TRUE(killed.ok()) << killed.status();
  EXPECT_EQ(killed->signal, SIGKILL);
  EXPECT_FALSE(killed->ok());
}

TEST_F(ChildProcessesTest, AProgramReadsItsInputAndNothingElse) {
  ProcessRequest request = Shell("wc -c");
  request.input.assign(300'000, 'x');  // more than a pipe holds
  EXPECT_EQ(Run(request)->output, "300000\n");
  request.input.clear();
  EXPECT_EQ(Run(request)->output, "0\n");
  request.input.assign(kProcessInputBytesMax + 1, 'x');
  EXPECT_TRUE(Run(request).status().Is(Reason::kBadRequest));
}

TEST_F(ChildProcessesTest, ArgumentsReachTheProgramAsTheyAre) {
  ProcessRequest request;
  request.argv = {"/bin/echo", "-n", "a b", "$HOME;`id`", "*"};
  request.limit = Duration::Minutes(1);
  EXPECT_EQ(Run(std::move(request))->output, "a b $HOME;`id` *");
}

TEST_F(ChildProcessesTest, AProgramThatCannotStartIsUnavailableByName) {
  ProcessRequest request;
  request.argv = {"/no/such/program"};
  request.limit = Duration::Minutes(1);
  const auto end = Run(std::move(request));
  EXPECT_EQ(end.status().reason(), Reason::kUnavailable);
  EXPECT_NE(end.status().message().find("/no/such/program: No such file"), std::string_view::npos)
      << end.status();
  EXPECT_FALSE(HasChildren());
}

TEST_F(ChildProcessesTest, IsKilledAtItsLimit) {
  ProcessRequest request = Shell("exec sleep 600");
  request.limit = Duration::Millis(50);
  EXPECT_EQ(Run(std::move(request)).status().reason(), Reason::kTimeout);
  EXPECT_FALSE(HasChildren());
}

TEST_F(ChildProcessesTest, IsKilledWhenItsCallerIsCancelled) {
  Task<Result<ProcessEnd>> run = processes_.Run(Shell("exec sleep 600"));
  const auto end = loop_.Await(WithDeadline(std::move(run), Duration::Millis(50)));
  EXPECT_EQ(end.status().reason(), Reason::kTimeout) << end.status();
  EXPECT_FALSE(HasChildren());
}

TEST_F(ChildProcessesTest, OutputIsCutAndTheProgramGoesOn) {
  const auto end = Run(Shell("head -c 1000000 /dev/zero; exit 7"));
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->output.size(), kProcessOutputBytesMax);
  EXPECT_EQ(end->exit_code, 7);
}

TEST_F(ChildProcessesTest, SecretsComeThroughPipesAndNowhereElse) {
  ProcessRequest request =
      Shell("cat /dev/fd/3; cat /dev/fd/4; tr '\\0' ' ' </proc/$$/cmdline; env");
  request.secrets = {"first", "second"};
  const auto end = Run(std::move(request));
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_TRUE(end->output.starts_with("firstsecond/bin/sh")) << end->output;
  EXPECT_EQ(end->output.find("first", 1), std::string::npos) << end->output;
  ProcessRequest huge = Shell("true");
  huge.secrets = {std::string(kProcessSecretBytesMax + 1, 'x')};
  EXPECT_EQ(Run(std::move(huge)).status().reason(), Reason::kBadRequest);
}

TEST_F(ChildProcessesTest, GetsNoDescriptorAndNoEnvironmentOfOurs) {
  int open_end[2];
  ASSERT_EQ(pipe(open_end), 0);  // without O_CLOEXEC, as a careless library does
  const auto end =
      Run(Shell("ls /proc/self/fd | tr '\\n' ' '; env | grep -v -e ^PWD= -e ^LC_ALL=C$ -e ^_="));
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->output, "0 1 2 3 ") << "3 is the folder that ls reads";
  close(open_end[0]);
  close(open_end[1]);
}

TEST_F(ChildProcessesTest, LimitsOfFilesHold) {
  const std::string path = testing::TempDir() + "child_processes_limit";
  ProcessRequest request = Shell("exec head -c 100000 /dev/zero >" + path);
  request.file_bytes_max = 8192;
  const auto end = Run(std::move(request));
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_FALSE(end->ok());
  EXPECT_LE(std::filesystem::file_size(path), 8192U);
  std::filesystem::remove(path);
}

TEST_F(ChildProcessesTest, AProgramReachesTheFilesThatItIsGiven) {
  if (!Confinement::HasLandlock()) GTEST_SKIP() << "this kernel has no Landlock";
  const std::string folder = testing::TempDir() + "child_processes_reach";
  std::filesystem::create_directories(folder + "/new");
  for (const std::string name : {"/given", "/other", "/old"}) {
    std::ofstream(folder + name) << "text of " << name << "\n";
  }
  const auto tried = [&](const std::string& line) {
    ProcessRequest request = Shell("cd /; " + line);
    request.reach = {.reads = {folder + "/given", folder + "/absent"},
                     .writes = {folder + "/old", folder + "/new/made"}};
    const auto end = Run(std::move(request));
    EXPECT_TRUE(end.ok()) << end.status();
    return end.ok() && end->ok() ? "yes" : end->errors;
  };
  EXPECT_EQ(tried("cat " + folder + "/given"), "yes");
  EXPECT_EQ(tried("echo x >" + folder + "/old"), "yes");
  EXPECT_EQ(tried("echo x >" + folder + "/new/made"), "yes");
  for (const std::string& line : {"cat " + folder + "/other",
                                  std::string("cat /etc/passwd"),
                                  "ls " + folder,
                                  "echo x >" + folder + "/given",
                                  "echo x >" + folder + "/more",
                                  "ln " + folder + "/given " + folder + "/new/link",
                                  "rm -f " + folder + "/old"}) {
    EXPECT_NE(tried(line).find("ermission denied"), std::string::npos) << line;
  }
  std::filesystem::remove_all(folder);
}

TEST_F(ChildProcessesTest, AProgramOfRootHasNoRightsLeftButToOpenFiles) {
  ProcessRequest request = Shell("cat /proc/self/status");
  request.reach = {.reads = {"/proc"}, .writes = {}};
  const auto end = Run(std::move(request));
  ASSERT_TRUE(end.ok()) << end.status();
  const std::string rights = geteuid() == 0 ? "0000000000000002" : "0000000000000000";
  EXPECT_NE(end->output.find("CapEff:\t" + rights), std::string::npos)
      << end->output << end->errors;
}

TEST_F(ChildProcessesTest, ANulByteIsRefused) {
  EXPECT_EQ(Run(Shell(std::string("a\0b", 3))).status().reason(), Reason::kBadRequest);
}

Task<Status> RunIn(ChildProcesses* processes, ProcessRequest request, Result<ProcessEnd>* end) {
  *end = co_await processes->Run(std::move(request));
  co_return OkStatus();
}
Task<Status> RunCancelled(ChildProcesses* processes,
                          ProcessRequest request,
                          Result<ProcessEnd>* end) {
  Context& context = co_await CurrentContext();
  TaskScope scope(context.loop());
  scope.Cancel();
  scope.Spawn("cancelled", RunIn(processes, std::move(request), end));
  co_return co_await scope.Join();
}

TEST_F(ChildProcessesTest, ACancelledCallerStartsNothing) {
  const std::string path = testing::TempDir() + "child_processes_cancelled";
  std::filesystem::remove(path);
  Result<ProcessEnd> end = Unavailable("not run");
  ASSERT_EQ(loop_.Await(RunCancelled(&processes_, Shell("touch " + path), &end)), OkStatus());
  EXPECT_EQ(end.status().reason(), Reason::kCancelled);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace berth::rt
