// SPDX-License-Identifier: Apache-2.0
// Defends the rules of CertificateSigningRequest: what a request may ask for, and that it is
// bounded.
#include "apis/k8s/certificate_signing_request.h"

#include <gtest/gtest.h>

#include "apis/testing/rules_of.h"

namespace berth::apis::k8s {
namespace {

using testing::Parse;

CertificateSigningRequest ValidRequest() {
  return Parse<CertificateSigningRequest>(R"({
    "metadata": {"name": "r"},
    "spec": {"request": "QQ==", "signerName": "example.com/a", "usages": ["client auth"]}})");
}

TEST(CertificateSigningRequest, HasRules) {
  testing::ExpectRules<CertificateSigningRequest>(
      ValidRequest(),
      {
          {"no request", [](auto& r) { r.spec.request = {}; }, {"Required spec.request"}},
          {"as long as may be",
           [](auto& r) { r.spec.request.bytes = std::string(64 * 1024, 'x'); },
           {}},
          {"too long",
           [](auto& r) { r.spec.request.bytes = std::string(64 * 1024 + 1, 'x'); },
           {"TooLong spec.request"}},
          {"a signer without a domain",
           [](auto& r) { r.spec.signer_name = "nowhere"; },
           {"Invalid spec.signerName"}},
          {"no usages", [](auto& r) { r.spec.usages = {}; }, {"Required spec.usages"}},
          {"too short",
           [](auto& r) { r.spec.expiration_seconds = 599; },
           {"Invalid spec.expirationSeconds"}},
      });
}

TEST(CertificateSigningRequest, ARequestThatIsTooLongIsToldItsLengthAndTheLimit) {
  CertificateSigningRequest request = ValidRequest();
  request.spec.request.bytes = std::string(70'000, 'x');
  meta::FieldErrors errors;
  kCertificateSigningRequestKind.validate(&request, errors);
  ASSERT_EQ(errors.causes().size(), 1U);
  EXPECT_EQ(errors.causes()[0].message, "Too long: 70000 bytes: may not be more than 65536 bytes");
}

}  // namespace
}  // namespace berth::apis::k8s
