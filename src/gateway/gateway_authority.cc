// SPDX-License-Identifier: Apache-2.0
// What sessions have to do with a change of the authority (docs/adr/0031).
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "gateway/gateway.h"

namespace berth::gateway {
namespace {

// A renewal is a handshake, a signature and a commit. A whole fleet at once would keep the server
// from everything else.
constexpr int kRenewalsPerSecond = 50;

}  // namespace

std::vector<client::HeldCertificate> Gateway::Certificates() const {
  std::vector<client::HeldCertificate> certificates;
  for (const auto& [host, session] : table_.hosts()) {
    client::HeldCertificate entry{.host = host, .pools = {}, .certificate = session->certificate};
    for (const auto& [uid, pool] : session->pools) {
      entry.pools.push_back(ToLower(pool.face.kind->kind) + "/" + pool.face.name);
    }
    std::ranges::sort(entry.pools);
    certificates.push_back(std::move(entry));
  }
  std::ranges::sort(certificates, {}, &client::HeldCertificate::host);
  return certificates;
}

void Gateway::OnAuthority() {
  const std::vector<std::string>& trusted = deps_.authority.names();
  std::vector<Session*> retired;
  for (const auto& [host, session] : table_.hosts()) {
    if (std::ranges::find(trusted, session->certificate.authority) == trusted.end()) {
      retired.push_back(session);
    }
  }
  for (Session* session : retired) {
    session->End(RetiredAuthority(session->identity()));
    Leave(*session);
  }
}

// A host that renews gets certificates of both authorities to trust, and one of the next.
bool Gateway::ShouldRenew(const Session& session) {
  if (deps_.authority.names().size() < 2) return false;
  if (session.certificate.authority == deps_.authority.SigningName(deps_.loop.WallNow())) {
    return false;
  }
  const Time now = deps_.loop.Now();
  if (now - renewals_since_ >= Duration::Seconds(1)) {
    renewals_since_ = now;
    renewals_ = 0;
  }
  return ++renewals_ <= kRenewalsPerSecond;
}

}  // namespace berth::gateway
