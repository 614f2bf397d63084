// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authz/certificate_rights.h"

#include <string>
#include <utility>
#include <vector>

#include "apis/k8s/certificate_signing_request.h"
#include "base/strings.h"
#include "client/certificates/signers.h"
#include "meta/field_errors.h"

namespace berth::apiserver {
namespace {

namespace k8s = apis::k8s;
using Conditions = std::vector<k8s::CertificateCondition>;

// Decisions, and everything else.
std::pair<Conditions, Conditions> Split(const Conditions& conditions) {
  std::pair<Conditions, Conditions> parts;
  for (const auto& condition : conditions) {
    (k8s::IsDecision(condition.type) ? parts.first : parts.second).push_back(condition);
  }
  return parts;
}

Status CheckSignerRight(const Authorizer& authorizer,
                        const Identity& identity,
                        std::string verb,
                        const std::string& signer) {
  RequestInfo request{.is_resource = true,
                      .verb = std::move(verb),
                      .group = std::string(k8s::kCertificateSigningRequestKind.group),
                      .version = std::string(k8s::kCertificateSigningRequestKind.version),
                      .resource = "signers",
                      .name = signer.substr(0, signer.find('/')) + "/*"};
  if (authorizer.Allows(identity, request)) return OkStatus();
  request.name = signer;
  return authorizer.Check(identity, request);
}

Status CheckNew(const meta::Scheme& scheme, const k8s::CertificateSigningRequest& request) {
  if (!client::IsOurSigner(request.spec.signer_name)) return OkStatus();
  const auto subject = client::SubjectToSign(scheme, request.spec);
  if (subject.ok()) return OkStatus();
  meta::FieldErrors errors;
  errors.Invalid(
      meta::FieldPath("spec").Child("request"), "", std::string(subject.status().message()));
  const meta::KindInfo& kind = k8s::kCertificateSigningRequestKind;
  return errors.ToStatus(kind.kind, kind.group, request.metadata.name);
}

}  // namespace

Status CheckCertificateWrite(const Authorizer& authorizer,
                             const Identity& identity,
                             std::string_view subresource,
                             const meta::Object* before,
                             const meta::Object& after) {
  if (&after.kind() != &k8s::kCertificateSigningRequestKind) return OkStatus();
  const auto& now = after.as<k8s::CertificateSigningRequest>();
  if (before == nullptr) return CheckNew(authorizer.scheme(), now);
  const auto& was = before->as<k8s::CertificateSigningRequest>();
  if (now.status == was.status) return OkStatus();
  const auto [decisions, others] = Split(now.status.conditions);
  const auto [decided, noted] = Split(was.status.conditions);
  if (subresource == "approval") {
    if (others != noted || now.status.certificate != was.status.certificate) {
      return Forbidden("approval of " + Quote(now.metadata.name) +
                       " changes the conditions Approved and Denied, and nothing else");
    }
    return CheckSignerRight(authorizer, identity, "approve", now.spec.signer_name);
  }
  if (decisions != decided) {
    return Forbidden("the conditions Approved and Denied of " + Quote(now.metadata.name) +
                     " are written through its approval");
  }
  return CheckSignerRight(authorizer, identity, "sign", now.spec.signer_name);
}

}  // namespace berth::apiserver
