// SPDX-License-Identifier: Apache-2.0
#include "app/bench/holdings.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/strings.h"

namespace berth::app {

Status WriteHoldings(const std::string& path, const Holdings& holdings) {
  const std::string draft = path + ".draft";
  {
    std::ofstream file(draft, std::ios::trunc);
    for (const auto& [uid, hosts] : holdings) {
      for (const std::string& host : hosts) file << uid << ' ' << host << '\n';
    }
    if (!file.flush()) return Unavailable(draft + ": cannot be written");
  }
  std::error_code error;
  std::filesystem::rename(draft, path, error);
  if (error) return Unavailable(path + ": " + error.message());
  return OkStatus();
}

Result<Holdings> ReadHoldings(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Unavailable(path + ": cannot be read");
  Holdings holdings;
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string_view> words = Split(line, ' ');
    if (words.size() != 2 || words[0].empty() || words[1].empty()) {
      return Internal(path + ": \"" + line + "\" is no UID and host");
    }
    holdings[std::string(words[0])].emplace_back(words[1]);
  }
  return holdings;
}

}  // namespace berth::app
