// SPDX-License-Identifier: Apache-2.0
#include "apis/k8s/certificate_signing_request.h"

#include <algorithm>
#include <array>
#include <set>

#include "apis/core/rules.h"
#include "base/strings.h"

namespace berth::apis::k8s {
namespace {

constexpr int32_t kExpirationMin = 600;
constexpr size_t kSignerMax = 571;  // a domain, a slash and a path
constexpr size_t kUsagesMax = 32;
constexpr size_t kConditionsMax = 16;
constexpr size_t kRequestMax = 64 * 1024;
constexpr size_t kCertificateMax = 64 * 1024;

// Key usages and extended key usages, as Kubernetes spells them.
constexpr auto kUsages = std::to_array<std::string_view>({
    "signing",
    "digital signature",
    "content commitment",
    "key encipherment",
    "key agreement",
    "data encipherment",
    "cert sign",
    "crl sign",
    "encipher only",
    "decipher only",
    "any",
    "server auth",
    "client auth",
    "code signing",
    "email protection",
    "s/mime",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "timestamping",
    "ocsp signing",
    "microsoft sgc",
    "netscape sgc",
});

void CheckSigner(const std::string& signer, meta::FieldErrors& errors) {
  const meta::FieldPath path = core::SpecPath().Child("signerName");
  const size_t slash = signer.find('/');
  const bool has_both = slash != signer.npos && slash > 0 && slash + 1 < signer.size() &&
                        signer.find('/', slash + 1) == signer.npos;
  if (!has_both || signer.find('.') > slash) {
    errors.Invalid(path, signer, "must be a domain and a name with a slash between them");
  }
  if (signer.size() > kSignerMax) {
    errors.TooLong(path, signer.size(), kSignerMax);
  }
}

void CheckUsages(const std::vector<std::string>& usages, meta::FieldErrors& errors) {
  const meta::FieldPath path = core::SpecPath().Child("usages");
  if (usages.empty()) errors.Required(path, "must say what the key is to be used for");
  if (usages.size() > kUsagesMax) {
    return errors.TooMany(path, usages.size(), kUsagesMax);
  }
  std::set<std::string_view> seen;
  for (size_t i = 0; i < usages.size(); ++i) {
    if (std::ranges::find(kUsages, usages[i]) == kUsages.end()) {
      errors.NotSupported(path.Index(i), usages[i], {kUsages.begin(), kUsages.end()});
    } else if (!seen.insert(usages[i]).second) {
      errors.Duplicate(path.Index(i), usages[i]);
    }
  }
}

void Validate(const CertificateSigningRequest& object, meta::FieldErrors& errors) {
  CheckSigner(object.spec.signer_name, errors);
  CheckUsages(object.spec.usages, errors);
  const size_t bytes = object.spec.request.bytes.size();
  if (bytes > kRequestMax) errors.TooLong(core::SpecPath().Child("request"), bytes, kRequestMax);
  if (object.spec.expiration_seconds && *object.spec.expiration_seconds < kExpirationMin) {
    errors.Invalid(
        core::SpecPath().Child("expirationSeconds"),
        *object.spec.expiration_seconds,
        "may not specify a duration less than " + std::to_string(kExpirationMin) + " seconds");
  }
}

void ValidateUpdate(const CertificateSigningRequest& now,
                    const CertificateSigningRequest& before,
                    meta::FieldErrors& errors) {
  if (!(now.spec == before.spec)) {
    errors.Invalid(core::SpecPath(), now.spec.signer_name, "field is immutable");
  }
}

void CheckConditions(const CertificateSigningRequest& now, meta::FieldErrors& errors) {
  const meta::FieldPath path = core::StatusPath().Child("conditions");
  const auto& conditions = now.status.conditions;
  if (conditions.size() > kConditionsMax) {
    return errors.TooMany(path, conditions.size(), kConditionsMax);
  }
  std::set<std::string_view> seen;
  for (size_t i = 0; i < conditions.size(); ++i) {
    const CertificateCondition& condition = conditions[i];
    const bool is_ours = IsDecision(condition.type) || condition.type == kCertificateFailed;
    if (condition.type.empty()) errors.Required(path.Index(i).Child("type"), "");
    if (is_ours && condition.status != "True") {
      errors.NotSupported(path.Index(i).Child("status"), condition.status, {"True"});
    }
    if (!seen.insert(condition.type).second) {
      errors.Duplicate(path.Index(i).Child("type"), condition.type);
    }
  }
  if (seen.contains(kCertificateApproved) && seen.contains(kCertificateDenied)) {
    errors.Invalid(path, "Approved, Denied", "a request is approved or denied, not both");
  }
}

// What was decided stays decided, and what was signed stays signed.
void ValidateStatusUpdate(const CertificateSigningRequest& now,
                          const CertificateSigningRequest& before,
                          meta::FieldErrors& errors) {
  CheckConditions(now, errors);
  const meta::FieldPath path = core::StatusPath();
  for (const CertificateCondition& condition : before.status.conditions) {
    const bool is_final = IsDecision(condition.type) || condition.type == kCertificateFailed;
    if (is_final && FindCondition(now, condition.type) == nullptr) {
      errors.Invalid(path.Child("conditions"), condition.type, "may not be removed");
    }
  }
  const std::string& certificate = now.status.certificate.bytes;
  const std::string& issued = before.status.certificate.bytes;
  if (!issued.empty() && certificate != issued) {
    errors.Invalid(path.Child("certificate"), "", "may not be changed once it is set");
  }
  if (certificate.size() > kCertificateMax) {
    errors.TooLong(path.Child("certificate"), certificate.size(), kCertificateMax);
  }
}

std::string SignerCell(const CertificateSigningRequest& object) { return object.spec.signer_name; }
std::string RequestorCell(const CertificateSigningRequest& object) { return object.spec.username; }
std::string DurationCell(const CertificateSigningRequest& object) {
  const auto& seconds = object.spec.expiration_seconds;
  return seconds ? FormatAge(Duration::Seconds(*seconds)) : "<none>";
}
// As kubectl prints: "Approved,Issued".
std::string ConditionCell(const CertificateSigningRequest& object) {
  std::string text;
  for (const std::string_view type : {kCertificateApproved, kCertificateDenied}) {
    if (FindCondition(object, type) != nullptr) text = type;
  }
  if (text.empty()) text = "Pending";
  if (FindCondition(object, kCertificateFailed) != nullptr) text += ",Failed";
  if (!object.status.certificate.bytes.empty()) text += ",Issued";
  return text;
}

constexpr meta::Column kColumns[] = {
    {.name = "SignerName", .doc = "Who is to sign it.", .cell = meta::Hook<&SignerCell>},
    {.name = "Requestor", .doc = "Who asked.", .cell = meta::Hook<&RequestorCell>},
    {.name = "RequestedDuration",
     .doc = "How long it should be valid.",
     .cell = meta::Hook<&DurationCell>},
    {.name = "Condition", .doc = "What became of it.", .cell = meta::Hook<&ConditionCell>},
};

constexpr auto kSelectors = std::to_array<std::string_view>({"spec.signerName"});
constexpr auto kSubresources = std::to_array<std::string_view>({"approval"});
constexpr auto kShortNames = std::to_array<std::string_view>({"csr"});

}  // namespace

bool IsDecision(std::string_view condition_type) {
  return condition_type == kCertificateApproved || condition_type == kCertificateDenied;
}

const CertificateCondition* FindCondition(const CertificateSigningRequest& request,
                                          std::string_view type) {
  const auto& conditions = request.status.conditions;
  const auto found = std::ranges::find(conditions, type, &CertificateCondition::type);
  return found == conditions.end() ? nullptr : &*found;
}

constinit const meta::KindInfo kCertificateSigningRequestKind = {
    .group = "certificates.k8s.io",
    .version = "v1",
    .kind = "CertificateSigningRequest",
    .plural = "certificatesigningrequests",
    .singular = "certificatesigningrequest",
    .short_names = kShortNames,
    .scope = meta::Scope::kCluster,
    .type = &meta::TypeInfoOf<CertificateSigningRequest>(),
    .has_status = true,
    .subresources = kSubresources,
    .field_selectors = kSelectors,
    .columns = kColumns,
    .validate = meta::Hook<&Validate>,
    .validate_update = meta::Hook<&ValidateUpdate>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
};

}  // namespace berth::apis::k8s
