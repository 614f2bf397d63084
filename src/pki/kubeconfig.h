// SPDX-License-Identifier: Apache-2.0
// Writes the kubeconfig by which the administrator of a cluster reaches it. Reading kubeconfigs is
// the CLI's work.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "pki/certificate.h"
#include "pki/certificate_authority.h"

namespace berth::pki {

inline constexpr std::string_view kAdminUser = "berth-admin";
inline constexpr std::string_view kAdminGroup = "system:masters";

// The text of a kubeconfig with everything embedded: cluster, context and user `berth`, namespace
// `default`.
std::string FormatKubeconfig(const std::string& server_url,
                             const std::string& authority_pem,
                             const Credentials& client);

// Makes sure that `path` holds a kubeconfig for an administrator of the server at `server_url`,
// mode 0600. A file that does already, and still will for a third of its certificate's life, is
// left as it is, so that changes made with `kubectl config` survive a restart.
Status WriteAdminKubeconfig(const std::string& path,
                            const std::string& server_url,
                            const CertificateAuthority& authority,
                            WallTime now);

}  // namespace berth::pki
