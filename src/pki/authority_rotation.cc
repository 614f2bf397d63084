// SPDX-License-Identifier: Apache-2.0
// The steps by which an authority is changed for another one (docs/adr/0031).
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "pki/certificate_authority.h"
#include "pki/certificate_request.h"
#include "pki/digest.h"
#include "pki/internal/authority_text.h"
#include "pki/private_file.h"

namespace berth::pki {

const std::string& CertificateAuthority::SigningName(WallTime now) const {
  return keys_->SignerAt(now).facts.common_name;
}

bool CertificateAuthority::HasPin(std::string_view pin) const {
  return std::ranges::any_of(keys_->authority.members, [pin](const AuthorityMember& member) {
    const auto own = CertificatePin(member.certificate_pem);
    return own.ok() && *own == pin;
  });
}

const Rotation* CertificateAuthority::rotation() const {
  const auto& rotation = keys_->authority.rotation;
  return rotation ? &*rotation : nullptr;
}

bool CertificateAuthority::is_switched() const {
  return names_.size() > 1 && !keys_->authority.rotation;
}

const std::string& CertificateAuthority::last_change() const {
  return keys_->authority.last_change;
}

WallTime CertificateAuthority::not_after(size_t member) const {
  return keys_->authority.members.at(member).facts.not_after;
}

Result<std::string> CertificateAuthority::Rotated(Rotation rotation, WallTime now) const {
  if (names_.size() > 1) {
    return Conflict(
        fmt::format("authority {} is being changed for another one already: berth ca "
                    "retire ends that",
                    names_[0]));
  }
  TRY(AuthorityText next, ParseAuthority(text_));
  do {  // hosts and people are told apart by the name of who signed for them
    TRY(AuthorityMember made, MakeAuthority(now));
    next.members.resize(1);
    next.members.push_back(std::move(made));
  } while (next.members[1].facts.common_name == names_[0]);
  ++next.step;
  next.last_change = rotation.id;
  next.rotation = std::move(rotation);
  return FormatAuthority(next);
}

Result<std::string> CertificateAuthority::Switched() const {
  if (rotation() == nullptr) return Conflict("no other authority waits to take over");
  TRY(AuthorityText next, ParseAuthority(text_));
  std::swap(next.members[0], next.members[1]);
  next.members[1].key.reset();  // it signs nothing any more
  ++next.step;
  next.rotation.reset();
  return FormatAuthority(next);
}

Result<std::string> CertificateAuthority::Retired(std::string id) const {
  if (names_.size() < 2) return Conflict("there is one authority: none can be retired");
  TRY(AuthorityText next, ParseAuthority(text_));
  if (next.rotation) std::swap(next.members[0], next.members[1]);
  next.members.pop_back();
  next.rotation.reset();
  ++next.step;
  next.last_change = std::move(id);
  return FormatAuthority(next);
}

Status CertificateAuthority::Replace(const std::string& text, WallTime now) {
  auto keys = std::make_unique<Keys>();
  TRY(keys->authority, ParseAuthority(text));
  if (now >= keys->first().facts.not_after) return BadRequest("the authority has expired");
  TRY_STATUS(WritePrivateFile(folder_ + "/ca.pem", text));
  *this = CertificateAuthority(folder_, text, std::move(keys));
  return WriteShown();
}

std::optional<std::strong_ordering> CertificateAuthority::Compare(std::string_view text,
                                                                  std::string_view other) {
  const auto one = ParseAuthority(text);
  const auto two = ParseAuthority(other);
  if (!one.ok() || !two.ok() || !EqualConstantTime(one->seed, two->seed)) return std::nullopt;
  return one->step <=> two->step;
}

}  // namespace berth::pki
