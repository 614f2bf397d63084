// SPDX-License-Identifier: Apache-2.0
// What names, label keys and label values may look like, with Kubernetes' words for what is wrong.
// Every *Problems function gives one text per broken rule; none means that the text is good.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "meta/kind.h"

namespace berth::meta {

constexpr size_t kDnsLabelMax = 63;
constexpr size_t kDnsSubdomainMax = 253;
constexpr size_t kLabelValueMax = 63;

bool IsDnsLabel(std::string_view text);       // "web-1"
bool IsDnsSubdomain(std::string_view text);   // "web.example.com"
bool IsQualifiedName(std::string_view text);  // "app", "example.com/app"
bool IsLabelValue(std::string_view text);

std::vector<std::string> DnsLabelProblems(std::string_view text);
std::vector<std::string> DnsSubdomainProblems(std::string_view text);
std::vector<std::string> Dns1035LabelProblems(std::string_view text);  // starts with a letter
// "app", "example.com/app": label keys, annotation keys, finalizers, taint keys.
std::vector<std::string> QualifiedNameProblems(std::string_view text);
std::vector<std::string> LabelValueProblems(std::string_view text);
// One segment of a URL path: no "/", no "%", not "." or "..".
std::vector<std::string> PathSegmentProblems(std::string_view text);
// Keys of ConfigMap and Secret.
std::vector<std::string> ConfigKeyProblems(std::string_view text);

std::vector<std::string> NameProblems(NameRule rule, std::string_view name);
// The same for generateName: a trailing '-' is fine because something follows it.
std::vector<std::string> NamePrefixProblems(NameRule rule, std::string_view prefix);

// Adds every problem as Invalid at `path`.
void AddProblems(const FieldPath& path,
                 std::string_view value,
                 const std::vector<std::string>& problems,
                 FieldErrors& errors);
// Keys and values; all problems are reported at `path` itself, as Kubernetes does.
void ValidateLabels(const FieldPath& path,
                    const std::map<std::string, std::string>& labels,
                    FieldErrors& errors);

}  // namespace berth::meta
