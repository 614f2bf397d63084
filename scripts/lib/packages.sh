# SPDX-License-Identifier: Apache-2.0
# Installs Debian packages. Sourced after say.sh; needs $root, the top of the repository.

package_is_installed() {
  [[ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]
}

# packages_in SECTION...: the names listed there in scripts/packages.txt.
packages_in() {
  local section line current=''
  while IFS= read -r line; do
    line=${line%%#*}
    line=${line//[[:space:]]/}
    case $line in
      '') ;;
      \[*\]) current=${line:1:-1} ;;
      *)
        for section in "$@"; do
          [[ $section != "$current" ]] || printf '%s\n' "$line"
        done
        ;;
    esac
  done <"$root/scripts/packages.txt"
}

# Runs apt-get as root, without questions, waiting for another apt to finish.
run_apt() {
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "packages are missing and neither root nor sudo is at hand: $*"
    as_root=(sudo)
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=600 \
    -o Acquire::Retries=3 "$@" </dev/null
}

apt_lists_are_fresh=no
update_apt_lists() {
  [[ $apt_lists_are_fresh == no ]] || return 0
  say "updating the package lists"
  mkdir -p "$root/build/log"
  run_apt update >"$root/build/log/apt.log" 2>&1 ||
    say "apt-get update failed (build/log/apt.log); going on with the lists that are there"
  apt_lists_are_fresh=yes
}

download_package() {
  (cd "$2" && apt-get -q -o APT::Sandbox::User="$(id -un)" download "$1" >/dev/null 2>&1)
}

# unpack_package NAME FOLDER: the files of a package in a folder of our own, for one that cannot be
# installed beside what is there. Done once; FOLDER exists only when it is complete.
unpack_package() {
  local name=$1 folder=$2 scratch
  [[ ! -d $folder ]] || return 0
  mkdir -p "$(dirname "$folder")"
  scratch=$(mktemp -d "$folder.XXXXXX")
  if ! download_package "$name" "$scratch"; then
    update_apt_lists >&2
    download_package "$name" "$scratch" || { rm -rf "$scratch"; return 1; }
  fi
  dpkg-deb -x "$scratch"/"$name"_*.deb "$scratch/files"
  mv -T "$scratch/files" "$folder" 2>/dev/null || [[ -d $folder ]]
  rm -rf "$scratch"
}

# Boost 1.81 has only headers for us. Where the development files of another Boost are installed, the
# two conflict; then it is unpacked beside them and cmake/dependencies.cmake finds it there.
boost_is_beside() {
  local other
  for other in 1.74 1.83 1.88; do
    package_is_installed "libboost$other-dev" && return 0
  done
  return 1
}

# install_packages SECTION...: installs what is missing, says nothing if nothing is.
install_packages() {
  command -v dpkg-query >/dev/null || die "this is not a Debian system: install what scripts/packages.txt names"
  local name missing=()
  while IFS= read -r name; do
    ! package_is_installed "$name" || continue
    case $name in
      kubernetes-client)
        # Another package may own /usr/bin/kubectl; the tests then unpack Debian's (debian_kubectl).
        [[ -e /usr/bin/kubectl ]] && continue
        ;;
      libboost1.81-dev)
        if boost_is_beside; then
          unpack_package "$name" "$root/build/tools/boost-1.81" || die "cannot download $name"
          continue
        fi
        ;;
    esac
    missing+=("$name")
  done < <(packages_in "$@")
  ((${#missing[@]} > 0)) || return 0
  update_apt_lists
  say "installing ${#missing[@]} packages: ${missing[*]}"
  if ! run_apt install --no-install-recommends --no-remove "${missing[@]}" >>"$root/build/log/apt.log" 2>&1; then
    tail -n 30 "$root/build/log/apt.log" >&2
    die "apt-get install failed; the whole output is in build/log/apt.log"
  fi
}
