// SPDX-License-Identifier: Apache-2.0
// FakeTransport answers from a table and remembers what it was asked. A question that is not in the
// table is answered as the server would: 404 with a metav1.Status.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/transport.h"

namespace berth::cli {

// What a fake server answers, and what it was asked. Outlives the transports made of it.
struct FakeServer {
  struct Answer {
    int status = 200;
    std::string body;
    std::vector<std::pair<std::string, std::string>> headers;
  };
  struct Asked {
    std::string line;  // "GET /api/v1/namespaces?limit=500"
    std::string accept;
    std::string content_type;
    std::string body;
  };

  // Answers to "METHOD /target", used in order; the last one stays.
  std::map<std::string, std::vector<Answer>> answers;
  // Chunks of a watch, by target; after the last chunk the stream is silent (Timeout) or ends.
  struct Watch {
    std::vector<std::string> chunks;
    bool ends = false;
  };
  std::map<std::string, Watch> watches;
  std::vector<Asked> asked;
  bool is_down = false;

  void On(const std::string& line, std::string body, int status = 200);
  // Lines of everything that was asked, discovery left out.
  std::vector<std::string> Lines() const;
  // The last request whose line begins like this; an empty one if there was none.
  Asked Last(std::string_view prefix) const;

  // Discovery of a small server: namespaces, secrets, configmaps and events; machines,
  // machineclasses (compute.ironcore.dev and its alias compute.OpenKCM.dev), volumes
  // (storage.ironcore.dev).
  void ServeDiscovery();

  std::unique_ptr<Transport> Connect();
};

// The body of a metav1.Status answer.
std::string StatusBody(int code, std::string_view reason, std::string_view message);

}  // namespace berth::cli
