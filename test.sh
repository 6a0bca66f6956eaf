#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs, builds, runs the tests, and sums them up in the last line.
set -uo pipefail
cd "$(dirname "$0")" || exit 1

usage() {
	cat <<'EOF'
usage: ./test.sh [OPTION...] [SUITE...]
       ./test.sh --long [OPTION...] [NAME...]

Installs what is missing, builds into build/ and runs the tests: all of them
but the hours-long ones, or the meson suites that are named (unit, sim, ...).
The last line is "N passed, N failed", with ", N skipped" where some were; the
exit status is 0 only if nothing failed.

  --quick           unit tests, style, headers that compile alone: seconds
  --ci              what CI runs: gcc release, a clang build without a warning,
                    clang with ASan and UBSan (build-asan/, without the suite
                    'slow'), TSan (build-tsan/, the suite 'tsan'), static checks
  --sanitize        the two sanitizer builds alone
  --long            CI, then the suite 'long' without time limits: hours. With
                    names only these tests of that suite: sim_10000, sim_bugs,
                    hostile_10min_asan, hostile_kill_200, hostile_daemon_kill_20,
                    hostile_kill_wire_200, rxe_peer, rxe_wire, rxe_neigh,
                    rxe_matrix, wire_mutations. The log of each, with commit and
                    machine, is kept in docs/evidence/NAME-DATE.log
  --compiler CC     gcc or clang for the plain build; clang builds into
                    build-clang/. Without it gcc, in build/
  --no-install      install nothing, whatever is missing
  --verbose         the output of every test and every command of the build
  --help            this
EOF
}

die() {
	echo "test.sh: $*" >&2
	exit 2
}

tier=default
compiler=gcc
install=1
verbose=()
ninja=(ninja) # of 400 lines that nobody sees at a terminal, a log has none
[ -t 1 ] || ninja+=(--quiet)
suites=()
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) usage; exit 0 ;;
	--quick | --ci | --sanitize | --long) tier=${1#--} ;;
	--compiler) [ $# -gt 1 ] || die "--compiler wants a name"; compiler=$2; shift ;;
	--compiler=*) compiler=${1#*=} ;;
	--no-install) install=0 ;;
	-v | --verbose) verbose=(-v) ninja=(ninja -v) ;;
	-*) usage >&2; die "no option '$1'" ;;
	*) suites+=("$1") ;;
	esac
	shift
done
case $compiler in
gcc) plain=build ;;
clang) plain=build-clang ;;
*) die "compiler '$compiler': gcc or clang" ;;
esac
[ "$tier" != quick ] || suites=(unit headers)

if [ "$tier" = long ] && [ -z "${SOFTRNIC_LONG_LOG:-}" ]; then
	mkdir -p docs/evidence
	SOFTRNIC_LONG_LOG=docs/evidence/long-$(date -u +%Y-%m-%d).log
	[ ${#suites[@]} = 0 ] || SOFTRNIC_LONG_LOG=/dev/null # each keeps its own
	export SOFTRNIC_LONG_LOG
	args=(--long --compiler "$compiler" ${verbose[@]+--verbose})
	[ $install = 1 ] || args+=(--no-install)
	[ ${#suites[@]} != 0 ] || echo "== log: $SOFTRNIC_LONG_LOG"
	{
		echo "commit:  $(git -c safe.directory="$PWD" describe --always --dirty --abbrev=40)"
		echo "machine: $(uname -srm), $(nproc) CPUs, $(sed -n 's/^model name.*: //p;T;q' /proc/cpuinfo)"
		echo "started: $(date -u)"
		"$BASH" ./test.sh "${args[@]}" ${suites[@]+"${suites[@]}"} 2>&1 | sed -u -e "s|$PWD/||g"
		exit "${PIPESTATUS[0]}"
	} | tee "$SOFTRNIC_LONG_LOG"
	exit "${PIPESTATUS[0]}"
fi

jobs=$(nproc)
passed=0
failed=0
skipped=0
faults=() # what failed, for the closing lines
said=$(mktemp) # what the failed ones last said, shown with them
trap 'rm -f "$said"' EXIT
started=$SECONDS

step() {
	printf '\n== [%d:%02d] %s\n' $(((SECONDS - started) / 60)) $(((SECONDS - started) % 60)) "$*"
}

# A check that is no meson test counts as one test.
check() {
	local what=$1
	shift
	step "$what"
	if "$@" 2>&1 | tee "$said.1"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		faults+=("$what")
		{ echo "-- $what"; tail -n 40 "$said.1" | sed 's/^/   /'; } >>"$said"
	fi
	rm -f "$said.1"
}

finish() {
	local f line
	echo
	cat "$said"
	for f in ${faults[@]+"${faults[@]}"}; do
		echo "failed: $f"
	done
	line="$passed passed, $failed failed"
	[ $skipped = 0 ] || line="$line, $skipped skipped"
	echo "$line"
	[ $failed = 0 ] && [ $passed -gt 0 ]
	exit
}

# shellcheck disable=SC2317 # called by trap
interrupted() {
	failed=$((failed + 1))
	faults+=("interrupted")
	finish
}
trap interrupted INT TERM

# configure DIR CC [meson option...]: the options are set again in a directory that is there.
configure() {
	local dir=$1 cc=$2
	shift 2
	if [ -f "$dir/build.ninja" ]; then
		meson configure "$dir" "$@"
	else
		rm -rf "$dir"
		CC=$cc meson setup "$dir" "$@"
	fi
}

# A build that fails counts as one failed test.
build() {
	local dir=$1 cc=$2
	step "build $dir ($cc)"
	if configure "$@" && "${ninja[@]}" -C "$dir" -j "$jobs"; then
		return 0
	fi
	failed=$((failed + 1))
	faults+=("build of $dir")
	return 1
}

# run DIR [meson test option...]: meson's own output, and its log counted.
run() {
	local dir=$1 rc=0 p=0 f=0 s=0 log
	shift
	rm -f "$dir"/meson-logs/testlog*
	step "tests of $dir $*"
	meson test -C "$dir" --no-rebuild --print-errorlogs ${verbose[@]+"${verbose[@]}"} "$@" || rc=$?
	for log in "$dir"/meson-logs/testlog*.json; do # a setup's name is part of the log's
		[ ! -s "$log" ] || read -r p f s < <(python3 devtools/count-tests.py "$log")
	done
	passed=$((passed + p))
	failed=$((failed + f))
	skipped=$((skipped + s))
	if [ "$f" != 0 ]; then
		faults+=("$f tests of $dir, see ${log%json}txt")
		python3 devtools/count-tests.py --failed 40 "$log" >>"$said"
	elif [ $rc != 0 ]; then
		failed=$((failed + 1))
		faults+=("meson test -C $dir: exit status $rc")
	elif [ $((p + f + s)) = 0 ]; then
		failed=$((failed + 1))
		faults+=("meson test -C $dir $*: no such test")
	fi
}

selection=()
for s in ${suites[@]+"${suites[@]}"}; do
	selection+=(--suite "$s")
done

tests_plain() {
	build "$plain" "$compiler" -Dtests=true -Dwerror=true && run "$plain" ${selection[@]+"${selection[@]}"}
}

build_asan() {
	build build-asan clang -Dwerror=true -Dbuildtype=debugoptimized \
		-Db_sanitize=address,undefined -Db_lundef=false
}

tests_sanitized() {
	build_asan && run build-asan --setup sanitize ${selection[@]+"${selection[@]}"}
	[ ${#suites[@]} = 0 ] || return 0
	build build-tsan clang -Dwerror=true -Dbuildtype=debugoptimized \
		-Db_sanitize=thread -Db_lundef=false &&
		run build-tsan --setup sanitize --suite tsan
}

# Tests of the long tier by name, each in the build that it is of.
tests_long() {
	local name
	for name; do
		if [[ $name = *_asan ]]; then
			build_asan && run build-asan --setup sanitize --suite long --timeout-multiplier 0 "$name"
		else
			build "$plain" "$compiler" -Dtests=true -Dwerror=true &&
				run "$plain" --suite long --timeout-multiplier 0 "$name"
		fi
	done
}

# shellcheck disable=SC2317 # called by check
clang_compiles() {
	configure build-clang clang -Dwerror=true && "${ninja[@]}" -C build-clang -j "$jobs"
}

if [ $install = 1 ]; then
	groups=(build test)
	[ "$tier" = quick ] || groups+=(interop docs)
	devtools/install-deps.sh "${groups[@]}" || die "installing failed (--no-install goes on without)"
fi

if [ "$tier" = long ] && [ ${#suites[@]} != 0 ]; then
	tests_long "${suites[@]}"
	finish
fi

case $tier in
quick)
	tests_plain
	;;
default)
	tests_plain
	[ ${#suites[@]} != 0 ] || run "$plain" --suite guest
	[ ${#suites[@]} != 0 ] || check "static checks" devtools/check.sh
	;;
sanitize)
	tests_sanitized
	;;
ci | long)
	check "static checks" devtools/check.sh
	tests_plain
	run "$plain" --suite guest
	[ "$compiler" = clang ] || check "clang compiles it without a warning" clang_compiles
	tests_sanitized
	[ "$tier" != long ] || run "$plain" --suite long --timeout-multiplier 0
	[ "$tier" != long ] || run build-asan --setup sanitize --suite long --timeout-multiplier 0
	;;
esac
finish
