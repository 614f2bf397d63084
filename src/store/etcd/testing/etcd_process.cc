// SPDX-License-Identifier: Apache-2.0
#include "store/etcd/testing/etcd_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <system_error>

#include "base/check.h"
#include "base/strings.h"

namespace berth::store {
namespace {

constexpr const char* kEtcd = "/usr/bin/etcd";
constexpr const char* kEtcdctl = "/usr/bin/etcdctl";

bool IsFree(uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(fd >= 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  ::close(fd);
  return free;
}

// Below the ports that the kernel gives to others; programs that run at once begin elsewhere.
uint16_t FreePort() {
  constexpr int kFirst = 14'000;
  constexpr int kCount = 18'000;
  static int next = static_cast<int>(::getpid()) * 37 % kCount;
  for (int tries = 0; tries < kCount; ++tries) {
    next = (next + 1) % kCount;
    const auto port = static_cast<uint16_t>(kFirst + next);
    if (IsFree(port)) return port;
  }
  CHECK(false) << "no free port";
  return 0;
}

pid_t Spawn(const std::vector<std::string>& arguments, const std::string& output) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  CHECK(pid >= 0);
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(126);
  const int fd = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ::dup2(fd, STDOUT_FILENO);
  ::dup2(fd, STDERR_FILENO);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

}  // namespace

EtcdProcesses::EtcdProcesses(Options options) : options_(std::move(options)) {
  CHECK(::access(kEtcd, X_OK) == 0) << kEtcd << " is missing: install Debian's etcd-server";
  const std::filesystem::path parent = options_.dir.empty() ? std::filesystem::temp_directory_path()
                                                            : std::filesystem::path(options_.dir);
  std::string name = parent / "berth-etcd-XXXXXX";
  CHECK(::mkdtemp(name.data()) != nullptr);
  folder_ = name;
  if (options_.links != nullptr) links_ = std::make_unique<PeerLinks>(*options_.links);
  for (int i = 0; i < options_.members; ++i) {
    endpoints_.push_back("127.0.0.1:" + std::to_string(FreePort()));
    const uint16_t peer = FreePort();
    peers_.push_back("127.0.0.1:" + std::to_string(peer));
    reached_.push_back(links_ == nullptr ? peers_.back()
                                         : "127.0.0.1:" + std::to_string(links_->Add(peer)));
    pids_.push_back(0);
  }
  for (size_t i = 0; i < pids_.size(); ++i) Start(i);
}

EtcdProcesses::~EtcdProcesses() {
  for (size_t i = 0; i < pids_.size(); ++i) Kill(i);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::vector<std::string> EtcdProcesses::Arguments(size_t member) const {
  std::vector<std::string> cluster;
  for (size_t i = 0; i < reached_.size(); ++i) {
    cluster.push_back("m" + std::to_string(i) + "=http://" + reached_[i]);
  }
  const std::string name = "m" + std::to_string(member);
  const std::string client = options_.scheme + "://" + endpoints_[member];
  const std::string peer = "http://" + peers_[member];
  std::vector<std::string> arguments = {kEtcd,
                                        "--name=" + name,
                                        "--data-dir=" + (folder_ / name).string(),
                                        "--listen-client-urls=" + client,
                                        "--advertise-client-urls=" + client,
                                        "--listen-peer-urls=" + peer,
                                        "--initial-advertise-peer-urls=http://" + reached_[member],
                                        "--initial-cluster=" + Join(cluster, ","),
                                        "--initial-cluster-token=" + folder_.filename().string(),
                                        "--heartbeat-interval=50",
                                        "--election-timeout=500",
                                        "--logger=zap",
                                        "--log-level=warn"};
  arguments.insert(arguments.end(), options_.arguments.begin(), options_.arguments.end());
  return arguments;
}

void EtcdProcesses::Start(size_t member) {
  CHECK(pids_[member] == 0);
  pids_[member] = Spawn(Arguments(member), folder_ / ("m" + std::to_string(member) + ".log"));
  if (links_ != nullptr) links_->SetProcess(member, pids_[member]);
}

void EtcdProcesses::Kill(size_t member) {
  if (pids_[member] == 0) return;
  ::kill(pids_[member], SIGKILL);
  ::waitpid(pids_[member], nullptr, 0);
  pids_[member] = 0;
  if (links_ != nullptr) links_->SetProcess(member, 0);
}

void EtcdProcesses::CutOff(size_t member) { links_->Cut(member); }
void EtcdProcesses::Heal(size_t member) { links_->Heal(member); }

void EtcdProcesses::Pause(size_t member) { ::kill(pids_[member], SIGSTOP); }
void EtcdProcesses::Resume(size_t member) { ::kill(pids_[member], SIGCONT); }

bool EtcdProcesses::Control(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {kEtcdctl, "--endpoints=" + Join(endpoints_, ",")});
  const pid_t pid = Spawn(arguments, folder_ / "etcdctl.log");
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace berth::store
