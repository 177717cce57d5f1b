/* Writes C source that holds text files as strings: embed OUT ROOT FILE... (named relative to ROOT). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int put_text(FILE *out, const char *name, FILE *in)
{
    fprintf(out, "    {\"%s\", (const char[]){", name);
    for (int c; (c = fgetc(in)) != EOF;) fprintf(out, "%d,", c);
    fprintf(out, "0}},\n");
    return ferror(in);
}

static int put_file(FILE *out, const char *root, const char *path)
{
    char *top = realpath(root, NULL), *file = realpath(path, NULL);
    size_t n = top ? strlen(top) : 0;
    FILE *in = file ? fopen(file, "rb") : NULL;
    int bad = 1;
    if (top && in && strncmp(file, top, n) == 0 && file[n] == '/') bad = put_text(out, file + n + 1, in);
    if (bad) fprintf(stderr, "embed: %s is no readable file in %s\n", path, root);
    if (in) fclose(in);
    free(top);
    free(file);
    return bad;
}

int main(int argc, char **argv)
{
    FILE *out = argc > 2 ? fopen(argv[1], "wb") : NULL;
    if (!out) {
        fprintf(stderr, "usage: embed OUT ROOT FILE...\n");
        return 1;
    }
    fprintf(out, "#include \"codegen/emit.h\"\n\nconst zc_psource zc_templates[] = {\n");
    for (int i = 3; i < argc; i++)
        if (put_file(out, argv[2], argv[i])) return 1;
    fprintf(out, "    {0, 0},\n};\n");
    return fclose(out) ? 1 : 0;
}
