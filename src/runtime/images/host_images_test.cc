// SPDX-License-Identifier: Apache-2.0
// Which images a host can have, and who asks for them. Registries are tested with
// image/registry/puller.h.
#include "runtime/images/host_images.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "image/testing/temporary_folder.h"
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

}  // namespace
}  // namespace berth::runtime
