// SPDX-License-Identifier: Apache-2.0
// An Identity is a host's key and certificate: made here, signed by the server, renewed in time.
// The key never leaves the host; it lies in the file "identity" beside the record, mode 0600.
//
// Joining is safe to repeat: the key is on disk before the token is shown to anybody, and the
// server gives the same key its certificate again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "net/rpc.h"
#include "poollet/disk/disk.h"
#include "poollet/session/session.h"
#include "rt/event.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::poollet {

inline constexpr std::string_view kIdentityFile = "identity";

struct IdentityOptions {
  std::string host;                  // the name that it asks for
  std::string token;                 // "" if it has joined before
  std::vector<std::string> servers;  // "host:port"
  Duration call_limit = Duration::Seconds(10);
  Duration retry = Duration::Minutes(1);  // of a renewal that failed
};

// What the file holds. The key is a secret.
struct StoredIdentity {
  std::string host;
  std::string cluster_id;
  std::string ca_pem;
  std::string certificate_pem;
  std::string key_pem;
  std::string pending_key_pem;
  std::vector<std::string> servers;
};

class Identity final : public CredentialSource {
 public:
  // Takes the identity that is on the disk, or joins with the token. Unauthorized if there is
  // neither, or the server's authority is not the one that the token names: then the token is not
  // sent. Unavailable if no server answers: try again.
  static rt::Task<Result<std::unique_ptr<Identity>>> Open(rt::Loop& loop,
                                                          Disk& disk,
                                                          net::RpcDialer& dialer,
                                                          IdentityOptions options);

  // Renews at half of the certificate's life; an expired one may still do that and nothing else.
  // A host that has missed a change of the authority joins anew, with the key that it is known by,
  // if it was given a token of the new one.
  rt::Task<Result<net::RpcCredentials>> Current() override;
  Status Rejected(const Status& why) override;
  void RenewSoon() override;

  const StoredIdentity& stored() const { return stored_; }
  // When the certificate should be renewed.
  WallTime renew_at() const { return renew_at_; }

  // Renews in the background while sessions last.
  void Start();
  rt::Task<Status> Close();

 private:
  Identity(rt::Loop& loop, Disk& disk, net::RpcDialer& dialer, IdentityOptions options);
  rt::Task<Status> Load();
  rt::Task<Status> Save();
  rt::Task<Status> Join();
  rt::Task<Status> JoinAt(std::string server, std::string request_pem, std::string pin);
  rt::Task<Status> Renew();
  rt::Task<Status> RenewIfDue();
  rt::Task<Status> JoinAgain();
  rt::Task<Result<std::string>> CallAny(std::string method,
                                        std::string request,
                                        net::RpcCredentials credentials);
  rt::Task<Result<std::string>> MakeRequest();
  rt::Task<Status> RenewLoop();
  Status Adopt(std::string certificate_pem, std::string ca_pem);
  net::RpcCredentials Credentials() const;
  std::vector<std::string> Servers() const;

  rt::Loop& loop_;
  Disk& disk_;
  net::RpcDialer& dialer_;
  const IdentityOptions options_;
  StoredIdentity stored_;
  WallTime renew_at_;
  WallTime expires_;
  bool renewing_ = false;
  bool wanted_soon_ = false;  // the server wishes a renewal
  bool is_stranger_ = false;  // the server's authority is not known, but the token's may be
  Time wanted_from_;          // wishes count again
  rt::Event wake_;
  Time retry_at_;
  rt::TaskScope scope_;
};

}  // namespace berth::poollet
