// SPDX-License-Identifier: Apache-2.0
#include "app/poollet/metrics_page.h"

#include <limits>
#include <utility>

#include "app/process/process_figures.h"
#include "base/log.h"
#include "base/strings.h"

namespace berth::app {

Result<std::unique_ptr<MetricsPage>> MetricsPage::Start(rt::AsioLoop& loop,
                                                        const std::string& listen,
                                                        poollet::Poollet& poollet,
                                                        metrics::Registry& registry) {
  const size_t colon = listen.rfind(':');
  const auto port = colon == std::string::npos ? std::nullopt : ParseInt(listen.substr(colon + 1));
  if (!port.has_value() || *port < 0 || *port > std::numeric_limits<uint16_t>::max()) {
    return BadRequest("metrics address " + Quote(listen) + ": want ADDR:PORT");
  }
  std::unique_ptr<MetricsPage> page(new MetricsPage(poollet, registry));
  net::HttpServerOptions options;
  options.address = listen.substr(0, colon);
  options.port = static_cast<uint16_t>(*port);
  options.connections_max = 16;
  net::HttpHandler handler = [raw = page.get()](net::HttpRequest request) {
    return raw->Handle(std::move(request));
  };
  TRY(page->server_, net::HttpServer::Start(loop, std::move(options), std::move(handler)));
  LOG_INFO("metrics at http://{}/metrics", page->server_->address());
  return page;
}

void MetricsPage::Measure() {
  MeasureProcess(registry_);
  const auto set = [this](std::string_view name, std::string_view help, double value) {
    registry_.GetGauge(name, help).Set(value);
  };
  poollet::Host& host = poollet_.host();
  const auto count = [&host](poollet::Phase phase) {
    return static_cast<double>(host.CountIn(phase));
  };
  set("berth_poollet_objects_assigned",
      "Objects assigned to this host.",
      count(poollet::Phase::kAssigned));
  set("berth_poollet_objects_removing",
      "Objects being removed from this host.",
      count(poollet::Phase::kRemoving));
  set("berth_poollet_orphans",
      "Runtime objects of this cluster that nobody asked for.",
      static_cast<double>(host.orphans()));
  set("berth_poollet_holds", "Offers held.", static_cast<double>(host.ledger().holds()));
  set("berth_poollet_in_contact",
      "1 while a session is synchronised.",
      poollet_.session().is_synced() ? 1 : 0);
  set("berth_poollet_sessions",
      "Sessions that were welcomed.",
      static_cast<double>(poollet_.session().sessions()));
  set("berth_poollet_fence_ready", "1 if the fencer works.", host.leases().is_ready() ? 1 : 0);
}

rt::Task<net::HttpResponse> MetricsPage::Handle(net::HttpRequest request) {
  net::HttpResponse response;
  std::string text = "ok\n";
  if (request.target == "/metrics") {
    Measure();
    text = registry_.Text();
  } else if (request.target != "/livez") {
    response.status = 404;
    text = "not here: /metrics, /livez\n";
  }
  response.body.push_back(Bytes(text));
  co_return response;
}

rt::Task<Status> MetricsPage::Stop() { co_return co_await server_->Stop(); }

}  // namespace berth::app
