// SPDX-License-Identifier: Apache-2.0
#include "cli/testing/fake_program.h"

#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "base/check.h"

namespace berth::cli {
namespace {

constexpr std::string_view kKubeconfig = R"(apiVersion: v1
kind: Config
current-context: test
clusters:
- name: near
  cluster: {server: "https://127.0.0.1:8443"}
users:
- name: admin
  user: {token: s3cret}
contexts:
- name: test
  context: {cluster: near, user: admin}
- name: other
  context: {cluster: near, user: admin, namespace: team-b}
)";

}  // namespace

FakeProgram::FakeProgram() {
  std::string pattern = (std::filesystem::temp_directory_path() / "fake_program_XXXXXX").string();
  CHECK(::mkdtemp(pattern.data()) != nullptr) << pattern;
  folder_ = pattern;
  environment.variables = {{"KUBECONFIG", Write("kubeconfig", kKubeconfig)}, {"TMPDIR", folder_}};
  environment.wall_now = [] { return kFakeNow; };
  environment.now = [this] {
    now = now + Duration::Millis(1);
    return now;
  };
  environment.connect = [this](const Connection&) -> Result<std::unique_ptr<Transport>> {
    return server.Connect();
  };
  environment.run_program = [](const std::vector<std::string>&) {
    return Internal("this program runs no other");
  };
  server.ServeDiscovery();
}

FakeProgram::~FakeProgram() { std::filesystem::remove_all(folder_); }

FakeProgram::Ended FakeProgram::Run(const Entry& entry,
                                    const std::vector<std::string>& line,
                                    std::string_view in) {
  std::istringstream input{std::string(in)};
  std::ostringstream out;
  std::ostringstream err;
  environment.in = &input;
  environment.out = &out;
  environment.err = &err;
  Ended ended;
  ended.code = entry(line, environment);
  ended.out = out.str();
  ended.err = err.str();
  return ended;
}

std::string FakeProgram::Write(const std::string& name, std::string_view text) const {
  std::string path = fmt::format("{}/{}", folder_, name);
  std::ofstream(path) << text;
  std::filesystem::permissions(
      path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  return path;
}

std::string FakeProgram::Read(const std::string& name) const {
  std::ifstream file(fmt::format("{}/{}", folder_, name));
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

}  // namespace berth::cli
