// SPDX-License-Identifier: Apache-2.0
// A name means one image, and nothing outside of where images are.
#include "image/reference.h"

#include <gtest/gtest.h>

namespace berth::image {
namespace {

TEST(ImageReference, IsNameTagAndDigest) {
  const std::string digest(64, 'a');
  const auto full = ParseReference("os/debian:12@sha256:" + digest);
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_EQ(*full, (Reference{.name = "os/debian", .tag = "12", .digest = digest}));
  EXPECT_EQ(ParseReference("debian.qcow2")->name, "debian.qcow2");
}

TEST(ImageReference, AFirstPartThatCouldBeAHostIsARegistry) {
  const auto full = ParseReference("Registry.Example:5000/os/debian:12");
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_EQ(*full,
            (Reference{.registry = "registry.example:5000", .name = "os/debian", .tag = "12"}));
  EXPECT_EQ(ToText(*full), "registry.example:5000/os/debian:12");
  EXPECT_EQ(ParseReference("localhost/x")->registry, "localhost");
  EXPECT_EQ(ParseReference("127.0.0.1:1/x")->registry, "127.0.0.1:1");
  EXPECT_EQ(ParseReference("os/debian")->registry, "");
  for (const std::string text : {"registry.example/",
                                 "registry.example:0/x",
                                 "registry.example:65536/x",
                                 "registry.example:80:90/x",
                                 "registry.example/Upper",
                                 "registry.example/../x",
                                 "-a.b/x",
                                 "a.b/x:"}) {
    EXPECT_EQ(ParseReference(text).status().reason(), Reason::kBadRequest) << text;
  }
}

TEST(ImageReference, P9_NothingOutsideTheFolderHasAName) {
  for (const std::string text : {"",
                                 "..",
                                 "../x",
                                 "a/../b",
                                 "/etc/passwd",
                                 "a//b",
                                 "a/",
                                 ".hidden",
                                 ".registry/x",
                                 "a b",
                                 "a:",
                                 "a:../b",
                                 "json:{}",
                                 "a@md5:1",
                                 "a@sha256:zz",
                                 "a\n"}) {
    EXPECT_EQ(ParseReference(text).status().reason(), Reason::kBadRequest) << text;
  }
  EXPECT_FALSE(ParseReference(std::string(600, 'a')).ok());
}

}  // namespace
}  // namespace berth::image
