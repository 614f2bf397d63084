# SPDX-License-Identifier: Apache-2.0
# The guest that scripts/up boots. Sourced after say.sh and server.sh; needs $root.

demo_berth() {
  KUBECONFIG=$kubeconfig "$binary" "$@"
}

# show_boot STATE SECONDS TIMEOUT: one line that changes on a terminal, a line per state elsewhere.
boot_shown=''
show_boot() {
  local state=$1 seconds=$2 timeout=$3 width=20 filled
  if [[ -t 1 ]]; then
    filled=$((seconds * width / timeout))
    printf '\r\e[K%-13s [%-*s] %s, %d s' boot "$width" "$(printf '%*s' "$filled" '' | tr ' ' '#')" "$state" "$seconds"
  elif [[ $state != "$boot_shown" ]]; then
    printf '%-13s %s\n' boot "$state"
  fi
  boot_shown=$state
}

# boot_demo SECONDS: makes the machine `hello` if it is not there, and prints what the guest says. Where there is no host
# there is nothing to boot.
boot_demo() {
  local timeout=$1 state='' said='' start=$SECONDS
  read -r state _ <"$data_dir/up.progress"
  [[ $state == ready ]] || return 0
  if [[ ! -d $host_dir/images/demo ]]; then
    say "there is no demo image to boot; $host_dir/log/demo-image.log says why"
    return 0
  fi
  demo_berth apply -f "$root/examples/hello.yaml" >/dev/null || die "the machine hello cannot be made"
  until said=$(demo_berth logs hello 2>/dev/null | tr -d '\r' | grep -a '^Hello from Berth! '); do
    if ((SECONDS - start >= timeout)); then
      demo_berth describe machine hello >&2
      die "the guest did not say hello within $timeout s"
    fi
    show_boot "$(demo_berth get machine hello -o 'jsonpath={.status.state}')" "$((SECONDS - start))" "$timeout"
    sleep 0.5
  done
  [[ ! -t 1 ]] || printf '\r\e[K'
  printf '%-13s %s\n' console "$(tail -n 1 <<<"$said")"
}
