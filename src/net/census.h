// SPDX-License-Identifier: Apache-2.0
// How many connections there are of one address or one identity.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

namespace berth::net {

// Counts how many of something there are per key, up to a limit.
class Census {
 public:
  // One more; counted until it is destroyed. Null if there are too many.
  class Entry {
   public:
    Entry(Census& census, std::map<std::string, size_t>::iterator place)
        : census_(census), place_(place) {}
    ~Entry() {
      if (--place_->second == 0) census_.counts_.erase(place_);
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    Census& census_;
    std::map<std::string, size_t>::iterator place_;
  };
  std::unique_ptr<Entry> Add(const std::string& key, size_t limit) {
    const auto place = counts_.try_emplace(key, 0).first;
    if (place->second >= limit) return nullptr;
    ++place->second;
    return std::make_unique<Entry>(*this, place);
  }

 private:
  std::map<std::string, size_t> counts_;
};

// "192.0.2.1" of "192.0.2.1:4242".
inline std::string HostOf(const std::string& address) {
  return address.substr(0, address.rfind(':'));
}

}  // namespace berth::net
