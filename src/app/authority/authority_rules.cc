// SPDX-License-Identifier: Apache-2.0
#include "app/authority/authority_rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/strings.h"

namespace berth::app {
namespace {

using client::HeldCertificate;
using client::RecordEntries;

constexpr size_t kIdMax = 64;
constexpr size_t kShownMax = 20;
constexpr Duration kGraceMax = Duration::Hours(24 * 30);
// Of hosts' certificates.
constexpr Duration kUnknownLife = Duration::Hours(24);

std::string EntryOf(const RecordEntries& entries, std::string_view name) {
  const auto found = entries.find(std::string(name));
  return found == entries.end() ? std::string() : found->second;
}

bool IsId(std::string_view id) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !id.empty() && id.size() <= kIdMax && std::ranges::all_of(id, allowed);
}

std::string Show(const HeldCertificate& holder) {
  const std::string pools = holder.pools.empty() ? "" : " (" + Join(holder.pools, ", ") + ")";
  if (holder.certificate.authority.empty()) return "host " + holder.host + pools;
  return fmt::format(
      "host {}{} until {}", holder.host, pools, FormatRfc3339(holder.certificate.until));
}

std::string ShowAll(const std::vector<HeldCertificate>& holders) {
  std::vector<std::string> words;
  for (const HeldCertificate& holder : holders) {
    if (words.size() == kShownMax) {
      words.push_back(fmt::format("and {} more", holders.size() - kShownMax));
      break;
    }
    words.push_back(Show(holder));
  }
  return Join(words, "; ");
}

AuthorityStep Refused(std::string why) { return {.text = std::nullopt, .answer = std::move(why)}; }

AuthorityStep Done(const Result<std::string>& text) {
  if (!text.ok()) return Refused(std::string(text.status().message()));
  return {.text = *text, .answer = "ok"};
}

AuthorityStep Retire(const pki::CertificateAuthority& authority,
                     const AuthorityRequest& request,
                     const std::vector<HeldCertificate>& old_holders) {
  if (request.force == AuthorityRequest::Force::kNo && authority.names().size() > 1) {
    if (!old_holders.empty()) {
      return Refused(fmt::format(
          "certificates of authority {} are still in use: {}",
          authority.rotation() != nullptr ? authority.names().front() : authority.names().back(),
          ShowAll(old_holders)));
    }
    if (authority.rotation() != nullptr) {
      return Refused(fmt::format("the server's own certificate is of authority {} until {}",
                                 authority.names().front(),
                                 FormatRfc3339(authority.rotation()->switch_after)));
    }
  }
  return Done(authority.Retired(request.id));
}

}  // namespace

Result<std::optional<AuthorityRequest>> ReadRequest(const RecordEntries& entries) {
  AuthorityRequest request;
  request.id = EntryOf(entries, kRequestIdEntry);
  if (request.id.empty() || request.id == EntryOf(entries, kAnswerIdEntry)) {
    return std::optional<AuthorityRequest>();
  }
  if (!IsId(request.id)) {
    return BadRequest(fmt::format(
        "data.{}: must be 1 to {} lower case letters, digits and '-'", kRequestIdEntry, kIdMax));
  }
  const std::string verb = EntryOf(entries, kRequestEntry);
  if (verb == "retire") {
    request.verb = AuthorityRequest::Verb::kRetire;
    const bool force = EntryOf(entries, kRequestForceEntry) == "true";
    request.force = force ? AuthorityRequest::Force::kYes : AuthorityRequest::Force::kNo;
    return std::optional(std::move(request));
  }
  if (verb != "rotate") {
    return BadRequest(
        fmt::format("data.{}: {} is neither rotate nor retire", kRequestEntry, Quote(verb)));
  }
  const std::string grace = EntryOf(entries, kRequestGraceEntry);
  const auto parsed = ParseDuration(grace);
  if (!parsed.ok() || *parsed < Duration() || *parsed > kGraceMax) {
    return BadRequest(fmt::format("data.{}: {} is not a time from 0s to {}",
                                  kRequestGraceEntry,
                                  Quote(grace),
                                  FormatDuration(kGraceMax)));
  }
  request.grace = *parsed;
  return std::optional(std::move(request));
}

std::vector<HeldCertificate> OldHolders(const pki::CertificateAuthority& authority,
                                        const std::vector<HeldCertificate>& records,
                                        const std::vector<HeldCertificate>& connected,
                                        WallTime now) {
  std::vector<HeldCertificate> holders;
  if (authority.names().size() < 2) return holders;
  const std::string& next =
      authority.rotation() != nullptr ? authority.names().back() : authority.names().front();
  std::map<std::string, const HeldCertificate*> newest;
  for (const HeldCertificate& held : records) newest[held.host] = &held;
  for (const HeldCertificate& held : connected) newest[held.host] = &held;
  // Once the server has switched, those are over.
  const bool unknown_is_good =
      authority.rotation() != nullptr && now < authority.rotation()->signs_from + kUnknownLife;
  for (const auto& [host, held] : newest) {
    const bool is_unknown = held->certificate.authority.empty();
    const bool is_good = is_unknown ? unknown_is_good : now < held->certificate.until;
    if (is_good && held->certificate.authority != next) holders.push_back(*held);
  }
  return holders;
}

AuthorityStep NextStep(const pki::CertificateAuthority& authority,
                       const std::optional<AuthorityRequest>& request,
                       const std::vector<HeldCertificate>& old_holders,
                       Duration settle,
                       WallTime now) {
  if (request) {
    // Done before the answer was written.
    if (request->id == authority.last_change()) return {.text = std::nullopt, .answer = "ok"};
    if (request->verb == AuthorityRequest::Verb::kRetire) {
      return Retire(authority, *request, old_holders);
    }
    pki::Rotation rotation{.id = request->id,
                           .signs_from = now + settle,
                           .switch_after = now + std::max(request->grace, settle)};
    return Done(authority.Rotated(std::move(rotation), now));
  }
  const pki::Rotation* rotation = authority.rotation();
  if (rotation == nullptr || now < rotation->switch_after || !old_holders.empty()) return {};
  const Result<std::string> text = authority.Switched();
  return {.text = text.ok() ? std::optional(*text) : std::nullopt, .answer = ""};
}

std::string ShowUsers(std::vector<OldUser> users) {
  std::ranges::sort(users, [](const OldUser& a, const OldUser& b) {
    return a.last_seen != b.last_seen ? a.last_seen > b.last_seen : a.user < b.user;
  });
  std::vector<std::string> words;
  for (const OldUser& old : users) {
    if (words.size() == kShownMax) {
      words.push_back(fmt::format("and {} more", users.size() - kShownMax));
      break;
    }
    std::string user = Printable(old.user);
    std::ranges::replace(user, ';', ',');
    words.push_back(fmt::format("{}, last seen {}, until {}",
                                user,
                                FormatRfc3339(old.last_seen),
                                FormatRfc3339(old.until)));
  }
  return Join(words, "; ");
}

std::string RetiringName(const pki::CertificateAuthority& authority) {
  if (authority.rotation() != nullptr) return authority.names()[0];
  return authority.is_switched() ? authority.names()[1] : "";
}

RecordEntries Describe(const pki::CertificateAuthority& authority,
                       const std::vector<HeldCertificate>& old_holders,
                       WallTime now) {
  const auto name_of = [&](size_t member) {
    return fmt::format(
        "{} until {}", authority.names()[member], FormatRfc3339(authority.not_after(member)));
  };
  RecordEntries entries;
  const auto set = [&](std::string_view name, std::string value) {
    entries[std::string(name)] = std::move(value);
  };
  set(kBundleEntry, authority.certificate_pem());
  set(kServingEntry, name_of(0));
  set(kSigningEntry, authority.SigningName(now));
  set(kPhaseEntry, std::string(kPhaseSteady));
  if (const pki::Rotation* rotation = authority.rotation()) {
    set(kPhaseEntry, std::string(kPhaseLearning));
    set(kRetiringEntry, name_of(0));
    set(kSwitchAfterEntry, FormatRfc3339(rotation->switch_after));
  } else if (authority.is_switched()) {
    set(kPhaseEntry, std::string(kPhaseSwitched));
    set(kRetiringEntry, name_of(1));
  }
  if (!old_holders.empty()) set(kWaitingEntry, ShowAll(old_holders));
  return entries;
}

}  // namespace berth::app
