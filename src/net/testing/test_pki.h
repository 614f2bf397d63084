// SPDX-License-Identifier: Apache-2.0
// A throw-away certificate authority for tests: P-256, nothing kept on disk.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/time.h"

namespace berth::net {

struct TestIdentity {
  std::string certificate_pem;
  std::string key_pem;
};

class TestPki {
 public:
  // When a certificate is valid, counted from now.
  struct Validity {
    Duration from = Duration::Hours(-1);
    Duration until = Duration::Hours(24);
  };
  explicit TestPki(const std::string& name = "test CA");
  TestPki(const std::string& name, Validity validity);
  ~TestPki();

  const std::string& ca_pem() const { return ca_pem_; }

  // For the names and numeric addresses, as subjectAltName.
  TestIdentity IssueServer(const std::vector<std::string>& names) { return IssueServer(names, {}); }
  TestIdentity IssueServer(const std::vector<std::string>& names, Validity validity);
  TestIdentity IssueClient(const std::string& common_name) { return IssueClient(common_name, {}); }
  TestIdentity IssueClient(const std::string& common_name, Validity validity);

 private:
  class Body;
  std::unique_ptr<Body> body_;
  std::string ca_pem_;
};

}  // namespace berth::net
