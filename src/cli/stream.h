/* What files and streams that commands read have in common. */
#ifndef ZC_CLI_STREAM_H
#define ZC_CLI_STREAM_H

#include <stdint.h>
#include <string.h>

/* Longer than any message of protobuf. */
#define CLI_STREAM_MAX ((uint64_t)1 << 32)

/* How messages call the file or stream of this path. */
static inline const char *cli_stream_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

#endif
