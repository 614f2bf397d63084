// SPDX-License-Identifier: Apache-2.0
#include "apis/networking/ip_source.h"

#include "apis/core/rules.h"
#include "base/strings.h"

namespace berth::apis::networking {
namespace {

constexpr int32_t kIpv4Bits = 32;
constexpr int32_t kIpv6Bits = 128;

int32_t BitsOf(std::string_view family) { return family == core::kIpv4 ? kIpv4Bits : kIpv6Bits; }

ipam::PrefixSpec* TemplateSpecOf(std::optional<EphemeralPrefixSource>& source) {
  return source && source->prefix_template ? &source->prefix_template->spec : nullptr;
}

void CheckEphemeral(const EphemeralPrefixSource& source,
                    const meta::FieldPath& path,
                    meta::FieldErrors& errors) {
  const meta::FieldPath at = path.Child("prefixTemplate");
  if (source.prefix_template) {
    ipam::CheckPrefixTemplate(*source.prefix_template, at, errors);
  } else {
    errors.Required(at);
  }
}

// An address is a prefix of full length, in the family that stands at its place.
void CheckEphemeralIp(const EphemeralPrefixSource& source,
                      std::string_view family,
                      const meta::FieldPath& path,
                      meta::FieldErrors& errors) {
  CheckEphemeral(source, path, errors);
  if (!source.prefix_template) return;
  const ipam::PrefixSpec& spec = source.prefix_template->spec;
  const meta::FieldPath at = path.Child("prefixTemplate").Child("spec");
  if (!family.empty() && !spec.ip_family.empty() && spec.ip_family != family) {
    errors.Invalid(at.Child("ipFamily"),
                   spec.ip_family,
                   "must be " + std::string(family) + ", as ipFamilies says");
  }
  if (spec.prefix && !spec.prefix->is_single_ip()) {
    errors.Invalid(at.Child("prefix"), spec.prefix->ToString(), "must be a single address");
  }
  if (spec.prefix_length != 0 && spec.prefix_length != BitsOf(spec.ip_family)) {
    errors.Invalid(at.Child("prefixLength"),
                   std::to_string(spec.prefix_length),
                   "must be that of a single address");
  }
}

}  // namespace

void CheckIpFamilies(std::span<const std::string> families,
                     const meta::FieldPath& path,
                     meta::FieldErrors& errors) {
  if (families.empty()) errors.Required(path, "at least one of IPv4, IPv6");
  core::UniqueNames unique;
  for (size_t i = 0; i < families.size(); ++i) {
    if (families[i].empty()) errors.Required(path.Index(i));
    unique.Check(families[i], path.Index(i), errors);
  }
}

void SetIpSourceDefaults(std::vector<IpSource>& ips, const std::vector<std::string>& families) {
  for (size_t i = 0; i < ips.size(); ++i) {
    ipam::PrefixSpec* spec = TemplateSpecOf(ips[i].ephemeral);
    if (spec == nullptr) continue;
    ipam::SetPrefixSpecDefaults(*spec);
    if (spec->ip_family.empty() && families.size() == ips.size()) spec->ip_family = families[i];
    const bool is_open = !spec->prefix && spec->prefix_length == 0;
    if (is_open && !spec->ip_family.empty()) spec->prefix_length = BitsOf(spec->ip_family);
  }
}

std::vector<std::string> FamiliesOf(const std::vector<IpSource>& ips) {
  std::vector<std::string> families;
  for (const IpSource& ip : ips) {
    std::string family;
    if (ip.value) {
      family = ipam::FamilyOf(*ip.value);
    } else if (ip.ephemeral && ip.ephemeral->prefix_template) {
      ipam::PrefixSpec spec = ip.ephemeral->prefix_template->spec;
      ipam::SetPrefixSpecDefaults(spec);
      family = spec.ip_family;
    }
    if (family.empty()) return {};
    families.push_back(std::move(family));
  }
  return families;
}

void CheckIpSources(std::span<const IpSource> ips,
                    std::span<const std::string> families,
                    const meta::FieldPath& path,
                    meta::FieldErrors& errors) {
  if (ips.size() != families.size()) {
    errors.Invalid(path,
                   std::to_string(ips.size()),
                   "must have as many entries as ipFamilies, " + std::to_string(families.size()));
  }
  for (size_t i = 0; i < ips.size(); ++i) {
    const IpSource& ip = ips[i];
    const meta::FieldPath at = path.Index(i);
    const std::string_view family = i < families.size() ? std::string_view(families[i]) : "";
    core::CheckSources(int{ip.value.has_value()} + int{ip.ephemeral.has_value()},
                       at,
                       "value or ephemeral",
                       errors);
    if (ip.value && !family.empty() && ipam::FamilyOf(*ip.value) != family) {
      errors.Invalid(
          at.Child("value"), ip.value->ToString(), "must be of the family " + std::string(family));
    }
    if (ip.ephemeral) CheckEphemeralIp(*ip.ephemeral, family, at.Child("ephemeral"), errors);
  }
}

void CheckPrefixSources(std::span<const PrefixSource> prefixes,
                        const meta::FieldPath& path,
                        meta::FieldErrors& errors) {
  for (size_t i = 0; i < prefixes.size(); ++i) {
    const PrefixSource& prefix = prefixes[i];
    const meta::FieldPath at = path.Index(i);
    core::CheckSources(int{prefix.value.has_value()} + int{prefix.ephemeral.has_value()},
                       at,
                       "value or ephemeral",
                       errors);
    if (prefix.ephemeral) CheckEphemeral(*prefix.ephemeral, at.Child("ephemeral"), errors);
  }
}

std::string JoinIps(std::span<const meta::IpAddress> ips) {
  std::vector<std::string> texts;
  for (const meta::IpAddress& ip : ips) texts.push_back(ip.ToString());
  return Join(texts, ",");
}

}  // namespace berth::apis::networking
