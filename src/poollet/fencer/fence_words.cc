// SPDX-License-Identifier: Apache-2.0
#include "poollet/fencer/fence_words.h"

#include <fmt/core.h>

#include <limits>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace berth::poollet {
namespace {

Status BadLine(std::string_view line) {
  constexpr size_t kShown = 80;
  return BadRequest("fencer: not understood: " + Quote(line.substr(0, kShown)));
}

Result<int64_t> NumberOf(std::string_view text, std::string_view line) {
  const auto number = ParseInt(text);
  if (!number.has_value() || *number < 0) return BadLine(line);
  return *number;
}

Result<FenceRequest::Guest> GuestOf(const std::vector<std::string_view>& words,
                                    std::string_view line) {
  if (words.size() != 4 || !IsFenceUid(words[1])) return BadLine(line);
  FenceRequest::Guest guest;
  guest.uid = words[1];
  TRY(guest.process.pid, NumberOf(words[2], line));
  TRY(const int64_t ticks, NumberOf(words[3], line));
  guest.process.start_ticks = static_cast<uint64_t>(ticks);
  return guest;
}

std::string GuestLine(std::string_view uid, const FenceProcess& process) {
  return fmt::format("guest {} {} {}\n", uid, process.pid, process.start_ticks);
}

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  for (const std::string_view line : Split(text, '\n')) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::string EncodeFenceRequest(const FenceRequest& request) {
  std::string text = fmt::format("deadline {}\n", request.deadline);
  for (const auto& uid : request.releases) text += "release " + uid + "\n";
  for (const auto& uid : request.leases) text += "lease " + uid + "\n";
  for (const auto& guest : request.guests) text += GuestLine(guest.uid, guest.process);
  return text;
}

Result<FenceRequest> DecodeFenceRequest(std::string_view text) {
  FenceRequest request;
  for (const std::string_view line : LinesOf(text)) {
    const std::vector<std::string_view> words = Split(line, ' ');
    if (words[0] == "guest") {
      TRY(auto guest, GuestOf(words, line));
      request.guests.push_back(std::move(guest));
      continue;
    }
    if (words.size() != 2) return BadLine(line);
    if (words[0] == "deadline") {
      TRY(request.deadline, NumberOf(words[1], line));
    } else if (words[0] == "release" && IsFenceUid(words[1])) {
      request.releases.emplace_back(words[1]);
    } else if (words[0] == "lease" && IsFenceUid(words[1])) {
      request.leases.emplace_back(words[1]);
    } else {
      return BadLine(line);
    }
  }
  return request;
}

std::string EncodeFenceLeases(const FenceTable::Leases& leases) {
  std::string text;
  for (const auto& [uid, lease] : leases) {
    text += fmt::format(
        "lease {} {} {} {}\n", uid, lease.deadline, lease.expired ? 1 : 0, lease.fenced ? 1 : 0);
    for (const auto& process : lease.processes) text += GuestLine(uid, process);
  }
  return text;
}

Result<FenceTable::Leases> DecodeFenceLeases(std::string_view text) {
  FenceTable::Leases leases;
  for (const std::string_view line : LinesOf(text)) {
    const std::vector<std::string_view> words = Split(line, ' ');
    if (words[0] == "guest") {
      TRY(const auto guest, GuestOf(words, line));
      leases[guest.uid].processes.insert(guest.process);
      continue;
    }
    if (words.size() != 5 || words[0] != "lease" || !IsFenceUid(words[1])) return BadLine(line);
    if (leases.size() > kFenceLeasesMax) return BadLine(line);
    FenceLease& lease = leases[std::string(words[1])];
    TRY(lease.deadline, NumberOf(words[2], line));
    lease.expired = words[3] == "1";
    lease.fenced = words[4] == "1";
  }
  return leases;
}

std::string EncodeFenceAnswer(const Status& status, const FenceTable::Leases& leases) {
  if (status.ok()) return EncodeFenceLeases(leases) + "ok\n";
  std::string text(status.message());
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return "error " + text + "\n";
}

Result<FenceTable::Leases> DecodeFenceAnswer(std::string_view text) {
  constexpr std::string_view kOk = "ok\n";
  constexpr std::string_view kError = "error ";
  if (text.starts_with(kError)) {
    return BadRequest(std::string(Trim(text.substr(kError.size()))));
  }
  if (!text.ends_with(kOk)) return BadRequest("fencer: an answer without an end");
  return DecodeFenceLeases(text.substr(0, text.size() - kOk.size()));
}

std::optional<std::string> TakeFenceMessage(std::string& buffer) {
  size_t end = buffer.starts_with(kFenceEnd) ? 0 : buffer.find("\n.\n");
  if (end == std::string::npos) return std::nullopt;
  if (!buffer.starts_with(kFenceEnd)) ++end;  // the line before keeps its end
  std::string message = buffer.substr(0, end);
  buffer.erase(0, end + kFenceEnd.size());
  return message;
}

}  // namespace berth::poollet
