// SPDX-License-Identifier: Apache-2.0
// What ca.pem holds: one authority, or two while it is changed. One text, replaced whole, so that
// no crash leaves parts that do not belong together:
//
//   PRIVATE KEY, CERTIFICATE   the authority that has signed the server's certificate
//   PRIVATE KEY, CERTIFICATE   the next one, until it takes over; then the last one, without a key
//   BERTH SEED                 what DeriveSecret rests on, once the first key is not there any more
//   Berth-Rotation: …          how many steps there were, and when the next one takes over
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "pki/certificate.h"
#include "pki/certificate_authority.h"
#include "pki/internal/openssl_handles.h"

namespace berth::pki {

struct AuthorityMember {
  KeyHandle key;  // null: it signs nothing any more
  X509Handle certificate;
  Certificate facts;
  std::string certificate_pem;
};

struct AuthorityText {
  std::vector<AuthorityMember> members;  // one or two; the first has a key
  std::string seed;
  std::optional<Rotation> rotation;
  uint64_t step = 0;        // how many there were
  std::string last_change;  // Rotation::id of the last change, also when it is over; "" for none

  std::string Bundle() const;  // the certificates
  std::vector<std::string> Names() const;
};

// Never shows what is in the text: it has keys.
Result<AuthorityText> ParseAuthority(std::string_view text);
Result<std::string> FormatAuthority(const AuthorityText& authority);
// A key that signs itself.
Result<AuthorityMember> MakeAuthority(WallTime now);

struct CertificateAuthority::Keys {
  AuthorityText authority;

  const AuthorityMember& first() const { return authority.members.front(); }
  const AuthorityMember& SignerAt(WallTime now) const {
    const bool next = authority.rotation && now >= authority.rotation->signs_from;
    return next ? authority.members.back() : first();
  }
};

}  // namespace berth::pki
