# SPDX-License-Identifier: Apache-2.0
# The guest that scripts/up boots. Sourced after say.sh and server.sh; needs $root.

demo_berth() {
  KUBECONFIG=$kubeconfig "$binary" "$@"
}

# Whether somebody asked for a server alone, now or when it was started.
wants_no_host() {
  [[ "${BERTH_UP_HOST:-}" == none || $1 == 'none was asked for' ]]
}

# boot_demo SECONDS: makes the machine `hello` if it is not there, shows how far its image and its boot are, and prints what
# the guest says. Ends the script if there is nothing to boot, unless that was asked for.
boot_demo() {
  local timeout=$1 deadline=$((SECONDS + $1)) state='' why='' status
  read -r state _ _ _ why <"$data_dir/up.progress"
  if [[ $state != ready ]]; then
    wants_no_host "$why" && return 0
    die "the server runs, but this machine is no host and boots no guest: $why (BERTH_UP_HOST=none starts a server alone)"
  fi
  [[ -d $host_dir/images/demo ]] || die "there is no demo image to boot; $host_dir/log/demo-image.log says why"
  demo_berth apply -f "$root/examples/hello.yaml" >/dev/null || die "the machine hello cannot be made"
  # 5: its host is not reached. That may have just come up.
  status=5
  while ((status == 5 && SECONDS < deadline)); do
    status=0
    demo_berth start hello --wait --console 'Hello from Berth! ' --timeout="$((deadline - SECONDS))s" || status=$?
    ((status != 5)) || sleep 1
  done
  ((status != 0)) || return 0
  demo_berth describe machine hello >&2 || true
  die "the guest did not say hello within $timeout s"
}
