// SPDX-License-Identifier: Apache-2.0
#include "base/time.h"

#include <array>

#include "base/result.h"

namespace berth {
namespace {

struct Unit {
  std::string_view suffix;
  int64_t nanos;
};
// Longest suffixes first, so that "ms" is not read as "m".
constexpr std::array kUnits = {Unit{"ns", 1},
                               Unit{"us", 1'000},
                               Unit{"ms", 1'000'000},
                               Unit{"s", 1'000'000'000},
                               Unit{"m", 60'000'000'000},
                               Unit{"h", 3'600'000'000'000},
                               Unit{"d", 86'400'000'000'000}};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Days since 1970-01-01 of a proleptic Gregorian date, and back (Howard Hinnant's civil calendar
// algorithms).
int64_t DaysFromCivil(int64_t y, int64_t m, int64_t d) {
  y -= m <= 2 ? 1 : 0;
  const int64_t era = (y >= 0 ? y : y - 399) / 400;
  const int64_t yoe = y - era * 400;
  const int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
  const int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
  return era * 146'097 + doe - 719'468;
}

struct Civil {
  int64_t year, month, day;
};
Civil CivilFromDays(int64_t z) {
  z += 719'468;
  const int64_t era = (z >= 0 ? z : z - 146'096) / 146'097;
  const int64_t doe = z - era * 146'097;
  const int64_t yoe = (doe - doe / 1460 + doe / 36'524 - doe / 146'096) / 365;
  const int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
  const int64_t mp = (5 * doy + 2) / 153;
  const int64_t month = mp + (mp < 10 ? 3 : -9);
  return {yoe + era * 400 + (month <= 2 ? 1 : 0), month, doy - (153 * mp + 2) / 5 + 1};
}

int64_t DaysInMonth(int64_t year, int64_t month) {
  constexpr std::array<int64_t, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2 && leap ? 29 : kDays[static_cast<size_t>(month - 1)];
}

// Every object carries times, so this is no place for snprintf.
void AppendPadded(int64_t value, size_t digits, std::string& out) {
  std::string text = std::to_string(value);
  if (text.size() < digits) out.append(digits - text.size(), '0');
  out += text;
}

std::string FormatCivil(WallTime time, bool with_micros) {
  const int64_t seconds = time.seconds();
  const int64_t micros = time.micros() - seconds * 1'000'000;
  int64_t days = seconds / 86'400;
  int64_t rest = seconds % 86'400;
  if (rest < 0) {
    rest += 86'400;
    --days;
  }
  const Civil date = CivilFromDays(days);
  std::string text;
  text.reserve(sizeof("0000-00-00T00:00:00.000000Z"));
  AppendPadded(date.year, 4, text);
  AppendPadded(date.month, 2, text += '-');
  AppendPadded(date.day, 2, text += '-');
  AppendPadded(rest / 3600, 2, text += 'T');
  AppendPadded(rest / 60 % 60, 2, text += ':');
  AppendPadded(rest % 60, 2, text += ':');
  if (with_micros) AppendPadded(micros, 6, text += '.');
  text += 'Z';
  return text;
}

// Reads exactly `digits` decimal digits at `at`.
bool ReadNumber(std::string_view text, size_t& at, size_t digits, int64_t& out) {
  if (at + digits > text.size()) return false;
  out = 0;
  for (size_t i = 0; i < digits; ++i, ++at) {
    if (!IsDigit(text[at])) return false;
    out = out * 10 + (text[at] - '0');
  }
  return true;
}

bool ReadChar(std::string_view text, size_t& at, char expected) {
  if (at >= text.size() || text[at] != expected) return false;
  ++at;
  return true;
}

// Reads "Z" or "+hh:mm" into seconds east of UTC.
bool ReadOffset(std::string_view text, size_t& at, int64_t& offset) {
  offset = 0;
  if (at >= text.size()) return false;
  const char sign = text[at++];
  if (sign == 'Z' || sign == 'z') return true;
  if (sign != '+' && sign != '-') return false;
  int64_t hours = 0;
  int64_t minutes = 0;
  if (!ReadNumber(text, at, 2, hours) || !ReadChar(text, at, ':') ||
      !ReadNumber(text, at, 2, minutes))
    return false;
  if (hours > 23 || minutes > 59) return false;
  offset = (hours * 3600 + minutes * 60) * (sign == '-' ? -1 : 1);
  return true;
}

// Reads an optional ".digits" into microseconds; finer digits are dropped.
bool ReadFraction(std::string_view text, size_t& at, int64_t& micros) {
  micros = 0;
  if (at >= text.size() || text[at] != '.') return true;
  ++at;
  size_t digits = 0;
  for (; at < text.size() && IsDigit(text[at]); ++at, ++digits) {
    if (digits < 6) micros = micros * 10 + (text[at] - '0');
  }
  for (size_t i = digits; i < 6; ++i) micros *= 10;
  return digits >= 1 && digits <= 9;
}

}  // namespace

std::string FormatDuration(Duration duration) {
  const int64_t nanos = duration.nanos();
  if (nanos == 0) return "0s";
  std::string text = nanos < 0 ? "-" : "";
  // Unsigned: the most negative number has no positive counterpart.
  uint64_t rest = nanos < 0 ? 0 - static_cast<uint64_t>(nanos) : static_cast<uint64_t>(nanos);
  for (size_t i = kUnits.size() - 1; i-- > 0;) {  // days are never written: Go does not read them
    const auto unit = static_cast<uint64_t>(kUnits[i].nanos);
    if (rest < unit) continue;
    text += std::to_string(rest / unit);
    text += kUnits[i].suffix;
    rest %= unit;
  }
  return text;
}

Result<Duration> ParseDuration(std::string_view text) {
  const auto error = [&] {
    return BadRequest("duration \"" + std::string(text) +
                      "\" is not a number with a unit (ns, us, ms, s, m, h, d), as in 1h30m");
  };
  if (text == "0") return Duration();
  if (text.empty()) return error();
  int64_t total = 0;
  size_t at = 0;
  while (at < text.size()) {
    int64_t count = 0;
    const size_t start = at;
    for (; at < text.size() && IsDigit(text[at]); ++at) {
      if (at - start > 12) return error();
      count = count * 10 + (text[at] - '0');
    }
    if (at == start) return error();
    const Unit* unit = nullptr;
    for (const auto& candidate : kUnits) {
      if (text.substr(at).starts_with(candidate.suffix)) {
        unit = &candidate;
        break;
      }
    }
    if (unit == nullptr) return error();
    at += unit->suffix.size();
    int64_t nanos = 0;
    if (__builtin_mul_overflow(count, unit->nanos, &nanos) ||
        __builtin_add_overflow(total, nanos, &total))
      return error();
  }
  return Duration::Nanos(total);
}

std::string FormatAge(Duration age) {
  const int64_t seconds = age.seconds();
  const auto two = [](int64_t high, const char* high_unit, int64_t low, const char* low_unit) {
    std::string text = std::to_string(high) + high_unit;
    if (low != 0) text += std::to_string(low) + low_unit;
    return text;
  };
  if (seconds < 0) return "0s";
  if (seconds < 120) return std::to_string(seconds) + "s";
  const int64_t minutes = seconds / 60;
  if (minutes < 10) return two(minutes, "m", seconds % 60, "s");
  if (minutes < 180) return std::to_string(minutes) + "m";
  const int64_t hours = minutes / 60;
  if (hours < 8) return two(hours, "h", minutes % 60, "m");
  if (hours < 48) return std::to_string(hours) + "h";
  const int64_t days = hours / 24;
  if (days < 8) return two(days, "d", hours % 24, "h");
  if (days < 730) return std::to_string(days) + "d";
  const int64_t years = days / 365;
  if (years < 8) return two(years, "y", days % 365, "d");
  return std::to_string(years) + "y";
}

std::string FormatRfc3339(WallTime time) { return FormatCivil(time, false); }
std::string FormatRfc3339Micro(WallTime time) { return FormatCivil(time, true); }

Result<WallTime> ParseRfc3339(std::string_view text) {
  size_t at = 0;
  int64_t year = 0;
  int64_t month = 0;
  int64_t day = 0;
  int64_t hour = 0;
  int64_t minute = 0;
  int64_t second = 0;
  int64_t micros = 0;
  int64_t offset = 0;
  const bool shape =
      ReadNumber(text, at, 4, year) && ReadChar(text, at, '-') && ReadNumber(text, at, 2, month) &&
      ReadChar(text, at, '-') && ReadNumber(text, at, 2, day) &&
      (ReadChar(text, at, 'T') || ReadChar(text, at, 't')) && ReadNumber(text, at, 2, hour) &&
      ReadChar(text, at, ':') && ReadNumber(text, at, 2, minute) && ReadChar(text, at, ':') &&
      ReadNumber(text, at, 2, second) && ReadFraction(text, at, micros) &&
      ReadOffset(text, at, offset) && at == text.size();
  const bool range = shape && year >= 1 && month >= 1 && month <= 12 && day >= 1 &&
                     day <= DaysInMonth(year, month) && hour <= 23 && minute <= 59 && second <= 59;
  if (!range)
    return BadRequest("time \"" + std::string(text.substr(0, 64)) +
                      "\" is not RFC 3339, as in 2026-08-22T10:00:00Z");
  const int64_t seconds =
      DaysFromCivil(year, month, day) * 86'400 + hour * 3600 + minute * 60 + second - offset;
  return WallTime::FromMicros(seconds * 1'000'000 + micros);
}

}  // namespace berth
