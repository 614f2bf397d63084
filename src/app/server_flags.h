// SPDX-License-Identifier: Apache-2.0
// The flags of whoever runs a server, and what they come to.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "app/process/flag_tables.h"
#include "app/process/process_flags.h"
#include "app/server_options.h"
#include "base/result.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/environment.h"
#include "store/etcd/etcd_options.h"

namespace berth::app {

inline constexpr std::array kServerFlags = {
    cli::Flag{.name = "data-dir",
              .kind = cli::FlagKind::kText,
              .value_name = "DIR",
              .help = "(storage) Folder for everything that is kept. As root /var/lib/berth, else "
                      "~/.local/share/berth.",
              .variable = "BERTH_DATA_DIR",
              .completion = cli::Completion::kFiles},
    cli::Flag{.name = "store",
              .kind = cli::FlagKind::kText,
              .value_name = "WHERE",
              .help = "(storage) embedded: in --data-dir; or the members of an etcd that is used "
                      "for nothing else: etcd://HOST:PORT,HOST:PORT.",
              .fallback = kEmbeddedStore,
              .variable = "BERTH_STORE"},
    cli::Flag{.name = "etcd-ca",
              .kind = cli::FlagKind::kText,
              .value_name = "FILE",
              .help = "(storage) Authority that signed the certificates of etcd's members; without "
                      "it connections to etcd are not encrypted.",
              .variable = "BERTH_ETCD_CA",
              .completion = cli::Completion::kFiles},
    cli::Flag{.name = "etcd-cert",
              .kind = cli::FlagKind::kText,
              .value_name = "FILE",
              .help = "(storage) Certificate that is shown to etcd.",
              .variable = "BERTH_ETCD_CERT",
              .completion = cli::Completion::kFiles},
    cli::Flag{.name = "etcd-key",
              .kind = cli::FlagKind::kText,
              .value_name = "FILE",
              .help = "(storage) Key of --etcd-cert.",
              .variable = "BERTH_ETCD_KEY",
              .completion = cli::Completion::kFiles},
    cli::Flag{.name = "etcd-user",
              .kind = cli::FlagKind::kText,
              .value_name = "NAME",
              .help = "(storage) User of etcd.",
              .variable = "BERTH_ETCD_USER"},
    cli::Flag{.name = "etcd-password-file",
              .kind = cli::FlagKind::kText,
              .value_name = "FILE",
              .help = "(storage) File with the password of --etcd-user, closed to others.",
              .variable = "BERTH_ETCD_PASSWORD_FILE",
              .completion = cli::Completion::kFiles},
    cli::Flag{.name = "encryption-keys",
              .kind = cli::FlagKind::kText,
              .value_name = "FILE",
              .help = "(storage) Keys that Secrets are encrypted with at rest, made if it is not "
                      "there. pki/encryption-keys in --data-dir.",
              .variable = "BERTH_ENCRYPTION_KEYS",
              .completion = cli::Completion::kFiles},
    cli::Flag{.name = "listen",
              .kind = cli::FlagKind::kText,
              .value_name = "ADDR:PORT",
              .help = "(network) Where to serve HTTPS; port 0 takes a free one.",
              .fallback = kDefaultListen,
              .variable = "BERTH_LISTEN"},
    cli::Flag{
        .name = "gateway-listen",
        .kind = cli::FlagKind::kText,
        .value_name = "ADDR:PORT",
        .help =
            "(network) Where poollets connect. Port 7444 beside --listen, or a free one if that "
            "takes a free one.",
        .variable = "BERTH_GATEWAY_LISTEN"},
    cli::Flag{.name = "tls-name",
              .kind = cli::FlagKind::kCommaList,
              .value_name = "NAME",
              .help = "(network) Further names and addresses by which clients reach the server."},
    cli::Flag{.name = "domains",
              .kind = cli::FlagKind::kText,
              .value_name = "LIST",
              .help = "(cluster) Domains of the API groups; the first is canonical, the others are "
                      "aliases.",
              .fallback = kDefaultDomains,
              .variable = "BERTH_DOMAINS"},
    cli::Flag{.name = "no-new-authority",
              .help = "(cluster) Do not start rather than make a certificate authority where none "
                      "is: where a data folder that is not mounted must not become a new cluster.",
              .variable = "BERTH_NO_NEW_AUTHORITY"},
    cli::Flag{.name = "audit-policy",
              .kind = cli::FlagKind::kText,
              .value_name = "FILE",
              .help = "(cluster) How much the audit log tells of which requests: an "
                      "audit.k8s.io/v1 Policy. Without it: all writes and reads of Secrets, "
                      "without their bodies.",
              .variable = "BERTH_AUDIT_POLICY",
              .completion = cli::Completion::kFiles},
    kLogLevelFlag,
    kLogFormatFlag,
    cli::Flag{.name = "debug-commit-trace",
              .kind = cli::FlagKind::kText,
              .value_name = "FILE",
              .help = "(debug) A file of 16 bytes that is told when commits begin and end."},
};

// The flag of that name, for commands that need some of them. REQUIRES: there is one.
consteval cli::Flag ServerFlag(std::string_view name) {
  size_t at = 0;
  while (kServerFlags[at].name != name) ++at;
  return kServerFlags[at];
}

// What commands need that reach an etcd beside the server.
inline constexpr std::array kEtcdFlags = {ServerFlag("etcd-ca"),
                                          ServerFlag("etcd-cert"),
                                          ServerFlag("etcd-key"),
                                          ServerFlag("etcd-user"),
                                          ServerFlag("etcd-password-file")};
// And those that work on everything that a server keeps.
inline constexpr auto kDataPlaceFlags = JoinFlags(
    std::array{ServerFlag("data-dir"), ServerFlag("encryption-keys"), ServerFlag("store")},
    kEtcdFlags);

// The first member that is spoken to without TLS and is not on this host; nullopt if there is none.
std::optional<std::string> PlainRemoteMember(const store::EtcdOptions& etcd);
// The etcd that `where`, a --store, and the flags --etcd-... describe; none for the embedded store.
Result<std::optional<store::EtcdOptions>> ReadEtcdOptions(const cli::Arguments& arguments,
                                                          const std::string& where);
// BadRequest names the flag and its value.
Result<ServerOptions> ReadServerOptions(const cli::Arguments& arguments,
                                        const cli::Environment& environment);

}  // namespace berth::app
