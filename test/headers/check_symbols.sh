#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# B166: a client library that used DPDK's tables of functions would have to be built with the
# daemon's. It names nothing of DPDK, and exports nothing but its own.
# usage: check_symbols.sh LIBRNIC
set -eu
if nm -D --undefined-only "$1" | grep ' rte_'; then
	echo "$1 uses DPDK"
	exit 1
fi
if readelf -d "$1" | grep -E 'NEEDED.*(librte_|libdpdk|libnuma)'; then
	echo "$1 is linked with DPDK"
	exit 1
fi
if nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | grep -v '^rnic_'; then
	echo "$1 exports what is not its own"
	exit 1
fi
