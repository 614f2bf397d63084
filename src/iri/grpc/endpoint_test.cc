// SPDX-License-Identifier: Apache-2.0
// A socket is found where others put it, and used only where nobody else could have put it.
#include "iri/grpc/endpoint.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"

namespace berth::iri {
namespace {

class EndpointTest : public testing::Test {
 protected:
  EndpointTest() {
    std::string folder = testing::TempDir() + "berth-iri-XXXXXX";
    folder_ = mkdtemp(folder.data());
  }
  ~EndpointTest() override {
    for (const int socket : listening_) ::close(socket);
    std::filesystem::remove_all(folder_);
  }

  std::string Path(const std::string& name) { return folder_ + "/" + name; }
  void Listen(const std::string& path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(static_cast<char*>(address.sun_path), path.c_str(), sizeof(address.sun_path) - 1);
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(::listen(socket, 4), 0);
    listening_.push_back(socket);
  }
  void CloseAll() {
    for (const int socket : listening_) ::close(socket);
    listening_.clear();
  }

  std::string folder_;
  std::vector<int> listening_;
};

TEST_F(EndpointTest, TheFlagWinsOverTheVariableAndBothOverSearching) {
  rt::SimLoop loop(1);
  EndpointSearch search;
  search.flag = "unix:/run/flag.sock";
  search.variable = "unix:///run/variable.sock";
  EXPECT_EQ(*rt::RunTask(loop, FindEndpoint(search)), "/run/flag.sock");
  search.flag.clear();
  EXPECT_EQ(*rt::RunTask(loop, FindEndpoint(search)), "/run/variable.sock");
  search.variable = "tcp:127.0.0.1:1";
  EXPECT_EQ(rt::RunTask(loop, FindEndpoint(search)).status().reason(), Reason::kBadRequest);
  EXPECT_EQ(EndpointVariable(RuntimeKind::kVolume), "IRI_VOLUME_RUNTIME_ENDPOINT");
}

TEST_F(EndpointTest, ABrokerIsTakenBeforeAProvider) {
  rt::SimLoop loop(1);
  Listen(Path("iri-machineprovider.sock"));
  EndpointSearch search;
  search.folder = folder_;
  EXPECT_EQ(*rt::RunTask(loop, FindEndpoint(search)), Path("iri-machineprovider.sock"));
  Listen(Path("iri-machinebroker.sock"));
  EXPECT_EQ(*rt::RunTask(loop, FindEndpoint(search)), Path("iri-machinebroker.sock"));
}

TEST_F(EndpointTest, ASocketMayAppearLateButNotTooLate) {
  rt::SimLoop loop(1);
  EndpointSearch search;
  search.folder = folder_;
  loop.After("listen", Duration::Seconds(5), [this] { Listen(Path("iri-machinebroker.sock")); });
  EXPECT_TRUE(rt::RunTask(loop, FindEndpoint(search)).ok());
  search.kind = RuntimeKind::kBucket;
  const Time start = loop.Now();
  const auto missing = rt::RunTask(loop, FindEndpoint(search));
  EXPECT_EQ(missing.status().reason(), Reason::kNotFound);
  EXPECT_NE(missing.status().message().find("IRI_BUCKET_RUNTIME_ENDPOINT"), std::string::npos);
  EXPECT_EQ((loop.Now() - start).seconds(), 20);
}

TEST_F(EndpointTest, R9_ConnectsOnlyWhereNobodyElseCouldHavePutTheSocket) {
  const std::string path = Path("a.sock");
  EXPECT_EQ(ConnectSocket(path).status().reason(), Reason::kNotFound);
  Listen(path);
  const auto socket = ConnectSocket(path);
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_FALSE(HasHungUp(*socket));
  ::close(*socket);

  ::symlink(path.c_str(), Path("link.sock").c_str());
  EXPECT_EQ(ConnectSocket(Path("link.sock")).status().reason(), Reason::kForbidden);
  std::ofstream(Path("file")) << "x";
  EXPECT_EQ(ConnectSocket(Path("file")).status().reason(), Reason::kBadRequest);
  ::chmod(folder_.c_str(), 0777);
  const auto open_folder = ConnectSocket(path);
  EXPECT_EQ(open_folder.status().reason(), Reason::kForbidden);
  EXPECT_NE(open_folder.status().message().find("chmod go-w"), std::string::npos);
  ::chmod(folder_.c_str(), 0700);
}

TEST_F(EndpointTest, R9_RefusesAFolderOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a folder away";
  Listen(Path("a.sock"));
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(::chown(folder_.c_str(), kNobody, kNobody), 0);
  EXPECT_EQ(ConnectSocket(Path("a.sock")).status().reason(), Reason::kForbidden);
}

TEST_F(EndpointTest, NoticesThatTheOtherSideHungUp) {
  Listen(Path("a.sock"));
  const auto socket = ConnectSocket(Path("a.sock"));
  ASSERT_TRUE(socket.ok());
  CloseAll();
  EXPECT_TRUE(HasHungUp(*socket));
  ::close(*socket);
}

TEST_F(EndpointTest, AServerTakesOverDeadSocketsAndNoLivingOnes) {
  const std::string path = Path("new/a.sock");
  EXPECT_EQ(PrepareSocket(path), OkStatus());
  EXPECT_EQ(std::filesystem::status(Path("new")).permissions(), std::filesystem::perms::owner_all);
  Listen(path);
  EXPECT_EQ(PrepareSocket(path).reason(), Reason::kAlreadyExists);
  CloseAll();
  EXPECT_EQ(PrepareSocket(path), OkStatus());
  EXPECT_FALSE(std::filesystem::exists(path));
  std::ofstream(path) << "not a socket";
  EXPECT_EQ(PrepareSocket(path).reason(), Reason::kBadRequest);
  EXPECT_TRUE(std::filesystem::exists(path)) << "what is not ours is left alone";
  EXPECT_EQ(PrepareSocket(Path(std::string(200, 'x'))).reason(), Reason::kBadRequest);
}

}  // namespace
}  // namespace berth::iri
