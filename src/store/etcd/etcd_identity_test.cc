// SPDX-License-Identifier: Apache-2.0
// An etcd with TLS, client certificates and users lets in who is known, and says what is missing to
// who is not.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "net/testing/test_pki.h"
#include "rt/asio/asio_loop.h"
#include "store/etcd/etcd_store.h"
#include "store/etcd/testing/etcd_process.h"
#include "store/store.h"

namespace berth::store {
namespace {

std::string Write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  return path;
}

// Files in a folder that goes with the test.
class Files {
 public:
  Files() {
    std::string name = std::filesystem::temp_directory_path() / "berth-etcd-pki-XXXXXX";
    CHECK(::mkdtemp(name.data()) != nullptr);
    folder_ = name;
  }
  ~Files() { std::filesystem::remove_all(folder_); }
  std::string Add(const std::string& name, const std::string& text) {
    return Write(folder_ / name, text);
  }

 private:
  std::filesystem::path folder_;
};

class EtcdIdentity : public testing::Test {
 protected:
  // A failed open is told at once or after this.
  EtcdOptions OptionsFor(const EtcdProcesses& etcd) {
    EtcdOptions options;
    options.endpoints = etcd.endpoints();
    return options;
  }
  Result<std::unique_ptr<EtcdStore>> Open(EtcdOptions options) {
    return rt::RunTask(loop_, EtcdStore::Open(loop_, std::move(options)));
  }
  Status PutAndClose(EtcdStore& store) {
    Txn txn;
    txn.ops.push_back(Op::Put("a", Bytes("1")));
    const auto handle = store.NewHandle();
    const Status status = rt::RunTask(loop_, handle->Commit(txn)).status();
    CHECK(rt::RunTask(loop_, store.Close()).ok());
    return status;
  }
  void ExpectRefused(EtcdOptions options, Reason reason, std::string_view part) {
    const auto store = Open(std::move(options));
    ASSERT_FALSE(store.ok());
    EXPECT_EQ(store.status().reason(), reason) << store.status();
    EXPECT_NE(store.status().message().find(part), std::string_view::npos) << store.status();
  }

  rt::AsioLoop loop_;
};

TEST_F(EtcdIdentity, TlsProvesBothEnds) {
  net::TestPki pki;
  net::TestPki other("another CA");
  Files files;
  const net::TestIdentity server = pki.IssueServer({"127.0.0.1"});
  const net::TestIdentity client = pki.IssueClient("berth");
  EtcdProcesses etcd(
      {.members = 1,
       .arguments = {"--cert-file=" + files.Add("server.crt", server.certificate_pem),
                     "--key-file=" + files.Add("server.key", server.key_pem),
                     "--trusted-ca-file=" + files.Add("ca.crt", pki.ca_pem()),
                     "--client-cert-auth=true"},
       .scheme = "https"});
  EtcdOptions options = OptionsFor(etcd);
  options.credentials.ca_pem = pki.ca_pem();
  options.credentials.certificate_pem = client.certificate_pem;
  options.credentials.key_pem = client.key_pem;
  auto store = Open(options);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE(PutAndClose(**store).ok());

  EtcdOptions nobody = OptionsFor(etcd);
  nobody.credentials.ca_pem = pki.ca_pem();
  ExpectRefused(nobody, Reason::kUnauthorized, "certificate");
  EtcdOptions stranger = options;
  const net::TestIdentity unknown = other.IssueClient("berth");
  stranger.credentials.certificate_pem = unknown.certificate_pem;
  stranger.credentials.key_pem = unknown.key_pem;
  ExpectRefused(stranger, Reason::kUnauthorized, "certificate");
  EtcdOptions mistrusts = options;
  mistrusts.credentials.ca_pem = other.ca_pem();
  ExpectRefused(mistrusts, Reason::kUnauthorized, "certificate");
  EtcdOptions plain = OptionsFor(etcd);
  plain.call_timeout = Duration::Seconds(2);
  ExpectRefused(plain, Reason::kUnavailable, etcd.endpoints()[0]);
}

TEST_F(EtcdIdentity, UsersNeedTheirPasswordAndAllKeys) {
  EtcdProcesses etcd;
  {
    auto store = Open(OptionsFor(etcd));  // it answers now
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE(PutAndClose(**store).ok());
  }
  EtcdOptions options = OptionsFor(etcd);
  options.user = "berth";
  options.password = "secret";
  ExpectRefused(options, Reason::kUnauthorized, "auth enable");
  ASSERT_TRUE(etcd.Control({"user", "add", "root:rootpw"}));
  ASSERT_TRUE(etcd.Control({"user", "grant-role", "root", "root"}));
  ASSERT_TRUE(etcd.Control({"user", "add", "berth:secret"}));
  ASSERT_TRUE(etcd.Control({"role", "add", "berth"}));
  ASSERT_TRUE(etcd.Control({"user", "grant-role", "berth", "berth"}));
  ASSERT_TRUE(etcd.Control({"auth", "enable"}));
  ExpectRefused(OptionsFor(etcd), Reason::kUnauthorized, "--etcd-user");
  ExpectRefused(options, Reason::kForbidden, "grant-permission");
  ASSERT_TRUE(etcd.Control({"--user=root:rootpw",
                            "role",
                            "grant-permission",
                            "berth",
                            "readwrite",
                            "",
                            "--from-key=true"}));
  EtcdOptions wrong = options;
  wrong.password = "guess";
  ExpectRefused(wrong, Reason::kUnauthorized, "invalid user ID or password");
  auto store = Open(options);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE(PutAndClose(**store).ok());
}

TEST_F(EtcdIdentity, ATokenThatEtcdForgotIsMadeAnew) {
  EtcdProcesses etcd;
  {
    auto store = Open(OptionsFor(etcd));
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE(PutAndClose(**store).ok());
  }
  ASSERT_TRUE(etcd.Control({"user", "add", "root:rootpw"}));
  ASSERT_TRUE(etcd.Control({"user", "grant-role", "root", "root"}));
  ASSERT_TRUE(etcd.Control({"auth", "enable"}));
  EtcdOptions options = OptionsFor(etcd);
  options.user = "root";
  options.password = "rootpw";
  auto store = Open(options);
  ASSERT_TRUE(store.ok()) << store.status();
  // A change of users makes every token old.
  ASSERT_TRUE(etcd.Control({"--user=root:rootpw", "user", "add", "other:pw"}));
  const auto handle = (*store)->NewHandle();
  Txn txn;
  txn.ops.push_back(Op::Put("b", Bytes("1")));
  const Result<TxnResult> put = rt::RunTask(loop_, handle->Commit(txn));
  EXPECT_TRUE(put.ok()) << put.status();
  EXPECT_TRUE(PutAndClose(**store).ok());
}

}  // namespace
}  // namespace berth::store
