#!/bin/sh
# usage: lint.sh SOURCE_DIR: no number is printed or parsed by the program's locale. src/base/number.c does both in the C
# locale; printf and fprintf are for src/cli, whose main() sets that locale.
set -eu
cd "$1"

# faults FILE...: "FILE:LINE: what" for each statement that breaks the rule. A call and its format stand in one statement.
faults() {
    awk '
    function fault(what) { print FILENAME ":" FNR ": " what }
    FNR == 1 { statement = "" }
    {
        statement = statement " " $0
        if ($0 !~ /[;{}]/) next
        gsub(/%%/, "", statement)
        if (match(statement, /(^|[^_a-zA-Z0-9])(strto(d|f|ld)|atof|v?[fs]?scanf|v(f|s|sn|as|d)?printf|setlocale|localeconv|is(alpha|alnum|upper|lower|space|punct|print)|to(upper|lower)|str(n?case)?coll) *\(/))
            fault(substr(statement, RSTART + 1, RLENGTH - 1) " goes by the locale: see src/base/number.h")
        real = statement ~ /"[^"]*%[-+ #0]*[0-9*]*(\.[0-9*]+)?[lL]?[aefgAEFG]/
        if (real && statement ~ /(^|[^_a-zA-Z0-9])(sn|s|as|d)printf *\(/) fault("a real by snprintf: zc_snprintf prints it the same everywhere")
        if (real && FILENAME !~ /^src\/cli\// && statement ~ /(^|[^_a-zA-Z0-9])f?printf *\(/) fault("a real by printf outside src/cli")
        if (FILENAME !~ /\.[ly]$/ && statement ~ /"[^"]*%[-+#0]*\047/) fault("digits grouped by the locale")
        statement = ""
    }' "$@"
}

control=$(mktemp)
trap 'rm -f "$control"' EXIT
cat >"$control" <<'END'
a = strtod(text, &end);
vsnprintf(text, n, format, args);
snprintf(text, n,
         "%d %.9g", i, x);
printf("%a", x);
snprintf(text, n, "%'d", i);
if (isalpha(c)) next();
zc_snprintf(text, n, "%g", x);
zc_strtod(text, &end);
snprintf(text, n, "%d %% full %s", i, s);
END
found=$(faults "$control" | wc -l)
[ "$found" -eq 6 ] || { echo "lint: found $found of 6 mistakes made on purpose:"; faults "$control"; exit 1; }

files=$(find src include templates -name '*.[chly]' -o -name '*.def' -o -name '*.cuh' -o -name '*.cu' | grep -v '^src/base/number\.[ch]$')
# shellcheck disable=SC2086
result=$(faults $files)
[ -z "$result" ] || { echo "$result"; exit 1; }
echo "lint: $(echo "$files" | wc -l) files"
