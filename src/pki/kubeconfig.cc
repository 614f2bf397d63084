// SPDX-License-Identifier: Apache-2.0
#include "pki/kubeconfig.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "pki/private_file.h"

namespace berth::pki {
namespace {

// The value of the first line `key: value`, in our own file or as kubectl rewrites it.
std::string_view ValueOf(std::string_view text, std::string_view key) {
  for (std::string_view line : Split(text, '\n')) {
    line = Trim(line);
    if (!line.starts_with(key) || !line.substr(key.size()).starts_with(':')) continue;
    std::string_view value = Trim(line.substr(key.size() + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
      value = value.substr(1, value.size() - 2);
    }
    return value;
  }
  return {};
}

bool StillServes(std::string_view text,
                 const std::string& server_url,
                 const CertificateAuthority& authority,
                 WallTime now) {
  if (ValueOf(text, "server") != server_url) return false;
  if (ValueOf(text, "certificate-authority-data") != Base64Encode(authority.certificate_pem())) {
    return false;
  }
  auto pem = Base64Decode(ValueOf(text, "client-certificate-data"));
  if (!pem || !authority.HasSigned(*pem)) return false;
  auto certificate = ParseCertificatePem(*pem);
  return certificate.ok() && certificate->common_name == kAdminUser &&
         now >= certificate->not_before &&
         certificate->not_after - now > (certificate->not_after - certificate->not_before) / 3;
}

}  // namespace

std::string FormatKubeconfig(const std::string& server_url,
                             const std::string& authority_pem,
                             const Credentials& client) {
  return fmt::format(
      "apiVersion: v1\n"
      "kind: Config\n"
      "clusters:\n"
      "- name: berth\n"
      "  cluster:\n"
      "    server: {}\n"
      "    certificate-authority-data: {}\n"
      "users:\n"
      "- name: berth\n"
      "  user:\n"
      "    client-certificate-data: {}\n"
      "    client-key-data: {}\n"
      "contexts:\n"
      "- name: berth\n"
      "  context:\n"
      "    cluster: berth\n"
      "    user: berth\n"
      "    namespace: default\n"
      "current-context: berth\n"
      "preferences: {{}}\n",
      server_url,
      Base64Encode(authority_pem),
      Base64Encode(client.certificate_pem),
      Base64Encode(client.key_pem));
}

Status WriteAdminKubeconfig(const std::string& path,
                            const std::string& server_url,
                            const CertificateAuthority& authority,
                            WallTime now) {
  auto text = ReadPrivateFile(path);
  if (text.ok() && StillServes(*text, server_url, authority, now)) return OkStatus();
  // A file that others could read is replaced too: its key has to be seen as known.
  ClientSubject admin{.user = std::string(kAdminUser), .groups = {std::string(kAdminGroup)}};
  TRY(Credentials client, authority.IssueClient(admin, now));
  return WritePrivateFile(path, FormatKubeconfig(server_url, authority.certificate_pem(), client));
}

}  // namespace berth::pki
