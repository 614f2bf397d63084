// SPDX-License-Identifier: Apache-2.0
// Defends what probes, doctor and people read of /livez and /readyz: the forms of Kubernetes.
#include "apiserver/http/health.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::apiserver {
namespace {

class HealthTest : public ::testing::Test {
 protected:
  // "200 text", "none" for a path that is not there.
  std::string Ask(std::string_view target) const {
    const auto parts = net::SplitTarget(target);
    const auto answer = health_.Answer(parts.path, *net::Query::Parse(parts.query));
    if (!answer) return "none";
    std::string text = std::to_string(answer->status) + " ";
    for (const Bytes& part : answer->body) text += part.view();
    return text;
  }

  Status store_;
  Health health_{{{.name = "store", .look = [this] { return store_; }}}};
};

TEST_F(HealthTest, SaysOkAndWithVerboseWhatIsOk) {
  EXPECT_EQ(Ask("/livez"), "200 ok");
  EXPECT_EQ(Ask("/readyz"), "200 ok");
  EXPECT_EQ(Ask("/healthz"), "200 ok");
  EXPECT_EQ(Ask("/livez?verbose"), "200 [+]ping ok\nlivez check passed\n");
  EXPECT_EQ(Ask("/readyz?verbose=true"), "200 [+]ping ok\n[+]store ok\nreadyz check passed\n");
  EXPECT_EQ(Ask("/healthz?verbose"), "200 [+]ping ok\n[+]store ok\nhealthz check passed\n");
}

TEST_F(HealthTest, SaysWhatIsWrong) {
  store_ = Unavailable("disk is\nfull");
  EXPECT_EQ(Ask("/livez"), "200 ok") << "it lives";
  EXPECT_EQ(Ask("/readyz"), "503 disk is\nfull");
  EXPECT_EQ(Ask("/readyz?verbose"),
            "503 [+]ping ok\n[-]store failed: disk is\\nfull\nreadyz check failed\n");
}

TEST_F(HealthTest, EachCheckIsAPathOfItsOwn) {
  EXPECT_EQ(Ask("/readyz/store"), "200 ok");
  EXPECT_EQ(Ask("/readyz/store?verbose"), "200 [+]store ok\nreadyz/store check passed\n");
  EXPECT_EQ(Ask("/livez/ping"), "200 ok");
  store_ = Unavailable("disk is full");
  EXPECT_EQ(Ask("/readyz/ping"), "200 ok");
  EXPECT_EQ(Ask("/readyz/store"), "503 disk is full");
  for (const char* path : {"/livez/store",
                           "/readyz/nobody",
                           "/readyz/",
                           "/readyz/store/more",
                           "/readyzz",
                           "/version",
                           "/"}) {
    EXPECT_EQ(Ask(path), "none") << path;
  }
}

TEST_F(HealthTest, AnExcludedCheckDoesNotCount) {
  store_ = Unavailable("disk is full");
  EXPECT_EQ(Ask("/readyz?exclude=store"), "200 ok");
  EXPECT_EQ(Ask("/readyz?verbose&exclude=store&exclude=nobody"),
            "200 [+]ping ok\n[+]store excluded: ok\nwarn: some health checks cannot be excluded: "
            "no matches for \"nobody\"\nreadyz check passed\n");
}

}  // namespace
}  // namespace berth::apiserver
