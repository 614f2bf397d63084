// SPDX-License-Identifier: Apache-2.0
// Defends: the kubeconfig of a server names the others, and what else is in the file stays.
#include "app/leading/servers_in_kubeconfig.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "pki/private_file.h"

namespace berth::app {
namespace {

constexpr std::string_view kFile = R"(apiVersion: v1
clusters:
- cluster:
    extensions:
    - extension:
        provider: somebody
      name: theirs
    server: https://a:1
  name: ours
- cluster:
    server: https://elsewhere:1
  name: elsewhere
contexts:
- context:
    cluster: ours
    namespace: shop
  name: mine
current-context: mine
kind: Config
)";

class ServersInKubeconfigTest : public testing::Test {
 protected:
  void SetUp() override { Write(kFile); }
  void TearDown() override { std::filesystem::remove(path_); }
  void Write(std::string_view text) const {
    const Status written = pki::WritePrivateFile(path_, std::string(text));
    ASSERT_TRUE(written.ok()) << written;
  }
  std::string Read() const {
    const auto text = pki::ReadPrivateFile(path_);
    return text.ok() ? *text : text.status().ToString();
  }

  const std::string path_ = testing::TempDir() + "servers_in_kubeconfig_" +
                            testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(ServersInKubeconfigTest, NamesTheOthersAndKeepsTheRest) {
  ASSERT_TRUE(NameServers(path_, "https://a:1", {"https://b:1", "https://c:1"}).ok());
  std::string expected(kFile);
  expected.insert(expected.find("    server: https://a:1"), R"(    - extension:
        servers:
        - https://a:1
        - https://b:1
        - https://c:1
      name: berth.dev/servers
)");
  EXPECT_EQ(Read(), expected);
  // One of them leaves, then all.
  ASSERT_TRUE(NameServers(path_, "https://a:1", {"https://c:1"}).ok());
  EXPECT_FALSE(Read().contains("https://b:1"));
  ASSERT_TRUE(NameServers(path_, "https://a:1", {}).ok());
  EXPECT_EQ(Read(), kFile);
}

TEST_F(ServersInKubeconfigTest, AFileThatSaysSoIsNotWritten) {
  ASSERT_TRUE(NameServers(path_, "https://a:1", {"https://b:1"}).ok());
  Write(Read() + "# a remark\n");
  ASSERT_TRUE(NameServers(path_, "https://a:1", {"https://b:1"}).ok());
  EXPECT_TRUE(Read().contains("# a remark"));
}

TEST_F(ServersInKubeconfigTest, AFileThatIsNoKubeconfigIsLeftAlone) {
  Write("clusters: [");
  EXPECT_FALSE(NameServers(path_, "https://a:1", {"https://b:1"}).ok());
  EXPECT_EQ(Read(), "clusters: [");
}

}  // namespace
}  // namespace berth::app
