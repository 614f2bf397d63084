// SPDX-License-Identifier: Apache-2.0
// An AuthorityKeeper changes the cluster's authority step by step when it is asked to, if its
// server leads, and follows the steps of the one that does, if not. On-loop only.
//
//   ConfigMap berth-system/authority ──► NextStep ──► store (several servers) ──► ca.pem ──►
//   on_change
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/authority/authority_rules.h"
#include "base/result.h"
#include "base/time.h"
#include "client/client.h"
#include "client/records/host_record.h"
#include "pki/certificate_authority.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::app {

class AuthorityKeeper {
 public:
  // Everything outlives the keeper.
  struct Deps {
    rt::Loop& loop;
    client::Client& client;
    pki::CertificateAuthority& authority;
    store::Store* shared;  // of several servers; null if this server is the only one
    std::string id;        // of this server, among several
    // Who has shown this server a good certificate of that authority; may be empty.
    std::function<std::vector<OldUser>(const std::string& authority)> seen;
    // The authority is another one than before: what follows from it is to be made anew.
    std::function<Status()> on_change;
  };
  explicit AuthorityKeeper(Deps deps) : deps_(std::move(deps)) {}

  // From now on this server leads; `connected` says which hosts are there, as long as the keeper
  // runs.
  void Lead(std::function<std::vector<client::HeldCertificate>()> connected) {
    connected_ = std::move(connected);
  }

  rt::Task<Status> Run();
  // One look, as Run() has twice a second.
  rt::Task<Status> Look();

 private:
  rt::Task<Status> Follow();
  rt::Task<Status> Take(std::string text);
  rt::Task<Status> Publish(std::string id, std::string answer);
  rt::Task<Status> FindOldHolders();
  rt::Task<Status> TellSeen();

  const Deps deps_;
  std::function<std::vector<client::HeldCertificate>()> connected_;
  std::vector<client::HeldCertificate> old_holders_;
  Time holders_at_;  // they are looked for again
  bool holders_known_ = false;
  client::RecordEntries published_;
  std::vector<std::string> seen_;  // users that the record names
  Time seen_at_;
};

}  // namespace berth::app
