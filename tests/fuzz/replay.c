/* Runs a harness on files: replay PATH..., each a file or a directory of files. */
#include <dirent.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "fuzz.h"

static size_t files;

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st) != 0) return perror(path), 1;
    uint8_t *data = malloc((size_t)st.st_size + 1);
    if (!data || fread(data, 1, (size_t)st.st_size, f) != (size_t)st.st_size)
        return perror(path), 1;
    fclose(f);
    /* A buffer of just this size, so that a sanitizer sees a read past the end. */
    uint8_t *exact = malloc((size_t)st.st_size ? (size_t)st.st_size : 1);
    if (!exact) return perror(path), 1;
    memcpy(exact, data, (size_t)st.st_size);
    free(data);
    LLVMFuzzerTestOneInput(exact, (size_t)st.st_size);
    free(exact);
    files++;
    return 0;
}

static int replay(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) return perror(path), 1;
    if (!S_ISDIR(st.st_mode)) return replay_file(path);
    DIR *dir = opendir(path);
    if (!dir) return perror(path), 1;
    int failures = 0;
    for (struct dirent *e; (e = readdir(dir));) {
        char inner[4096];
        if (e->d_name[0] == '.') continue;
        snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
        if (stat(inner, &st) == 0 && S_ISREG(st.st_mode)) failures += replay_file(inner);
    }
    closedir(dir);
    return failures;
}

int main(int argc, char **argv)
{
    int failures = 0;
#ifndef FUZZ_ASAN
    const struct rlimit memory = {UINT64_C(4) << 30, UINT64_C(4) << 30};
    setrlimit(RLIMIT_AS, &memory);
#endif
    for (int i = 1; i < argc; i++) failures += replay(argv[i]);
    printf("%zu files\n", files);
    return failures || files == 0;
}
