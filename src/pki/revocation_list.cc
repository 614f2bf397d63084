// SPDX-License-Identifier: Apache-2.0
#include "pki/revocation_list.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"

namespace berth::pki {
namespace {

struct KindRow {
  RevokedKind kind;
  std::string_view word;
  std::string_view record;
  std::string_view prefix;  // of the entry
};

constexpr std::array kKinds = {
    KindRow{RevokedKind::kHost, "host", "revoked-hosts", "host."},
    KindRow{RevokedKind::kHostSerial, "host-serial", "revoked-hosts", "serial."},
    KindRow{RevokedKind::kUser, "user", "revoked-users", "user."},
    KindRow{RevokedKind::kUserHex, "userhex", "revoked-users", "userhex."},
    KindRow{RevokedKind::kUserSerial, "user-serial", "revoked-users", "serial."},
};

constexpr std::string_view kAlways = "always";
// A serial number is 20 bytes.
constexpr size_t kSerialMax = 40;

const KindRow& RowOf(RevokedKind kind) { return kKinds[static_cast<size_t>(kind)]; }

bool IsHex(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

// The characters of a ConfigMap's keys.
bool IsPlain(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  });
}

Status CheckName(const Revocation& revocation) {
  const std::string& name = revocation.name;
  switch (revocation.kind) {
    case RevokedKind::kHostSerial:
    case RevokedKind::kUserSerial:
      if (IsHex(name) && name.size() <= kSerialMax) return OkStatus();
      return BadRequest("serial " + Quote(name) + ": want 1 to " + std::to_string(kSerialMax) +
                        " hexadecimal digits");
    case RevokedKind::kUserHex:
      if (IsHex(name) && name.size() % 2 == 0 && name.size() <= 2 * kRevokedUserMax) {
        return OkStatus();
      }
      return BadRequest("userhex " + Quote(name) + ": want the hexadecimal digits of 1 to " +
                        std::to_string(kRevokedUserMax) + " bytes");
    case RevokedKind::kHost:
    case RevokedKind::kUser: break;
  }
  if (IsPlain(name) && name.size() <= kRevokedNameMax) return OkStatus();
  return BadRequest(std::string(WordOf(revocation.kind)) + " " + Quote(name) + ": want 1 to " +
                    std::to_string(kRevokedNameMax) +
                    " letters, digits, '-', '.' and '_'; userhex takes any name of a user");
}

std::vector<std::string_view> WordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::string_view part : Split(line, ' ')) {
    for (const std::string_view word : Split(part, '\t')) {
      if (!word.empty()) words.push_back(word);
    }
  }
  return words;
}

// Revocations count seconds, as certificates do: up, so that nothing is let in.
WallTime RoundUp(WallTime time) {
  const WallTime whole = WallTime::FromSeconds(time.seconds());
  return whole == time ? time : whole + Duration::Seconds(1);
}

Result<Revocation> ParseLine(std::string_view line, WallTime now) {
  if (line.size() > kRevocationLineMax) {
    return BadRequest("has " + std::to_string(line.size()) + " bytes, at most " +
                      std::to_string(kRevocationLineMax));
  }
  const std::vector<std::string_view> words = WordsOf(line);
  const auto* const row =
      std::ranges::find_if(kKinds, [&](const KindRow& one) { return one.word == words[0]; });
  if (row == kKinds.end()) {
    return BadRequest("unknown kind " + Quote(words[0]) +
                      ": want host, host-serial, user, userhex or user-serial");
  }
  if (words.size() < 2 || words.size() > 3) {
    return BadRequest("has " + std::to_string(words.size()) + " words: want " +
                      std::string(row->word) + " NAME TIME");
  }
  Revocation revocation{.kind = row->kind, .name = std::string(words[1]), .until = RoundUp(now)};
  if (row->kind != RevokedKind::kHost && row->kind != RevokedKind::kUser) {
    revocation.name = ToLower(revocation.name);
  }
  TRY_STATUS(CheckName(revocation));
  if (words.size() < 3) return revocation;
  if (words[2] == kAlways) {
    revocation.until.reset();
    return revocation;
  }
  const Result<WallTime> until = ParseRfc3339(words[2]);
  if (!until.ok()) {
    return BadRequest("time " + Quote(words[2]) + ": want 2006-01-02T15:04:05Z, or always");
  }
  revocation.until = RoundUp(*until);
  return revocation;
}

}  // namespace

std::string_view RecordOf(RevokedKind kind) { return RowOf(kind).record; }
std::string_view WordOf(RevokedKind kind) { return RowOf(kind).word; }

std::string EntryOf(const Revocation& revocation) {
  return std::string(RowOf(revocation.kind).prefix) + revocation.name;
}

std::string ValueOf(const Revocation& revocation) {
  return revocation.until ? FormatRfc3339(*revocation.until) : std::string(kAlways);
}

std::optional<Revocation> RevocationOf(std::string_view record,
                                       std::string_view entry,
                                       std::string_view value) {
  for (const KindRow& row : kKinds) {
    if (row.record != record || !entry.starts_with(row.prefix)) continue;
    const Result<WallTime> until = ParseRfc3339(Trim(value));
    Revocation revocation{.kind = row.kind,
                          .name = std::string(entry.substr(row.prefix.size())),
                          .until = std::nullopt};
    if (until.ok()) revocation.until = RoundUp(*until);
    if (!CheckName(revocation).ok()) return std::nullopt;
    return revocation;
  }
  return std::nullopt;
}

std::string FormatRevocation(const Revocation& revocation) {
  return std::string(WordOf(revocation.kind)) + " " + revocation.name + " " + ValueOf(revocation) +
         "\n";
}

Result<std::vector<Revocation>> ParseRevocations(std::string_view text, WallTime now) {
  if (text.size() > kRevocationListBytesMax) {
    return Status(Reason::kRequestTooLarge,
                  "has more than " + std::to_string(kRevocationListBytesMax) + " bytes");
  }
  std::vector<Revocation> revocations;
  size_t number = 0;
  for (const std::string_view raw : Split(text, '\n')) {
    ++number;
    const std::string_view line = Trim(raw);
    if (line.empty() || line.starts_with('#')) continue;
    Result<Revocation> revocation = ParseLine(line, now);
    if (!revocation.ok()) return revocation.status().Wrap("line " + std::to_string(number));
    revocations.push_back(*std::move(revocation));
  }
  return revocations;
}

}  // namespace berth::pki
