// SPDX-License-Identifier: Apache-2.0
#include "client/certificates/signers.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "pki/certificate_request.h"

namespace berth::client {
namespace {

// Parts of the cluster and its hosts have names that begin so.
constexpr auto kReserved = std::to_array<std::string_view>({"system:", "berth:"});

struct PoolNames {
  std::string_view prefix;
  std::string_view group;
  std::string_view subresource;
};
constexpr auto kPools = std::to_array<PoolNames>({
    {.prefix = "compute.ironcore.dev:system:machinepool:",
     .group = "compute.ironcore.dev:system:machinepools",
     .subresource = "machinepoolclient"},
    {.prefix = "storage.ironcore.dev:system:volumepool:",
     .group = "storage.ironcore.dev:system:volumepools",
     .subresource = "volumepoolclient"},
    {.prefix = "storage.ironcore.dev:system:bucketpool:",
     .group = "storage.ironcore.dev:system:bucketpools",
     .subresource = "bucketpoolclient"},
});

// "compute.ironcore.dev:system:..." speaks for a part of the cluster, under whatever domain.
bool IsPoolWord(std::string_view word) { return word.find(":system:") != word.npos; }

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

Status CheckNames(const pki::ClientSubject& subject) {
  if (subject.user.empty()) return BadRequest("the request has no common name, or several");
  std::vector<std::string> words = subject.groups;
  words.push_back(subject.user);
  for (const std::string& word : words) {
    for (const std::string_view reserved : kReserved) {
      if (!word.starts_with(reserved)) continue;
      return BadRequest(Quote(word) + " is reserved: no request gets a name that begins with " +
                        Quote(reserved));
    }
    if (word.empty() || word.size() > 64) {
      return BadRequest("a name of " + std::to_string(word.size()) +
                        " bytes: names and groups have 1 to 64");
    }
  }
  const bool is_pool = std::ranges::any_of(words, IsPoolWord);
  if (is_pool && !PoolSubjectOf(subject)) {
    return BadRequest("a pool's certificate has its name and its one group, such as " +
                      Quote(std::string(kPools[0].prefix) + "NAME") + " and " +
                      Quote(kPools[0].group));
  }
  return OkStatus();
}

}  // namespace

bool IsOurSigner(std::string_view signer) {
  return signer == kClientSigner || signer == kPoolSigner;
}

std::optional<PoolSubject> PoolSubjectOf(const pki::ClientSubject& subject) {
  for (const PoolNames& names : kPools) {
    const bool matches = subject.user.starts_with(names.prefix) &&
                         subject.user.size() > names.prefix.size() && subject.groups.size() == 1 &&
                         subject.groups.front() == names.group;
    if (matches) {
      return PoolSubject{.subresource = names.subresource,
                         .pool = subject.user.substr(names.prefix.size())};
    }
  }
  return std::nullopt;
}

Result<pki::ClientSubject> SubjectToSign(const apis::k8s::CertificateSigningRequestSpec& spec) {
  TRY(pki::RequestedSubject asked, pki::ReadRequestedSubject(spec.request.bytes));
  if (asked.has_alternative_names) {
    return BadRequest("the request names hosts or addresses, which no client's certificate has");
  }
  pki::ClientSubject subject{.user = std::move(asked.user), .groups = std::move(asked.groups)};
  TRY_STATUS(CheckNames(subject));
  TRY_STATUS(CheckUsages(spec.usages));
  if (spec.signer_name == kPoolSigner && !PoolSubjectOf(subject)) {
    return BadRequest(std::string(kPoolSigner) + " signs for pools only, and " +
                      Quote(subject.user) + " is none");
  }
  if (spec.expiration_seconds) {
    subject.lifetime = std::min(subject.lifetime, Duration::Seconds(*spec.expiration_seconds));
  }
  return subject;
}

}  // namespace berth::client
