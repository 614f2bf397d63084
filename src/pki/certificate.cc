// SPDX-License-Identifier: Apache-2.0
#include "pki/certificate.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <ctime>

#include "base/strings.h"
#include "pki/internal/openssl_handles.h"
#include "pki/internal/requests.h"
#include "pki/pem.h"

namespace berth::pki {
namespace {

std::string_view TextOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

}  // namespace

Result<std::vector<std::string>> NameParts(const X509_NAME* name, int nid) {
  std::vector<std::string> parts;
  for (int at = X509_NAME_get_index_by_NID(name, nid, -1); at >= 0;
       at = X509_NAME_get_index_by_NID(name, nid, at)) {
    const ASN1_STRING* value = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
    unsigned char* utf8 = nullptr;
    const int length = ASN1_STRING_to_UTF8(&utf8, value);
    if (length < 0) return BadRequest("certificate: a name is not text");
    std::string part(reinterpret_cast<char*>(utf8), static_cast<size_t>(length));
    OPENSSL_free(utf8);
    // "admin\0.evil" reads as "admin" to careless code elsewhere.
    if (part.find('\0') != std::string::npos || !IsValidUtf8(part)) {
      return BadRequest("certificate: a name is not plain text");
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

namespace {

Result<WallTime> TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return BadRequest("certificate: broken time");
  return WallTime::FromSeconds(timegm(&parts));
}

std::string SerialOf(const X509* certificate) {
  const ASN1_INTEGER* serial = X509_get0_serialNumber(certificate);
  return HexEncode(TextOf(serial));
}

std::string AddressOf(const ASN1_OCTET_STRING* bytes) {
  char text[INET6_ADDRSTRLEN] = {};
  const int family = ASN1_STRING_length(bytes) == 4 ? AF_INET : AF_INET6;
  if (family == AF_INET6 && ASN1_STRING_length(bytes) != 16) return {};
  inet_ntop(family, ASN1_STRING_get0_data(bytes), text, sizeof text);
  return text;
}

void ReadAlternativeNames(const X509* certificate, Certificate& out) {
  NamesHandle names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) out.dns_names.emplace_back(TextOf(name->d.dNSName));
    if (name->type == GEN_IPADD) out.addresses.push_back(AddressOf(name->d.iPAddress));
  }
  std::ranges::sort(out.dns_names);
  std::ranges::sort(out.addresses);
}

void ReadUsages(const X509* certificate, Certificate& out) {
  ConstraintsHandle constraints(static_cast<BASIC_CONSTRAINTS*>(
      X509_get_ext_d2i(certificate, NID_basic_constraints, nullptr, nullptr)));
  out.is_authority = constraints && constraints->ca != 0;
  UsagesHandle usages(static_cast<EXTENDED_KEY_USAGE*>(
      X509_get_ext_d2i(certificate, NID_ext_key_usage, nullptr, nullptr)));
  for (int i = 0; i < sk_ASN1_OBJECT_num(usages.get()); ++i) {
    const int nid = OBJ_obj2nid(sk_ASN1_OBJECT_value(usages.get(), i));
    if (nid == NID_server_auth) out.for_servers = true;
    if (nid == NID_client_auth) out.for_clients = true;
  }
}

}  // namespace

Result<Certificate> ParseCertificate(std::string_view der) {
  const auto* begin = reinterpret_cast<const unsigned char*>(der.data());
  const auto* at = begin;
  X509Handle certificate(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  if (!certificate || at != begin + der.size()) {
    return BadRequest(fmt::format("certificate: {} bytes are not one DER certificate", der.size()));
  }
  Certificate out;
  const X509_NAME* subject = X509_get_subject_name(certificate.get());
  TRY(auto common_names, NameParts(subject, NID_commonName));
  if (common_names.size() > 1) return BadRequest("certificate: more than one common name");
  if (!common_names.empty()) out.common_name = std::move(common_names[0]);
  TRY(out.organizations, NameParts(subject, NID_organizationName));
  TRY(auto issuers, NameParts(X509_get_issuer_name(certificate.get()), NID_commonName));
  if (!issuers.empty()) out.issuer = std::move(issuers[0]);
  TRY(out.not_before, TimeOf(X509_get0_notBefore(certificate.get())));
  TRY(out.not_after, TimeOf(X509_get0_notAfter(certificate.get())));
  out.serial = SerialOf(certificate.get());
  EVP_PKEY* key = X509_get0_pubkey(certificate.get());
  if (key == nullptr) return BadRequest("certificate: its key cannot be read");
  out.key_hash = KeyHashOf(key);
  ReadAlternativeNames(certificate.get(), out);
  ReadUsages(certificate.get(), out);
  return out;
}

Result<Certificate> ParseCertificatePem(std::string_view pem) {
  TRY(auto blocks, PemDecode(kPemCertificate, pem));
  if (blocks.empty()) return BadRequest("no CERTIFICATE block");
  return ParseCertificate(blocks[0]);
}

Result<ClientCertificate> ParseClientCertificate(std::string_view der) {
  TRY(auto certificate, ParseCertificate(der));
  if (!certificate.for_clients || certificate.is_authority) {
    return BadRequest("certificate: not meant for clients");
  }
  if (certificate.common_name.empty()) return BadRequest("certificate: no common name");
  return ClientCertificate{.user = std::move(certificate.common_name),
                           .groups = std::move(certificate.organizations),
                           .not_before = certificate.not_before,
                           .not_after = certificate.not_after,
                           .serial = std::move(certificate.serial),
                           .issuer = std::move(certificate.issuer)};
}

}  // namespace berth::pki
