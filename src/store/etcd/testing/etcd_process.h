// SPDX-License-Identifier: Apache-2.0
// A private etcd for tests: real members in a temporary folder, on free ports of the loopback. They
// end with the test, however it ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "store/etcd/testing/peer_links.h"

namespace berth::store {

class EtcdProcesses {
 public:
  struct Options {
    int members = 1;
    std::vector<std::string> arguments;  // further ones of every member
    std::string scheme = "http";         // of clients
    std::string dir;                     // where its folder is made; "": where temporary files are
    rt::AsioLoop* links = nullptr;       // where members are linked, so that they can be cut off
  };

  EtcdProcesses() : EtcdProcesses(Options()) {}
  // Starts all members; they answer a little later.
  explicit EtcdProcesses(Options options);
  ~EtcdProcesses();
  EtcdProcesses(const EtcdProcesses&) = delete;
  EtcdProcesses& operator=(const EtcdProcesses&) = delete;

  // "127.0.0.1:port" of each member.
  const std::vector<std::string>& endpoints() const { return endpoints_; }
  std::string folder() const { return folder_; }

  // kill -9, without a word.
  void Kill(size_t member);
  // Starts a member that was killed, on what it left.
  void Start(size_t member);
  void Pause(size_t member);
  void Resume(size_t member);
  // Between the member and the others nothing comes through; clients reach all of them.
  // REQUIRES: they are linked.
  void CutOff(size_t member);
  void Heal(size_t member);
  // Runs etcdctl on all members; true if it went well.
  bool Control(std::vector<std::string> arguments);

 private:
  std::vector<std::string> Arguments(size_t member) const;

  Options options_;
  std::filesystem::path folder_;
  std::vector<std::string> endpoints_;
  std::vector<std::string> peers_;    // where each listens to the others
  std::vector<std::string> reached_;  // where the others reach it
  std::unique_ptr<PeerLinks> links_;  // or none
  std::vector<pid_t> pids_;           // 0: does not run
};

}  // namespace berth::store
