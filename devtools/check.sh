#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Static checks that take seconds. Exits nonzero on a fault; layout that
# clang-format would change is a warning.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
	cat <<'EOF'
usage: devtools/check.sh [--format [FILE...]]

Checks licence lines, white space, width, the arrows between the layers, what a
layer may not use, the shell scripts and the manual pages.

  --format   instead, let clang-format rewrite these C files, or those that
             differ from the last commit
EOF
}

list() {
	if git -c safe.directory="$PWD" rev-parse >/dev/null 2>&1; then
		git -c safe.directory="$PWD" ls-files -- "$@"
	else
		local args=() p
		for p; do args+=(-o -path "./${p#./}" -o -name "$p"); done
		find . -name 'build*' -prune -o -type f \( "${args[@]:1}" \) -print
	fi
}

format() {
	local files=("$@")
	if [ ${#files[@]} = 0 ]; then
		mapfile -t files < <(git diff --name-only --diff-filter=d HEAD -- '*.c' '*.h')
	fi
	[ ${#files[@]} = 0 ] || clang-format -i --style=file "${files[@]}"
}

case ${1:-} in
'') ;;
-h | --help) usage; exit 0 ;;
--format) shift; format "$@"; exit ;;
*) usage >&2; exit 2 ;;
esac

rc=0
python3 devtools/check_style.py || rc=1

mapfile -t scripts < <(list '*.sh' .ci/run | sort -u)
while read -r f; do # scripts without a suffix
	head -c 64 "$f" 2>/dev/null | head -n 1 | grep -qaE '^#!.*\b(ba)?sh\b' && scripts+=("$f")
done < <(list '*' | grep -vE '\.[a-z0-9]+$|^\.ci/run$')
if command -v shellcheck >/dev/null; then
	if shellcheck -S info "${scripts[@]}"; then
		echo "shellcheck: ${#scripts[@]} scripts"
	else
		rc=1
	fi
else
	echo "warning: no shellcheck here, scripts not looked at"
fi

if command -v mandoc >/dev/null; then
	mandoc -Tlint -Wwarning docs/man/*.[1-8] || rc=1
else
	echo "warning: no mandoc here, manual pages not looked at"
fi

if command -v clang-format >/dev/null; then
	mapfile -t sources < <(list '*.c' '*.h')
	differ=()
	for f in ${sources[@]+"${sources[@]}"}; do
		[ -e "$f" ] || continue
		clang-format --style=file --dry-run -Werror "$f" 2>/dev/null || differ+=("$f")
	done
	[ ${#differ[@]} = 0 ] ||
		echo "warning: clang-format would change ${#differ[@]} of ${#sources[@]} C files"
fi
exit $rc
