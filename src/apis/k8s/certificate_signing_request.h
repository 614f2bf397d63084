// SPDX-License-Identifier: Apache-2.0
// CertificateSigningRequest: someone asks for a certificate, someone approves, a signer signs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "meta/kind.h"

namespace berth::apis::k8s {

inline constexpr std::string_view kCertificateApproved = "Approved";
inline constexpr std::string_view kCertificateDenied = "Denied";
inline constexpr std::string_view kCertificateFailed = "Failed";

struct CertificateSigningRequestSpec {
  meta::Base64 request;
  std::string signer_name;
  std::optional<int32_t> expiration_seconds;
  std::vector<std::string> usages;
  std::string username;
  std::string uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
  bool operator==(const CertificateSigningRequestSpec&) const = default;
};
BERTH_DESCRIBE(
    CertificateSigningRequestSpec,
    "io.k8s.api.certificates.v1.CertificateSigningRequestSpec",
    "What is asked for, and by whom. It never changes.",
    BERTH_FIELD(request,
                "request",
                "A PKCS#10 request in PEM, in one CERTIFICATE REQUEST block.",
                {.required = true}),
    BERTH_FIELD(signer_name, "signerName", "Who is to sign it: DOMAIN/NAME.", {.required = true}),
    BERTH_FIELD(expiration_seconds,
                "expirationSeconds",
                "How long the certificate should be valid, at least 600; the signer may make it "
                "shorter."),
    BERTH_FIELD(usages,
                "usages",
                "What the key is to be used for: \"client auth\", \"digital signature\".",
                {.list_type = "atomic"}),
    BERTH_FIELD(username, "username", "Who asked; set by the server."),
    BERTH_FIELD(uid, "uid", "UID of who asked; set by the server."),
    BERTH_FIELD(
        groups, "groups", "Groups of who asked; set by the server.", {.list_type = "atomic"}),
    BERTH_FIELD(extra, "extra", "What else is known about who asked; set by the server."))

struct CertificateCondition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  WallTime last_update_time;
  WallTime last_transition_time;
  bool operator==(const CertificateCondition&) const = default;
};
BERTH_DESCRIBE(
    CertificateCondition,
    "io.k8s.api.certificates.v1.CertificateSigningRequestCondition",
    "What was decided about the request.",
    BERTH_FIELD(type, "type", "Approved, Denied or Failed.", {.required = true}),
    BERTH_FIELD(status, "status", "True; requests cannot be half approved.", {.required = true}),
    BERTH_FIELD(reason, "reason", "Why, in one word."),
    BERTH_FIELD(message, "message", "Why, for people."),
    BERTH_FIELD(last_update_time, "lastUpdateTime", "When the condition was last written."),
    BERTH_FIELD(last_transition_time, "lastTransitionTime", "When its status last changed."))

struct CertificateSigningRequestStatus {
  std::vector<CertificateCondition> conditions;
  meta::Base64 certificate;
  bool operator==(const CertificateSigningRequestStatus&) const = default;
};
BERTH_DESCRIBE(CertificateSigningRequestStatus,
               "io.k8s.api.certificates.v1.CertificateSigningRequestStatus",
               "What became of the request.",
               BERTH_FIELD(conditions,
                           "conditions",
                           "What was decided.",
                           {.list_type = "map", .list_keys = {"type"}}),
               BERTH_FIELD(certificate, "certificate", "The certificate in PEM, once signed."))

struct CertificateSigningRequest {
  meta::ObjectMeta metadata;
  CertificateSigningRequestSpec spec;
  CertificateSigningRequestStatus status;
};
BERTH_DESCRIBE(CertificateSigningRequest,
               "io.k8s.api.certificates.v1.CertificateSigningRequest",
               "Asks for a certificate, which someone approves and a signer signs.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "What is asked for.", {.always = true}),
               BERTH_FIELD(status, "status", "What became of it."))

// Approved or Denied: what a person says, through the subresource approval.
bool IsDecision(std::string_view condition_type);
// Null if there is none.
const CertificateCondition* FindCondition(const CertificateSigningRequest& request,
                                          std::string_view type);

extern const meta::KindInfo kCertificateSigningRequestKind;
inline const meta::KindInfo& BerthKind(meta::Tag<CertificateSigningRequest>) {
  return kCertificateSigningRequestKind;
}

}  // namespace berth::apis::k8s
