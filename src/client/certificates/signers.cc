// SPDX-License-Identifier: Apache-2.0
#include "client/certificates/signers.h"

#include <algorithm>
#include <array>
#include <utility>

#include "apis/compute/machine_pool.h"
#include "base/strings.h"
#include "client/certificates/pool_names.h"
#include "pki/certificate_request.h"

namespace berth::client {
namespace {

// Parts of the cluster and its hosts have names that begin so.
constexpr auto kReserved = std::to_array<std::string_view>({"system:", "berth:"});

Status CheckUsages(const std::vector<std::string>& usages) {
  constexpr std::string_view kNeeded = "client auth";
  constexpr auto kAllowed =
      std::to_array<std::string_view>({"digital signature", "key encipherment", kNeeded});
  for (const std::string& usage : usages) {
    if (std::ranges::find(kAllowed, usage) == kAllowed.end()) {
      return BadRequest("usage " + Quote(usage) +
                        " is not signed: client auth, digital signature and key encipherment are");
    }
  }
  if (std::ranges::find(usages, kNeeded) == usages.end()) {
    return BadRequest("the usages lack \"client auth\"");
  }
  return OkStatus();
}

Status CheckNames(const meta::Scheme& scheme, const pki::ClientSubject& subject) {
  if (subject.user.empty()) return BadRequest("the request has no common name, or several");
  std::vector<std::string> words = subject.groups;
  words.push_back(subject.user);
  for (const std::string& word : words) {
    for (const std::string_view reserved : kReserved) {
      if (!word.starts_with(reserved)) continue;
      return BadRequest(Quote(word) + " is reserved: no request gets a name that begins with " +
                        Quote(reserved));
    }
    if (word.empty() || word.size() > pki::kNamePartBytesMax) {
      return BadRequest("a name of " + std::to_string(word.size()) +
                        " bytes: names and groups have 1 to " +
                        std::to_string(pki::kNamePartBytesMax));
    }
  }
  const bool is_pool = std::ranges::any_of(words, IsPoolWord);
  if (is_pool && !PoolSubjectOf(scheme, subject)) {
    const meta::KindInfo& kind = apis::compute::kMachinePoolKind;
    return BadRequest("a pool's certificate has its name and its one group, such as " +
                      Quote(PoolUser(scheme, kind, "NAME")) + " and " +
                      Quote(PoolGroup(scheme, kind)));
  }
  return OkStatus();
}

}  // namespace

bool IsOurSigner(std::string_view signer) {
  return signer == kClientSigner || signer == kPoolSigner;
}

std::optional<PoolSubject> PoolSubjectOf(const meta::Scheme& scheme,
                                         const pki::ClientSubject& subject) {
  if (subject.groups.size() != 1) return std::nullopt;
  auto name = PoolNameOf(scheme, subject.user, subject.groups);
  if (!name) return std::nullopt;
  return PoolSubject{.subresource = std::string(name->pool_kind->singular) + "client",
                     .pool = std::move(name->pool)};
}

Result<pki::ClientSubject> SubjectToSign(const meta::Scheme& scheme,
                                         const apis::k8s::CertificateSigningRequestSpec& spec) {
  TRY(pki::RequestedSubject asked, pki::ReadRequestedSubject(spec.request.bytes));
  if (asked.has_alternative_names) {
    return BadRequest("the request names hosts or addresses, which no client's certificate has");
  }
  pki::ClientSubject subject{.user = std::move(asked.user), .groups = std::move(asked.groups)};
  TRY_STATUS(CheckNames(scheme, subject));
  TRY_STATUS(CheckUsages(spec.usages));
  if (spec.signer_name == kPoolSigner && !PoolSubjectOf(scheme, subject)) {
    return BadRequest(std::string(kPoolSigner) + " signs for pools only, and " +
                      Quote(subject.user) + " is none");
  }
  if (spec.expiration_seconds) {
    subject.lifetime = std::min(subject.lifetime, Duration::Seconds(*spec.expiration_seconds));
  }
  return subject;
}

}  // namespace berth::client
