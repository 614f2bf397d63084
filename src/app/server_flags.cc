// SPDX-License-Identifier: Apache-2.0
#include "app/server_flags.h"

namespace berth::app {

Result<ServerOptions> ReadServerOptions(const cli::Arguments& arguments,
                                        const cli::Environment& environment) {
  ServerOptions options;
  options.data_dir = arguments.Text("data-dir");
  if (options.data_dir.empty()) options.data_dir = DefaultDataDir(environment);
  TRY_STATUS(ParseListen(arguments.Text("listen"), options));
  TRY_STATUS(ParseGatewayListen(arguments.Text("gateway-listen"), options));
  TRY_STATUS(ParseDomains(arguments.Text("domains"), options));
  options.names = arguments.List("tls-name");
  options.commit_trace = arguments.Text("debug-commit-trace");
  return options;
}

}  // namespace berth::app
