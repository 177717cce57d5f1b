#!/bin/sh
# usage: quickstart.sh SOURCE_DIR ZC: scripts/quickstart.sh says what it is about to do before it does it, and its results are
# those of the bundled images. Its build here is ZC, laid down by a ninja of this test's.
set -eu
src=$1
zc=$(realpath "$2")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/bin" "$dir/copy/scripts"
cp "$src/scripts/quickstart.sh" "$src/scripts/packages.txt" "$dir/copy/scripts/"
ln -s "$src/models" "$dir/copy/models"
faults=0
fault() {
    echo "quickstart: $1"
    faults=$((faults + 1))
}

# What it calls writes how far the output had come by then.
fake() {
    cat >"$dir/bin/$1"
    chmod +x "$dir/bin/$1"
}
fake meson <<END
#!/bin/sh
cp "$dir/out" "$dir/before-meson"
mkdir build && touch build/build.ninja
END
fake ninja <<END
#!/bin/sh
mkdir -p build/src/cli && ln -s "$zc" build/src/cli/zc
END
printf '#!/bin/sh\ncp "%s/out" "%s/before-setup"\n' "$dir" "$dir" >"$dir/copy/scripts/setup.sh"
chmod +x "$dir/copy/scripts/setup.sh"

PATH=$dir/bin:$PATH "$dir/copy/scripts/quickstart.sh" >"$dir/out" 2>&1 || fault "exit code $?: $(cat "$dir/out")"
grep -q '^Looking for packages' "$dir/before-setup" || fault "says nothing before it looks for packages"
grep -q '^Building zc' "$dir/before-meson" || fault "says nothing before it builds"
for image in "$src"/models/digits/sample_*.npy; do
    name=$(basename "$image" .npy)
    best=$(grep -A 8 -- "--input image=models/digits/$name.npy" "$dir/out" | grep -A 1 'top 3' | sed -n 's/^.* %  //p')
    [ "$best" = "${name#sample_}" ] || fault "$name: its first of three is '$best'"
done
echo "quickstart: $(grep -c 'ran in' "$dir/out") images, $faults faults"
[ "$faults" -eq 0 ]
