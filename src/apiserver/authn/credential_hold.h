// SPDX-License-Identifier: Apache-2.0
// A CredentialHold says when the credentials of a request that goes on for long are void: its
// certificate or token was revoked, or the authority retired. That they end in time is not its
// business. On-loop only.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "net/http.h"

namespace berth::apiserver {

class Authenticator;

class CredentialHold {
 public:
  // The authenticator outlives the hold. `authorization` is the header of that name.
  CredentialHold(Authenticator& authenticator, const net::Peer& peer, std::string authorization);
  ~CredentialHold();
  CredentialHold(const CredentialHold&) = delete;
  CredentialHold& operator=(const CredentialHold&) = delete;

  bool is_void() const { return is_void_; }
  // Called once, when they are void; at once if they are already. The last one given counts.
  void OnVoid(std::function<void()> tell);

 private:
  friend class Authenticator;
  void Look();

  Authenticator& authenticator_;
  const std::string certificate_der_;
  const std::string authorization_;
  bool is_void_ = false;
  std::function<void()> tell_;
};

}  // namespace berth::apiserver
