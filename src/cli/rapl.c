#include "cli/rapl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

/* The first line of a zone's file. */
static bool read_line(const char *folder, int zone, const char *file, char *line, int size)
{
    char path[4096];
    int len = snprintf(path, sizeof path, "%s/intel-rapl:%d/%s", folder, zone, file);
    FILE *in = len > 0 && (size_t)len < sizeof path ? fopen(path, "re") : NULL;
    bool read = in && fgets(line, size, in);
    if (in) (void)fclose(in);
    if (read) line[strcspn(line, "\n")] = '\0';
    return read;
}

static bool read_number(const char *folder, int zone, const char *file, uint64_t *out)
{
    char line[64];
    int64_t value;
    if (!read_line(folder, zone, file, line, sizeof line) || !cli_int(line, 0, INT64_MAX, &value))
        return false;
    *out = (uint64_t)value;
    return true;
}

void cli_rapl_open(const char *folder, cli_rapl *out)
{
    char name[64];
    *out = (cli_rapl){.folder = folder};
    for (int i = 0; i < CLI_RAPL_ZONES; i++) {
        cli_rapl_zone *z = &out->zones[out->n];
        /* Other zones are parts of packages, or the whole machine. */
        if (!read_line(folder, i, "name", name, sizeof name) || strncmp(name, "package", 7) != 0)
            continue;
        z->number = i;
        if (!read_number(folder, i, "energy_uj", &z->last) ||
            !read_number(folder, i, "max_energy_range_uj", &z->range)) {
            out->n = 0;
            return;
        }
        out->n++;
    }
}

double cli_rapl_read(cli_rapl *r)
{
    for (size_t i = 0; i < r->n; i++) {
        cli_rapl_zone *z = &r->zones[i];
        uint64_t now;
        if (!read_number(r->folder, z->number, "energy_uj", &now)) r->n = 0;
        if (!r->n) break;
        r->joules +=
            ((double)now - (double)z->last + (now < z->last ? (double)z->range : 0)) * 1e-6;
        z->last = now;
    }
    return r->n ? r->joules : NAN;
}
