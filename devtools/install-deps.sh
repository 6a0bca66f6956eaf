#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs what SoftRNIC needs to build and to test, with apt, on Debian 12 or
# a relative of it. Asks dpkg first, so that a second run costs nothing.
set -euo pipefail

usage() {
	cat <<'EOF'
usage: devtools/install-deps.sh [--list] [GROUP...]

Groups (all of them when none is named):
  build    compiler, meson, DPDK and the libraries that the product links
  test     unit tests, sanitizers, static checks, model checker
  interop  packet tools and the virtual machine that the peer tests boot
  docs     manual pages
  demo     tools by which demo.sh makes its network

  --list   print the packages and install nothing
EOF
}

packages() {
	case $1 in
	build)
		# dpkg-dev tells meson the libdir where pkg-config and ld.so look
		echo gcc libc6-dev dpkg-dev meson ninja-build pkg-config python3
		echo libdpdk-dev libbsd-dev libjansson-dev libpcap-dev libnuma-dev
		;;
	test)
		echo check zlib1g-dev git clang clang-format libclang-rt-14-dev llvm-14
		echo shellcheck spin procps util-linux
		;;
	interop)
		echo iproute2 iputils-ping ethtool tcpdump tshark python3-scapy
		echo qemu-system-x86 cpio kmod xz-utils zstd make libelf1
		;;
	docs)
		echo mandoc
		;;
	demo)
		echo iproute2 procps
		;;
	*)
		echo "install-deps: no group '$1'" >&2
		usage >&2
		return 2
		;;
	esac
}

installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

list=0
groups=()
for arg; do
	case $arg in
	-h | --help) usage; exit 0 ;;
	--list) list=1 ;;
	*) groups+=("$arg") ;;
	esac
done
[ ${#groups[@]} -gt 0 ] || groups=(build test interop docs demo)

wanted=()
for group in "${groups[@]}"; do
	names=$(packages "$group")
	for p in $names; do
		wanted+=("$p")
	done
done
if [ $list = 1 ]; then
	printf '%s\n' "${wanted[@]}"
	exit 0
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	echo "install-deps: no apt here; install the equivalents of: ${wanted[*]}" >&2
	exit 1
fi

missing=()
for p in "${wanted[@]}"; do
	installed "$p" || missing+=("$p")
done
[ ${#missing[@]} -gt 0 ] || exit 0

become=()
if [ "$(id -u)" != 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "install-deps: neither root nor sudo; as root run:" >&2
		echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
		exit 1
	fi
	become=(sudo)
	[ -t 0 ] || become+=(-n) # nobody there to type a password
fi

echo "install-deps: installing ${missing[*]}"
apt() {
	"${become[@]}" env DEBIAN_FRONTEND=noninteractive \
		apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" </dev/null
}
apt update
apt install -y --no-install-recommends "${missing[@]}"
