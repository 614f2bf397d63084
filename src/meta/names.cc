// SPDX-License-Identifier: Apache-2.0
#include "meta/names.h"

#include <algorithm>

#include "base/strings.h"

namespace berth::meta {
namespace {

constexpr std::string_view kLabelText =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must "
    "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for "
    "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
constexpr std::string_view kSubdomainText =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', "
    "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
    "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
constexpr std::string_view kDns1035Text =
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
constexpr std::string_view kQualifiedText =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
constexpr std::string_view kLabelValueText =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
constexpr std::string_view kConfigKeyText =
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name', "
    " or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsAlphanumeric(char c) { return IsLowerOrDigit(c) || (c >= 'A' && c <= 'Z'); }
bool IsNameCharacter(char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; }

std::string MaxLength(size_t limit) {
  return "must be no more than " + std::to_string(limit) + " characters";
}

// [a-z0-9]([-a-z0-9]*[a-z0-9])?
bool HasLabelForm(std::string_view text) {
  return !text.empty() && IsLowerOrDigit(text.front()) && IsLowerOrDigit(text.back()) &&
         std::ranges::all_of(text, [](char c) { return IsLowerOrDigit(c) || c == '-'; });
}

bool HasSubdomainForm(std::string_view text) {
  while (true) {
    const size_t dot = text.find('.');
    if (!HasLabelForm(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

// ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]
bool HasQualifiedForm(std::string_view text) {
  return !text.empty() && IsAlphanumeric(text.front()) && IsAlphanumeric(text.back()) &&
         std::ranges::all_of(text, IsNameCharacter);
}

}  // namespace

bool IsDnsLabel(std::string_view text) { return text.size() <= kDnsLabelMax && HasLabelForm(text); }

bool IsDnsSubdomain(std::string_view text) {
  return text.size() <= kDnsSubdomainMax && HasSubdomainForm(text);
}

bool IsQualifiedName(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    if (!IsDnsSubdomain(text.substr(0, slash))) return false;
    text.remove_prefix(slash + 1);
  }
  return text.size() <= kLabelValueMax && HasQualifiedForm(text);
}

bool IsLabelValue(std::string_view text) {
  return text.empty() || (text.size() <= kLabelValueMax && HasQualifiedForm(text));
}

std::vector<std::string> DnsLabelProblems(std::string_view text) {
  std::vector<std::string> problems;
  if (text.size() > kDnsLabelMax) problems.push_back(MaxLength(kDnsLabelMax));
  if (!HasLabelForm(text)) {
    // A name with dots is good elsewhere; say what makes it bad here.
    problems.emplace_back(HasSubdomainForm(text) ? "must not contain dots" : kLabelText);
  }
  return problems;
}

std::vector<std::string> DnsSubdomainProblems(std::string_view text) {
  std::vector<std::string> problems;
  if (text.size() > kDnsSubdomainMax) problems.push_back(MaxLength(kDnsSubdomainMax));
  if (!HasSubdomainForm(text)) problems.emplace_back(kSubdomainText);
  return problems;
}

std::vector<std::string> Dns1035LabelProblems(std::string_view text) {
  std::vector<std::string> problems;
  if (text.size() > kDnsLabelMax) problems.push_back(MaxLength(kDnsLabelMax));
  if (!HasLabelForm(text) || text.front() <= '9') problems.emplace_back(kDns1035Text);
  return problems;
}

std::vector<std::string> QualifiedNameProblems(std::string_view text) {
  std::vector<std::string> problems;
  if (IsQualifiedName(text)) return problems;
  const auto parts = Split(text, '/');
  if (parts.size() > 2) {
    problems.push_back("a qualified name " + std::string(kQualifiedText) +
                       " with an optional DNS subdomain prefix and '/' (e.g. "
                       "'example.com/MyName')");
    return problems;
  }
  if (parts.size() == 2) {
    if (parts[0].empty()) {
      problems.emplace_back("prefix part must be non-empty");
    } else {
      for (const auto& problem : DnsSubdomainProblems(parts[0])) {
        problems.push_back("prefix part " + problem);
      }
    }
  }
  const auto name = parts.back();
  if (name.empty()) {
    problems.emplace_back("name part must be non-empty");
  } else if (name.size() > kLabelValueMax) {
    problems.push_back("name part " + MaxLength(kLabelValueMax));
  }
  if (!HasQualifiedForm(name)) problems.push_back("name part " + std::string(kQualifiedText));
  return problems;
}

std::vector<std::string> LabelValueProblems(std::string_view text) {
  std::vector<std::string> problems;
  if (text.size() > kLabelValueMax) problems.push_back(MaxLength(kLabelValueMax));
  if (!text.empty() && !HasQualifiedForm(text)) problems.emplace_back(kLabelValueText);
  return problems;
}

std::vector<std::string> PathSegmentProblems(std::string_view text) {
  if (text == "." || text == "..") return {"may not be '" + std::string(text) + "'"};
  std::vector<std::string> problems;
  for (const char c : {'/', '%'}) {
    if (text.contains(c)) problems.push_back(std::string("may not contain '") + c + "'");
  }
  // Beyond Kubernetes' rule: such names could forge lines in logs and break keys.
  if (std::ranges::any_of(text,
                          [](char c) { return static_cast<uint8_t>(c) < 0x20 || c == 0x7f; }) ||
      !IsValidUtf8(text)) {
    problems.emplace_back("may not contain control characters");
  }
  if (text.size() > kDnsSubdomainMax) problems.push_back(MaxLength(kDnsSubdomainMax));
  return problems;
}

std::vector<std::string> ConfigKeyProblems(std::string_view text) {
  std::vector<std::string> problems;
  if (text.size() > kDnsSubdomainMax) problems.push_back(MaxLength(kDnsSubdomainMax));
  if (text.empty() || !std::ranges::all_of(text, IsNameCharacter)) {
    problems.emplace_back(kConfigKeyText);
  }
  if (text == "." || text == "..") {
    problems.push_back("must not be '" + std::string(text) + "'");
  } else if (text.starts_with("..")) {
    problems.emplace_back("must not start with '..'");
  }
  return problems;
}

std::vector<std::string> NameProblems(NameRule rule, std::string_view name) {
  switch (rule) {
    case NameRule::kDnsSubdomain: return DnsSubdomainProblems(name);
    case NameRule::kDnsLabel: return DnsLabelProblems(name);
    case NameRule::kPathSegment: return PathSegmentProblems(name);
  }
  return {};
}

std::vector<std::string> NamePrefixProblems(NameRule rule, std::string_view prefix) {
  std::string masked(prefix);
  if (rule == NameRule::kPathSegment) {
    if (masked == "." || masked == "..") return {};
  } else if (masked.size() > 1 && masked.back() == '-') {
    masked.back() = 'a';
  }
  return NameProblems(rule, masked);
}

void AddProblems(const FieldPath& path,
                 std::string_view value,
                 const std::vector<std::string>& problems,
                 FieldErrors& errors) {
  for (const auto& problem : problems) errors.Invalid(path, value, problem);
}

void ValidateLabels(const FieldPath& path,
                    const std::map<std::string, std::string>& labels,
                    FieldErrors& errors) {
  for (const auto& [key, value] : labels) {
    AddProblems(path, key, QualifiedNameProblems(key), errors);
    AddProblems(path, value, LabelValueProblems(value), errors);
  }
}

}  // namespace berth::meta
