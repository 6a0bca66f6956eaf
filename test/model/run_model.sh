#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: run_model.sh MODEL.pml pass|fail [DEFINE...]
# Searches all states of a model. "fail" is for models with a step left out or
# weakened: spin must find an error in them, else the model proves nothing.
set -euo pipefail

model=$(realpath "$1")
expect=$2
shift 2
defines=("${@/#/-D}")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cp "$(dirname "$model")"/*.h .

spin "${defines[@]}" -a "$model" >spin.log 2>&1 || { cat spin.log; exit 1; }
${CC:-cc} -O1 -w -DSAFETY -DNOCLAIM -DCOLLAPSE -DVECTORSZ=2048 -o pan pan.c
./pan -m1000000 -n >pan.log 2>&1 || true

errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log)
states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log)
if [ -z "$errors" ] || grep -Eq 'max search depth too small|out of memory|truncated' pan.log; then
	cat spin.log pan.log
	echo "$(basename "$model") $*: the search did not end"
	exit 1
fi
what=$(sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p' pan.log)
echo "$(basename "$model") $*: $states states, ${what:-no error}, wanted: $expect"
case $expect in
pass) [ "$errors" = 0 ] && exit 0 ;;
fail) [ "$errors" != 0 ] && exit 0 ;;
esac
cat pan.log
[ ! -e "$(basename "$model").trail" ] || spin "${defines[@]}" -t -p -k ./*.trail "$model" | tail -n 80
exit 1
