// SPDX-License-Identifier: Apache-2.0
// Which images a host can have, and who asks for them. Registries are tested with
// image/registry/puller.h.
#include "runtime/images/host_images.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <utility>

#include "image/testing/temporary_folder.h"
#include "net/owned_fd.h"
#include "net/socket.h"
#include "net/testing/http_fixture.h"
#include "rt/scope.h"
#include "rt/sleep.h"
#include "rt/thread_pool.h"
#include "runtime/images/namespace_credentials.h"

namespace berth::runtime {
namespace {

TEST(NamespaceCredentials, AreThoseOfTheNamespaceAndTheRegistry) {
  const image::TemporaryFolder folder;
  folder.Write("team-a.json",
               R"({"auths":{"registry.example":{"username":"anna","password":"secret"}}})");
  ASSERT_EQ(chmod(folder.Sub("team-a.json").c_str(), 0600), 0);
  const NamespaceCredentials credentials(folder.path());
  EXPECT_EQ(credentials.For("team-a", "registry.example")->user, "anna");
  EXPECT_TRUE(credentials.For("team-a", "other.example")->empty());
  EXPECT_TRUE(credentials.For("team-b", "registry.example")->empty());
  EXPECT_TRUE(credentials.For("../" + folder.path(), "registry.example")->empty());
  EXPECT_TRUE(NamespaceCredentials("").For("team-a", "registry.example")->empty());
  ASSERT_EQ(chmod(folder.Sub("team-a.json").c_str(), 0644), 0);
  EXPECT_EQ(credentials.For("team-a", "registry.example").status().reason(), Reason::kForbidden)
      << "others have read it";
}

TEST(HostImages, AreThoseOfTheFolderAndOfRegistries) {
  const image::TemporaryFolder folder;
  folder.Write("plain.raw", "raw disk");
  rt::AsioLoop loop("test");
  rt::ThreadPool files({.threads = 1, .queue_max = 16, .name = "files"});
  HostImages::Options options;
  options.folder = folder.path();
  HostImages images(loop, files, files, options);
  EXPECT_TRUE(images.Check("registry.example/os/debian:12").ok());
  EXPECT_EQ(images.Check("registry.example/../x").reason(), Reason::kBadRequest);
  ImageRequest request;
  request.reference = "plain.raw";
  EXPECT_TRUE(rt::RunTask(loop, images.Fetch(request)).ok());
  EXPECT_GT(*rt::RunTask(loop, images.TakenBytes()), 0);

  const HostImages none(loop, files, files, {});
  EXPECT_EQ(none.Check("registry.example/os/debian:12").reason(), Reason::kBadRequest)
      << "there is no place for what is fetched";
}

ImageRequest RequestOf(std::string namespace_, std::string reference) {
  ImageRequest request;
  request.namespace_ = std::move(namespace_);
  request.reference = std::move(reference);
  return request;
}

rt::Task<Status> Ask(HostImages* images, ImageRequest request) {
  co_return (co_await images->Fetch(std::move(request))).status();
}

rt::Task<Status> AskInVain(HostImages* images, ImageRequest request) {
  EXPECT_TRUE((co_await Ask(images, std::move(request))).Is(Reason::kCancelled));
  co_return OkStatus();
}

// Team a asks a registry that takes connections and says nothing; team b one that is refused at
// once.
rt::Task<Status> AskBesideSilence(rt::Loop* loop, HostImages* images, std::string silent) {
  rt::TaskScope scope(*loop);
  for (int i = 0; i < 8; ++i) {
    scope.Spawn("ask", AskInVain(images, RequestOf("a", silent + "/os/" + std::to_string(i))));
  }
  CO_TRY_STATUS(co_await rt::Yield());
  const Status refused = co_await Ask(images, RequestOf("b", "127.0.0.1:1/os/debian"));
  EXPECT_EQ(refused.reason(), Reason::kForbidden) << refused;
  co_return co_await scope.Close();
}

TEST(HostImages, SlowRegistriesOfANamespaceLeaveRoomForOthers) {
  const image::TemporaryFolder folder;
  const Result<int> listener = net::ListenTcp("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok()) << listener.status();
  const net::OwnedFd closed(*listener);
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  ASSERT_EQ(getsockname(*listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string silent = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  rt::AsioLoop loop("test");
  rt::ThreadPool files({.threads = 1, .queue_max = 16, .name = "files"});
  net::TestTls tls;
  HostImages::Options options;
  options.folder = folder.path();
  options.puller.registry.tls = tls.client();
  options.puller.registry.addresses.trusted = {silent};
  HostImages images(loop, files, files, options);
  EXPECT_EQ(rt::RunTask(loop, AskBesideSilence(&loop, &images, silent)), OkStatus());
}

}  // namespace
}  // namespace berth::runtime
