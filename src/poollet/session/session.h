// SPDX-License-Identifier: Apache-2.0
// A Session keeps a host in contact with the server: it dials, says hello, announces, and then
// carries batches both ways until the connection ends; then it begins again. What is said is the
// peer's business (poollet/host). On-loop only.
//
//   dial ── hello ──► welcome ── announce… ──► batches, heartbeats ⇄ grants ──► end ── pause ─┐
//    ▲────────────────────────────────────────────────────────────────────────────────────────┘
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "net/rpc.h"
#include "poollet/session/dials.h"
#include "rt/backoff.h"
#include "rt/event.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::agent::v1 {
class Grant;
class Heartbeat;
class ServerBatch;
class ServerMessage;
class TunnelRequest;
class Welcome;
}  // namespace berth::agent::v1

namespace berth::poollet {

// The versions of the session protocol that this poollet speaks.
inline constexpr uint32_t kProtocolMin = 1;
inline constexpr uint32_t kProtocolMax = 1;
struct ProtocolVersions {
  uint32_t min = kProtocolMin;
  uint32_t max = kProtocolMax;
};

enum class Urgency : uint8_t {
  kNow,   // with the end of this turn
  kNext,  // within 5 ms, once in 50: somebody waits for it; else as kSoon
  kSoon,  // within 50 ms, with whatever else there is
  kIdle,  // nobody waits for it: with whatever is said next, at the latest with a heartbeat
};
enum class LeaveMode : uint8_t { kKeep, kDrain };
// As long as a planned absence: who waits for the host waits no longer for its drain.
inline constexpr Duration kDrainLimit = Duration::Minutes(5);

// What the host shows the server; renews itself in time.
class CredentialSource {
 public:
  virtual ~CredentialSource() = default;
  // Unauthorized: there is no way to get any; a person must look.
  virtual rt::Task<Result<net::RpcCredentials>> Current() = 0;
  // The server did not accept them, or one of the two does not know the other's authority
  // (net::IsTrustFailure). Returns what people should read of it.
  virtual Status Rejected(const Status& why) = 0;
  // The server wishes them to be renewed: there is more to learn than a new time.
  virtual void RenewSoon() {}
};

// Credentials that never change: tests, simulations.
class FixedCredentials final : public CredentialSource {
 public:
  explicit FixedCredentials(net::RpcCredentials credentials)
      : credentials_(std::move(credentials)) {}
  rt::Task<Result<net::RpcCredentials>> Current() override { co_return credentials_; }
  Status Rejected(const Status& why) override { return why; }

 private:
  const net::RpcCredentials credentials_;
};

// Whether the server has spoken of everything that the host announced: after a restore it waits for
// other hosts before it knows what belongs where.
enum class HistoryState : uint8_t { kSettled, kOpen };

// Who speaks on a session. Messages are serialized HostMessages.
class SessionPeer {
 public:
  virtual ~SessionPeer() = default;

  // The session itself adds what it knows better: the versions, and whether it is leaving.
  virtual std::string Hello() = 0;
  // The session begins. An error ends it.
  virtual Status Welcomed(const agent::v1::Welcome& welcome) = 0;
  virtual std::vector<std::string> Announce() = 0;
  virtual void Received(const agent::v1::ServerBatch& batch) = 0;
  // Comes again when an open history is settled.
  virtual void Synced(uint64_t revision, HistoryState history) = 0;
  // h(n) is now.
  virtual void HeartbeatSent(uint64_t number) = 0;
  virtual void Granted(uint64_t number, Duration ttl) = 0;
  // The next batch; nullopt: nothing to say.
  virtual std::optional<std::string> TakeBatch() = 0;
  // After every session that was welcomed.
  virtual void Ended(const Status& why) = 0;
  // A console, a shell, a log or a port, over a call that has been opened for it and has said its
  // ticket. Returns when it is over; the stream is broken off then.
  virtual rt::Task<Status> Tunnel(agent::v1::TunnelRequest request, net::MessageStream* stream) = 0;
  // Where to dial, in order of preference.
  virtual std::vector<std::string> Servers() const = 0;
};

struct SessionOptions {
  ProtocolVersions versions = {};  // said with every hello
  Duration dial_limit = Duration::Seconds(5);
  // With several servers: when the next one is dialled beside one that says nothing, and when that
  // one is given up.
  Duration dial_patience = Duration::Millis(300);
  Duration dial_limit_of_many = Duration::Seconds(2);
  // How long a server that was silent is passed over while there are others: at first, since it may
  // be the next one to lead, and at most, while it stays silent.
  Duration silent_pause = Duration::Seconds(2);
  Duration silent_pause_max = Duration::Seconds(16);
  Duration welcome_limit = Duration::Seconds(15);
  Duration coalesce = Duration::Millis(50);
  Duration settle = Duration::Millis(5);        // what happens with a change is told with it
  Duration batch_pause = Duration::Millis(10);  // between batches that follow each other
  Duration farewell_limit = Duration::Seconds(2);
  // How long a drain may take; what is here then stays.
  Duration drain_limit = kDrainLimit;
  // The first retry comes within 50 ms, and many while a server starts again. A wide jitter spreads
  // the hosts of a cluster: somebody always comes at once, and never everybody.
  rt::BackoffOptions backoff = {
      .initial = Duration::Millis(32), .max = Duration::Seconds(2), .factor = 1.5, .jitter = 0.5};
};

class Session {
 public:
  // All references outlive the session.
  Session(rt::Loop& loop,
          net::RpcDialer& dialer,
          CredentialSource& credentials,
          SessionPeer& peer,
          SessionOptions options);

  void Start();
  // There is something to say.
  void Wake(Urgency urgency);
  // Breaks the session off and dials again.
  void Reconnect();

  // Says goodbye. kKeep: waits for the farewell, but not long. kDrain: stays in contact until
  // `drained` is set or the farewell comes, which says that the rest stays, at most drain_limit;
  // after that as kKeep. Then nothing is dialled any more.
  rt::Task<Status> Leave(LeaveMode mode, rt::Event* drained);
  // Breaks everything off.
  rt::Task<Status> Close();

  bool is_synced() const { return synced_; }
  // Why the last attempt or session ended; "" at first.
  const std::string& last_error() const { return last_error_; }
  uint64_t sessions() const { return sessions_; }
  // Of the protocol, as the last welcome said; 0 before there was one.
  uint32_t version() const { return version_; }

 private:
  rt::Task<Status> Run();
  rt::Task<Status> RunAll();
  // The first server of those that are asked to answer, with yes or no.
  rt::Task<Result<Dialled>> Reach(Duration pause);
  rt::Task<Status> BeginDial(std::string address);
  // How long one server is waited for before the next one is asked beside it; nullopt: there is
  // none.
  std::optional<Duration> Patience() const;
  // With what people should read of a failure.
  Dialled Explained(Dialled dialled);
  rt::Task<Status> RunOnce(Dialled server);
  rt::Task<Status> Talk(net::MessageStream* stream);
  std::string Hello();
  rt::Task<Status> Greet(net::MessageStream* stream);
  rt::Task<Status> ReadLoop(net::MessageStream* stream);
  rt::Task<Status> WriteLoop(net::MessageStream* stream);
  rt::Task<Status> HeartbeatLoop(net::MessageStream* stream);
  void Granted(const agent::v1::Grant& grant);
  void FillHeartbeat(agent::v1::Heartbeat& heartbeat);
  std::string WithHeartbeat(std::string batch);
  Status Dispatch(const agent::v1::ServerMessage& message, net::MessageStream* stream);
  bool SayGoodbye(LeaveMode mode);
  // Until everything that can leave has left; Timeout.
  rt::Task<Status> AwaitDrain(rt::Event* drained);
  enum class Verdict : uint8_t { kServed, kRefused };
  void BeginTunnel(const agent::v1::TunnelRequest& request);
  // Counted in `count` while it lasts.
  rt::Task<Status> RunTunnel(agent::v1::TunnelRequest request, size_t* count, Verdict verdict);
  rt::Task<Status> CarryTunnel(agent::v1::TunnelRequest request, Verdict verdict);
  std::string NextServer();
  // Servers that are tried before the next pause.
  size_t UntriedServers() const;
  bool IsSilence(const Status& status, Duration took) const;
  void NoteSilence(const std::string& server);
  Duration PauseAfter(const Status& status);

  rt::Loop& loop_;
  Dials dials_;
  CredentialSource& credentials_;
  SessionPeer& peer_;
  const SessionOptions options_;

  bool welcomed_ = false;
  bool synced_ = false;
  bool leaving_ = false;
  bool draining_ = false;
  bool has_idle_words_ = false;  // for the next batch, or the next heartbeat
  uint64_t sessions_ = 0;
  uint32_t version_ = 0;
  uint64_t session_start_ = 0;  // S
  uint64_t session_counter_ = 0;
  uint64_t heartbeats_ = 0;
  Time last_heartbeat_;
  Time last_next_;
  bool is_next_ = false;
  Duration heartbeat_every_;
  Time last_word_;  // of the server
  std::string last_error_;
  size_t next_server_ = 0;
  size_t tried_ = 0;  // of the servers, since the last pause
  struct Silence {
    Time until;  // it is passed over
    Duration pause;
  };
  std::map<std::string, Silence> silent_;  // servers that said nothing when they were last asked
  std::vector<std::string> redirected_;    // tried first
  std::optional<Duration> retry_after_;
  rt::Backoff backoff_;
  rt::Event soon_;
  rt::Event now_;
  rt::Event may_speak_;
  rt::Event farewell_;
  net::MessageStream* stream_ = nullptr;  // while a session is in progress
  net::RpcChannel* channel_ = nullptr;    // the same
  rt::TaskScope* helpers_ = nullptr;      // tasks of the session in progress
  size_t tunnels_ = 0;                    // of the session in progress
  size_t refusals_ = 0;                   // of tunnels, being told
  rt::TaskScope scope_;
};

}  // namespace berth::poollet
