#!/bin/sh
# usage: docs.sh ZC SOURCE_DIR [--bless]: what is generated from the tables. --bless writes docs/operators.md.
. "$(dirname "$0")/lib.sh"
bless=${3:-}
commands="compile calibrate tune run bench profile report inspect fill conform rules debug verify cache help"

for command in $commands; do
    expect "overview-$command" 0 "  $command " "$zc" help
    expect "help-$command" 0 "usage: zc $command" "$zc" help "$command"
    expect "same-help-$command" 0 "" sh -c '"$1" help "$2" >"$3/a" && "$1" "$2" -h >"$3/b" && cmp "$3/a" "$3/b"' \
        sh "$zc" "$command" "$dir"
done
expect help-topic 1 "no command or topic 'frobnicate'" "$zc" help frobnicate
expect help-two 1 "needs one topic (got 2)" "$zc" help run bench
expect unknown-shell 1 "--completion: got 'tcsh', need one of: bash zsh fish" "$zc" help --completion tcsh

# Manual pages: no warnings of man-db, and every option of --help is there.
for page in zc $commands; do
    [ "$page" = zc ] && set -- || set -- "$page"
    "$zc" help --man "$@" >"$dir/page.1"
    expect "man-$page" 0 ".TH " cat "$dir/page.1"
    if command -v man >/dev/null && command -v groff >/dev/null; then
        LC_ALL=C.UTF-8 MANROFFSEQ='' man --warnings -l "$dir/page.1" >"$dir/page.txt" 2>"$dir/warnings"
        expect "man-renders-$page" 0 "NAME" cat "$dir/page.txt"
        expect "man-warnings-$page" 1 "" grep . "$dir/warnings"
    else
        skip "man-warnings-$page" "no man-db or groff"
    fi
done
for command in $commands; do
    "$zc" help --man "$command" >"$dir/page.1"
    for option in $("$zc" help "$command" | sed -n 's/^  .....*--\([a-z-]*\).*/\1/p;s/^  -., --\([a-z-]*\).*/\1/p' | sort -u); do
        roff=$(echo "--$option" | sed 's/-/\\-/g')
        expect "man-$command-$option" 0 "$roff" cat "$dir/page.1"
    done
done

# Completion: each shell reads its own, and bash and fish answer.
for shell in bash zsh fish; do
    "$zc" help --completion $shell >"$dir/completion.$shell"
    if command -v $shell >/dev/null; then
        expect "$shell-reads" 0 "" $shell -n "$dir/completion.$shell"
    else
        skip "$shell-reads" "no $shell"
    fi
done
: >"$dir/plan file.plan"
mkdir "$dir/folder"
cat >"$dir/ask.bash" <<'ASK'
. "$1"
shift
cd "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_zc
printf '%s\n' "${COMPREPLY[@]}"
ASK
ask() {
    bash "$dir/ask.bash" "$dir/completion.bash" "$dir" "$@"
}
if command -v bash >/dev/null; then
    expect bash-command 0 "compile" ask zc com
    expect bash-option 0 "--skip-pass" ask zc compile --s
    expect bash-value 0 "opt_fold" ask zc compile --skip-pass opt_f
    expect bash-equals 0 "npy" ask zc run x.plan --format = n
    expect bash-file 0 "plan file.plan" ask zc run plan
    expect bash-input 0 "plan file.plan" ask zc run x.plan --input a = plan
    expect bash-folder 0 "folder" ask zc run --inputs fo
    expect bash-topic 0 "env" ask zc help e
fi
if command -v fish >/dev/null; then
    mkdir "$dir/home"
    askfish() {
        HOME=$dir/home XDG_CONFIG_HOME=$dir/home fish -c "cd '$dir'; source completion.fish; complete -C '$1'"
    }
    expect fish-command 0 "compile" askfish "zc com"
    expect fish-option 0 "--skip-pass" askfish "zc compile --sk"
    expect fish-value 0 "npy" askfish "zc run --format n"
    expect fish-file 0 "plan" askfish "zc run pl"
fi

# The environment variables that the source asks for are those of the table.
grep -rhoE '(secure_)?getenv\("[A-Z_0-9]+"\)' "$src"/src | sed 's/.*("//;s/").*//' | sort -u >"$dir/asked"
sed -n 's/^ENV(\([A-Z_0-9]*\), zc,.*/\1/p' "$src/src/cli/env.def" | sort -u >"$dir/listed"
expect env-table 0 "" diff "$dir/asked" "$dir/listed"
for variable in $(sed -n 's/^ENV(\([A-Z_0-9]*\),.*/\1/p' "$src/src/cli/env.def"); do
    expect "env-$variable" 0 "$variable" "$zc" help env
    expect "env-man-$variable" 0 ".B $variable" "$zc" help --man
done

# The list of operators.
"$zc" inspect --operators >"$dir/operators.md"
[ "$bless" = --bless ] && cp "$dir/operators.md" "$src/docs/operators.md"
expect operators 0 "" diff "$src/docs/operators.md" "$dir/operators.md"
expect operators-conv 0 "| Conv | " cat "$dir/operators.md"
expect operators-domain 0 "## com.microsoft" cat "$dir/operators.md"

finish
