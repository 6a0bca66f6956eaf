#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The main job on one machine: two daemons joined by a veth pair, each in a network namespace
# of its own, two applications, verified data, and a table of what they reach.
set -euo pipefail
cd "$(dirname "$0")"

usage() {
	cat <<'TEXT'
usage: ./demo.sh [--quick] [--keep] [--no-install] [--build DIR]

On a fresh Debian 12: installs what is missing, builds, and then, as root,

  namespace a                              namespace b
  rnicd, 192.0.2.1 -- veth -------- veth -- rnicd, 192.0.2.2
  rnic_bw (client)                         rnic_bw (server)

runs a verified ping-pong, verified transfers of every kind, and measures bandwidth, message
rate and latency. The kernel has none of these addresses: all of the traffic is RDMA between
the two daemons, and tells of itself in their counters at the end.

  --quick       short measurements
  --keep        leave daemons and namespaces running and say how to use them; Ctrl-C or
                Enter ends it
  --no-install  install nothing
  --build DIR   build directory (build)

Needs: root (namespaces, raw sockets; it asks sudo for it), 1.5 GiB of memory, two CPUs or
better four. Huge pages are used when there are any free ones: it reserves 256 of them if the
machine lets it, and gives them back. Ctrl-C at any moment cleans up.
TEXT
}

quick=0 keep=0 install=1 build=build
args=("$@")
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) usage; exit 0 ;;
	--quick) quick=1 ;;
	--keep) keep=1 ;;
	--no-install) install=0 ;;
	--build) [ $# -gt 1 ] || { usage >&2; exit 2; }; build=$2; shift ;;
	*) echo "demo.sh: no option '$1'" >&2; usage >&2; exit 2 ;;
	esac
	shift
done

bold=''
plain=''
[ ! -t 1 ] || bold=$'\033[1m' plain=$'\033[0m'
say() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
die() { echo "demo.sh: $*" >&2; exit 1; }

# Before root is asked for: the build tree stays the caller's.
if [ -z "${SOFTRNIC_DEMO_BUILT:-}" ]; then
	if [ $install = 1 ]; then
		say "packages"
		devtools/install-deps.sh build demo
	fi
	say "build in $build/ (the first time, some minutes)"
	[ -f "$build/build.ninja" ] || meson setup "$build" -Dtests=false >/dev/null
	ninja --quiet -C "$build" apps/rnicd/rnicd apps/rnicctl/rnicctl apps/examples/rnic_pingpong \
		apps/examples/rnic_bw apps/examples/rnic_kv
fi
export SOFTRNIC_DEMO_BUILT=1
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || die "needs root for network namespaces: run it as root"
	say "root is needed for namespaces and raw sockets: sudo"
	exec sudo SOFTRNIC_DEMO_BUILT=1 bash "$0" ${args[@]+"${args[@]}"}
fi

bin=$PWD/$build/apps
id=$$
ns=("rnicdemo-a-$id" "rnicdemo-b-$id")
dir=$(mktemp -d /tmp/rnicdemo.XXXXXX)
pids=()
pages=/proc/sys/vm/nr_hugepages
reserved=

cleanup() {
	local n p
	trap - EXIT
	trap '' INT TERM
	for p in ${pids[@]+"${pids[@]}"}; do
		kill "$p" 2>/dev/null || true
	done
	for p in ${pids[@]+"${pids[@]}"}; do
		wait "$p" 2>/dev/null || true
	done
	for n in "${ns[@]}"; do
		ip netns del "$n" 2>/dev/null || true
	done
	[ -z "$reserved" ] || echo "$reserved" >$pages 2>/dev/null || true
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

in_ns() { # a|b COMMAND...: with the daemon of that side. In the background it becomes COMMAND
	local side=$1 n
	shift
	[ "$side" = a ] && n=${ns[0]} || n=${ns[1]}
	set -- env RNIC_SOCKET="$dir/$side.sock" ip netns exec "$n" "$@"
	[ "$BASH_SUBSHELL" = 0 ] || exec "$@"
	"$@"
}

background() { # LOG COMMAND...: its pid into pids
	local log=$1
	shift
	"$@" >"$dir/$log" 2>&1 &
	pids+=($!)
}

wait_for() { # LOG PATTERN: until the line is there, or the last program has ended
	local tries=0
	until grep -qE "$2" "$dir/$1" 2>/dev/null; do
		kill -0 "${pids[-1]}" 2>/dev/null || { cat "$dir/$1" >&2; die "a program ended early"; }
		[ $((tries += 1)) -lt 600 ] || { cat "$dir/$1" >&2; die "nothing in $1 for a minute"; }
		sleep 0.1
	done
}

say "machine"
sed -n 's/^model name.*: //p;T;q' /proc/cpuinfo
echo "$(nproc) CPUs, Linux $(uname -r)"
free_pages() { cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages 2>/dev/null || echo 0; }
if [ "$(free_pages)" -lt 256 ] && [ -w $pages ]; then
	reserved=$(cat $pages)
	echo $((reserved + 256)) >$pages 2>/dev/null || true
fi
memory=(--no-huge --memory 512)
if [ "$(free_pages)" -ge 256 ]; then
	echo "huge pages: $(free_pages) free"
	memory=(--memory 192)
else
	echo "huge pages: none to be had; ordinary pages do, more slowly (sysctl vm.nr_hugepages=256)"
fi

say "network: namespaces ${ns[*]}, a veth pair with MTU 4200"
for n in "${ns[@]}"; do
	ip netns add "$n"
	ip -n "$n" link set lo up
done
ip -n "${ns[0]}" link add rdma0 mtu 4200 type veth peer name rdma0 mtu 4200 netns "${ns[1]}"
# A second pair for the programs' TCP connections: a real network would have one for both.
ip -n "${ns[0]}" link add ctl0 type veth peer name ctl0 netns "${ns[1]}"
ip -n "${ns[0]}" addr add 198.51.100.1/24 dev ctl0
ip -n "${ns[1]}" addr add 198.51.100.2/24 dev ctl0
for n in "${ns[@]}"; do
	ip netns exec "$n" sysctl -qw net.ipv6.conf.rdma0.disable_ipv6=1 2>/dev/null || true
	ip -n "$n" link set rdma0 up
	ip -n "$n" link set ctl0 up
done

say "two daemons"
for side in a b; do
	address=192.0.2.1
	[ $side = a ] || address=192.0.2.2
	port="af_packet:rdma0,ip=$address/24,framesz=8192,blocksz=8192,framecnt=1024,mtu=4200"
	echo "rnicd --port $port"
	background rnicd-$side.log in_ns $side "$bin/rnicd/rnicd" --name rnic-$side \
		--socket "$dir/$side.sock" --admin "$dir/$side.admin" "${memory[@]}" --no-telemetry --port "$port"
	wait_for rnicd-$side.log 'ready|clients'
done
in_ns a "$bin/rnicctl/rnicctl" -s "$dir/a.admin" show ports || true

examples=$bin/examples
say "ping-pong, all data compared: rnic_pingpong -c"
background pp.log in_ns b "$examples/rnic_pingpong" -c
wait_for pp.log listening
in_ns a "$examples/rnic_pingpong" -c 198.51.100.2
wait "${pids[-1]}" || { cat "$dir/pp.log"; die "the ping-pong's server failed"; }

background bw.log in_ns b "$examples/rnic_bw"
wait_for bw.log listening
duration=2 rounds=5000 verify=1
[ $quick = 0 ] || duration=0.3 rounds=500 verify=0.2
bw() { in_ns a "$examples/rnic_bw" "$@" 198.51.100.2; }
say "every byte of every message compared: rnic_bw --verify"
bw --verify -o write,read,send -s 64,64k -D $verify -q 4 -t 16
say "bandwidth, message rate, latency: rnic_bw"
bw -D $duration -n $rounds

say "a key-value store whose server is stopped: rnic_kv"
background kv.log in_ns b "$examples/rnic_kv" serve
wait_for kv.log listening
kv=${pids[-1]}
mkfifo "$dir/kv.in"
# shellcheck disable=SC2016 # expands in the shell that it starts
background kvc.log in_ns a bash -c 'exec "$0" 198.51.100.2 <"$1"' "$examples/rnic_kv" "$dir/kv.in"
exec 7>"$dir/kv.in"
echo "put fruit apple" >&7
wait_for kvc.log 'remote address'
kill -STOP "$kv"
printf 'get fruit\nput fruit pear\nget fruit\nbench 1000 %s\nstats\n' $duration >&7
exec 7>&-
wait "${pids[-1]}" || { cat "$dir/kvc.log"; die "rnic_kv failed"; }
kill -CONT "$kv"
sed 1,2d "$dir/kvc.log"

say "what the daemons say"
in_ns a "$bin/rnicctl/rnicctl" -s "$dir/a.admin" show counters 2>/dev/null | head -n 12 || true

if [ $keep = 1 ]; then
	say "kept, until Enter or Ctrl-C"
	echo "RNIC_SOCKET=$dir/a.sock ip netns exec ${ns[0]} $examples/rnic_bw 198.51.100.2"
	echo "$bin/rnicctl/rnicctl -s $dir/a.admin show qps"
	read -r _ || true
fi
say "done: all data was right"
