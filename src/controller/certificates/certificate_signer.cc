// SPDX-License-Identifier: Apache-2.0
#include "controller/certificates/certificate_signer.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "rt/join_all.h"

namespace berth::controller {
namespace {

namespace k8s = apis::k8s;

void Note(std::string_view type,
          std::string_view reason,
          std::string message,
          WallTime now,
          k8s::CertificateSigningRequest& request) {
  const WallTime time = WallTime::FromSeconds(now.seconds());
  request.status.conditions.push_back({.type = std::string(type),
                                       .status = "True",
                                       .reason = std::string(reason),
                                       .message = std::move(message),
                                       .last_update_time = time,
                                       .last_transition_time = time});
}

bool Has(const k8s::CertificateSigningRequest& request, std::string_view type) {
  return k8s::FindCondition(request, type) != nullptr;
}

// Until when it is kept.
WallTime EndOf(const k8s::CertificateSigningRequest& request) {
  WallTime last = request.metadata.creation_timestamp;
  if (request.status.conditions.empty()) return last + CertificateSigner::kKeptPending;
  for (const auto& condition : request.status.conditions) {
    last = std::max(last, condition.last_update_time);
  }
  return last + CertificateSigner::kKeptEnded;
}

}  // namespace

CertificateSigner::CertificateSigner(rt::Loop& loop,
                                     client::Client& client,
                                     const meta::Scheme& scheme,
                                     const pki::CertificateAuthority& authority,
                                     MayBootstrap may_bootstrap)
    : loop_(loop),
      client_(client),
      scheme_(scheme),
      authority_(authority),
      may_bootstrap_(std::move(may_bootstrap)),
      runner_(loop, "certificate signer", *this, 1),
      requests_(loop,
                client,
                k8s::kCertificateSigningRequestKind,
                [this](const meta::Object*, const meta::Object* now) {
                  if (now != nullptr) runner_.queue().Add(now->metadata().name);
                }) {}

rt::Task<Status> CertificateSigner::Run() {
  std::vector<rt::Task<Status>> tasks;
  tasks.push_back(requests_.Run());
  tasks.push_back(runner_.Run());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  co_return ends.front();
}

rt::Task<Result<std::optional<Duration>>> CertificateSigner::Reconcile(std::string key) {
  const client::ObjectKey object_key{.namespace_ = "", .name = std::move(key)};
  Result<meta::Object> object =
      co_await client_.Get(k8s::kCertificateSigningRequestKind, object_key);
  if (object.status().Is(Reason::kNotFound)) co_return std::optional<Duration>();
  CO_TRY_STATUS(object);
  if (object->metadata().deletion_timestamp) co_return std::optional<Duration>();
  auto& request = object->as<k8s::CertificateSigningRequest>();
  const WallTime now = loop_.WallNow();
  const WallTime end = EndOf(request);
  if (now >= end) {
    client::DeleteOptions options;
    options.uid = object->metadata().uid;
    const Status deleted =
        co_await client_.Delete(k8s::kCertificateSigningRequestKind, object_key, options);
    if (!deleted.ok() && !deleted.Is(Reason::kNotFound)) co_return deleted;
    co_return std::optional<Duration>();
  }
  if (Advance(request)) {
    client::WriteOptions options;
    options.subresource = client::Subresource::kStatus;
    // The event of the write brings it back.
    CO_TRY_STATUS(co_await client_.Update(*std::move(object), options));
    co_return std::optional<Duration>();
  }
  co_return std::optional(Duration::Seconds(end.seconds() - now.seconds() + 1));
}

bool CertificateSigner::Advance(k8s::CertificateSigningRequest& request) const {
  const bool is_over = Has(request, k8s::kCertificateDenied) ||
                       Has(request, k8s::kCertificateFailed) ||
                       !request.status.certificate.bytes.empty();
  if (is_over || !client::IsOurSigner(request.spec.signer_name)) return false;
  const WallTime now = loop_.WallNow();
  const auto subject = client::SubjectToSign(scheme_, request.spec);
  if (!Has(request, k8s::kCertificateApproved)) {
    if (!subject.ok() || !ApprovesItself(request.spec, *subject)) return false;
    Note(k8s::kCertificateApproved,
         "AutoApproved",
         "its sender may have the certificate of this pool",
         now,
         request);
    return true;
  }
  const auto certificate = subject.ok()
                               ? authority_.SignRequest(request.spec.request.bytes, *subject, now)
                               : Result<std::string>(subject.status());
  if (certificate.ok()) {
    request.status.certificate.bytes = *certificate;
  } else {
    Note(k8s::kCertificateFailed,
         "NotSigned",
         std::string(certificate.status().message()),
         now,
         request);
  }
  return true;
}

bool CertificateSigner::ApprovesItself(const k8s::CertificateSigningRequestSpec& spec,
                                       const pki::ClientSubject& subject) const {
  const auto pool = client::PoolSubjectOf(scheme_, subject);
  if (!pool) return false;
  const bool renews = spec.username == subject.user &&
                      std::ranges::find(spec.groups, subject.groups.front()) != spec.groups.end();
  return renews || may_bootstrap_(spec, *pool);
}

}  // namespace berth::controller
