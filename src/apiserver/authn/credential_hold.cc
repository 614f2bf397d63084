// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authn/credential_hold.h"

#include <utility>

#include "apiserver/authn/authenticator.h"

namespace berth::apiserver {

CredentialHold::CredentialHold(Authenticator& authenticator,
                               const net::Peer& peer,
                               std::string authorization)
    : authenticator_(authenticator),
      certificate_der_(peer.certificate_der),
      authorization_(std::move(authorization)) {
  authenticator_.holds_.insert(this);
  Look();
}

CredentialHold::~CredentialHold() { authenticator_.holds_.erase(this); }

void CredentialHold::OnVoid(std::function<void()> tell) {
  tell_ = std::move(tell);
  if (is_void_ && tell_) std::exchange(tell_, {})();
}

void CredentialHold::Look() {
  if (is_void_ || authenticator_.StillKnows(certificate_der_, authorization_)) return;
  is_void_ = true;
  if (tell_) std::exchange(tell_, {})();
}

// Whoever is told may let go of other holds.
void Authenticator::LookAtHolds() {
  const std::set<CredentialHold*> all = holds_;
  for (CredentialHold* hold : all) {
    if (holds_.contains(hold)) hold->Look();
  }
}

}  // namespace berth::apiserver
