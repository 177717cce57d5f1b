/* Writes C source that holds text files as strings, named relative to ROOT, in a table of {name,
 * text}: embed OUT HEADER DECLARATION ROOT FILE... */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int put_text(FILE *out, const char *name, FILE *in)
{
    fprintf(out, "    {\"%s\", (const char[]){", name);
    for (int c; (c = fgetc(in)) != EOF;) fprintf(out, c < 128 ? "%d," : "(char)%d,", c);
    fprintf(out, "0}},\n");
    return ferror(in);
}

static int put_file(FILE *out, const char *root, const char *path)
{
    char *top = realpath(root, NULL), *file = realpath(path, NULL);
    size_t n = top ? strlen(top) : 0;
    FILE *in = file ? fopen(file, "rb") : NULL;
    int bad = 1;
    if (top && in && strncmp(file, top, n) == 0 && file[n] == '/')
        bad = put_text(out, file + n + 1, in);
    if (bad) fprintf(stderr, "embed: %s is no readable file in %s\n", path, root);
    if (in) fclose(in);
    free(top);
    free(file);
    return bad;
}

int main(int argc, char **argv)
{
    FILE *out = argc > 5 ? fopen(argv[1], "wb") : NULL;
    if (!out) {
        fprintf(stderr, "usage: embed OUT HEADER DECLARATION ROOT FILE...\n");
        return 1;
    }
    fprintf(out, "#include \"%s\"\n\n%s = {\n", argv[2], argv[3]);
    for (int i = 5; i < argc; i++)
        if (put_file(out, argv[4], argv[i])) return 1;
    fprintf(out, "    {0, 0},\n};\n");
    return fclose(out) ? 1 : 0;
}
